"""Rewards of whole episodes: the paper's, its rejected ones, and transfers, each worked out by hand."""

import asyncio

import pytest

from nemo_tau2.simulation.judge import LLMJudge
from nemo_tau2.simulation.options import SpecOptions
from tests.simulation.desk import (
    FIND,
    VERIFY,
    WHERE,
    Patient,
    Says,
    episode,
    results,
    row,
    step,
    verdict,
)

MOVE = {
    "number": 2,
    "text": "Send it to Oslo.",
    "action": "Move_Parcel",
    "arguments": {"parcel_id": "P1", "place": "Oslo"},
}


def desk(reward, questions=(WHERE,), **settings):
    return episode(
        row_=row(questions=questions),
        customer=Patient(),
        options=SpecOptions(reward=reward),
        **settings,
    )


def tell(made, seen):
    step(made, f"It is at {results(seen)[0]['place']}.")


def solved(reward):
    """Route, find, tell: the one question is covered, no call failed."""
    made = desk(reward)
    step(made, "go_to_parcels")
    tell(made, step(made, FIND))
    return made


def half(reward):
    """One of two questions covered; four calls: one in the wrong node, a route, a find and its duplicate."""
    made = desk(reward, (WHERE, MOVE))
    step(made, "find")
    step(made, "go_to_parcels")
    tell(made, step(made, FIND, FIND))
    return made


def idle(reward):
    """Nothing but words."""
    made = desk(reward)
    step(made, "All done, dear customer.")
    return made


def beside(reward):
    """Two calls that work and have nothing to do with the question."""
    made = desk(reward)
    step(made, "identity", VERIFY)
    return made


@pytest.mark.parametrize(
    ("played", "reward", "expected"),
    [
        (solved, "coverage", 1.0),
        (solved, "task_with_penalties", 1.0),
        (solved, "structural_credit", 1.0),
        (solved, "two_step_coverage", 1.0),
        (solved, "floored_gate", 1.0),
        # coverage is 1/2, and the duplicate makes the paper's reward 0
        (half, "coverage", 0.0),
        # not solved; duplicate 0.2, error 0.05, and the error is one in the wrong node, 0.1
        (half, "task_with_penalties", -0.35),
        # grounding 0.4, two of four calls are evidence 0.3 / 2, routing 0: 0.55, capped
        (half, "structural_credit", 0.15),
        (half, "two_step_coverage", 0.3 + 0.7 / 2),
        (half, "floored_gate", 0.4 + 0.6 / 2),
        (idle, "coverage", 0.0),
        (idle, "task_with_penalties", 0.0),
        # why it was rejected: who calls nothing routes nothing wrong, 0.3, capped
        (idle, "structural_credit", 0.15),
        (idle, "two_step_coverage", 0.0),
        (idle, "floored_gate", 0.0),
        (beside, "coverage", 0.0),
        (beside, "task_with_penalties", 0.0),
        (beside, "structural_credit", 0.15),
        (beside, "two_step_coverage", 0.0),
        # any successful tool opens the gate
        (beside, "floored_gate", 0.4),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_each_reward_of_each_episode(played, reward, expected):
    found = verdict(played(reward), "max_turns")
    assert found["reward"] == pytest.approx(expected)
    assert found["reward_info"]["kind"] == reward and not found["mask_sample"]


def test_a_masked_episode_earns_nothing_whatever_the_reward():
    assert verdict(half("task_with_penalties"), "world_failed")["reward"] == 0.0


@pytest.mark.parametrize(
    "reason",
    ["user_stop", "agent_stop", "max_turns", "max_errors", "context_overflow", "deadline"],
)
def test_coverage_is_scored_however_the_policy_ended(reason):
    found = verdict(solved("coverage"), reason)
    assert (found["reward"], found["stop_reason"], found["blame"]) == (1.0, reason, "policy")


@pytest.mark.parametrize("reason", ["agent_stop", "max_turns", "max_errors", "deadline"])
def test_so_is_the_state_of_a_sandbox(reason):
    written = {"parcel_id": "P1", "place": "Oslo", "moved": True}
    data = row("sandbox", expected_state={"written": {"parcel_id=p1": written}})
    made = episode("sandbox", row_=data)
    assert verdict(episode("sandbox", row_=data), reason)["reward"] == 0.0
    step(made, ("move", {"parcel_id": "P1", "place": "Oslo"}))
    assert verdict(made, reason)["reward"] == 1.0


class TestTransfer:
    """`transfer` of the row is the ground truth, and no judge has a say in it."""

    def played(self, belongs, *calls, mode="routed", questions=(WHERE,), **settings):
        data = row(mode, questions=questions, transfer=belongs)
        made = episode(mode, row_=data, customer=Patient(), **settings)
        for call in calls:
            step(made, call)
        return made

    @pytest.mark.parametrize("mode", ["flat", "routed"])
    @pytest.mark.parametrize(("belongs", "reward"), [(True, 1.0), (False, 0.0)])
    def test_wanted_and_unwanted(self, mode, belongs, reward):
        made = self.played(belongs, "person", mode=mode)
        found = verdict(made)
        assert (found["stop_reason"], found["blame"]) == ("transfer", "policy")
        assert found["reward"] == reward and not found["mask_sample"]

    def test_an_unwanted_one_costs_what_was_earned(self):
        made = self.played(False, "go_to_parcels")
        tell(made, step(made, FIND))
        step(made, "person")
        found = verdict(made)
        assert found["reward_info"]["coverage"] == 1.0 and found["reward"] == 0.0

    def test_keeping_a_case_that_belongs_with_a_person_earns_nothing(self):
        made = self.played(True, "go_to_parcels")
        tell(made, step(made, FIND))
        found = verdict(made, "max_turns")
        assert found["reward_info"]["coverage"] == 1.0 and found["reward"] == 0.0

    def test_a_case_of_the_agents_own_is_scored_by_coverage(self):
        made = self.played(False, "go_to_parcels")
        tell(made, step(made, FIND))
        assert verdict(made, "user_stop")["reward"] == 1.0

    def test_the_gate_holds_here_too(self):
        assert verdict(self.played(True, "nothing", "person"))["reward"] == 1.0
        assert verdict(self.played(True, "nothing", "nothing", "person"))["reward"] == 0.0

    @pytest.mark.parametrize("answer", ['{"verdicts": [{"number": 1, "resolved": true}]}', "prose"])
    @pytest.mark.parametrize(("belongs", "reward"), [(True, 1.0), (False, 0.0)])
    def test_no_judge_is_asked(self, belongs, reward, answer):
        model = Says(answer)
        found = verdict(self.played(belongs, "person", judge=LLMJudge(model)))
        assert (found["reward"], found["mask_sample"], model.asked) == (reward, False, 0)

    @pytest.mark.parametrize("reward", ["coverage", "structural_credit", "floored_gate"])
    def test_whatever_the_reward(self, reward):
        options = SpecOptions(reward=reward)
        assert verdict(self.played(True, "person", options=options))["reward"] == 1.0
        assert verdict(self.played(False, "person", options=options))["reward"] == 0.0

    def test_twice_the_same(self):
        first, second = (verdict(self.played(True, "nothing", "person")) for _ in range(2))
        assert first == second

    def test_nothing_is_answered_after_it(self):
        made = self.played(True, "person")
        with pytest.raises(ValueError, match="over"):
            asyncio.run(made.step([]))
