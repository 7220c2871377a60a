"""The orchestrator's rules, and where the episode deliberately differs from it."""

import asyncio
import json

import pytest

from nemo_tau2.outcomes import InfrastructureFailure, StopReason
from nemo_tau2.tau2.domains import GREETING, load_domain
from nemo_tau2.tau2.engine import STOP, TRANSFER, ToolCall, UserMessage
from nemo_tau2.tau2.episode import Limits, Tau2Episode
from nemo_tau2.tau2.tasks import load_tasks
from tests.tau2.playing import QueueUser, call, play, say

USER = {"user_id": "emma_kim_9957"}


def test_an_episode_opens_with_the_greeting_and_the_users_words():
    _, seen, _ = play("airline", "0", [], finish=False)
    assert [(i["role"], i["content"]) for i in seen[0].items] == [
        ("assistant", GREETING),
        ("user", "Hello."),
    ]


def test_calls_of_one_message_run_in_order_and_answer_in_order():
    turn = [
        call("get_user_details", USER, "a"),
        call("nope", {}, "b"),
        call("get_user_details", USER, "c"),
    ]
    _, seen, verdict = play("airline", "0", [turn, [say("Goodbye.")]])
    assert [item["call_id"] for item in seen[1].items] == ["a", "b", "c"]
    assert seen[1].items[1]["output"] == "Error: Tool 'nope' not found."
    assert verdict["call_tiers"] == [["read_only", "error", "duplicate"], []]
    assert verdict["turn_tiers"] == ["read_only", "message"]
    assert verdict["turn_rewards"] == pytest.approx([0.0 - 0.1 - 0.2, 0.0])


class TestWhoActs:
    """The actor of a call is whoever sent the message."""

    PHONE = "[mobile_data_issue]data_mode_off[PERSONA:None]"

    def test_an_agent_cannot_operate_the_users_phone(self):
        turns = [[call("toggle_data", {})], [call("toggle_data", {"requestor": "user"})]]
        _, seen, verdict = play("telecom", self.PHONE, turns)
        assert [o.items[0]["output"] for o in seen[1:]] == [
            "Error: Tool 'toggle_data' not found.",
            seen[2].items[0]["output"],
        ]
        assert seen[2].items[0]["output"].startswith("Error: ")
        assert verdict["reward"] == 0.0 and verdict["turn_tiers"] == ["error", "error"]

    def test_a_requestor_field_on_the_item_changes_nothing(self):
        item = call("toggle_data", {}) | {"requestor": "user"}
        _, seen, _ = play("telecom", self.PHONE, [[item]])
        assert seen[1].items[0]["output"] == "Error: Tool 'toggle_data' not found."

    def test_a_user_without_tools_gets_an_error_and_the_episode_goes_on(self):
        call_ = ToolCall(id="u", name="get_user_details", arguments=USER, requestor="user")
        user = QueueUser("Hello.", UserMessage(role="user", tool_calls=[call_]), "Never mind.")
        _, seen, verdict = play("airline", "0", [[say("Yes?")]], user=user)
        assert seen[1].items[0]["content"] == "Never mind."
        assert verdict["num_tool_errors"] == 1


class TestStops:
    """Exactly one stop reason, and who may cause it."""

    def test_only_the_user_ends_the_dialogue(self):
        _, seen, _ = play(
            "airline", "0", [[say(f"{STOP} done")]], user=QueueUser("Hello.", "What?")
        )
        assert not seen[1].done

    def test_an_agent_may_stop_where_that_is_allowed(self):
        limits = Limits(agent_may_stop=True)
        _, _, verdict = play("airline", "0", [[say(STOP)]], limits=limits)
        assert (verdict["stop_reason"], verdict["reward"]) == ("agent_stop", 1.0)

    def test_an_empty_turn_ends_it_unscored(self):
        _, _, verdict = play("airline", "0", [[say("  ")]])
        assert (verdict["stop_reason"], verdict["reward"]) == ("agent_stop", 0.0)
        assert not verdict["mask_sample"]

    def test_a_transfer_is_a_transfer_and_is_scored(self):
        _, _, verdict = play(
            "airline", "0", [[say("Hold on.")]], user=QueueUser("Hello.", TRANSFER)
        )
        assert (verdict["stop_reason"], verdict["reward"]) == ("transfer", 1.0)

    def test_a_stop_token_in_a_tool_call_message_is_no_stop(self):
        call_ = ToolCall(id="u", name="check_status_bar", arguments={}, requestor="user")
        user = QueueUser(
            "Hello.", UserMessage(role="user", content=STOP, tool_calls=[call_]), "I looked."
        )
        _, seen, _ = play(
            "telecom", TestWhoActs.PHONE, [[say("Look at it.")]], user=user, finish=False
        )
        assert not seen[1].done

    def test_ten_tool_errors_end_it(self):
        _, seen, verdict = play("airline", "0", [[call("nope", {})]] * 12)
        assert (
            len(seen) == 11 and verdict["stop_reason"] == "max_errors" and verdict["reward"] == 0.0
        )

    @pytest.mark.parametrize("max_steps, turns", [(1, 0), (2, 1), (3, 1), (5, 2)])
    def test_hops_are_counted_as_the_orchestrator_counts_them(self, max_steps, turns):
        """User 1; then each call costs 2 (agent, environment), checked after the environment."""
        reads = [[call("list_all_airports", {})]] * 9
        episode, _, verdict = play("airline", "0", reads, limits=Limits(max_steps=max_steps))
        assert verdict["stop_reason"] == "max_turns"
        assert verdict["num_turns"] == turns and episode.hops >= max_steps

    def test_a_stop_on_the_last_permitted_hop_is_a_stop(self):
        """Upstream overwrites it with max_steps and scores 0."""
        _, _, verdict = play("airline", "0", [[say("Goodbye.")]], limits=Limits(max_steps=3))
        assert (verdict["stop_reason"], verdict["reward"]) == ("user_stop", 1.0)

    def test_the_deadline_ends_it_unmasked(self):
        _, _, verdict = play("airline", "0", [[say("Hm.")]], limits=Limits(deadline_s=-1))
        assert verdict["stop_reason"] == "deadline" and not verdict["mask_sample"]

    def test_a_step_after_the_end_is_refused(self):
        episode, _, _ = play("airline", "0", [[say("Goodbye.")]])
        with pytest.raises(ValueError, match="the episode is over"):
            asyncio.run(episode.step([say("More.")]))


