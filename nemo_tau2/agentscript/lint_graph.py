"""Our own checks: can the workflow be walked, and is it worth training on?

The official linter checks the parts of a script; these look at the graph they make. All are
warnings or remarks: a script with such findings compiles and runs.
"""

from collections.abc import Iterable

from nemo_tau2.agentscript.diagnostics import Diagnostic, Severity
from nemo_tau2.agentscript.evaluate import EvaluationError, Scope, evaluate
from nemo_tau2.agentscript.expressions import Binary, Compare, Expr, Literal, bare, references
from nemo_tau2.agentscript.graph import (
    TERMINAL,
    Edge,
    Effect,
    Node,
    NodeKind,
    Tool,
    ToolKind,
    WorkflowGraph,
)
from nemo_tau2.agentscript.lint_context import LintContext
from nemo_tau2.agentscript.syntax import If, Run, Set, Statement
from nemo_tau2.agentscript.tools import variable_name


def check_graph(context: LintContext, graph: WorkflowGraph) -> None:
    """Runs every check of this module."""
    _reachability(context, graph)
    _guards(context, graph)
    for node in graph.nodes.values():
        _tools(context, node)
        _effects(context, node)


def _report(
    context: LintContext, code: str, message: str, item: Node | Edge | Tool,
    severity: Severity = Severity.WARNING,
) -> None:  # fmt: skip
    context.found.append(Diagnostic(code, message, item.span, severity))


def _reachability(context: LintContext, graph: WorkflowGraph) -> None:
    forward: dict[str, set[str]] = {name: set() for name in graph.nodes}
    for edge in graph.edges:
        if edge.target in forward:
            forward[edge.source].add(edge.target)
            if edge.delegate and graph.loop.delegates_return:
                forward[edge.target].add(edge.source)
    reached = _closure(graph.entry, forward)
    backward: dict[str, set[str]] = {name: set() for name in graph.nodes}
    for source, targets in forward.items():
        for target in targets:
            backward[target].add(source)
    returning = _closure(graph.entry, backward)
    routers = {n.name for n in graph.nodes.values() if _only_routes(n)}
    for node in graph.nodes.values():
        if node.kind is NodeKind.TERMINAL:
            continue
        if node.name not in reached:
            _report(context, "nt-unreachable-node", f"no edge leads to `{node.name}`", node)
        elif node.name not in returning and node.kind is not NodeKind.CONNECTED:
            message = f"no way back from `{node.name}` to `{graph.entry}` within a turn"
            severity = Severity.INFO if graph.loop.reset_to_initial_node else Severity.WARNING
            _report(context, "nt-no-way-back", message, node, severity)
    for name in sorted(routers & reached):
        onward = _closure(name, forward)
        if name in _after(name, forward) and onward <= routers:
            message = f"`{name}` only leads to nodes that route: no tool is ever called"
            _report(context, "nt-router-loop", message, graph.nodes[name])


def _closure(start: str, edges: dict[str, set[str]]) -> set[str]:
    seen, stack = {start}, [start]
    while stack:
        new = edges.get(stack.pop(), set()) - seen
        seen |= new
        stack += new
    return seen


def _after(start: str, edges: dict[str, set[str]]) -> set[str]:
    """Nodes reachable in one step or more."""
    return set().union(*(_closure(target, edges) for target in edges.get(start, ())))


def _only_routes(node: Node) -> bool:
    kinds = {tool.kind for tool in node.tools.values()}
    if node.kind in (NodeKind.CONNECTED, NodeKind.EXTERNAL) or node.name in TERMINAL:
        return False
    return bool(kinds) and kinds <= {ToolKind.TRANSITION} and not node.collect


def _tools(context: LintContext, node: Node) -> None:
    calls = [t for t in node.tools.values() if t.kind is ToolKind.ACTION]
    if calls and not any(tool.inputs for tool in calls):
        message = f"no tool of `{node.name}` takes an argument from the model; use `with x = ...`"
        _report(context, "nt-no-model-input", message, node, Severity.INFO)
    targets: dict[str, Tool] = {}
    for tool in node.tools.values():
        if tool.kind not in (ToolKind.TRANSITION, ToolKind.DELEGATE, ToolKind.ACTION):
            continue
        first = targets.setdefault(f"{tool.kind} {tool.target}", tool)
        if first is not tool:
            message = f"`{tool.key}` and `{first.key}` both lead to `{tool.target}`"
            _report(context, "nt-same-target", message, tool, Severity.INFO)


