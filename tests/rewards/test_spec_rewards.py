"""Coverage, the duplicate gate, state equivalence and the ablations, by hand."""

import pytest

from nemo_tau2.rewards import ablations
from nemo_tau2.rewards.coverage import Evidence, Need, coverage, gated
from nemo_tau2.rewards.duplicates import Made, duplicates
from nemo_tau2.rewards.state_equivalence import FieldRules, differences, state_reward

NEEDS = [Need(1, "Find", ("status",), {"order_id": "7"}), Need(2)]
FOUND = [Evidence("Find", {"order_id": "7"}, {"status": "sent"})]


class TestCoverage:
    def test_judge_and_evidence_must_agree(self):
        assert coverage(NEEDS, {1: True, 2: True}, FOUND).value == 1.0
        without = coverage(NEEDS, {1: True, 2: True}, [])
        assert (without.value, without.disagreements) == (0.5, (1,))

    def test_a_missing_verdict_is_not_resolved(self):
        assert coverage(NEEDS, {2: None}, FOUND).missing == (1, 2)

    def test_other_arguments_ground_nothing(self):
        other = [Evidence("Find", {"order_id": "8"}, {"status": "sent"})]
        assert coverage(NEEDS, {1: True, 2: False}, other).value == 0.0

    def test_the_gate(self):
        assert gated(0.5, False) == 0.5 and gated(0.5, True) == 0.0


class TestDuplicates:
    def test_arguments_are_canonical_json(self):
        assert duplicates([Made("a", {"x": 1, "y": 2}), Made("a", {"y": 2, "x": 1.0})]) == [1]
        assert duplicates([Made("a", {"x": 1}), Made("a", {"x": True})]) == []

    def test_only_the_call_just_before_counts(self):
        assert duplicates([Made("a", {}), Made("b", {}), Made("a", {})]) == []

    def test_a_user_turn_or_a_change_of_state_resets(self):
        assert duplicates([Made("a", {}), Made("a", {}, user_turn=1)]) == []
        assert duplicates([Made("a", {}), Made("a", {}, version=1)]) == []

    def test_one_retry_after_a_transient_error(self):
        again = Made("a", {}, transient=True)
        assert duplicates([again, Made("a", {})]) == []
        assert duplicates([again, again, Made("a", {})]) == [2]


class TestStateEquivalence:
    @pytest.mark.parametrize(
        ("actual", "expected", "paths"),
        [
            ({"a": {"b": "X"}}, {"a": {"b": "x"}}, []),
            ({"a": 1}, {"a": True}, ["a"]),
            ({"a": [1, 2]}, {"a": [2, 1]}, ["a.0", "a.1"]),
            ({"a": 1, "b": 2}, {"a": 1}, ["b"]),
        ],
    )
    def test_differences(self, actual, expected, paths):
        assert differences(actual, expected) == paths

    def test_rules(self):
        rules = FieldRules(
            ignore=frozenset({"at"}),
            unordered=frozenset({"list"}),
            case_sensitive=frozenset({"status"}),
        )
        assert state_reward({"at": 1, "list": [1, 2]}, {"at": 2, "list": [2, 1]}, rules) == 1.0
        assert differences({"status": "A"}, {"status": "a"}, rules) == ["status"]


def test_ablations():
    assert ablations.task_with_penalties(True, {"e": 2}, {"e": 0.25}) == 0.5
    assert ablations.structural_credit(False, {"s": 1.0}, {"s": 0.9}, cap=0.15) == 0.15
    assert ablations.two_step_coverage(True, 0.5) == pytest.approx(0.65)
    assert ablations.floored_gate(0, 1.0) == 0.0
    assert ablations.floored_gate(1, 0.5) == pytest.approx(0.7)
