"""Sandbox: the reward is 1 exactly when the state equals that of the reference actions."""

import asyncio

from nemo_tau2.agentscript.graph import ToolKind
from nemo_tau2.simulation.episode import flat_tools, world_state
from nemo_tau2.simulation.factory import new_episode, plain_row, reference_state
from nemo_tau2.simulation.policies import call, filled, message
from nemo_tau2.simulation.records import writes
from nemo_tau2.simulation.scripts import load_script

ROW = plain_row("clinic_scheduling", "sandbox", 1)


def first_reads():
    graph = load_script("clinic_scheduling")
    return [
        name
        for name, (node, tool) in flat_tools(graph).items()
        if tool.kind is ToolKind.ACTION and not writes(node.actions[tool.target])
    ]


def state_after(name):
    """The episode after one call with arguments everybody knows."""
    episode = new_episode(ROW)
    opening = asyncio.run(episode.seed())
    tool = next(t for t in opening.tools if t["name"] == name)
    asyncio.run(episode.step(call(name, filled(episode, tool))))
    return episode


def test_the_reference_actions_get_1_and_others_0():
    name = first_reads()[0]
    reference = world_state(state_after(name).session)
    row = {**ROW, "verifier_metadata": {**ROW["verifier_metadata"], "expected_state": reference}}
    episode = new_episode(row)
    opening = asyncio.run(episode.seed())
    tool = next(t for t in opening.tools if t["name"] == name)
    asyncio.run(episode.step(call(name, filled(episode, tool))))
    assert asyncio.run(episode.step(message("Done."))).done
    assert asyncio.run(episode.verify())["reward"] == 1.0
    idle = new_episode(row)
    asyncio.run(idle.seed())
    asyncio.run(idle.step(message("Done.")))
    expected = 1.0 if world_state(idle.session) == reference else 0.0
    assert asyncio.run(idle.verify())["reward"] == expected


def test_a_write_must_match_the_reference():
    graph = load_script("clinic_scheduling")
    probe = new_episode(ROW)
    tools = {t["name"]: t for t in asyncio.run(probe.seed()).tools}
    for name, (node, tool) in flat_tools(graph).items():
        if tool.kind is not ToolKind.ACTION or not writes(node.actions[tool.target]):
            continue
        if tool.bound:
            continue
        state = asyncio.run(reference_state(ROW, [(name, filled(probe, tools[name]))]))
        row = {**ROW, "verifier_metadata": {**ROW["verifier_metadata"], "expected_state": state}}
        idle = new_episode(row)
        asyncio.run(idle.seed())
        asyncio.run(idle.step(message("Done.")))
        assert state["written"] and asyncio.run(idle.verify())["reward"] == 0.0
