"""From a dataset row to its episode, and plain rows of any graph for examples, tests and benches."""

import json
from typing import Any

from nemo_tau2.agentscript.graph import WorkflowGraph
from nemo_tau2.chat import Complete
from nemo_tau2.errors import UserError
from nemo_tau2.simulation.customer import LLMCustomer
from nemo_tau2.simulation.emulator import LLMEmulator
from nemo_tau2.simulation.episode import SandboxEpisode, SpecEpisode, flat_tools, world_state
from nemo_tau2.simulation.judge import LLMJudge
from nemo_tau2.simulation.pivot import PivotEpisode
from nemo_tau2.simulation.records import choices_of, sample, writes
from nemo_tau2.simulation.routed import RoutedEpisode
from nemo_tau2.simulation.scenario import Mode, parse_row
from nemo_tau2.simulation.scripts import load_script
from nemo_tau2.simulation.session import Session, facts_of

EPISODES = {
    Mode.FLAT: SpecEpisode,
    Mode.ROUTED: RoutedEpisode,
    Mode.SANDBOX: SandboxEpisode,
    Mode.PIVOT: PivotEpisode,
}
AGENTS = {
    Mode.FLAT: "support_flat_agent",
    Mode.ROUTED: "service_routed_agent",
    Mode.SANDBOX: "tool_sandbox_agent",
    Mode.PIVOT: "pivot_turn_agent",
}
"""The agent instance of each mode, for `agent_ref`."""


def new_episode(row: dict[str, Any], **settings: Any) -> SpecEpisode:
    """The episode of a row. Raises UserError for a row or script that cannot be played.

    `settings` go to the episode: options, rewards, emulator, customer, judge. In flat, sandbox and
    pivot mode the row's own tools, where it has any, are all there are.
    """
    spec = parse_row(row.get("verifier_metadata"))
    graph = load_script(spec.script)
    params = row.get("responses_create_params") or {}
    names = [t["name"] for t in params.get("tools") or [] if isinstance(t.get("name"), str)]
    if spec.mode is not Mode.ROUTED and names:
        named = {*names, *([spec.withheld_tool] if spec.withheld_tool else [])}
        settings.setdefault("tool_names", [n for n in flat_tools(graph) if n in named])
    return EPISODES[spec.mode](graph, spec, **settings)


def helper_roles(
    row: dict[str, Any],
    customer: Complete | None = None,
    emulator: Complete | None = None,
    judge: Complete | None = None,
) -> dict[str, Any]:
    """Settings of an episode for the roles that a model plays; a role without a chat is scripted."""
    roles: dict[str, Any] = {}
    if customer:
        spec = parse_row(row.get("verifier_metadata"))
        facts = facts_of(load_script(spec.script), spec.seed, spec.customer.facts)
        roles["customer"] = LLMCustomer(spec, facts, customer)
    if emulator:
        roles["emulator"] = LLMEmulator(emulator)
    if judge:
        roles["judge"] = LLMJudge(judge)
    return roles


def plain_row(script: str, mode: str, seed: int = 0, max_questions: int = 3) -> dict[str, Any]:
    """A row without a scenario: a question for each of a script's first actions with outputs.

    Deterministic. `nemo-tau2 spec rows` makes varied ones.
    """
    graph = load_script(script)
    facts = plain_facts(graph, seed)
    questions = []
    for _, tool in flat_tools(graph).values():
        node = next(n for n in graph.nodes.values() if tool in n.tools.values())
        action = node.actions.get(tool.target)
        known = {q["action"] for q in questions}
        if action is None or action.name in known or len(questions) >= max_questions:
            continue
        fields = [p.name for p in action.outputs if p.visible]
        if fields and not writes(action):
            text = (action.description or action.label or action.name).rstrip(".")
            questions.append(
                {
                    "number": len(questions) + 1,
                    "text": f"I need this: {text}.",
                    "action": action.name,
                    "fields": fields,
                    "arguments": None,
                }
            )
    scenario = f"plain-{seed}"
    task = f"{graph.name}/{scenario}/{mode}"
    metadata = {
        "mode": mode,
        "script": script,
        "scenario_id": scenario,
        "task_id": task,
        "domain": graph.name,
        "group_id": task,
        "questions": questions,
        "customer": {"opening": "", "facts": facts},
        "expected_state": {"written": {}} if mode == Mode.SANDBOX else None,
        "seed": seed,
    }
    if mode == Mode.PIVOT:
        found = flat_tools(graph)
        acting = [
            n for n, (node, t) in found.items() if (a := node.actions.get(t.target)) and writes(a)
        ]
        metadata["withheld_tool"] = next(iter(acting or found), None)
    agent = AGENTS[Mode(mode)]
    return {
        "responses_create_params": {"input": [], "tools": []},
        "agent_ref": {"type": "responses_api_agents", "name": agent},
        "task_source": agent,
        "verifier_metadata": metadata,
    }


def plain_facts(graph: WorkflowGraph, seed: int) -> dict[str, Any]:
    """A value for every argument that a model can fill."""
    choices = choices_of(graph)
    return {
        p.name: sample(p.type.schema, p.name, f"{seed}/facts", choices.get(p.name, ()))
        for node in graph.nodes.values()
        for tool in node.tools.values()
        for p in tool.inputs
    }


async def reference_state(
    row: dict[str, Any], calls: list[tuple[str, dict[str, Any]]]
) -> dict[str, Any]:
    """`expected_state` of a sandbox row: what records hold after the reference calls.

    Raises:
        UserError: a reference call is refused, so the state would not be what was meant.
    """
    session = await reference_session(row, calls)
    return {"written": world_state(session)["written"]}


async def reference_session(
    row: dict[str, Any], calls: list[tuple[str, dict[str, Any]]]
) -> Session:
    """The session after the reference calls. Raises UserError where one is refused."""
    episode = new_episode(row)
    await episode.seed()
    for name, arguments in calls:
        item = {"type": "function_call", "call_id": name, "name": name}
        await episode.step([item | {"arguments": json.dumps(arguments)}])
        done = episode.session.calls[-1]
        if done.refusal is not None:
            raise UserError(
                f"reference call {name}: {episode.session.problems[-1:] or done.refusal}"
            )
    return episode.session
