"""Specification x scenario x persona x depth → dataset rows (K3-K6, K12, K15, K24).

Scenarios are played: a scripted player that knows everything solves the row at the opening (in a
sandbox its reference calls do), so a reward of 1 can be had. Questions it cannot ground are dropped, and
scenarios without any left are not used; what belongs with a person is not played. All rows of a
scenario share records and split; its personas and depths are groups of their own.

Which tools a row offers (K12): those its solution calls, the others of their nodes, and the ways to end.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from nemo_tau2.agentscript.graph import ToolKind, WorkflowGraph
from nemo_tau2.episodes import Item
from nemo_tau2.errors import UserError
from nemo_tau2.rewards.coverage import grounds
from nemo_tau2.simulation.episode import SpecEpisode, as_function, flat_tools, world_state
from nemo_tau2.simulation.factory import AGENTS, new_episode, reference_session
from nemo_tau2.simulation.helpers import PROMPT_VERSIONS
from nemo_tau2.simulation.judge import is_telling, judged, need_of
from nemo_tau2.simulation.policies import Oracle
from nemo_tau2.simulation.prefixes import play_prefixes
from nemo_tau2.simulation.reachability import in_reach
from nemo_tau2.simulation.records import writes
from nemo_tau2.simulation.scenario import Mode, Persona, Question, Scenario
from nemo_tau2.simulation.scenarios import candidates, family, generic, groundable, seed_of

TRIES = 20
"""Candidates looked at per scenario wanted."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Source:
    """What all rows of one build share.

    Attributes:
        script: a built-in script's name or a path; stored in the rows as it is.
        graph: the compiled script.
        mode: the environment's mode.
        seed: seed of scenarios, personas and records.
    """

    script: str
    graph: WorkflowGraph
    mode: Mode
    seed: int = 0


@dataclass
class Played:
    """One play of a row by the player that knows everything."""

    episode: SpecEpisode
    prefixes: dict[int, tuple[Item, ...]]
    verdict: dict[str, Any]
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


def base_row(
    source: Source,
    scenario: Scenario,
    persona: Persona,
    variant: str = "",
    tools: Sequence[Item] = (),
    **more: Any,
) -> Row:
    """A row; `more` are further fields of its `verifier_metadata`."""
    name, agent = source.graph.name, AGENTS[source.mode]
    # The mode is part of it: rows of two modes in one mixture are two tasks and two groups.
    task = f"{name}/{source.mode}/{scenario.scenario_id}" + (f"/{variant}" if variant else "")
    metadata = {
        "mode": source.mode.value,
        "script": source.script,
        "scenario_id": scenario.scenario_id,
        "task_id": task,
        "domain": name,
        "group_id": task,
        "trial": 0,
        "split": "train",
        "questions": [q.model_dump(mode="json") for q in scenario.questions],
        "persona": persona.model_dump(mode="json"),
        "customer": scenario.customer.model_dump(mode="json"),
        "expected_state": scenario.expected_state,
        **_state_rules(scenario),
        "transfer": scenario.transfer,
        "seed": seed_of(source.seed, scenario.scenario_id),
        "prefix": [],
        "withheld_tool": None,
        "prompt_versions": dict(PROMPT_VERSIONS),
    }
    return {
        "responses_create_params": {"input": [], "tools": list(tools)},
        "agent_ref": {"type": "responses_api_agents", "name": agent},
        "task_source": agent,
        "verifier_metadata": metadata | more,
    }


def _state_rules(scenario: Scenario) -> Row:
    rules = scenario.state_rules
    return {"state_rules": rules.model_dump(mode="json", exclude_unset=True)} if rules else {}


async def play(row: Row, depths: Sequence[int] = (0,)) -> Played:
    """Plays a row to its end and collects the prefixes of the given depths."""
    episode = new_episode(row)
    oracle = Oracle()
    prefixes = await play_prefixes(episode, oracle, depths)
    while episode.stop_reason is None:
        await episode.step(oracle(episode, episode.tools()))
    verdict = await episode.verify()
    calls = [
        (c.name, c.given)
        for c in episode.session.calls
        if c.refusal is None and isinstance(c.given, dict)
    ]
    return Played(episode, prefixes, verdict, calls)