class TestInfrastructure:
    """Failures that are not the policy's are typed and masked."""

    def test_a_failing_user_simulator_masks_the_episode(self):
        failure = InfrastructureFailure(StopReason.USER_SIMULATOR_FAILED, "429 for ever")
        _, _, verdict = play("airline", "0", [[say("Hi.")]], user=QueueUser("Hello.", failure))
        assert verdict["mask_sample"] and verdict["instance_config"] == {"mask_sample": True}
        assert verdict["failure"] == {"kind": "user_simulator_failed", "message": "429 for ever"}
        assert verdict["reward"] == 0.0

    def test_it_may_fail_before_the_first_turn(self):
        failure = InfrastructureFailure(StopReason.USER_SIMULATOR_FAILED, "down")
        _, seen, verdict = play("airline", "0", [], user=QueueUser(failure))
        assert seen[0].done and verdict["mask_sample"] and verdict["turn_rewards"] == []

    def test_a_user_that_never_answers_is_timed_out(self):
        class Silent:
            async def reply(self, incoming):
                await asyncio.sleep(60)

        limits = Limits(user_timeout_s=0.05)
        _, _, verdict = play("airline", "0", [], user=Silent(), limits=limits)
        assert verdict["stop_reason"] == "user_simulator_failed"

    def test_a_reason_imposed_from_outside_is_kept(self):
        episode, _, _ = play("airline", "0", [[call("list_all_airports", {})]], finish=False)
        verdict = asyncio.run(episode.verify("policy_endpoint_failed"))
        assert verdict["mask_sample"] and verdict["turn_tiers"] == ["read_only"]


HOSTILE = {
    "not json": "{not json",
    "a list": "[1]",
    "a string": '"x"',
    "null": "null",
    "NaN": '{"a": NaN}',
    "10 MB": json.dumps({"a": "x" * 10_000_000}),
    "deep nesting": "[" * 100_000,
    "deep object": '{"a":' * 200 + "1" + "}" * 200,
}


@pytest.mark.parametrize("arguments", HOSTILE.values(), ids=HOSTILE)
def test_arguments_that_are_no_sane_object_are_an_error_and_run_nothing(arguments):
    episode, seen, verdict = play(
        "airline", "0", [[call("get_user_details", arguments)], [say("Bye.")]]
    )
    output = seen[1].items[0]["output"]
    assert output.startswith("Error: ") and len(output) < 400
    assert verdict["turn_tiers"] == ["error", "message"] and verdict["num_tool_errors"] == 1
    assert episode.world.delta() == {} and verdict["reward"] == 1.0


@pytest.mark.parametrize(
    "arguments", [{"self": 1}, {"tool_name": "x"}, {"requestor": "user"}, {"user_id": 5}]
)
def test_arguments_of_wrong_names_and_types_are_tool_errors(arguments):
    _, seen, _ = play("airline", "0", [[call("get_user_details", arguments)]])
    assert seen[1].items[0]["output"].startswith("Error: ")


def test_a_flood_of_calls_is_cut():
    turn = [call("list_all_airports", {}, f"c{i}") for i in range(100)]
    _, seen, _ = play("airline", "0", [turn])
    assert len(seen[1].items) == 100
    assert seen[1].items[99]["output"] == "Error: at most 32 tool calls in one turn"


def test_a_malformed_call_never_satisfies_the_action_check():
    """Upstream's ACTION check takes any call of the name when its arguments are empty."""
    tasks = load_tasks("telecom")
    task = next(
        t
        for t in tasks.split("base")
        if "ACTION" in [b.value for b in t.evaluation_criteria.reward_basis]
    )
    _, _, verdict = play(
        "telecom", task.id, [[call("transfer_to_human_agents", "{oops")], [say("Goodbye.")]]
    )
    assert verdict["reward_info"]["breakdown"]["ACTION"] == 0.0
    _, _, verdict = play(
        "telecom", task.id, [[call("transfer_to_human_agents", "{}")], [say("Goodbye.")]]
    )
    assert verdict["reward_info"]["breakdown"]["ACTION"] == 1.0


def test_reasoning_items_are_not_said_aloud():
    thought = {"type": "reasoning", "summary": [{"text": "5 dollars"}]}
    episode, _, _ = play("airline", "0", [[thought, say("Hello.")]], finish=False)
    assert episode.trajectory[2].content == "Hello."


def test_verify_is_the_same_twice():
    episode, _, first = play(
        "retail", "0", [[call("find_user_id_by_name_zip", {})], [say("Goodbye.")]]
    )
    assert asyncio.run(episode.verify()) == first


def test_worlds_of_a_thousand_seeded_episodes_share_their_rows():
    domain, task = load_domain("airline"), load_tasks("airline").get("0")
    episodes = [Tau2Episode(domain, task, QueueUser()) for _ in range(1000)]
    first, last = (e.world.environment.tools.db.users for e in (episodes[0], episodes[-1]))
    assert dict.get(first, "mia_li_3668") is dict.get(last, "mia_li_3668")
