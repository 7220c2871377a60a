"""A helper words scenarios; it cannot change what is asked."""

import asyncio
import json
import re

import pytest

from nemo_tau2.outcomes import InfrastructureFailure
from nemo_tau2.simulation.helpers import ATTEMPTS, MAX_ANSWER
from nemo_tau2.simulation.scenario import Persona, Question, Scenario
from nemo_tau2.simulation.wording import PROMPT_VERSION, reword
from tests.koa.conftest import lines, run

SCENARIO = Scenario(
    scenario_id="s",
    questions=(
        Question(number=1, text="Find O12.", action="Find", arguments={"order_id": "O12"}),
        Question(number=2, text="Cancel it.", action="Cancel"),
    ),
)


def answer(first="Where is O12?", second="Then cancel it.", opening="Hi!", numbers=(1, 2)):
    texts = [{"number": n, "text": t} for n, t in zip(numbers, (first, second), strict=False)]
    return json.dumps({"opening": opening, "questions": texts})


def worded(*answers):
    asked = []

    async def complete(messages, tools):
        asked.append(messages)
        return {"content": answers[min(len(asked), len(answers)) - 1]}

    return asyncio.run(reword(SCENARIO, Persona(style="brief"), complete)), len(asked)


def test_only_texts_change():
    scenario, _ = worded("<think>hm</think>Here you are: " + answer())
    assert [q.text for q in scenario.questions] == ["Where is O12?", "Then cancel it."]
    assert scenario.customer.opening == "Hi!"
    rest = [q.model_dump(exclude={"text"}) for q in scenario.questions]
    assert rest == [q.model_dump(exclude={"text"}) for q in SCENARIO.questions]


@pytest.mark.parametrize(
    "bad",
    [
        "Sure, I will do that.",
        answer()[:40],
        answer(numbers=(1,)),
        answer(numbers=(1, 3)),
        answer(numbers=(1, 1)),
        answer(first="Where is my order?"),
        answer(opening=""),
        answer(opening="Hi \ud800"),
        answer(second="x" * 501),
        json.dumps({"opening": "Hi", "questions": "none"}),
        "x" * (MAX_ANSWER + 1),
        "{" + "[" * 9000,
    ],
)
def test_an_unusable_answer_is_asked_for_again(bad):
    scenario, asked = worded(bad, answer())
    assert asked == 2 and scenario.customer.opening == "Hi!"
    with pytest.raises(InfrastructureFailure, match=f"{ATTEMPTS} unusable answers"):
        worded(bad)


def test_numbers_written_as_text_are_numbers():
    scenario, asked = worded(answer(numbers=("1", "2")))
    assert asked == 1 and scenario.questions[0].text == "Where is O12?"


class TestVerb:
    FLAGS = ("--helper-url", "http://localhost:1/v1", "--helper-model", "m", "--scenarios", 3)

    def build(self, monkeypatch, tmp_path, say):
        class Chat:
            def __init__(self, endpoint):
                assert endpoint.model == "m"

            async def __call__(self, messages, tools):
                return {"content": say(messages[0]["content"])}

        monkeypatch.setattr("nemo_tau2.chat.LiteLLMChat", Chat)
        output = tmp_path / "out.jsonl"
        return run("spec", "rows", "travel", *self.FLAGS, "--output", output), output

    def test_rows_hold_the_helpers_words_and_its_prompts_version(self, monkeypatch, tmp_path):
        def say(prompt):
            needs = re.findall(r"^(\d+)\. (.*)$", prompt.split("Needs:")[1], re.MULTILINE)
            asked = [{"number": int(n), "text": f"Well: {text}"} for n, text in needs]
            return json.dumps({"opening": "Good morning!", "questions": asked})

        code, output = self.build(monkeypatch, tmp_path, say)
        assert code == 0
        for row in lines(output):
            found = row["verifier_metadata"]
            assert found["prompt_versions"]["scenario"] == PROMPT_VERSION
            if not found["transfer"]:
                assert found["customer"]["opening"] == "Good morning!"
                assert all(q["text"].startswith("Well: ") for q in found["questions"])

    def test_a_helper_without_use_is_named_and_nothing_is_written(
        self, monkeypatch, tmp_path, capsys
    ):
        code, _ = self.build(monkeypatch, tmp_path, lambda prompt: "Certainly!")
        assert code == 2 and not list(tmp_path.iterdir())
        assert "the helper gave no usable text" in capsys.readouterr().err

    def test_a_build_goes_on_where_it_was(self, monkeypatch, tmp_path):
        asked = []

        def say(prompt, limit):
            if len(asked) >= limit:
                return "I have had enough."
            needs = re.findall(r"^(\d+)\. (.*)$", prompt.split("Needs:")[1], re.MULTILINE)
            asked.append(prompt)
            return json.dumps(
                {"opening": "Hi", "questions": [{"number": int(n), "text": t} for n, t in needs]}
            )

        code, output = self.build(monkeypatch, tmp_path, lambda prompt: say(prompt, 2))
        assert code == 2 and [p.name for p in tmp_path.iterdir()] == ["out.jsonl.worded"]
        code, output = self.build(monkeypatch, tmp_path, lambda prompt: say(prompt, 99))
        assert code == 0 and len(asked) == 3  # three scenarios, none of them asked for twice
        assert not list(tmp_path.glob("*.worded")) and lines(output)
