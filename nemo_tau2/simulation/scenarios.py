"""Scenarios: what customers of a script need, as numbered sub-questions with their evidence (K3, K6).

Made without a model, from graph and seed: each question is one action that a tool of the graph runs,
with the output fields that hold its answer and the identifying arguments it must be called with. Or
read from a YAML list of a user's. Whether a scenario can be solved is found out by playing it (`rows`).
"""

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nemo_tau2.agentscript.graph import (
    HUMAN,
    Action,
    Node,
    NodeKind,
    Tool,
    ToolKind,
    WorkflowGraph,
)
from nemo_tau2.errors import UserError
from nemo_tau2.simulation.personas import read_list
from nemo_tau2.simulation.records import choices_of, is_identifier, sample, snake, writes
from nemo_tau2.simulation.scenario import Customer, Mode, Question, Scenario, parse_scenario

MAX_QUESTIONS = 4
"""Sub-questions a generated scenario has at most."""
OUT_OF_SCOPE = (
    "I want to make a formal complaint and will only speak with a person about it.",
    "A lawyer has written to me about my account; please put me through to a person.",
    "I have asked your assistant twice already. Please hand me to one of your colleagues now.",
    "I need help for a relative who has died. I would like to speak with a person.",
    "I am a journalist and want a statement. Who can I talk to?",
    "I think somebody in your company misuses my data. Connect me with a person, please.",
)
"""Requests that belong with a person, whatever the script."""
LEFT = (NodeKind.CONNECTED, NodeKind.EXTERNAL)
"""Nodes at which a session is another agent's."""


@dataclass(frozen=True, slots=True)
class Groundable:
    """An action that the policy can run, with the first tool that runs it and that tool's node."""

    action: Action
    tool: Tool
    node: Node

    @property
    def fields(self) -> tuple[str, ...]:
        """The outputs that the policy sees."""
        return tuple(p.name for p in self.action.outputs if p.visible)


def groundable(graph: WorkflowGraph) -> dict[str, Groundable]:
    """The actions that some tool runs, by name, in the order of the script."""
    found: dict[str, Groundable] = {}
    for node in graph.nodes.values():
        for tool in node.tools.values():
            action = node.actions.get(tool.target)
            if action is not None and tool.kind is ToolKind.ACTION:
                found.setdefault(action.name, Groundable(action, tool, node))
    return found


def facts_for(graph: WorkflowGraph, tools: Sequence[Tool], seed: int) -> dict[str, Any]:
    """A value for every argument of the tools that a model fills: what their customer knows."""
    choices = choices_of(graph)
    return {
        p.name: sample(p.type.schema, p.name, f"{seed}/facts", choices.get(p.name, ()))
        for tool in tools
        for p in tool.inputs
    }


def question(number: int, target: Groundable, facts: dict[str, Any]) -> Question:
    """The sub-question that an action answers. Its arguments are those that name a record."""
    known = {p.name: facts[p.name] for p in target.tool.inputs if p.name in facts}
    named = {name: value for name, value in known.items() if is_identifier(name)}
    what = _phrase(target.action)
    about = ", ".join(f"{_words(name)} {value}" for name, value in named.items())
    tail = f" ({about})" if about else ""
    if writes(target.action):
        text = f"Please {what}{tail}."
    elif target.fields:
        fields = ", ".join(_words(name) for name in target.fields)
        text = f"Can you {what}{tail}? I need: {fields}."
    else:
        text = f"Can you {what}{tail}?"
    return Question(
        number=number,
        text=text,
        action=target.action.name,
        fields=target.fields,
        arguments=named or None,
    )


def candidates(
    graph: WorkflowGraph, seed: int, needs_write: bool = False, among: Collection[str] | None = None
) -> Iterator[Scenario]:
    """Scenarios without end, the same for the same graph and seed.

    `needs_write`: each holds an action with an effect (a sandbox is scored by what was written).
    `among`: actions that may be asked for; None: every one that a tool runs.
    Raises UserError where the graph has no action to ask for.
    """
    available = [t for n, t in groundable(graph).items() if among is None or n in among]
    acting = [target for target in available if writes(target.action)]
    if not available or (needs_write and not acting):
        what = "action with an effect" if available else "action"
        what += " that a tool runs" if among is None else " that a policy can reach"
        raise UserError(f"{graph.name}: no {what}, so there is nothing to ask for")
    number = 0
    while True:
        scenario_id = f"s{number:04d}"
        rng = random.Random(f"{seed}/{graph.name}/{scenario_id}")
        chosen = rng.sample(available, min(rng.randint(1, MAX_QUESTIONS - 1), len(available)))
        if needs_write and not any(writes(target.action) for target in chosen):
            chosen = [*chosen[: MAX_QUESTIONS - 1], rng.choice(acting)]
        facts = facts_for(graph, [t.tool for t in available], seed_of(seed, scenario_id))
        asked = tuple(question(i, target, facts) for i, target in enumerate(chosen, start=1))
        yield Scenario(
            scenario_id=scenario_id, questions=asked, customer=Customer(facts=facts), transfer=False
        )
        number += 1


