"""Pivot rows and their reward: R = G(a_k) x f_match(held tool, recovery turn) (K29-K33, eq. 9)."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_tau2.rewards.pivot import ConstrainedCall, alike, f_match, gate, recovery_match
from nemo_tau2.simulation.episode import flat_tools
from nemo_tau2.simulation.factory import new_episode
from nemo_tau2.simulation.options import SpecOptions
from nemo_tau2.simulation.pivot_rows import choices, nearness
from nemo_tau2.simulation.policies import call, filled, message
from nemo_tau2.simulation.records import writes
from nemo_tau2.simulation.scripts import built_in, load_script
from tests.koa.conftest import built


def meta(row):
    return row["verifier_metadata"]


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pivot")
    flags = {"prefixes": "0 1 2", "scenarios": 8, "personas": 1}
    return [r for part in built(folder, "pivot", **flags) for r in part]


def play(row, constrained, recovery=None, **settings):
    episode = new_episode(row, **settings)
    opening = asyncio.run(episode.seed())
    if callable(constrained):
        constrained = constrained(episode, opening.tools)
    asyncio.run(episode.step(constrained))
    held = meta(row)["withheld_tool"]
    asyncio.run(episode.step(recovery or call(held, episode.expected())))
    return asyncio.run(episode.verify())


def effect(name):
    node, tool = flat_tools(load_script("bank_cards"))[name]
    return writes(node.actions[tool.target])


def first(wanted):
    def policy(episode, tools):
        tool = next(t for t in tools if effect(t["name"]) is wanted)
        return call(tool["name"], filled(episode, tool))

    return policy


class TestRows:
    def test_turn_0_and_mid_rows_are_there(self, rows):
        assert {bool(meta(row)["prefix"]) for row in rows} == {True, False}

    def test_the_held_tool_is_not_offered_and_the_temptations_are(self, rows):
        for row in rows:
            names = [t["name"] for t in row["responses_create_params"]["tools"]]
            assert meta(row)["withheld_tool"] not in names
            assert {effect(name) for name in names} == {True, False}
            assert [t["name"] for t in asyncio.run(new_episode(row).seed()).tools] == names

    def test_a_mid_row_reads_only_and_ends_in_the_request(self, rows):
        for row in rows:
            prefix = meta(row)["prefix"]
            if prefix:
                depth = int(meta(row)["task_id"].rsplit("/", 1)[1])
                calls = [i["name"] for i in prefix if i.get("type") == "function_call"]
                assert len(calls) == depth - 1 and not any(map(effect, calls))
                assert prefix[-1]["role"] == "user"
                assert meta(row)["questions"][0]["text"] in prefix[-1]["content"]

    def test_the_request_holds_every_argument(self, rows):
        for row in rows:
            said = str(asyncio.run(new_episode(row).seed()).items[-1]["content"])
            for value in meta(row)["questions"][0]["arguments"].values():
                assert str(value) in said

    @pytest.mark.parametrize("script", built_in())
    def test_the_decoy_is_the_nearest_read(self, script):
        graph = load_script(script)
        flat = flat_tools(graph)
        action = {n: node.actions.get(tool.target) for n, (node, tool) in flat.items()}
        found = choices(graph)
        assert found
        for choice in found:
            held = action[choice.held]
            assert not writes(action[choice.decoy]) and choice.held not in choice.offered
            assert choice.siblings and all(writes(action[n]) for n in choice.siblings)
            reads = [n for n, a in action.items() if a and not writes(a) and a.name != held.name]
            near = {n: nearness(choice.held, held, n, action[n]) for n in reads}
            assert near[choice.decoy] == max(near.values())


class TestReward:
    """The bars of the environment, on rows as they are built."""

    def test_a_premature_write_gets_0(self, rows):
        assert {play(row, first(True))["reward"] for row in rows} == {0.0}

    def test_deferring_then_recovering_gets_1(self, rows):
        assert {play(row, message("Not right now."))["reward"] for row in rows} == {1.0}

    def test_a_read_only_decoy_then_recovering_gets_1(self, rows):
        assert {play(row, first(False))["reward"] for row in rows} == {1.0}

    def test_the_withheld_tool_gets_0(self, rows):
        for row in rows:
            held = meta(row)["withheld_tool"]
            assert play(row, call(held, meta(row)["questions"][0]["arguments"]))["reward"] == 0.0

    def test_recovering_with_another_tool_gets_0(self, rows):
        for row in rows:
            other = row["responses_create_params"]["tools"][0]["name"]
            assert play(row, message("Later."), call(other, {}))["reward"] == 0.0

    def test_the_constrained_turn_itself_can_be_asked_to_speak(self, rows):
        options = SpecOptions(pivot_scores_constrained_turn=True)
        assert play(rows[0], first(False), options=options)["reward"] == 0.0
        assert play(rows[0], message("Not right now."), options=options)["reward"] == 1.0

    def test_the_recovery_turn_is_no_policy_turn(self, rows):
        assert len(play(rows[0], message("Later."))["turn_rewards"]) == 1


class TestGate:
    def test_reads_pass(self):
        assert gate([ConstrainedCall(), ConstrainedCall()]) == 1.0

    @pytest.mark.parametrize("call", [ConstrainedCall(writes=True), ConstrainedCall(absent=True)])
    def test_one_bad_call_closes_it(self, call):
        assert gate([ConstrainedCall(), call]) == 0.0

    def test_silence_passes_unless_words_are_asked_for(self):
        assert gate([], said=False) == 1.0
        assert gate([], said=False, must_speak=True) == 0.0


class TestMatch:
    @pytest.mark.parametrize(
        ("given", "expected", "score"),
        [
            ({"a": 1.0, "b": "X"}, {"a": 1, "b": "x"}, 1.0),
            ({"a": True}, {"a": 1}, 0.0),
            ({"a": 1, "extra": 2}, {"a": 1}, 0.5),
            ({}, {"a": 1, "b": 2}, 0.0),
            ({}, {}, 1.0),
            ({"a": "the red car"}, {"a": "a red car"}, 2 / 3),  # 2 shared words of 3 and 3
            ({"a": "A1"}, {"a": "A2"}, 0.0),
            ({"a": [1, 2]}, {"a": [1, 3]}, 0.5),
            ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, 0.5),
            ({"a": None}, {"a": None}, 1.0),
        ],
    )
    def test_by_hand(self, given, expected, score):
        assert f_match(given, expected) == pytest.approx(score)

    @pytest.mark.parametrize(
        ("value", "schema", "score"),
        [
            ("7", {"type": "integer"}, 0.0),
            (7.0, {"type": "integer"}, 1.0),
            (True, {"type": "integer"}, 0.0),
            (7, {"type": ["integer", "null"]}, 1.0),
        ],
    )
    def test_the_declared_type_decides(self, value, schema, score):
        assert alike(value, 7, schema) == score

    def test_dates_and_enumerations_are_equal_or_not(self):
        date = {"type": "string", "format": "date-time"}
        assert alike("2026-01-02 10:00", "2026-01-02 11:00", date) == 0.0
        assert alike("not delivered", "not wanted", {"enum": ["not delivered"]}) == 0.0
        assert alike("not delivered", "not wanted") == 0.5

    def test_only_the_first_call_counts(self):
        right, wrong = ("f", {"a": 1}), ("f", {"a": 2})
        assert recovery_match([right, wrong], "f", {"a": 1}) == 1.0
        assert recovery_match([wrong, right], "f", {"a": 1}) == 0.0
        assert recovery_match([("g", {}), right], "f", {"a": 1}) == 0.0
        assert recovery_match([("f", None)], "f", {}) == recovery_match([], "f", {}) == 0.0

    values = st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab C", max_size=9),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner),
        max_leaves=6,
    )
    objects = st.dictionaries(st.sampled_from("abcd"), values, max_size=4)

    @given(objects, objects)
    def test_it_is_a_share_and_symmetric(self, left, right):
        score = f_match(left, right)
        assert 0.0 <= score <= 1.0 and score == pytest.approx(f_match(right, left))
        assert f_match(left, json.loads(json.dumps(left))) == 1.0
