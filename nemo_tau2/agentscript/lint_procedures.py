"""What the official linter checks about statements: order, nesting, clauses, expressions."""

import re

from nemo_tau2.agentscript.diagnostics import Severity
from nemo_tau2.agentscript.expressions import (
    Binary,
    Broken,
    Call,
    Expr,
    ListOf,
    Member,
    Name,
    Namespace,
    Spread,
    bare,
    children,
    reference,
    to_source,
)
from nemo_tau2.agentscript.fields import child, string, value_of
from nemo_tau2.agentscript.lint_context import LintContext, hint
from nemo_tau2.agentscript.lowering import NODE_WORDS, ROUTER_MODEL
from nemo_tau2.agentscript.syntax import (
    AvailableWhen,
    Element,
    If,
    Run,
    Set,
    Statement,
    TemplateLine,
    To,
    Transition,
    With,
    bodies,
    expressions,
)
from nemo_tau2.agentscript.templates import Template

FUNCTIONS = ("len", "max", "min")
_DETERMINISTIC = ("before_reasoning", "after_reasoning", "on_init", "on_exit", "after_response")
_MISSING_BANG = re.compile(r"\{\s*@(variables|system_variables)\.(\w+)\s*\}")
_WORD = re.compile(r"\{[^}]*\}|\w+", re.ASCII)


def check_procedures(context: LintContext) -> None:
    """Checks every procedure and tool of every node."""
    for element in context.elements(context.script.items):
        if element.key.word in (*NODE_WORDS, "connected_subagent"):
            _node(context, element)
    instructions = child(context.blocks.get("system"), "instructions")
    _template_syntax(context, value_of(instructions))


def _node(context: LintContext, node: Element) -> None:
    reasoning = child(node, "reasoning")
    procedures = [child(node, word) for word in _DETERMINISTIC]
    for procedure in procedures:
        if procedure is not None:
            _procedure(context, procedure, allows_templates=False)
    instructions = child(reasoning, "instructions")
    if instructions is not None:
        _procedure(context, instructions, allows_templates=True)
        for item in instructions.body:
            if isinstance(item, TemplateLine):
                _template_syntax(context, item.template)
        _template_syntax(context, value_of(instructions) if not instructions.body else None)
    _template_syntax(context, value_of(child(node, "system", "instructions")))
    for tool in context.elements_of(child(reasoning, "actions")):
        _tool(context, tool)
    _routing_model(context, node, reasoning)


def _procedure(context: LintContext, element: Element, allows_templates: bool) -> None:
    value = element.value
    if value is not None and not isinstance(value, Template):
        message = f"`{element.key}` takes statements (`->`) or a template (`|`)"
        context.error("invalid-procedure-value", message, element)
    if isinstance(value, Template) and not allows_templates:
        _forbidden_template(context, element.value.span)
    _statements(context, element.body, allows_templates)
    _nesting(context, element.body)
    _order(context, element.body)


def _forbidden_template(context: LintContext, span: tuple[int, int]) -> None:
    message = "templates are for the model; here they would never be read"
    context.report_at("template-in-deterministic-procedure", message, span)


def _statements(context: LintContext, items: list[Statement], allows_templates: bool) -> None:
    """Checks single statements, at any depth."""
    _repeated_clauses(context, items)
    for item in items:
        for expression in expressions(item):
            check_expression(context, expression)
        match item:
            case TemplateLine() if not allows_templates:
                _forbidden_template(context, item.span)
            case Transition():
                _transition(context, item)
            case AvailableWhen():
                message = "`available when` belongs in a tool of `reasoning.actions`"
                context.error("nt-misplaced-guard", message, item)
            case If(branches):
                for branch in branches:
                    for expression in expressions(branch):
                        check_expression(context, expression)
        for body in bodies(item):
            _statements(context, body, allows_templates)


def _transition(context: LintContext, item: Transition) -> None:
    targets = [clause for clause in item.clauses if isinstance(clause, To)]
    if not targets:
        message = "`transition` needs a target: `transition to <target>`"
        context.error("transition-missing-target", message, item)
    for extra in targets[1:]:
        message = "`transition` takes one target"
        context.report_at("transition-multiple-targets", message, extra.span)