def _effects(context: LintContext, node: Node) -> None:
    for action in node.actions.values():
        if action.effect.effect is Effect.UNKNOWN:
            message = (
                f"`{action.name}`: read or write? {action.effect.reason}; "
                "counted as a write; say so in the sidecar"
            )
            context.found.append(
                Diagnostic("nt-ambiguous-effect", message, action.span, Severity.INFO)
            )


def _guards(context: LintContext, graph: WorkflowGraph) -> None:
    """A guard whose variables nobody sets, and that is false on their defaults, never opens."""
    written = written_variables(graph)
    initial = graph.initial_state()
    for node in graph.nodes.values():
        for tool in node.tools.values():
            if tool.guard is not None and is_never_true(tool.guard, graph, written, initial):
                message = f"`{tool.key}` is never available: nothing makes its guard true"
                _report(context, "nt-dead-guard", message, tool)


def written_variables(graph: WorkflowGraph) -> dict[str, list[Expr | None]]:
    """Everything any statement may write to each variable; None for what the model gives."""
    written: dict[str, list[Expr | None]] = {}
    for node in graph.nodes.values():
        for step in node.collect:
            for name in step.variables:
                written.setdefault(name, []).append(None)
        for tool in node.tools.values():
            for update in tool.updates:
                written.setdefault(update.variable, []).append(update.value)
            _collect_sets(tool.callbacks, written)
        for statements in (node.instructions, node.before, node.after):
            _collect_sets(statements, written)
    return written


def _collect_sets(statements: Iterable[Statement], written: dict[str, list[Expr | None]]) -> None:
    for statement in statements:
        match statement:
            case Set(target, value):
                name = variable_name(target)
                if name:
                    written.setdefault(name, []).append(value)
            case Run(_, body):
                _collect_sets(body, written)
            case If(branches):
                for branch in branches:
                    _collect_sets(branch.body, written)


def is_never_true(
    guard: Expr, graph: WorkflowGraph, written: dict[str, list[Expr | None]], initial: dict
) -> bool:
    """True only when no reachable state can satisfy the guard.

    A conjunction fails with any of its parts. A part is decided when it reads mutable variables
    only: if none is ever set, its value on the defaults is its value for good; and
    `@variables.x == literal` fails when only other literals are ever written to x.
    """
    guard = bare(guard)
    if isinstance(guard, Binary) and guard.operator == "and":
        return is_never_true(guard.left, graph, written, initial) or is_never_true(
            guard.right, graph, written, initial
        )
    if isinstance(guard, Binary) and guard.operator == "or":
        return is_never_true(guard.left, graph, written, initial) and is_never_true(
            guard.right, graph, written, initial
        )
    found = [r for r, _ in references(guard)]
    if any(r.namespace != "variables" for r in found):
        return False
    names = {r.name for r in found}
    known = [graph.variables.get(name) for name in names]
    if not known or any(v is None or v.linked or v.visibility for v in known):
        return False
    if len(names) == 1 and isinstance(guard, Compare):
        return _fails_on_all_values(guard, names.pop(), written, initial)
    return not (names & written.keys()) and not _holds(guard, initial)


def _fails_on_all_values(
    guard: Compare, name: str, written: dict[str, list[Expr | None]], initial: dict
) -> bool:
    values = [initial.get(name)]
    for value in written.get(name, []):
        value = bare(value) if value is not None else None
        if not isinstance(value, Literal):
            return False
        values.append(value.value)
    return not any(_holds(guard, {**initial, name: value}) for value in values)


def _holds(guard: Expr, state: dict) -> bool:
    try:
        return bool(evaluate(guard, Scope(state)))
    except EvaluationError:
        return False
