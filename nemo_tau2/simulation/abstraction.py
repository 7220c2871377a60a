"""What a script can tell apart of a state: facts for a search, and the values worth trying.

Two states with the same facts look the same to every condition that compares one variable with literals.
"""

from collections.abc import Hashable, Iterator
from functools import lru_cache
from typing import Any

from nemo_tau2.agentscript.expressions import (
    Binary,
    Compare,
    Expr,
    ListOf,
    Literal,
    reference,
    references,
    walk,
)
from nemo_tau2.agentscript.graph import Tool, WorkflowGraph
from nemo_tau2.agentscript.syntax import If, Run, Set, Statement, With
from nemo_tau2.rewards.coverage import grounds
from nemo_tau2.rewards.duplicates import canonical
from nemo_tau2.simulation.by_identity import ById
from nemo_tau2.simulation.episode import SpecEpisode
from nemo_tau2.simulation.judge import need_of


def pending(episode: SpecEpisode) -> set[int]:
    """Numbers of the data-bound questions that no call has grounded yet."""
    calls = [what for kind, what in episode.transcript if kind == "tool"]
    return {
        q.number
        for q in episode.row.questions
        if q.action and not any(grounds(need_of(q), c) for c in calls)
    }


def facts(episode: SpecEpisode) -> frozenset[Hashable]:
    """What is true of a state, as far as the script's conditions can tell."""
    session = episode.session
    literals = literals_of(episode.graph)
    found: list[Hashable] = [("at", *episode.place)]
    read = variables_read(episode.graph)
    found += [
        (name, _abstract(value, literals.get(name, ())))
        for name, value in session.state.items()
        if name in read
    ]
    found += [("open", number) for number in pending(episode)]
    if session.faults:
        found.append(("faults", session.faults))
    if episode.row.expected_state is not None:
        found += [
            (key, name, canonical(value))
            for key, record in session.records.written.items()
            for name, value in record.items()
        ]
    return frozenset(found)


def _abstract(value: Any, literals: tuple[Any, ...]) -> Hashable:
    """A value as far as it matters: empty, a literal of a condition, its order among them, or any."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        bounds = [x for x in literals if isinstance(x, int | float) and not isinstance(x, bool)]
        small = value if abs(value) < 10 else None
        return ("number", small, sum(value > x for x in bounds), sum(value >= x for x in bounds))
    if isinstance(value, str):
        return value if value in literals or not value else "any"
    return ("some" if value else "none", type(value).__name__)


def literals_of(graph: WorkflowGraph) -> dict[str, tuple[Any, ...]]:
    """The literals that conditions compare each variable with."""
    return _literals(ById(graph))


@lru_cache(maxsize=64)
def _literals(key: ById) -> dict[str, tuple[Any, ...]]:
    found: dict[str, dict[str, Any]] = {}
    for part in (p for condition in conditions(key.value) for p in walk(condition)):
        if isinstance(part, Compare):
            pairs = [(part.left, part.right), (part.right, part.left)]
        elif isinstance(part, Binary) and part.operator == "in" and isinstance(part.right, ListOf):
            pairs = [(part.left, item) for item in part.right.items]
        else:
            continue
        for variable, literal in pairs:
            name = reference(variable)
            if name and isinstance(literal, Literal) and literal.value is not None:
                found.setdefault(name.name, {})[repr(literal.value)] = literal.value
    return {name: tuple(values.values()) for name, values in found.items()}


def conditions(graph: WorkflowGraph) -> list[Expr]:
    """Every guard and every condition of an `if` or an edge."""
    found = [edge.condition for edge in graph.edges if edge.condition is not None]
    for node in graph.nodes.values():
        found += [t.guard for t in node.tools.values() if t.guard is not None]
        blocks = [node.before, node.instructions, node.after]
        blocks += [t.callbacks for t in node.tools.values()]
        found += [c for block in blocks for c in _ifs(block)]
    return found


def _ifs(statements: tuple[Statement, ...] | list[Statement]) -> Iterator[Expr]:
    for statement in statements:
        if isinstance(statement, If):
            for branch in statement.branches:
                if branch.condition is not None:
                    yield branch.condition
                yield from _ifs(branch.body)
        elif isinstance(statement, Run):
            yield from _ifs(statement.body)


def variables_read(graph: WorkflowGraph) -> frozenset[str]:
    """The variables that a condition, a call's argument or another variable depends on."""
    return _read(ById(graph))


@lru_cache(maxsize=64)
def _read(key: ById) -> frozenset[str]:
    expressions = conditions(key.value)
    for node in key.value.nodes.values():
        blocks = [node.before, node.instructions, node.after]
        for tool in node.tools.values():
            blocks.append(tool.callbacks)
            expressions += [*tool.bound.values(), *(u.value for u in tool.updates)]
        expressions += [e for block in blocks for e in _values(block)]
    found = {r.name for e in expressions for r, _ in references(e) if r.namespace == "variables"}
    steps = [step for node in key.value.nodes.values() for step in node.collect]
    return frozenset(found | {name for step in steps for name in step.variables})


def _values(statements: tuple[Statement, ...] | list[Statement]) -> Iterator[Expr]:
    for statement in statements:
        if isinstance(statement, Set):
            yield statement.value
        elif isinstance(statement, With):
            yield from (a.value for a in statement.arguments)
        elif isinstance(statement, Run):
            yield from _values(statement.body)
        elif isinstance(statement, If):
            for branch in statement.branches:
                yield from _values(branch.body)


def asked(graph: WorkflowGraph, tool: Tool) -> dict[str, tuple[Any, ...]]:
    """For each argument of a tool the values that conditions on the variables it sets ask for."""
    return dict(_asked(ById(graph), ById(tool)))


@lru_cache(maxsize=4096)
def _asked(graph: ById, tool: ById) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    literals = literals_of(graph.value)
    fed: dict[str, set[str]] = {p.name: {p.name} for p in tool.value.inputs}
    for update in tool.value.updates:
        source = reference(update.value)
        if source and source.namespace == "outputs" and source.name in fed:
            fed[source.name].add(update.variable)
    found = []
    for parameter in tool.value.inputs:
        values = [v for name in sorted(fed[parameter.name]) for v in literals.get(name, ())]
        kind = parameter.type.schema.get("type")
        if kind == "boolean":
            values = [True, False]
        elif kind in ("integer", "number"):
            numbers = [v for v in values if isinstance(v, int | float)]
            values = [v + step for v in numbers for step in (0, 1, -1)]
        values = [v for v in values if has_type(v, parameter.type.schema)]
        if values:
            found.append((parameter.name, tuple(values)))
    return tuple(found)


def has_type(value: Any, schema: dict[str, Any]) -> bool:
    kinds = {
        "string": str,
        "boolean": bool,
        "integer": int,
        "number": int | float,
        "array": list,
        "object": dict,
    }
    kind = kinds.get(schema.get("type"), object)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
