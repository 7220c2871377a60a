"""What the official linter checks about references: do they exist, do their types fit."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from nemo_tau2.agentscript.diagnostics import Severity
from nemo_tau2.agentscript.expressions import (
    Binary,
    Compare,
    Expr,
    Literal,
    Member,
    Unary,
    bare,
    reference,
    references,
)
from nemo_tau2.agentscript.fields import by_word, child, named, value_of
from nemo_tau2.agentscript.graph import Action, Node, NodeKind, Parameter
from nemo_tau2.agentscript.lint_context import LintContext, hint
from nemo_tau2.agentscript.lowering import NODE_WORDS
from nemo_tau2.agentscript.syntax import (
    Argument,
    AvailableWhen,
    Clauses,
    Collect,
    Element,
    If,
    Run,
    Set,
    Statement,
    TemplateLine,
    With,
    expressions,
    walk,
)
from nemo_tau2.agentscript.templates import Interpolation, Template
from nemo_tau2.agentscript.tools import action_name

_OPAQUE = ("response_formats", "response_actions", "knowledge", "tools", "tool_definitions")
_GLOBALS: dict[str, tuple[str, ...]] = {
    "utils": ("transition", "setVariables", "escalate", "end_session"),
    "system_variables": ("user_input", "current_modality", "current_connection", "last_reply"),
    "MessagingSession": ("MessagingEndUserId", "Id", "EndUserLanguage"),
    "MessagingEndUser": ("ContactId",),
    "VoiceCall": ("Id",),
}
_PLATFORM_VARIABLES = {
    "EndUserId": "MessagingSession.MessagingEndUserId",
    "ChannelType": "MessagingSession.ChannelType",
    "RoutableId": "MessagingSession.Id",
    "EndUserLanguage": "MessagingSession.EndUserLanguage",
    "ContactId": "MessagingEndUser.ContactId",
}


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where a reference stands: its node, and the call whose `@outputs` and `@inputs` it sees.

    None for outputs or inputs means that nothing is known about them, and nothing is reported.
    """

    actions: Mapping[str, Action] = field(default_factory=dict)
    tools: frozenset[str] = frozenset()
    outputs: frozenset[str] | None = None
    inputs: frozenset[str] | None = None


def check_references(context: LintContext) -> None:
    """Checks the references of all nodes, and which variables nobody uses."""
    if context.graph is None:
        return
    checker = _Checker(context)
    for element in context.elements(context.script.items):
        if element.key.word in (*NODE_WORDS, "connected_subagent"):
            checker.node(element)
        elif element.key.word == "system":
            checker.templates(element, _Frame())
    _unused_variables(context)


