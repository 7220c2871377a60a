"""Pivot: R = G(constrained turn) x f_match(held tool, recovery turn)."""

import asyncio
import json

import pytest

from nemo_tau2.agentscript.graph import ToolKind
from nemo_tau2.rewards.pivot import f_match
from nemo_tau2.simulation.episode import flat_tools
from nemo_tau2.simulation.factory import new_episode, plain_row
from nemo_tau2.simulation.policies import call, filled, message
from nemo_tau2.simulation.records import writes
from nemo_tau2.simulation.scripts import load_script


def tools_by_effect():
    graph = load_script("bank_cards")
    found = [
        (name, node.actions[tool.target])
        for name, (node, tool) in flat_tools(graph).items()
        if tool.kind is ToolKind.ACTION
    ]
    return [n for n, a in found if writes(a)], [n for n, a in found if not writes(a)]


WRITES, READS = tools_by_effect()
HELD = WRITES[0]
MID = [
    {"type": "message", "role": "user", "content": "Hello"},
    {"type": "message", "role": "assistant", "content": "How can I help?"},
    {"type": "message", "role": "user", "content": "Block my card, please."},
]


def play(first, prefix=(), **settings):
    row = plain_row("bank_cards", "pivot", 1)
    row["verifier_metadata"] |= {"withheld_tool": HELD, "prefix": list(prefix)}
    episode = new_episode(row, **settings)
    opening = asyncio.run(episode.seed())
    assert HELD not in [t["name"] for t in opening.tools]
    seen = asyncio.run(episode.step(first))
    assert seen.reward_only and HELD in [t["name"] for t in seen.tools]
    assert asyncio.run(episode.step(call(HELD, episode.expected()))).done
    verdict = asyncio.run(episode.verify())
    assert len(verdict["turn_rewards"]) == 1
    assert verdict["reward_info"]["missing_verdicts"] == []  # no judge was asked for any
    return verdict["reward"]


@pytest.mark.parametrize("prefix", [(), MID], ids=["turn_0", "mid"])
class TestConstrainedTurn:
    def test_a_premature_write_gets_0(self, prefix):
        assert play(call(WRITES[1], {}), prefix) == 0.0

    def test_deferring_gets_1(self, prefix):
        assert play(message("I cannot do that right now."), prefix) == 1.0

    def test_reading_gets_1(self, prefix):
        row = new_episode(plain_row("bank_cards", "pivot", 1))
        tool = next(t for t in row.tools() if t["name"] == READS[0])
        assert play(call(READS[0], filled(row, tool)), prefix) == 1.0

    def test_the_withheld_tool_gets_0(self, prefix):
        assert play(call(HELD, {}), prefix) == 0.0

    def test_an_unheard_of_tool_gets_0(self, prefix):
        assert play(call("no_such_tool", {}), prefix) == 0.0


def test_f_match_knows_types():
    assert f_match({"a": 1.0, "b": "X"}, {"a": 1, "b": "x"}) == 1.0
    assert f_match({"a": True}, {"a": 1}) == 0.0
    assert f_match({"a": 1, "extra": 2}, {"a": 1}) == 0.5
    assert f_match(json.loads("{}"), {}) == 1.0
