"""User simulators: the script, and the LLM one against a chat that misbehaves."""

import asyncio

import pytest

from nemo_tau2.chat import ChatFailed
from nemo_tau2.outcomes import InfrastructureFailure
from nemo_tau2.tau2.domains import load_domain
from nemo_tau2.tau2.engine import AssistantMessage, ToolMessage
from nemo_tau2.tau2.nl_judge import NLJudge
from nemo_tau2.tau2.tasks import load_tasks
from nemo_tau2.tau2.users.llm import LLMUser, strip_thinking

PHONE = "[mobile_data_issue]data_mode_off[PERSONA:None]"
HI = AssistantMessage(role="assistant", content="Hi! How can I help you today?")


class Chat:
    """Gives the queued answers and keeps what it was asked."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    async def __call__(self, messages, tools):
        self.asked.append((messages, tools))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, dict) else {"content": answer}


def llm_user(*answers, domain="airline", task_id="0"):
    chat = Chat(*answers)
    return LLMUser(load_domain(domain), load_tasks(domain).get(task_id), chat), chat


def reply(user, incoming=HI):
    return asyncio.run(user.reply(incoming))


class TestLLMUser:
    def test_the_prompt_is_tau2s_own(self):
        """Against `UserSimulator.system_prompt`, which imports litellm."""
        from tau2.user.user_simulator import UserSimulator

        for domain, task_id in (("airline", "0"), ("telecom", PHONE)):
            user, _ = llm_user(domain=domain, task_id=task_id)
            task = load_tasks(domain).get(task_id)
            stock = UserSimulator(tools=user.tools, instructions=str(task.user_scenario))
            assert user.system_prompt == stock.system_prompt

    def test_roles_are_flipped_and_tools_offered(self):
        call = {"id": "1", "function": {"name": "check_status_bar", "arguments": "{}"}}
        user, chat = llm_user(
            {"content": None, "tool_calls": [call]}, "Fine.", domain="telecom", task_id=PHONE
        )
        message = reply(user)
        assert message.tool_calls[0].requestor == "user"
        result = ToolMessage(id="1", role="tool", content="4G", requestor="user")
        assert reply(user, [result]).content == "Fine."
        messages, tools = chat.asked[1]
        assert [m["role"] for m in messages] == ["system", "user", "assistant", "tool"]
        assert len(tools) == 30

    def test_thinking_is_stripped(self):
        user, _ = llm_user("<think>hm\nhm</think>\nHello.")
        assert reply(user).content == "Hello."

    @pytest.mark.parametrize(
        "text, left",
        [
            ("a", "a"),
            ("<think>x</think>b", "b"),
            ("x</think>c", "c"),
            ("d<think>never closed", "d"),
            ("<think></think>", ""),
        ],
    )
    def test_every_shape_of_thinking(self, text, left):
        assert strip_thinking(text) == left

    def test_an_empty_answer_is_asked_again_once(self):
        user, chat = llm_user("", "Hello.")
        assert reply(user).content == "Hello." and len(chat.asked) == 2
        user, _ = llm_user(" ", "<think>only</think>")
        with pytest.raises(InfrastructureFailure, match="answered nothing, twice"):
            reply(user)

    def test_a_dead_endpoint_is_a_typed_failure(self):
        user, _ = llm_user(ChatFailed("user-model at http://x: Timeout"))
        with pytest.raises(InfrastructureFailure, match="Timeout") as raised:
            reply(user)
        assert raised.value.reason == "user_simulator_failed"

    @pytest.mark.parametrize("arguments", ["{oops", "[1]", "[" * 100_000])
    def test_calls_that_cannot_be_read_are_the_simulators_failure(self, arguments):
        call = {"id": "1", "function": {"name": "toggle_data", "arguments": arguments}}
        user, _ = llm_user({"content": "", "tool_calls": [call]}, domain="telecom", task_id=PHONE)
        with pytest.raises(InfrastructureFailure, match="no JSON object"):
            reply(user)


class TestJudge:
    TASK = "0"

    def judge(self, shared_dir, *answers):
        tasks = load_tasks("retail", str(shared_dir / "data" / "tau2_v1"))
        task = next(t for t in tasks.tasks.values() if NLJudge(None).needed(t))
        chat = Chat(*answers)
        verdicts = asyncio.run(NLJudge(chat)(task, [HI]))
        return verdicts, len(task.evaluation_criteria.nl_assertions)

    def answer(self, count, met=True):
        entries = [
            f'{{"number": {i}, "reasoning": "r", "metExpectation": {str(met).lower()}}}'
            for i in range(1, count + 1)
        ]
        return f'Sure: {{"results": [{", ".join(entries)}]}}'

    def test_a_well_formed_answer(self, shared_dir):
        tasks = load_tasks("retail", str(shared_dir / "data" / "tau2_v1"))
        task = next(t for t in tasks.tasks.values() if NLJudge(None).needed(t))
        count = len(task.evaluation_criteria.nl_assertions)
        verdicts, _ = self.judge(shared_dir, "prose", self.answer(count, met=False))
        assert [v["met"] for v in verdicts] == [False] * count

    @pytest.mark.parametrize(
        "text",
        [
            "prose",
            '{"results": []}',
            '{"results": [{"number": 99, "metExpectation": true}]}',
            '{"results": [{"number": 1, "metExpectation": "yes"}',
        ],
    )
    def test_answers_that_stay_malformed_are_the_judges_failure(self, shared_dir, text):
        with pytest.raises(InfrastructureFailure) as raised:
            self.judge(shared_dir, text, text, text)
        assert raised.value.reason == "judge_failed"