class _Checker:
    def __init__(self, context: LintContext):
        self.context, self.graph = context, context.graph
        items = context.script.items
        starts = named(items, "start_agent").keys()
        self.names = {
            "variables": frozenset(self.graph.variables),
            "start_agent": frozenset(starts),
            "topic": frozenset(named(items, "topic").keys() | starts),
            "subagent": frozenset(named(items, "subagent").keys() | starts),
            "connected_subagent": frozenset(named(items, "connected_subagent")),
        }

    def node(self, element: Element) -> None:
        """Checks one node."""
        name = element.key.name or ""
        node = self.graph.nodes.get(name)
        block = child(element, "reasoning", "actions")
        tools = frozenset(by_word(block.body)) if block else frozenset()
        frame = _Frame(node.actions if node else {}, tools)
        for item in element.body:
            if not isinstance(item, Element) or item.key.word in ("actions", "inputs"):
                continue
            if item.key.word == "reasoning":
                self.statements(by_word(item.body).get("instructions"), frame)
            else:
                self.statements(item, frame)
        for tool in self.context.elements_of(block):
            self._tool(tool, node, frame)

    def templates(self, element: Element, frame: _Frame) -> None:
        """Checks the templates below an element."""
        for item in walk([element]):
            if isinstance(item, Element):
                self._expressions(item, frame, in_template=True)

    def statements(self, element: Element | None, frame: _Frame) -> None:
        """Checks a procedure or a block of templates."""
        if element is None:
            return
        self._expressions(element, frame, in_template=True)
        self._body(element.body, frame)

    def _body(self, items: list[Statement], frame: _Frame) -> None:
        for item in items:
            match item:
                case Run(target, body):
                    self._expression(target, frame, allows_actions=True)
                    inner = self._run_frame(target, frame)
                    for line in body:
                        self._body([line], frame if isinstance(line, With) else inner)
                case If(branches):
                    for branch in branches:
                        for expression in expressions(branch):
                            self._expression(expression, frame)
                        self._body(branch.body, frame)
                case Element() | Collect():
                    self._expressions(item, frame, in_template=True)
                    self._body(item.body, frame)
                case Set():
                    self._set_target(item)
                    self._expressions(item, frame)
                case _:
                    self._expressions(item, frame, isinstance(item, TemplateLine))

    def _expressions(self, item: Statement, frame: _Frame, in_template: bool = False) -> None:
        for expression in expressions(item):
            self._expression(expression, frame, allows_actions=in_template)
        template = getattr(item, "template", None) or getattr(item, "value", None)
        if isinstance(template, Template):
            self._connected_in_template(template)

    def _connected_in_template(self, template: Template) -> None:
        for part in template.parts:
            found = reference(part.expression) if isinstance(part, Interpolation) else None
            if found and found.namespace == "connected_subagent":
                message = "write {!@actions.<tool>} for a connected subagent"
                self.context.report_at("invalid-connected-subagent-reference", message, part.span)

    def _set_target(self, item: Set) -> None:
        found = reference(item.target)
        variable = self.graph.variables.get(found.name) if found else None
        if found and found.namespace == "variables" and variable and variable.linked:
            message = f"`{found.name}` is linked and cannot be set"
            self.context.report_at("set-variables-immutable-target", message, item.target.span)

    def _expression(self, expression: Expr, frame: _Frame, allows_actions: bool = False) -> None:
        for found, node in references(expression):
            self._reference(found.namespace, found.name, node, frame)
            if found.namespace == "actions" and not allows_actions:
                message = "`@actions` names a tool: it stands in templates, tools and `run`"
                self.context.report_at("nt-action-in-expression", message, node.span)

    def _reference(self, namespace: str, name: str, node: Member, frame: _Frame) -> None:
        if namespace in _OPAQUE:
            return
        if namespace in self.names:
            known = self.names[namespace]
        elif namespace == "actions":
            known = frame.actions.keys() | frame.tools
        elif namespace in ("outputs", "inputs"):
            scoped = frame.outputs if namespace == "outputs" else frame.inputs
            if scoped is None:
                return
            known = scoped
        elif namespace in _GLOBALS:
            known = frozenset(_GLOBALS[namespace])
        else:
            message = f"`@{namespace}` is not a namespace"
            names = (*self.names, *_GLOBALS, "actions", "outputs")
            message += hint(namespace, names)
            self.context.report_at("undefined-reference", message, node.span)
            return
        if name not in known:
            message = f"`{name}` is not defined in @{namespace}" + hint(name, known)
            self.context.report_at("undefined-reference", message, node.span)

    def _run_frame(self, target: Expr, frame: _Frame) -> _Frame:
        return _with_action(frame, frame.actions.get(action_name(target) or ""))

    # Tools ----------------------------------------------------------------------------------

    def _tool(self, tool: Element, node: Node | None, frame: _Frame) -> None:
        value = value_of(tool)
        if value is None or isinstance(value, Template) or node is None:
            return
        found = reference(value)
        others = replace(frame, tools=frame.tools - {tool.key.word})
        for expression in expressions(tool):
            self._expression(expression, others, allows_actions=True)
        action = node.actions.get(found.name) if found and found.namespace == "actions" else None
        inner = _with_action(frame, action)
        self._body([i for i in tool.body if not isinstance(i, Element)], inner)
        if action is not None:
            self._call(tool, value, found.name, action, is_connected=False)
        elif found and found.namespace == "connected_subagent":
            target = self.graph.nodes.get(found.name)
            if target is not None and target.kind is NodeKind.CONNECTED:
                shell = Action(found.name, inputs=target.inputs)
                self._call(tool, value, found.name, shell, is_connected=True)
        elif found == ("utils", "setVariables"):
            self._set_variables(tool)
        self._guards(tool, known=action is not None)

    def _call(
        self, tool: Element, value: Expr, name: str, action: Action, is_connected: bool
    ) -> None:
        inputs = {p.name: p for p in action.inputs}
        outputs = {p.name: p for p in action.outputs}
        given = set()
        for argument in _arguments(tool):
            given.add(argument.name)
            if argument.name not in inputs:
                message = f"`{argument.name}` is no input of `{name}`"
                message += hint(argument.name, inputs)
                self.context.report_at("action-unknown-input", message, argument.span)
            else:
                self._check_input(argument, inputs[argument.name])
        for item in tool.body:
            if isinstance(item, Set):
                self._check_output(item, name, outputs)
        for missing in (p for p in action.inputs if p.name not in given):
            if missing.default is None and missing.required is not False:
                self._missing_input(missing.name, name, value, is_connected)

    def _missing_input(self, name: str, action: str, value: Expr, is_connected: bool) -> None:
        if is_connected:
            message = f"required input `{name}` of `{action}` is missing"
            self.context.report_at("action-missing-input", message, value.span)
        else:
            message = f"input `{name}` of `{action}` has no `with`; the model may fill it"
            self.context.report_at("action-missing-input", message, value.span, Severity.INFO)

    def _check_input(self, argument: Argument, declared: Parameter) -> None:
        actual = self._type_of(argument.value)
        if actual and not _fits(str(declared.type), actual):
            message = f"input `{argument.name}` is `{declared.type}`, not `{actual}`"
            self.context.report_at("type-mismatch", message, argument.span, Severity.WARNING)

    def _check_output(self, item: Set, action: str, outputs: dict[str, Parameter]) -> None:
        found = reference(item.value)
        if found is None or found.namespace != "outputs":
            return
        output = outputs.get(found.name)
        if output is None:
            message = f"`{found.name}` is no output of `{action}`" + hint(found.name, outputs)
            self.context.report_at("action-unknown-output", message, item.value.span)
            return
        target = reference(item.target)
        variable = self.graph.variables.get(target.name) if target else None
        if variable and not _fits(str(variable.type), str(output.type)):
            message = (
                f"output `{found.name}` is `{output.type}` but `{variable.name}` is "
                f"`{variable.type}`"
            )
            self.context.report_at("type-mismatch", message, item.span, Severity.WARNING)

    def _set_variables(self, tool: Element) -> None:
        for argument in _arguments(tool):
            variable = self.graph.variables.get(argument.name)
            if variable is None:
                message = f"`{argument.name}` is not a variable"
                message += hint(argument.name, self.graph.variables)
                self.context.report_at("set-variables-unknown-variable", message, argument.span)
            elif variable.modifier != "mutable":
                message = f"`{argument.name}` is not mutable"
                self.context.report_at("set-variables-immutable-target", message, argument.span)

    def _guards(self, tool: Element, known: bool) -> None:
        for item in tool.body:
            if isinstance(item, AvailableWhen) and known:
                kind = self._type_of(item.condition)
                if kind not in (None, "boolean"):
                    message = f"a guard should be a condition; this is a {kind}"
                    self.context.report_at(
                        "available-when-non-boolean", message, item.condition.span,
                        Severity.WARNING,
                    )  # fmt: skip

    def _type_of(self, expression: Expr) -> str | None:
        """The type of an expression where it is plain; None where it is not."""
        match bare(expression):
            case Compare() | Binary("and" | "or") | Unary("not") | Literal(bool()):
                return "boolean"
            case Binary() | Unary() | Literal(int() | float()):
                return "number"
            case Literal(str()):
                return "string"
            case Member() as member:
                found = reference(member)
                variable = self.graph.variables.get(found.name) if found else None
                if found and found.namespace == "variables" and variable:
                    return str(variable.type)
        return None


