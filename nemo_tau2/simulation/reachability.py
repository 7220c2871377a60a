"""Which actions of a script a policy can ground in a mode, and for each other one the reason.

All states that differ in what the script's conditions can tell apart are visited (`Exploration` of width
0), and those of other seeds' records in which a pair of facts is new. What none of them reaches counts as
out of reach. Endings, persons and other agents are not entered: nothing can be answered after them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from nemo_tau2.agentscript.evaluate import Scope, is_true
from nemo_tau2.agentscript.expressions import Binary, Expr, bare, references, to_source
from nemo_tau2.agentscript.graph import Node, Tool, ToolKind, WorkflowGraph
from nemo_tau2.agentscript.syntax import If, Run, Set
from nemo_tau2.agentscript.tools import action_name, variable_name
from nemo_tau2.rewards.coverage import Evidence, grounds
from nemo_tau2.simulation.by_identity import ById
from nemo_tau2.simulation.episode import SpecEpisode
from nemo_tau2.simulation.factory import EPISODES
from nemo_tau2.simulation.judge import need_of
from nemo_tau2.simulation.planning import Exploration, at_once, moves, tried
from nemo_tau2.simulation.records import is_identifier
from nemo_tau2.simulation.scenario import Customer, Mode, SpecRow
from nemo_tau2.simulation.scenarios import Groundable, facts_for, groundable, question

SEEDS = 6
"""Worlds of records looked at before an action counts as out of reach."""
MAX_EXPANDED = 3000
"""States visited per world."""
SAMPLES = 20
"""States per node in which a refused call is looked at."""


@dataclass
class Reach:
    """What can be had of a script in one mode.

    Attributes:
        reached: actions that a call can ground.
        reasons: for each other action that some tool runs, why not.
        exhaustive: whether no search stopped at its bound; otherwise `reasons` are what was seen.
    """

    reached: set[str] = field(default_factory=set)
    reasons: dict[str, str] = field(default_factory=dict)
    exhaustive: bool = True


@dataclass
class _Seen:
    """What the visited states had in common: where control was, and each variable's values."""

    graph: WorkflowGraph
    mode: Mode
    states: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    scopes: dict[str, list[Scope]] = field(default_factory=dict)
    samples: dict[str, list[SpecEpisode]] = field(default_factory=dict)

    def note(self, episode: SpecEpisode) -> None:
        session = episode.session
        some = self.samples.setdefault(session.node, [])
        if len(some) < SAMPLES:
            some.append(episode)
        self.states.setdefault(session.node, []).append(session.state)
        self.scopes.setdefault(session.node, []).append(session.interpreter.scope(session.state))


def reachability(graph: WorkflowGraph, mode: Mode, whole: bool = True) -> Reach:
    """Which actions can be grounded, with a reason for each that cannot.

    `whole`: the states of the first world are all visited. Without it the reasons are what a quicker
    look found.
    """
    reach, seen = _look(graph, mode, whole)
    reach.reasons = {
        name: _why(seen, target)
        for name, target in groundable(graph).items()
        if name not in reach.reached
    }
    return reach


def in_reach(graph: WorkflowGraph, mode: Mode) -> frozenset[str]:
    """The actions that the quicker look reaches."""
    return _in_reach(ById(graph), Mode.FLAT if mode is Mode.SANDBOX else mode)


@lru_cache(maxsize=64)
def _in_reach(graph: ById, mode: Mode) -> frozenset[str]:
    return frozenset(_look(graph.value, mode, whole=False)[0].reached)


def _look(graph: WorkflowGraph, mode: Mode, whole: bool) -> tuple[Reach, _Seen]:
    targets, reach = groundable(graph), Reach(exhaustive=whole)
    seen = _Seen(graph, mode)
    for seed in range(SEEDS):
        if len(reach.reached) < len(targets):
            _visit(seen, seed, targets, reach, 0 if whole and seed == 0 else 2)
    return reach, seen


def _visit(
    seen: _Seen, seed: int, targets: dict[str, Groundable], reach: Reach, width: int
) -> None:
    """Visits the states of one world."""
    facts = facts_for(seen.graph, [t.tool for t in targets.values()], seed)
    needs = {name: need_of(question(1, target, facts)) for name, target in targets.items()}
    start = opened(seen.graph, seen.mode, seed, facts)
    if start.stop_reason is not None:
        return
    seen.note(start)
    states = Exploration(start, width=width, limit=MAX_EXPANDED)
    for twin, path in states:
        seen.note(twin)
        if path[-1][0].name and isinstance(twin.transcript[-1][1], Evidence):
            done = twin.transcript[-1][1]
            if done.action in needs and grounds(needs[done.action], done):
                reach.reached.add(done.action)
        if len(reach.reached) == len(targets):
            return
    reach.exhaustive &= not states.stopped


def opened(graph: WorkflowGraph, mode: Mode, seed: int, facts: dict[str, Any]) -> SpecEpisode:
    """A new episode of a graph without questions, at its opening, with scripted helpers."""
    row = SpecRow(
        mode=mode, script=graph.name, scenario_id="reach", task_id="reach", domain=graph.name,
        group_id="reach", customer=Customer(facts=facts), seed=seed,
    )  # fmt: skip
    episode = EPISODES[mode](graph, row).copy()
    at_once(episode.seed())
    return episode


