"""Expressions and templates as the strings that AgentJSON holds.

The official compiler prints a runtime dialect: `state.x` for mutable variables, `variables.x` for
linked ones, `result.x` for outputs. It also loses some brackets (`(a or b) and (c or d)` becomes
`a or b and (c or d)`). This module prints what it prints, brackets lost and all, because its use
is comparison; nothing here is ever evaluated.
"""

from dataclasses import dataclass, field

from nemo_tau2.agentscript.expressions import (
    Binary,
    Broken,
    Call,
    Compare,
    DateTime,
    DictOf,
    Ellipsis,
    Expr,
    Index,
    ListOf,
    Literal,
    Member,
    Name,
    Namespace,
    Paren,
    Spread,
    Ternary,
    Unary,
    bare,
    number_text,
    reference,
)
from nemo_tau2.agentscript.lexer import quote
from nemo_tau2.agentscript.templates import Template

_SYSTEM = {
    "user_input": "input_text",
    "current_modality": "current_modality",
    "current_connection": "current_connection",
    "last_reply": "last_reply",
}
_OPERATIONS = (Member, Index, Binary, Unary, Compare, Ternary, Call)


@dataclass(frozen=True, slots=True)
class Dialect:
    """What the printed names depend on."""

    linked: frozenset[str] = frozenset()
    knowledge: dict[str, str | bool] = field(default_factory=dict)
    tool_keys: dict[str, str] = field(default_factory=dict)
    """Key of the transition tool that leads to a node, by node."""


def text_of(expression: Expr, dialect: Dialect, system_message: bool = False) -> str:
    """An expression in the runtime dialect."""
    text = _Printer(dialect, system_message).text(expression)
    return _rewrite_quoted_variables(text, dialect)


@dataclass(frozen=True, slots=True)
class _Printer:
    dialect: Dialect
    system_message: bool

    def text(self, node: Expr) -> str:
        go = self.text
        match node:
            case Paren(inner):
                return go(inner)
            case Literal(value):
                return _literal(value)
            case DateTime(text) | Name(text) | Broken(text):
                return text
            case Member():
                return self.member(node)
            case Namespace("outputs"):
                return "result"
            case Namespace(name):
                return f"@{name}"
            case Index(value, index):
                return self.item(bare(value), go(index))
            case Compare(operator, left, right, between):
                return f"{go(left)}{between or f' {operator} '}{go(right)}"
            case Binary(operator, left, right):
                return self.binary(operator, left, right)
            case Unary("not", operand):
                return f"not {go(operand)}"
            case Unary(operator, operand):
                return f"{operator}{go(operand)}"
            case Ternary(then, condition, otherwise):
                return f"{go(then)} if {go(condition)} else {go(otherwise)}"
            case Call(function, arguments):
                return f"{go(function)}({', '.join(map(go, arguments))})"
            case Spread(value):
                return f"*{go(value)}"
            case Ellipsis():
                return "..."
            case ListOf() | DictOf():
                return ""  # the official compiler has no text for these here
        raise TypeError(f"not an expression: {node!r}")

    def binary(self, operator: str, left: Expr, right: Expr) -> str:
        first, second = self.text(left), self.text(right)
        if isinstance(right, Paren) and isinstance(bare(right), _OPERATIONS):
            return f"{first} {operator} ({second})"
        if isinstance(left, Paren) and isinstance(bare(left), _OPERATIONS):
            return f"({first}) {operator} {second}"
        return f"{first} {operator} {second}"

    def item(self, value: Expr, index: str) -> str:
        if value == Namespace("outputs"):
            return f"result[{index}]"
        if value == Namespace("system_variables"):
            name = index.strip('"')
            return f'system["{_SYSTEM.get(name, name)}"]'
        return f"{self.text(value)}[{index}]"

    def member(self, node: Member) -> str:
        found = reference(node)
        if found is None:
            value = self.text(node.value)
            return f"len({value})" if node.name == "length" else f"{value}.{node.name}"
        namespace, name = found
        match namespace:
            case "variables" if name in self.dialect.linked:
                return f"{'$Context' if self.system_message else 'variables'}.{name}"
            case "variables":
                return f"state.{name}"
            case "outputs":
                return f"result.{name}"
            case "actions" | "tools" | "tool_definitions":
                return f"action.{self.dialect.tool_keys.get(name, name)}"
            case "system_variables":
                return f"system.{_SYSTEM[name]}" if name in _SYSTEM else f"state.{name}"
            case "knowledge":
                known = self.dialect.knowledge
                return _literal(known[name]) if name in known else ""
            case "inputs":
                return f"inputs.{name}"
            case "topic" | "subagent":
                return ""
        return f"@{namespace}.{name}"


def template_text(template: Template, dialect: Dialect, system_message: bool = False) -> str:
    """A template with `{{expression}}` interpolations; tools appear by name.

    The official compiler leaves the interpolations of a quoted string as they are.
    """
    if template.quoted is not None:
        return template.quoted
    pieces = []
    for part in template.parts:
        if isinstance(part, str):
            pieces.append(part)
            continue
        text = text_of(part.expression, dialect, system_message)
        if system_message and text.startswith("$Context."):
            pieces.append(f"{{!{text}}}")
        elif text.startswith("action."):
            pieces.append(text.removeprefix("action."))
        else:
            pieces.append(f"{{{{{text}}}}}")
    return "".join(pieces)


def _literal(value: object) -> str:
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bool) or value is None:
        return str(value)
    return number_text(value)


def _rewrite_quoted_variables(text: str, dialect: Dialect) -> str:
    """`@variables.x` inside string literals is rewritten too."""
    marker = "@variables."
    if marker not in text:
        return text
    head, *rest = text.split(marker)
    pieces = [head]
    for piece in rest:
        length = next((i for i, c in enumerate(piece) if not (c.isalnum() or c == "_")), len(piece))
        name = piece[:length]
        if not name:
            pieces.append(marker + piece)
        else:
            space = "variables" if name in dialect.linked else "state"
            pieces.append(f"{space}.{piece}")
    return "".join(pieces)