async def solvable(source: Source, count: int) -> list[Scenario]:
    """`count` generated scenarios that can be solved, without the questions that cannot.

    Scenarios that ask something new come first; where the graph has too few of them, some ask the
    same of other records. Where no action can be grounded they are generic questions.

    Raises:
        UserError: sandbox mode, and no action with an effect can be done.
    """
    fresh: list[Scenario] = []
    again: list[Scenario] = []
    families: set[str] = set()
    played: set[str] = set()
    sandbox = source.mode is Mode.SANDBOX
    among = in_reach(source.graph, source.mode)
    try:
        wanted = candidates(source.graph, source.seed, sandbox, among)
        for scenario in islice(wanted, TRIES * count):
            if family(scenario) in played and len(fresh) + len(again) >= count:
                continue  # it asks what was asked, and there are enough of those
            played.add(family(scenario))
            fitted = await fit(source, scenario)
            if fitted is not None:
                (again if family(fitted) in families else fresh).append(fitted)
                families.add(family(fitted))
            if len(fresh) == count:
                break
    except UserError:
        if sandbox:
            raise
    found = sorted([*fresh, *again][:count], key=lambda s: s.scenario_id)
    if found or not sandbox:
        return found + list(islice(generic(source.graph, source.seed), count - len(found)))
    raise UserError(f"{source.graph.name}: none of {TRIES * count} scenarios can be solved")


async def fit(source: Source, scenario: Scenario) -> Scenario | None:
    """The scenario with the questions that can be solved, and its reference state in a sandbox.

    None where none is left. Facts the solution does not need are left out.
    """
    for _ in range(2):  # the second play shows that the questions left do without the others
        played = await play(base_row(source, scenario, Persona(patience=100)))
        solved = set(_solved(played, source.mode))
        if not solved:
            return None
        kept = [q for q in scenario.questions if q.number in solved]
        complete = len(kept) == len(scenario.questions)
        numbered = tuple(q.model_copy(update={"number": i}) for i, q in enumerate(kept, start=1))
        scenario = scenario.model_copy(update={"questions": numbered})
        if complete:
            break
    else:
        return None
    scenario = scenario.model_copy(update={"customer": _told(scenario, played)})
    if source.mode is not Mode.SANDBOX:
        return scenario
    state = await _reference(source, scenario, played.calls)
    return scenario.model_copy(update={"expected_state": state}) if state["written"] else None


async def rows_of(
    source: Source, scenario: Scenario, personas: Sequence[Persona], depths: Sequence[int]
) -> list[Row]:
    """The rows of a solvable scenario: one per persona and depth that its play reaches.

    A row asks what its prefix leaves open; where that is nothing there is no row of the depth.
    """
    rows = []
    offered = row_tools(source, await _used(source, scenario))
    for persona in personas:
        first = base_row(source, scenario, persona, persona.name.lower(), offered)
        played = await play(first, depths)
        if played.verdict["reward"] != 1.0 and source.mode is not Mode.SANDBOX:
            continue  # a sandbox row was solved when its reference state was made
        for depth, prefix in played.prefixes.items():
            variant = f"{persona.name.lower()}/{depth}"
            row = base_row(source, scenario, persona, variant, offered, prefix=list(prefix))
            opened = new_episode(row)
            tools = (await opened.seed()).tools
            left = _left_to_ask(opened) if prefix else scenario.questions
            if not left:
                continue
            row["verifier_metadata"]["questions"] = [q.model_dump(mode="json") for q in left]
            if source.mode is Mode.ROUTED:
                row["responses_create_params"]["tools"] = tools or []
            rows.append(row)
    return rows


def _left_to_ask(opened: SpecEpisode) -> list[Question]:
    """The questions that a prefix leaves to the policy, numbered anew.

    One that is answered is gone. So is one that the prefix grounded and whose answer any words could be
    (no field, or only yes and no): a policy that answers without a call must earn nothing.
    """
    verdicts = judged(opened.row.questions, opened.transcript)
    calls = [what for kind, what in opened.transcript if kind == "tool"]
    left = []
    for asked in opened.row.questions:
        grounding = [call for call in calls if grounds(need_of(asked), call)]
        values = [c.outputs[f] for c in grounding for f in asked.fields if f in c.outputs]
        if not verdicts[asked.number] and (not grounding or any(map(is_telling, values))):
            left.append(asked.model_copy(update={"number": len(left) + 1}))
    return left