def _why(seen: _Seen, target: Groundable) -> str:
    """Why no visited state grounded an action: the first reason of each of its tools."""
    found = []
    for node in seen.graph.nodes.values():
        for tool in node.tools.values():
            if tool.kind is ToolKind.ACTION and tool.target == target.action.name:
                found.append(_why_tool(seen, node, tool))
    return "; ".join(dict.fromkeys(found))


def _why_tool(seen: _Seen, node: Node, tool: Tool) -> str:
    if seen.mode is Mode.ROUTED:
        if node.name not in seen.states:
            return _why_node(seen, node.name, ())
        if tool.guard is not None:
            reason = _never(seen, tool.guard, [node.name])
            if reason:
                return reason
    return _why_call(seen, node, tool)


def _why_call(seen: _Seen, node: Node, tool: Tool) -> str:
    """What became of the call where it could be made."""
    home = node.name if seen.mode is Mode.ROUTED else seen.graph.entry
    for episode in seen.samples.get(home, ()):
        for move in moves(episode):
            if move.name and dict(episode.callable_tools())[move.name] is tool:
                twin = tried(episode, move)
                done = twin.session.calls[-1]
                if done.refusal is None and twin.stop_reason is not None:
                    return f"`{tool.target}` ends the session before anything can be said"
                if done.refusal is not None:
                    return _why_refused(seen, tool, twin.session.problems[-1])
    return f"`{tool.target}` runs on arguments that the script fills, never on those asked for"


def _why_refused(seen: _Seen, tool: Tool, problem: str) -> str:
    for name, expression in tool.bound.items():
        used = [r.name for r, _ in references(expression) if r.namespace == "variables"]
        if used and is_identifier(name):
            source = _source(seen, used[0])
            return f"`{tool.target}` takes {name} from @variables.{used[0]}, which {source}"
    return f"`{tool.target}` is refused: {problem.removeprefix('not available now: ')}"


def _why_node(seen: _Seen, name: str, trail: tuple[str, ...]) -> str:
    """Why control never came to a node."""
    edges = [e for e in seen.graph.edges if e.target == name and e.source != name]
    live = [e for e in edges if e.source in seen.states]
    if not edges:
        return f"no edge leads to `{name}`"
    if not live:
        sources = sorted({e.source for e in edges} - {*trail, name})
        if not sources:
            return f"`{name}` is only reached from nodes that are not reached"
        return _why_node(seen, sources[0], (*trail, name))
    reasons = [_never(seen, e.condition, [e.source]) for e in live if e.condition is not None]
    found = sorted(filter(None, reasons), key=lambda r: "set by nothing" not in r)
    reason = found[0] if found else f"control leaves `{live[0].source}` before it can"
    return f"`{name}` is not entered: {reason}"


def _never(seen: _Seen, condition: Expr, nodes: list[str]) -> str:
    """The first part of a conjunction that held in no visited state of the nodes; empty if none."""
    scopes = [scope for name in nodes for scope in seen.scopes.get(name, ())]
    if any(is_true(condition, scope) for scope in scopes):
        return ""
    for part in _parts(condition):
        if not any(is_true(part, scope) for scope in scopes):
            used = [r.name for r, _ in references(part) if r.namespace == "variables"]
            says = f"`{to_source(part)}` never holds"
            return f"{says}: {used[0]} {_source(seen, used[0])}" if used else says
    return f"`{to_source(condition)}` never holds as a whole"


def _parts(condition: Expr) -> Iterator[Expr]:
    inner = bare(condition)
    if isinstance(inner, Binary) and inner.operator == "and":
        yield from _parts(inner.left)
        yield from _parts(inner.right)
    else:
        yield inner


def _source(seen: _Seen, variable: str) -> str:
    """Where a variable's values come from, and which were seen."""
    values = {repr(s.get(variable)): s.get(variable) for ss in seen.states.values() for s in ss}
    shown = ", ".join(sorted(values)[:3])
    found = list(setters(seen.graph, variable))
    if not found:
        return f"is set by nothing (it stays {shown})"
    return f"is only set by {', '.join(dict.fromkeys(found))} (it was {shown})"


def setters(graph: WorkflowGraph, variable: str) -> Iterator[str]:
    """Who sets a variable: tools, calls the script makes, and nodes' own statements."""
    for node in graph.nodes.values():
        for tool in node.tools.values():
            if any(u.variable == variable for u in tool.updates):
                yield f"`{tool.name}`"
            yield from _setting(tool.callbacks, variable, f"`{tool.name}`")
        for block in (node.before, node.instructions, node.after):
            yield from _setting(block, variable, f"`{node.name}` itself")


def _setting(statements: Any, variable: str, who: str) -> Iterator[str]:
    for statement in statements:
        if isinstance(statement, Set) and variable_name(statement.target) == variable:
            yield who
        elif isinstance(statement, Run):
            yield from _setting(statement.body, variable, f"`run {action_name(statement.target)}`")
        elif isinstance(statement, If):
            for branch in statement.branches:
                yield from _setting(branch.body, variable, who)
