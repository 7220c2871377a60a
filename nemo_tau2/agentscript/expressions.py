"""The expressions of Agent Script as a tree, and that tree as source text.

Nodes are immutable and compare by structure: `span` (character offsets) takes no part. Brackets
written by the author stay in the tree as `Paren`, so that printing gives the source back.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from nemo_tau2.agentscript.lexer import quote


def _span() -> tuple[int, int]:
    return field(default=(0, 0), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Literal:
    """A string, number, boolean or None. `text` keeps the way a number was written."""

    value: str | int | float | bool | None
    text: str | None = None
    span: tuple[int, int] = _span()


@dataclass(frozen=True, slots=True)
class DateTime:
    """`2025-09-04` or `2025-09-04T12:01:00Z`; its value is the text."""

    text: str
    span: tuple[int, int] = _span()


@dataclass(frozen=True, slots=True)
class Name:
    """A bare name: a function, a type, or (as a value) most likely a mistake."""

    id: str
    span: tuple[int, int] = _span()


@dataclass(frozen=True, slots=True)
class Namespace:
    """`@variables`, `@actions`, `@outputs`, ..."""

    id: str
    span: tuple[int, int] = _span()


@dataclass(frozen=True, slots=True)
class Member:
    """`value.name`"""

    value: "Expr"
    name: str
    span: tuple[int, int] = _span()


@dataclass(frozen=True, slots=True)
class Index:
    """`value[index]`"""

    value: "Expr"
    index: "Expr"
    span: tuple[int, int] = _span()


@dataclass(frozen=True, slots=True)
class Call:
    """`function(arguments)`"""

    function: "Expr"
    arguments: tuple["Expr", ...]
    span: tuple[int, int] = _span()


@dataclass(frozen=True, slots=True)
class Unary:
    """`not x`, `-x`, `+x`"""

    operator: str
    operand: "Expr"
    span: tuple[int, int] = _span()


@dataclass(frozen=True, slots=True)
class Binary:
    """`and`, `or`, `+`, `-`, `*`, `/`"""

    operator: str
    left: "Expr"
    right: "Expr"
    span: tuple[int, int] = _span()


@dataclass(frozen=True, slots=True)
class Compare:
    """`==`, `!=`, `<`, `<=`, `>`, `>=`, `is`, `is not`.

    `between` is the source text between the operands: the official compiler copies it.
    """

    operator: str
    left: "Expr"
    right: "Expr"
    between: str = field(default="", compare=False, repr=False)
    span: tuple[int, int] = _span()


@dataclass(frozen=True, slots=True)
class Ternary:
    """`then if condition else otherwise`"""

    then: "Expr"
    condition: "Expr"
    otherwise: "Expr"
    span: tuple[int, int] = _span()


@dataclass(frozen=True, slots=True)
class ListOf:
    """`[a, b]`"""

    items: tuple["Expr", ...]
    span: tuple[int, int] = _span()


@dataclass(frozen=True, slots=True)
class DictOf:
    """`{key: value}`; keys are strings or names, in order."""

    entries: tuple[tuple["Expr", "Expr"], ...]
    span: tuple[int, int] = _span()


@dataclass(frozen=True, slots=True)
class Ellipsis:
    """`...`: the model fills this input."""

    span: tuple[int, int] = _span()


@dataclass(frozen=True, slots=True)
class Spread:
    """`*items` in a call or a list."""

    value: "Expr"
    span: tuple[int, int] = _span()


@dataclass(frozen=True, slots=True)
class Paren:
    """`(inner)`, as the author wrote it."""

    inner: "Expr"
    span: tuple[int, int] = _span()


@dataclass(frozen=True, slots=True)
class Broken:
    """What could not be parsed; a diagnostic has said so."""

    text: str = ""
    span: tuple[int, int] = _span()


Expr = (
    Literal | DateTime | Name | Namespace | Member | Index | Call | Unary | Binary | Compare
    | Ternary | ListOf | DictOf | Ellipsis | Spread | Paren | Broken
)  # fmt: skip
EXPRESSION_TYPES = Expr.__args__
TRUE, FALSE, NONE = Literal(True), Literal(False), Literal(None)


class Reference(NamedTuple):
    """`@namespace.name`, taken apart."""

    namespace: str
    name: str


def bare(expression: Expr) -> Expr:
    """Takes the brackets off."""
    while isinstance(expression, Paren):
        expression = expression.inner
    return expression


def reference(expression: Expr | None) -> Reference | None:
    """Returns `@namespace.name` as a pair, or None for any other expression."""
    if expression is not None:
        expression = bare(expression)
    if isinstance(expression, Member) and isinstance(expression.value, Namespace):
        return Reference(expression.value.id, expression.name)
    return None


def children(expression: Expr) -> tuple[Expr, ...]:
    """The direct sub-expressions, left to right."""
    match expression:
        case Member(value) | Spread(value) | Paren(value) | Unary(_, value):
            return (value,)
        case Index(left, right) | Binary(_, left, right) | Compare(_, left, right):
            return (left, right)
        case Call(function, arguments):
            return (function, *arguments)
        case Ternary(then, condition, otherwise):
            return (then, condition, otherwise)
        case ListOf(items):
            return items
        case DictOf(entries):
            return tuple(part for entry in entries for part in entry)
    return ()


def walk(expression: Expr) -> Iterator[Expr]:
    """Every sub-expression, the whole first."""
    stack = [expression]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node)))


def references(expression: Expr) -> Iterator[tuple[Reference, Member]]:
    """Every `@namespace.name` inside, with its node."""
    for node in walk(expression):
        found = reference(node) if isinstance(node, Member) else None
        if found:
            yield found, node


def conjunction(conditions: list[Expr]) -> Expr | None:
    """`a and b and ...`; None for an empty list. Long ones stay shallow."""
    return _join("and", conditions)


def disjunction(conditions: list[Expr]) -> Expr | None:
    """`a or b or ...`; None for an empty list. Long ones stay shallow."""
    return _join("or", conditions)


def _join(operator: str, conditions: list[Expr]) -> Expr | None:
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    operands = [Paren(c) if _binds_looser(c, operator) else c for c in conditions]
    while len(operands) > 1:
        pairs = zip(operands[::2], operands[1::2], strict=False)
        joined: list[Expr] = [Binary(operator, left, right) for left, right in pairs]
        operands = joined + operands[len(joined) * 2 :]
    return operands[0]


def negation(condition: Expr) -> Expr:
    """`not condition`, bracketed where needed."""
    return Unary("not", condition if _is_tight(condition) else Paren(condition))


def _binds_looser(expression: Expr, operator: str) -> bool:
    is_or = isinstance(expression, Binary) and expression.operator == "or"
    return isinstance(expression, Ternary) or (is_or and operator == "and")


def _is_tight(expression: Expr) -> bool:
    """True if no operator around it could take the expression apart."""
    return not isinstance(expression, Unary | Binary | Compare | Ternary)


def number_text(value: int | float) -> str:
    """A number as the official compiler writes it: `5`, `0.5`, never `5.0`."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return repr(value)