def transfer_rows(source: Source, scenario: Scenario, personas: Sequence[Persona]) -> list[Row]:
    """The rows of a scenario that belongs with a person, all at the opening."""
    tools = row_tools(source, ())
    return [
        base_row(source, scenario, persona, f"{persona.name.lower()}/0", tools)
        for persona in personas
    ]


def row_tools(source: Source, used: Iterable[str]) -> list[Item]:
    """The tools of one row; empty in routed mode, where the active node decides."""
    if source.mode is Mode.ROUTED:
        return []
    flat = flat_tools(source.graph)
    homes = {flat[name][0].name for name in used if name in flat}
    homes = homes or {source.graph.entry}
    ends = (ToolKind.ESCALATE, ToolKind.END_SESSION)
    return [
        as_function(tool, name)
        for name, (node, tool) in flat.items()
        if node.name in homes or tool.kind in ends
    ]


def validation_ids(scenarios: Sequence[Scenario], share: float, seed: int) -> set[str]:
    """The scenarios held out: whole families drawn by seed until `share` of the scenarios is there.

    At least one family is held out where the share is positive, and one always stays.
    """
    groups: dict[str, list[str]] = {}
    for scenario in scenarios:
        groups.setdefault(family(scenario), []).append(scenario.scenario_id)
    order = sorted(groups.values())
    random.Random(f"{seed}/validation").shuffle(order)
    wanted = max(1, round(share * len(scenarios))) if share > 0 else 0
    held_out: set[str] = set()
    for group in order[:-1]:
        if len(held_out) < wanted:
            held_out |= set(group)
    return held_out


def split_rows(rows: Iterable[Row], held_out: set[str]) -> Iterator[Row]:
    """The rows with their split written in: by scenario, never by row."""
    for row in rows:
        metadata = row["verifier_metadata"]
        split = "validation" if metadata["scenario_id"] in held_out else "train"
        yield row | {"verifier_metadata": metadata | {"split": split}}


async def _used(source: Source, scenario: Scenario) -> list[str]:
    played = await play(base_row(source, scenario, Persona(patience=100)))
    return [name for name, _ in played.calls]


def _solved(played: Played, mode: Mode) -> list[int]:
    if mode is not Mode.SANDBOX:
        return played.verdict["reward_info"]["resolved"]
    done = [call.action for call in played.episode.session.calls if call.refusal is None]
    names = {action.name for action in done if action is not None}
    return [q.number for q in played.episode.row.questions if q.action in names]


def _told(scenario: Scenario, played: Played) -> Any:
    """The customer with the facts that the solution's calls took."""
    names = {name for _, given in played.calls for name in given}
    linked = {v.name for v in played.episode.graph.variables.values() if v.linked}
    facts = scenario.customer.facts
    kept = {name: value for name, value in facts.items() if name in names | linked}
    return scenario.customer.model_copy(update={"facts": kept})


async def _reference(
    source: Source, scenario: Scenario, calls: list[tuple[str, dict[str, Any]]]
) -> dict[str, Any]:
    """The state after the fewest of the player's calls that still do what was asked."""
    wanted = {q.action for q in scenario.questions if _writes(source.graph, q.action)}

    async def state_of(some: list[tuple[str, dict[str, Any]]]) -> dict[str, Any] | None:
        try:
            session = await reference_session(base_row(source, scenario, Persona()), some)
        except UserError:
            return None
        done = {call.action.name for call in session.calls if call.action is not None}
        return {"written": world_state(session)["written"]} if wanted <= done else None

    state = await state_of(calls)
    for index in reversed(range(len(calls))):
        fewer = await state_of(calls[:index] + calls[index + 1 :])
        if fewer is not None:
            calls, state = calls[:index] + calls[index + 1 :], fewer
    return state or {"written": {}}


def _writes(graph: WorkflowGraph, action: str | None) -> bool:
    return action is not None and writes(groundable(graph)[action].action)
