"""Lowers `reasoning.actions`: what the model can call in a node.

Transitions are offered as `go_to_<node>`; the name in the script stays an alias. Two transitions
to one node get `go_to_<node>` and `go_to_<node>_2`, in source order, each with its own guard.
"""

import re
from collections import Counter
from dataclasses import dataclass, field, replace

from nemo_tau2.agentscript.expressions import Ellipsis, Expr, Member, Name, Namespace, reference
from nemo_tau2.agentscript.fields import by_word, description, string
from nemo_tau2.agentscript.graph import (
    END,
    HUMAN,
    Action,
    Parameter,
    StateUpdate,
    Tool,
    ToolKind,
    TypeRef,
    Variable,
)
from nemo_tau2.agentscript.names import title_case
from nemo_tau2.agentscript.source import Source
from nemo_tau2.agentscript.syntax import (
    Argument,
    AvailableWhen,
    Clauses,
    Element,
    If,
    Run,
    Set,
    Statement,
    To,
    Transition,
    With,
)

NODE_NAMESPACES = ("topic", "subagent", "start_agent", "connected_subagent")
_UTILITIES = {
    "transition": ToolKind.TRANSITION,
    "setVariables": ToolKind.SET_VARIABLES,
    "escalate": ToolKind.ESCALATE,
    "end_session": ToolKind.END_SESSION,
}
_BY_KEY = {
    "transition": ToolKind.TRANSITION,
    "setVariables": ToolKind.SET_VARIABLES,
    "escalate": ToolKind.ESCALATE,
    "supervise": ToolKind.DELEGATE,
}
"""What the official compiler takes a tool of such a name for, whatever its target."""


@dataclass(slots=True)
class _Body:
    """The clauses of one tool, sorted by what they say."""

    arguments: list[Argument] = field(default_factory=list)
    updates: list[Set] = field(default_factory=list)
    guards: list[Expr] = field(default_factory=list)
    targets: list[tuple[str, Expr | None]] = field(default_factory=list)
    callbacks: list[Statement] = field(default_factory=list)


def lower_tools(
    block: Element | None,
    source: Source,
    actions: dict[str, Action],
    variables: dict[str, Variable],
    descriptions: dict[str, str],
    routes_only: bool = False,
) -> dict[str, Tool]:
    """Returns the tools of a node by the name the model uses, in source order.

    Args:
        block: the `actions:` element of `reasoning`, if any.
        source: the script, for positions.
        actions: the action definitions of the node.
        variables: the variables of the script.
        descriptions: the descriptions of all nodes, which transitions inherit.
        routes_only: keep transitions only, as the official compiler does for routing models.
    """
    tools: list[Tool] = []
    for key, element in (by_word(block.body) if block else {}).items():
        kind = kind_of(key, element)
        if routes_only and kind is not ToolKind.TRANSITION:
            continue
        lowering = _ToolLowering(key, element, kind, source, actions, variables, descriptions)
        tools += lowering.tools()
    return _with_canonical_names(tools)


def kind_of(key: str, element: Element) -> ToolKind:
    """What a tool does, from what stands to the right of its key."""
    found = reference(_target_expression(element))
    if found and found.namespace == "utils" and found.name in _UTILITIES:
        return _UTILITIES[found.name]
    if found and found.namespace in ("topic", "subagent", "connected_subagent"):
        return ToolKind.DELEGATE
    return _BY_KEY.get(key, ToolKind.ACTION)


def node_name(expression: Expr | None) -> str | None:
    """The node that `@subagent.X` (or a bare `X`) names."""
    found = reference(expression)
    if found:
        return found.name if found.namespace in NODE_NAMESPACES else None
    if isinstance(expression, Name | Namespace):
        return expression.id
    return None


def variable_name(expression: Expr) -> str | None:
    """The variable that the target of a `set` names."""
    found = reference(expression)
    if found:
        return found.name if found.namespace in ("variables", "outputs") else None
    if isinstance(expression, Name | Namespace):
        return expression.id
    return None


