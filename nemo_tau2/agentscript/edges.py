"""The edges of a node: every way control may leave it, with the condition for it."""

from collections.abc import Iterator

from nemo_tau2.agentscript import collect
from nemo_tau2.agentscript.expressions import Expr, conjunction, negation
from nemo_tau2.agentscript.graph import Edge, Node, Phase, Tool, ToolKind, Trigger
from nemo_tau2.agentscript.source import Source
from nemo_tau2.agentscript.syntax import If, Statement, To, Transition
from nemo_tau2.agentscript.tools import node_name


def edges_of(node: Node, source: Source) -> Iterator[Edge]:
    """Yields the edges that leave `node`, in the order a turn meets them."""
    for phase, statements in (
        (Phase.BEFORE, node.before),
        (Phase.INSTRUCTIONS, node.instructions),
    ):
        yield from _deterministic(node.name, statements, phase, source)
    for tool in node.tools.values():
        yield from _of_tool(node, tool, source)
    yield from _deterministic(node.name, node.after, Phase.AFTER, source)
    if node.collect:
        yield Edge(
            node.name,
            node.name,
            Trigger.DETERMINISTIC,
            Phase.AFTER,
            collect.is_incomplete(node.collect),
            span=node.span,
        )


def _of_tool(node: Node, tool: Tool, source: Source) -> Iterator[Edge]:
    if tool.target and tool.kind in (
        ToolKind.TRANSITION, ToolKind.DELEGATE, ToolKind.ESCALATE, ToolKind.END_SESSION,
        ToolKind.CANCEL,
    ):  # fmt: skip
        yield Edge(
            node.name,
            tool.target,
            Trigger.MODEL,
            Phase.TOOL,
            tool.guard,
            tool.name,
            delegate=tool.kind is ToolKind.DELEGATE,
            official=tool.kind is not ToolKind.CANCEL,
            span=tool.span,
        )
    yield from _deterministic(node.name, tool.callbacks, Phase.POST_TOOL, source, tool.name)


def _deterministic(
    name: str, statements: tuple[Statement, ...], phase: Phase, source: Source,
    tool: str | None = None,
) -> Iterator[Edge]:  # fmt: skip
    for transition, conditions in transitions(list(statements), []):
        for clause in transition.clauses:
            target = node_name(clause.target) if isinstance(clause, To) else None
            if target:
                yield Edge(
                    name,
                    target,
                    Trigger.DETERMINISTIC,
                    phase,
                    conjunction(conditions),
                    tool,
                    official=tool is None or bool(conditions),
                    span=source.span(*transition.span),
                )


def transitions(
    statements: list[Statement], conditions: list[Expr]
) -> Iterator[tuple[Transition, list[Expr]]]:
    """Every `transition` in a procedure with the conditions of the branches around it."""
    for statement in statements:
        if isinstance(statement, Transition):
            yield statement, conditions
        elif isinstance(statement, If):
            failed: list[Expr] = []
            for branch in statement.branches:
                here = [*conditions, *failed]
                if branch.condition is not None:
                    yield from transitions(branch.body, [*here, branch.condition])
                    failed = [*failed, negation(branch.condition)]
                else:
                    yield from transitions(branch.body, here)