def _with_action(frame: _Frame, action: Action | None) -> _Frame:
    if action is None:
        return replace(frame, outputs=None, inputs=None)
    return replace(
        frame,
        outputs=frozenset(p.name for p in action.outputs),
        inputs=frozenset(p.name for p in action.inputs),
    )


def _arguments(tool: Element) -> list[Argument]:
    found = [a for item in tool.body if isinstance(item, With) for a in item.arguments]
    if isinstance(tool.value, Clauses):
        found += [clause for clause in tool.value.clauses if isinstance(clause, Argument)]
    return found


def _fits(wanted: str, actual: str) -> bool:
    wanted, actual = wanted.lower(), actual.lower()
    return wanted == actual or "object" in (wanted, actual)


def _unused_variables(context: LintContext) -> None:
    used: set[str] = set()
    for item in walk(context.script.items):
        places = [item, *item.branches] if isinstance(item, If) else [item]
        for place in places:
            for expression in expressions(place):
                used |= {f.name for f, _ in references(expression) if f.namespace == "variables"}
    for element in context.elements_of(context.blocks.get("variables")):
        name = element.key.word
        if name not in used:
            variable = context.variables.get(name)
            source = _PLATFORM_VARIABLES.get(name)
            needed = source is not None and variable is not None and variable.source == source
            text = "is read by the platform only" if needed else "is declared but never used"
            context.info("unused-variable", f"variable `{name}` {text}", element)