def action_name(expression: Expr) -> str | None:
    """The action that the target of a `run` names."""
    found = reference(expression)
    if found:
        return found.name if found.namespace == "actions" else None
    return expression.id if isinstance(expression, Name | Namespace) else None


def _target_expression(element: Element) -> Expr | None:
    value = element.value
    if isinstance(value, Clauses):
        return value.expression
    return value if isinstance(value, Member | Name | Namespace) else None


class _ToolLowering:
    def __init__(
        self, key: str, element: Element, kind: ToolKind, source: Source,
        actions: dict[str, Action], variables: dict[str, Variable], descriptions: dict[str, str],
    ):  # fmt: skip
        self.key, self.element, self.kind, self.source = key, element, kind, source
        self.actions, self.variables, self.descriptions = actions, variables, descriptions
        self.fields = by_word(element.body)
        self.body = self._sorted_body()
        self.target = _target_expression(element)

    def tools(self) -> list[Tool]:
        """The tool, or one per target of a transition."""
        match self.kind:
            case ToolKind.TRANSITION:
                return self._transitions()
            case ToolKind.DELEGATE:
                return [self._delegate()]
            case ToolKind.SET_VARIABLES:
                return [self._set_variables()]
            case ToolKind.ESCALATE:
                return [self._utility(HUMAN, "Escalate to human agent")]
            case ToolKind.END_SESSION:
                return [self._utility(END, "End the session")]
        return [self._action()]

    def _sorted_body(self) -> _Body:
        body = _Body()
        statements: list[Statement | To | Argument] = list(self.element.body)
        if isinstance(self.element.value, Clauses):
            statements += self.element.value.clauses
        for statement in statements:
            match statement:
                case With(arguments):
                    body.arguments += arguments
                case Argument():
                    body.arguments.append(statement)
                case Set():
                    body.updates.append(statement)
                case AvailableWhen(condition):
                    body.guards.append(condition)
                case Run() | If():
                    body.callbacks.append(statement)
                case Transition(clauses):
                    body.callbacks.append(statement)
                    self._add_targets(body, clauses)
                case To():
                    self._add_targets(body, [statement])
        return body

    def _add_targets(self, body: _Body, clauses: list[To | Argument]) -> None:
        """The last guard above a `to` is its guard; it is used up by that `to`."""
        for clause in clauses:
            name = node_name(clause.target) if isinstance(clause, To) else None
            if name:
                used = len(body.targets) > 0
                guard = body.guards[-1] if body.guards and not used else None
                body.targets.append((name, guard))

    def _common(self) -> dict:
        return {
            "name": _safe_name(self.key),
            "key": self.key,
            "kind": self.kind,
            "label": string(self.fields.get("label")),
            "explicit_description": description(self.fields.get("description")),
            "span": self.source.span(*self.element.span),
        }

    @property
    def _guard(self) -> Expr | None:
        return self.body.guards[-1] if self.body.guards else None

    def _updates(self) -> tuple[StateUpdate, ...]:
        found = ((variable_name(s.target), s) for s in self.body.updates)
        return tuple(
            StateUpdate(name, s.value, self.source.span(*s.span)) for name, s in found if name
        )

    def _transitions(self) -> list[Tool]:
        targets = self.body.targets
        if not targets:
            name = node_name(self.target)
            targets = [(name, None)] if name else []
        own = description(self.fields.get("description"))
        return [
            Tool(
                **self._common(),
                target=target,
                guard=guard,
                description=own or self.descriptions.get(target) or title_case(target),
            )
            for target, guard in targets
        ]

    def _delegate(self) -> Tool:
        found = reference(self.target)
        if found and found.namespace == "connected_subagent":
            return self._connected(found.name)
        names = [name for name, _ in self.body.targets]
        target = names[-1] if names else (node_name(self.target) or self.key)
        own = description(self.fields.get("description"))
        return Tool(
            **self._common(),
            target=target,
            guard=self._guard,
            description=own if own is not None else self.descriptions.get(target, ""),
        )

    def _connected(self, target: str) -> Tool:
        inputs, bound = self._split_arguments({})
        return Tool(
            **self._common(),
            target=target,
            inputs=inputs,
            bound=bound,
            connected=True,
            updates=self._updates(),
            guard=self._guard,
            description=description(self.fields.get("description")),
            callbacks=tuple(self.body.callbacks),
        )

    def _utility(self, target: str, text: str) -> Tool:
        own = description(self.fields.get("description"))
        return Tool(
            **self._common(),
            target=target,
            guard=self._guard,
            description=own if own is not None else text,
        )

    def _set_variables(self) -> Tool:
        inputs: list[Parameter] = []
        updates: list[StateUpdate] = []
        for argument in self.body.arguments:
            span = self.source.span(*argument.span)
            if isinstance(argument.value, Ellipsis):
                inputs.append(self._variable_parameter(argument.name))
                value: Expr = Member(Namespace("outputs"), argument.name)
                updates.append(StateUpdate(argument.name, value, span))
            else:
                updates.append(StateUpdate(argument.name, argument.value, span))
        return Tool(
            **self._common(),
            target="",
            inputs=tuple(inputs),
            updates=(*updates, *self._updates()),
            guard=self._guard,
            description=string(self.fields.get("description")),
            has_arguments=bool(self.body.arguments),
        )

    def _variable_parameter(self, name: str) -> Parameter:
        variable = self.variables.get(name)
        if variable is None:
            return Parameter(name, TypeRef("string"), required=True)
        return Parameter(name, variable.type, description=variable.description, required=True)

    def _action(self) -> Tool:
        found = reference(self.target)
        target = found.name if found and found.namespace == "actions" else self.key
        action = self.actions.get(target)
        declared = {p.name: p for p in action.inputs} if action else {}
        inputs, bound = self._split_arguments(declared)
        own = description(self.fields.get("description"))
        return Tool(
            **self._common(),
            target=target,
            inputs=inputs,
            bound=bound,
            updates=self._updates(),
            guard=self._guard,
            description=own if own is not None else (action.description if action else None),
            requires_confirmation=action.requires_confirmation if action else False,
            callbacks=tuple(self.body.callbacks),
        )

    def _split_arguments(
        self, declared: dict[str, Parameter]
    ) -> tuple[tuple[Parameter, ...], dict[str, Expr]]:
        """Model-filled inputs (`...`, then required inputs nobody binds) and bound ones."""
        filled, bound = fill(self.body.arguments, declared)
        inputs = (declared.get(n) or Parameter(n, TypeRef("string")) for n in filled)
        return tuple(replace(p, required=True) for p in inputs), bound


