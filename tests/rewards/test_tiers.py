"""Tier rules, one test a rule, by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_tau2.errors import UserError
from nemo_tau2.rewards.table import RewardTable
from nemo_tau2.rewards.tiers import (
    Call,
    CallTier,
    GoldAction,
    Tier,
    classify,
    deep_equal,
    turn_tier,
)


def call(name, arguments=None, *, writes=False, errored=False, actor="assistant", landed=None):
    arguments = arguments or {}
    return Call(actor, name, arguments, arguments, writes, errored, landed)


def gold(name, arguments=None, *, compare=None, errored=False, actor="assistant"):
    arguments = arguments or {}
    return GoldAction(actor, name, arguments, arguments, compare, errored)


def tiers(calls, wanted):
    return [verdict.tier.value for verdict in classify(calls, wanted)]


READ, BOOK = gold("read", {"id": "A1"}), gold("book", {"id": "A1", "seat": "12C", "bags": 2})


class TestExact:
    def test_same_name_and_arguments(self):
        assert tiers([call("read", {"id": "A1"})], [READ]) == ["gold_exact"]

    def test_each_gold_action_pays_once(self):
        assert tiers([call("read", {"id": "A1"})] * 2, [READ]) == ["gold_exact", "duplicate"]

    def test_a_gold_action_wanted_twice_pays_twice(self):
        assert tiers([call("read", {"id": "A1"})] * 3, [READ, READ])[:2] == ["gold_exact"] * 2

    def test_the_actor_counts(self):
        wanted = [gold("toggle", actor="user")]
        assert tiers([call("toggle")], wanted) == ["read_only"]
        assert tiers([call("toggle", actor="user")], wanted) == ["gold_exact"]

    def test_only_the_named_arguments_are_compared(self):
        wanted = [gold("transfer", {"summary": "x"}, compare=())]
        assert tiers([call("transfer", {"summary": "anything"})], wanted) == ["gold_exact"]

    def test_another_notation_is_exact_for_a_read(self):
        assert tiers([call("find", {"zip": 19122})], [gold("find", {"zip": "19122"})]) == [
            "gold_exact"
        ]

    @pytest.mark.parametrize(
        "landed, tier", [(True, "gold_exact"), (False, "soft_match"), (None, "soft_match")]
    )
    def test_another_notation_of_a_write_must_land_on_the_gold_path(self, landed, tier):
        sent = {"id": "A1", "seat": "12C", "bags": "2"}
        assert tiers([call("book", sent, writes=True, landed=landed)], [BOOK]) == [tier]

    def test_an_exact_match_later_is_not_taken_by_a_wrong_attempt(self):
        attempt = call("book", {"id": "A1", "seat": "1A", "bags": 9}, writes=True)
        right = call("book", {"id": "A1", "seat": "12C", "bags": 2}, writes=True)
        assert tiers([attempt, right], [BOOK]) == ["state_change", "gold_exact"]


class TestErrors:
    def test_an_error_outranks_everything(self):
        assert tiers([call("read", {"id": "A1"}, errored=True)], [READ]) == ["error"]

    def test_reproducing_a_failing_gold_action_is_exact_but_unpaid(self):
        wanted = [gold("read", {"id": "A1"}, errored=True)]
        [verdict] = classify([call("read", {"id": "A1"}, errored=True)], wanted)
        assert (verdict.tier, verdict.unpaid) == (Tier.GOLD_EXACT, True)
        assert RewardTable().call_reward(verdict) == 0.0

    def test_a_failed_call_may_be_repeated(self):
        again = [call("read", {"id": "B"}, errored=True), call("read", {"id": "B"})]
        assert tiers(again, []) == ["error", "read_only"]


class TestSoft:
    def test_share_of_gold_arguments(self):
        [verdict] = classify(
            [call("book", {"id": "A1", "seat": "1A", "bags": 2}, writes=True)], [BOOK]
        )
        assert (verdict.tier, verdict.share) == (Tier.SOFT_MATCH, pytest.approx(2 / 3))
        assert RewardTable().call_reward(verdict) == pytest.approx(0.5 + 0.5 * 2 / 3)

    def test_the_best_fitting_action_is_consumed(self):
        other = gold("book", {"id": "Z", "seat": "1A", "bags": 9})
        sent = call("book", {"id": "Z", "seat": "1A", "bags": 3}, writes=True)
        assert classify([sent], [BOOK, other])[0].gold == 1

    def test_nothing_in_common_is_no_match(self):
        assert tiers([call("read", {"id": "B"})], [READ]) == ["read_only"]
        assert tiers([call("book", {"id": "B"}, writes=True)], [BOOK]) == ["state_change"]

    def test_soft_never_pays_as_much_as_exact(self):
        assert RewardTable().call_reward(CallTier(Tier.SOFT_MATCH, 1.0)) == 0.99

    def test_a_duplicate_outranks_a_soft_match(self):
        same = call("book", {"id": "A1", "seat": "1A", "bags": 2}, writes=True)
        assert tiers([same, same], [BOOK, BOOK]) == ["soft_match", "duplicate"]


class TestTurns:
    def test_a_turn_is_as_good_as_its_best_call(self):
        assert turn_tier([CallTier(Tier.ERROR), CallTier(Tier.READ_ONLY)]) is Tier.READ_ONLY
        assert turn_tier([]) is Tier.MESSAGE

    @pytest.mark.parametrize("combine, reward", [("sum", 0.8), ("mean", 0.8 / 3), ("min", -0.2)])
    def test_rewards_of_a_turn(self, combine, reward):
        calls = [CallTier(Tier.GOLD_EXACT, 1.0), CallTier(Tier.READ_ONLY), CallTier(Tier.DUPLICATE)]
        table = RewardTable(combine=combine)
        assert table.turn_reward(calls) == pytest.approx(reward)


EQUAL = [
    (1, "1"),
    (1, 1.0),
    ("a ", "a"),
    ({"x": None, "y": 1}, {"y": 1}),
    ([], []),
    ([{"a": 1}, {"b": 2}], [{"b": 2}, {"a": 1}]),
]
DIFFERENT = [
    (True, 1),
    (False, 0),
    ("0123", 123),
    ("a", "b"),
    ([1, 2], [2, 1]),
    ({"x": 1}, {"x": 2}),
    ("1e3", 1000),
]


@pytest.mark.parametrize("left, right", EQUAL)
def test_deep_equal_forgives_notation(left, right):
    assert deep_equal(left, right)


@pytest.mark.parametrize("left, right", DIFFERENT)
def test_deep_equal_forgives_nothing_else(left, right):
    assert not deep_equal(left, right)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(json_values, json_values)
def test_deep_equal_is_reflexive_and_symmetric(left, right):
    assert deep_equal(left, left)
    assert deep_equal(left, right) == deep_equal(right, left)


names = st.sampled_from(["a", "b"])
some_calls = st.lists(
    st.builds(
        lambda n, v, w, e: call(n, {"x": v, "y": 1}, writes=w, errored=e),
        names,
        st.integers(0, 2),
        st.booleans(),
        st.booleans(),
    ),
    max_size=8,
)
some_gold = st.lists(
    st.builds(lambda n, v: gold(n, {"x": v, "y": 1}), names, st.integers(0, 2)), max_size=5
)


@given(some_calls, some_gold)
def test_no_gold_action_is_consumed_twice(calls, wanted):
    used = [verdict.gold for verdict in classify(calls, wanted) if verdict.gold is not None]
    assert len(used) == len(set(used))


@given(some_gold)
def test_playing_gold_is_exact_throughout(wanted):
    calls = [call(g.name, dict(g.arguments)) for g in wanted]
    assert tiers(calls, wanted) == ["gold_exact"] * len(wanted)


class TestRewardFiles:
    def test_the_built_in_tables_are_the_papers(self):
        naive, calibrated = RewardTable.load("naive").tiers, RewardTable.load("calibrated").tiers
        assert (naive.read_only, naive.state_change) == (0.3, 0.1)
        assert (calibrated.read_only, calibrated.state_change) == (0.0, -0.1)
        assert calibrated == RewardTable().tiers

    @pytest.mark.parametrize(
        "text, words",
        [
            ("tiers: {gold: 1}", "tiers.gold: Extra inputs are not permitted"),
            ("tiers: [1", "is not YAML"),
            ("combine: max", "combine"),
            ("tiers: {error: lots}", "tiers.error"),
        ],
    )
    def test_a_bad_file_is_refused_in_one_line(self, tmp_path, text, words):
        path = tmp_path / "rewards.yaml"
        path.write_text(text)
        with pytest.raises(UserError, match=r"rewards\.yaml") as raised:
            RewardTable.load(path)
        assert words in str(raised.value) and "\n" not in str(raised.value)

    def test_a_missing_file_says_what_there_is(self):
        with pytest.raises(UserError, match="one of calibrated, naive"):
            RewardTable.load("calibratd")