def _nesting(context: LintContext, items: list[Statement], inside_if: bool = False) -> None:
    """An `if` inside an `if` is not supported; `else if` is."""
    for item in items:
        if isinstance(item, If):
            if inside_if:
                message = "nested `if`: combine the conditions with `and`/`or`"
                first = item.branches[0].span
                context.report_at("unsupported-nested-if", message, first)
            for branch in item.branches:
                _nesting(context, branch.body, True)
        elif isinstance(item, Run):
            _nesting(context, item.body, inside_if)


def _order(context: LintContext, items: list[Statement]) -> None:
    """Statements after an unconditional transition never run."""
    ended = False
    for item in items:
        if ended:
            span = item.branches[0].span if isinstance(item, If) else item.span
            message = "this never runs: control has left above"
            context.report_at("unreachable-code", message, span, Severity.WARNING)
            continue
        ended = _always_leaves(item)
        for body in bodies(item):
            _order(context, body)


def _always_leaves(item: Statement) -> bool:
    if isinstance(item, Transition):
        return True
    if isinstance(item, If) and item.branches[-1].condition is None:
        return all(any(map(_always_leaves, branch.body)) for branch in item.branches)
    return False


def _repeated_clauses(context: LintContext, items: list[Statement]) -> None:
    """Two `with` of one name, or two `set` of one variable, in one tool or `run`."""
    seen: set[str] = set()
    for item in items:
        keys = []
        if isinstance(item, With):
            keys = [(f"with {a.name}", a.span) for a in item.arguments]
        elif isinstance(item, Set) and not isinstance(item.target, Broken):
            keys = [(f"set {to_source(item.target)}", item.span)]
        for key, span in keys:
            if key in seen and (key.startswith("with") or _is_call_body(items)):
                message = f"duplicate `{key}`; the last one counts"
                context.report_at("duplicate-clause", message, span, Severity.WARNING)
            seen.add(key)


def _is_call_body(items: list[Statement]) -> bool:
    """True for the body of a tool or a `run`: only clauses, no templates or transitions."""
    return any(isinstance(item, With) for item in items)


def _tool(context: LintContext, tool: Element) -> None:
    value = value_of(tool)
    if value is None:
        message = "a tool needs a target: @actions.Name, @utils.transition, ..."
        context.error("missing-action-reference", message, tool)
        return
    for expression in expressions(tool):
        check_expression(context, expression)
    _tool_target(context, tool, value)
    _repeated_clauses(context, tool.body)
    found = None if isinstance(value, Template) else reference(value)
    for item in tool.body:
        if isinstance(item, AvailableWhen):
            check_expression(context, item.condition)
        elif isinstance(item, Element):
            continue
        else:
            if found == ("utils", "setVariables") and isinstance(item, Run | Transition):
                word = "run" if isinstance(item, Run) else "transition to"
                message = f"`{word}` after @utils.setVariables is ignored"
                context.error("nt-ignored-statement", message, item)
            elif found and found.namespace == "actions" and isinstance(item, Transition):
                message = "the official compiler ignores an unconditional transition here"
                context.warn("nt-ignored-transition", message, item)
            _statements(context, [item], allows_templates=False)
    _nesting(context, tool.body)
    _order(context, [i for i in tool.body if not isinstance(i, Element | AvailableWhen)])


def _tool_target(context: LintContext, tool: Element, value: Expr | Template) -> None:
    found = None if isinstance(value, Template) else reference(value)
    known = ("actions", "topic", "subagent", "start_agent", "connected_subagent", "utils")
    if found is None or found.namespace not in known:
        message = "a tool's target is one of @" + ", @".join(known)
        context.error("constraint-resolved-type", message, tool)