def fill(
    arguments: list[Argument], declared: dict[str, Parameter]
) -> tuple[list[str], dict[str, Expr]]:
    """The names the model fills and the expressions bound, for a call of an action."""
    filled: list[str] = []
    bound: dict[str, Expr] = {}
    for argument in arguments:
        if isinstance(argument.value, Ellipsis):
            filled.append(argument.name)
        else:
            bound[argument.name] = argument.value
    for name, parameter in declared.items():
        is_needed = parameter.required is True and parameter.default is None
        if is_needed and name not in bound and name not in filled:
            filled.append(name)
    return filled, bound


def _with_canonical_names(tools: list[Tool]) -> dict[str, Tool]:
    taken = {tool.name for tool in tools if tool.kind is not ToolKind.TRANSITION}
    counts: Counter[str] = Counter()
    named: dict[str, Tool] = {}
    for tool in tools:
        if tool.kind is ToolKind.TRANSITION:
            name = _nth_name(tool.target, counts)
            while name in taken:
                name = _nth_name(tool.target, counts)
            taken.add(name)
            aliases = tuple(a for a in (tool.key,) if a != name)
            tool = replace(tool, name=name, aliases=aliases)
        elif tool.name != tool.key:
            tool = replace(tool, aliases=(tool.key,))
        named[tool.name] = tool
    return named


def _nth_name(target: str, counts: Counter[str]) -> str:
    counts[target] += 1
    return f"go_to_{target}" + (f"_{counts[target]}" if counts[target] > 1 else "")


def _safe_name(key: str) -> str:
    """A function name the model APIs accept."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", key)[:64] or "tool"