def to_source(expression: Expr) -> str:
    """Prints an expression in canonical spacing; parsing the text gives the same tree."""
    match expression:
        case Literal(value, text):
            if text is not None:
                return text
            if isinstance(value, str):
                return quote(value)
            return number_text(value) if type(value) in (int, float) else str(value)
        case DateTime(text) | Broken(text):
            return text
        case Name(name):
            return name
        case Namespace(name):
            return f"@{name}"
        case Member(value, name):
            return f"{to_source(value)}.{name}"
        case Index(value, index):
            return f"{to_source(value)}[{to_source(index)}]"
        case Call(function, arguments):
            return f"{to_source(function)}({', '.join(map(to_source, arguments))})"
        case Unary("not", operand):
            return f"not {to_source(operand)}"
        case Unary(operator, operand):
            return f"{operator}{to_source(operand)}"
        case Binary(operator, left, right) | Compare(operator, left, right):
            return f"{to_source(left)} {operator} {to_source(right)}"
        case Ternary(then, condition, otherwise):
            return f"{to_source(then)} if {to_source(condition)} else {to_source(otherwise)}"
        case ListOf(items):
            return f"[{', '.join(map(to_source, items))}]"
        case DictOf(entries):
            pairs = (f"{to_source(key)}: {to_source(value)}" for key, value in entries)
            return "{" + ", ".join(pairs) + "}"
        case Ellipsis():
            return "..."
        case Spread(value):
            return f"*{to_source(value)}"
        case Paren(inner):
            return f"({to_source(inner)})"
    raise TypeError(f"not an expression: {expression!r}")