def _routing_model(context: LintContext, node: Element, reasoning: Element | None) -> None:
    model = string(child(node, "model_config", "model"))
    if model != f"model://{ROUTER_MODEL}":
        return
    for tool in context.elements_of(child(reasoning, "actions")):
        value = value_of(tool)
        is_transition = not isinstance(value, Template | None) and reference(value) == (
            "utils", "transition",
        )  # fmt: skip
        if not is_transition:
            message = "a routing model only takes @utils.transition tools"
            context.error("hyperclassifier-non-transition", message, tool)
    for word in ("before_reasoning", "after_reasoning"):
        procedure = child(node, word)
        if procedure is not None and (procedure.body or procedure.value is not None):
            code = f"hyperclassifier-{word.replace('_', '-')}"
            context.error(code, f"`{word}` is not allowed with a routing model", procedure)


def check_expression(context: LintContext, expression: Expr) -> None:
    """Functions, operators, bare names and spreads."""
    stack: list[tuple[Expr, Expr | None]] = [(expression, None)]
    while stack:
        node, parent = stack.pop()
        stack += [(inner, node) for inner in children(node)]
        match node:
            case Call(function):
                _call(context, node, bare(function))
            case Binary("*" | "/" as operator):
                message = f"operator `{operator}` is not supported"
                context.report_at("unsupported-operator", message, node.span)
            case Spread():
                is_argument = isinstance(parent, Call) and node is not parent.function
                if not (is_argument or isinstance(parent, ListOf)):
                    message = "`*` spreads into the arguments of a call or into a list"
                    context.report_at("invalid-spread-context", message, node.span)
            case Name(name):
                if not (isinstance(parent, Call) and node is parent.function):
                    _bare_name(context, name, node.span, parent)
            case Namespace(name) if not isinstance(parent, Member):
                if name and name not in ("outputs", "system_variables"):
                    message = f"`@{name}` needs a member: `@{name}.something`"
                    context.report_at("nt-bare-namespace", message, node.span)


def _call(context: LintContext, node: Call, function: Expr) -> None:
    if isinstance(function, Name):
        if function.id not in FUNCTIONS:
            message = f"unknown function `{function.id}`; known: {', '.join(FUNCTIONS)}"
            context.report_at("unknown-function", message + hint(function.id, FUNCTIONS), node.span)
    elif isinstance(function, Member) and isinstance(function.value, Name):
        message = f"unknown function `{to_source(function)}`; known: {', '.join(FUNCTIONS)}"
        context.report_at("unknown-function", message, node.span)
    elif isinstance(function, Member):
        message = f"only {', '.join(FUNCTIONS)} can be called"
        context.report_at("namespace-function-call", message, node.span)
    else:
        message = f"only {', '.join(FUNCTIONS)} can be called"
        context.report_at("indirect-function-call", message, node.span)


def _bare_name(context: LintContext, name: str, span: tuple[int, int], parent: Expr | None) -> None:
    if isinstance(parent, Member):
        return
    lower = name.lower()
    if lower == "none":
        code, message = "identifier-confusable-none", f"`{name}`: did you mean `None`?"
    elif lower in ("true", "false"):
        code = "identifier-confusable-boolean"
        message = f"`{name}`: did you mean `{lower.capitalize()}`?"
    elif lower == "null":
        code, message = "null-not-allowed", '`null`: use `None`, or `""`'
    else:
        code = "unknown-identifier"
        message = f"`{name}` is not defined; write a literal or @variables.{name}"
    context.report_at(code, message, span)


def _template_syntax(context: LintContext, value: object) -> None:
    """`{@variables.x}` without `!`, and variable names in plain text, in instructions."""
    parts = value.parts if isinstance(value, Template) else ()
    literal = None if isinstance(value, Template | None) else _text(value)
    texts = [part for part in parts if isinstance(part, str)] + ([literal] if literal else [])
    if not texts:
        return
    span = value.span
    for text in texts:
        for match in _MISSING_BANG.finditer(text):
            message = f"write {{!@{match[1]}.{match[2]}}}: the `!` makes it an expression"
            context.report_at("instruction-template-syntax", message, span, Severity.INFO)
        for match in _WORD.finditer(text):
            name = match[0]
            if name in context.variables:
                message = f"`{name}` looks like a variable; did you mean {{!@variables.{name}}}?"
                context.report_at("instruction-template-syntax", message, span, Severity.INFO)


def _text(value: object) -> str | None:
    text = getattr(value, "value", None)
    return text if isinstance(text, str) else None
