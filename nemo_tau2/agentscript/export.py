"""Graphs and findings as plain JSON values, and findings as SARIF for code scanners."""

from collections.abc import Iterable
from typing import Any

from nemo_tau2.agentscript.diagnostics import Diagnostic, Severity
from nemo_tau2.agentscript.expressions import Expr, to_source
from nemo_tau2.agentscript.graph import (
    Action,
    Edge,
    Node,
    Parameter,
    Tool,
    Variable,
    WorkflowGraph,
)
from nemo_tau2.agentscript.printer import print_script, template_source
from nemo_tau2.agentscript.syntax import Script, Statement
from nemo_tau2.agentscript.templates import Template

Json = dict[str, Any]
_SARIF_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def graph_to_json(graph: WorkflowGraph) -> Json:
    """A graph as JSON values; expressions and procedures appear as source text."""
    loop = graph.loop
    return {
        "name": graph.name,
        "label": graph.label,
        "description": graph.description,
        "company": graph.company,
        "role": graph.role,
        "entry": graph.entry,
        "identity": _template(graph.identity),
        "messages": {
            "welcome": _template(graph.messages.welcome),
            "error": _template(graph.messages.error),
        },
        "loop": {
            "reset_to_initial_node": loop.reset_to_initial_node,
            "max_turns": loop.max_turns,
            "max_steps_per_turn": loop.max_steps_per_turn,
            "max_errors": loop.max_errors,
            "delegates_return": loop.delegates_return,
        },
        "variables": [_variable(v) for v in graph.variables.values()],
        "nodes": [_node(n) for n in graph.nodes.values()],
        "edges": [_edge(e) for e in graph.edges],
    }


def _variable(variable: Variable) -> Json:
    return {
        "name": variable.name,
        "kind": "linked" if variable.linked else "mutable",
        "type": str(variable.type),
        "schema": variable.type.schema,
        "default": variable.default,
        "source": variable.source,
        "description": variable.description,
    }


def _node(node: Node) -> Json:
    return {
        "name": node.name,
        "kind": node.kind.value,
        "label": node.label,
        "description": node.description,
        "identity": _template(node.identity),
        "instructions": _procedure(node.instructions),
        "before_reasoning": _procedure(node.before),
        "after_reasoning": _procedure(node.after),
        "tools": [_tool(t) for t in node.tools.values()],
        "actions": [_action(a) for a in node.actions.values()],
    }


def _tool(tool: Tool) -> Json:
    return {
        "name": tool.name,
        "aliases": list(tool.aliases),
        "kind": tool.kind.value,
        "target": tool.target,
        "description": tool.description,
        "parameters": tool.schema,
        "bound": {name: to_source(value) for name, value in tool.bound.items()},
        "updates": [{"variable": u.variable, "value": to_source(u.value)} for u in tool.updates],
        "guard": _expression(tool.guard),
        "requires_confirmation": tool.requires_confirmation,
        "callbacks": _procedure(tool.callbacks),
    }


def _action(action: Action) -> Json:
    return {
        "name": action.name,
        "target": action.target,
        "description": action.description,
        "inputs": action.input_schema,
        "outputs": action.output_schema,
        "visible_outputs": [p.name for p in action.outputs if p.visible],
        "displayable_outputs": [p.name for p in action.outputs if p.displayable],
        "constants": {p.name: p.constant for p in action.inputs if _is_constant(p)},
        "requires_confirmation": action.requires_confirmation,
        "effect": action.effect.effect.value,
        "effect_reason": action.effect.reason,
    }


def _is_constant(parameter: Parameter) -> bool:
    return parameter.constant is not None


def _edge(edge: Edge) -> Json:
    return {
        "source": edge.source,
        "target": edge.target,
        "trigger": edge.trigger.value,
        "phase": edge.phase.value,
        "condition": _expression(edge.condition),
        "tool": edge.tool,
        "delegate": edge.delegate,
    }


def _template(template: Template | None) -> str | None:
    return None if template is None else template_source(template)


def _expression(expression: Expr | None) -> str | None:
    return None if expression is None else to_source(expression)


def _procedure(statements: tuple[Statement, ...]) -> str | None:
    return print_script(Script(list(statements))) if statements else None


def diagnostic_to_json(path: str, diagnostic: Diagnostic) -> Json:
    """One finding as JSON values."""
    span = diagnostic.span
    return {
        "file": path,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
        "severity": diagnostic.severity.name.lower(),
        "code": diagnostic.code,
        "message": diagnostic.message,
    }


def to_sarif(findings: Iterable[tuple[str, Diagnostic]], version: str) -> Json:
    """Findings of several files as a SARIF 2.1.0 log."""
    results = [_sarif_result(path, diagnostic) for path, diagnostic in findings]
    rules = sorted({result["ruleId"] for result in results})
    driver = {
        "name": "nemo-tau2 spec check",
        "version": version,
        "rules": [{"id": rule} for rule in rules],
    }
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return {"$schema": schema, "version": "2.1.0", "runs": [run]}


def _sarif_result(path: str, diagnostic: Diagnostic) -> Json:
    span = diagnostic.span
    region = {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
    }
    location = {"artifactLocation": {"uri": path}, "region": region}
    return {
        "ruleId": diagnostic.code,
        "level": _SARIF_LEVELS[diagnostic.severity],
        "message": {"text": diagnostic.message},
        "locations": [{"physicalLocation": location}],
    }