def generic(graph: WorkflowGraph, seed: int) -> Iterator[Scenario]:
    """Scenarios of questions that need no tool, for graphs on which no action can be grounded."""
    places = [n for n in graph.nodes.values() if n.description.strip()] or [
        graph.nodes[graph.entry]
    ]
    offset = random.Random(f"{seed}/{graph.name}").randrange(len(places))
    number = 0
    while True:
        scenario_id = f"g{number:04d}"
        place = places[(offset + number) % len(places)]
        about = place.description.strip().rstrip(".") or graph.description or graph.name
        asked = Question(number=1, text=f"What can you do for me here: {about[:300]}?")
        yield Scenario(scenario_id=scenario_id, questions=(asked,), transfer=False)
        number += 1


def family(scenario: Scenario) -> str:
    """What a scenario asks, records aside. Scenarios of one family belong to one split."""
    return repr([(q.text, q.action, q.arguments) for q in scenario.questions])


def out_of_scope(graph: WorkflowGraph, seed: int, number: int) -> Scenario:
    """A scenario that belongs with a person; right only on a graph that can hand over."""
    scenario_id = f"t{number:04d}"
    text = random.Random(f"{seed}/{graph.name}/{scenario_id}").choice(OUT_OF_SCOPE)
    asked = Question(number=1, text=text)
    return Scenario(
        scenario_id=scenario_id,
        questions=(asked,),
        customer=Customer(opening=f"Hello. {text}"),
        transfer=True,
    )


def has_way_out(graph: WorkflowGraph, mode: Mode) -> bool:
    """Whether a session can end with somebody else at all, whatever that takes."""
    tools = [t for node in graph.nodes.values() for t in node.tools.values()]
    if mode is not Mode.ROUTED:
        return mode is Mode.FLAT and any(t.kind is ToolKind.ESCALATE for t in tools)
    away = {n.name for n in graph.nodes.values() if n.kind in LEFT} | {HUMAN}
    return any(edge.target in away for edge in graph.edges)


def can_hand_over(graph: WorkflowGraph) -> bool:
    """Whether the entry node has an unguarded tool that goes to a person."""
    tools = graph.nodes[graph.entry].tools.values()
    return any(t.kind is ToolKind.ESCALATE and t.guard is None for t in tools)


def load_scenarios(path: Path, graph: WorkflowGraph) -> list[Scenario]:
    """The scenarios of a YAML list, checked against the graph.

    Raises:
        UserError: the file is missing or no YAML list, a scenario has an unknown key or a wrong
            value, two share an id, or one names an action, field or argument the graph lacks.
    """
    scenarios: list[Scenario] = []
    for number, entry in enumerate(read_list(path, "scenarios"), start=1):
        scenario = parse_scenario(entry, f"{path}: scenario {number}")
        where = f"{path}: scenario {scenario.scenario_id!r}"
        if any(scenario.scenario_id == other.scenario_id for other in scenarios):
            raise UserError(f"{where}: the id is taken; give each scenario its own scenario_id")
        check_scenario(scenario, graph, where)
        scenarios.append(scenario)
    return scenarios


def check_scenario(scenario: Scenario, graph: WorkflowGraph, where: str) -> None:
    """Raises UserError where a scenario does not fit a graph."""
    known = groundable(graph)
    numbers = [q.number for q in scenario.questions]
    if not numbers or numbers != list(range(1, len(numbers) + 1)):
        raise UserError(f"{where}: questions: give at least one, numbered from 1 in order")
    for asked in scenario.questions:
        if asked.action is None:
            continue
        if asked.action not in known:
            raise UserError(
                f"{where}: question {asked.number} names the action {asked.action!r}, which no tool "
                f"of {graph.name} runs; choose one of {', '.join(known)}"
            )
        action = known[asked.action].action
        _require(asked.fields, known[asked.action].fields, "field", where, asked)
        names = tuple(p.name for p in action.inputs)
        _require(tuple(asked.arguments or ()), names, "argument", where, asked)


def _require(
    given: tuple[str, ...], known: tuple[str, ...], what: str, where: str, asked: Question
) -> None:
    for name in given:
        if name not in known:
            raise UserError(
                f"{where}: question {asked.number}: {asked.action} has no {what} {name!r}; "
                f"it has {', '.join(known) or 'none'}"
            )


def seed_of(seed: int, scenario_id: str) -> int:
    """The seed of a scenario's records: the same for all its personas and prefixes."""
    return random.Random(f"{seed}/{scenario_id}").getrandbits(31)


def _phrase(action: Action) -> str:
    """`Block_Card` → `block card`; the verb is the action's own."""
    return _words(action.name) or "help me"


def _words(name: str) -> str:
    return snake(name).replace("_", " ").strip()
