"""The syntax tree of a script: elements, statements and their bodies, as written.

The tree keeps everything a person wrote (order, comments, brackets, repeated keys) and gives it
no meaning: `lowering` does. Nodes compare by structure; spans take no part.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from nemo_tau2.agentscript.diagnostics import Diagnostic, Severity
from nemo_tau2.agentscript.expressions import Expr
from nemo_tau2.agentscript.source import Source
from nemo_tau2.agentscript.templates import Template


def _span() -> tuple[int, int]:
    return field(default=(0, 0), compare=False, repr=False)


@dataclass(slots=True, kw_only=True)
class Item:
    """What every line of a body has: comments above and beside it, maybe a blank line above."""

    comments: tuple[str, ...] = ()
    trailing: str | None = None
    gap: bool = field(default=False, compare=False, repr=False)
    span: tuple[int, int] = _span()


@dataclass(slots=True)
class VariableDeclaration:
    """`mutable string = ""`"""

    modifier: str
    type: Expr
    default: Expr | None = None
    span: tuple[int, int] = _span()


@dataclass(slots=True)
class Assignment:
    """`string = "default"`, on the right of a key."""

    left: Expr
    right: Expr
    span: tuple[int, int] = _span()


@dataclass(slots=True)
class To:
    """`to @subagent.X`"""

    target: Expr
    span: tuple[int, int] = _span()


@dataclass(slots=True)
class Argument:
    """`name = value` of a `with`; `quoted` when the name was."""

    name: str
    value: Expr
    quoted: bool = False
    span: tuple[int, int] = _span()


@dataclass(slots=True)
class Clauses:
    """`@utils.transition to @subagent.X, with a = b`, on the right of a key."""

    expression: Expr
    clauses: list[To | Argument]
    span: tuple[int, int] = _span()


Value = Template | VariableDeclaration | Assignment | Clauses | Expr


@dataclass(slots=True)
class Key:
    """`description`, or `subagent Orders` with an instance name."""

    word: str
    name: str | None = None
    word_quoted: bool = False
    name_quoted: bool = False
    span: tuple[int, int] = _span()

    def __str__(self) -> str:
        return self.word if self.name is None else f"{self.word} {self.name}"


@dataclass(slots=True)
class Element(Item):
    """`key: value` with an optional indented body; `arrow` for `key: ->`."""

    key: Key
    value: Value | None = None
    body: list["Statement"] = field(default_factory=list)
    arrow: bool = False


@dataclass(slots=True)
class TemplateLine(Item):
    """A `| text` statement."""

    template: Template


@dataclass(slots=True)
class Branch(Item):
    """One `if`, `else if` or `else` (no condition) with its body."""

    condition: Expr | None
    body: list["Statement"] = field(default_factory=list)


@dataclass(slots=True)
class If(Item):
    """`if a: ... else if b: ... else: ...`; comments sit on the branches."""

    branches: list[Branch]


@dataclass(slots=True)
class Run(Item):
    """`run @actions.X` with its `with` and `set` lines."""

    target: Expr
    body: list["Statement"] = field(default_factory=list)


@dataclass(slots=True)
class Set(Item):
    """`set target = value`"""

    target: Expr
    value: Expr


@dataclass(slots=True)
class With(Item):
    """`with a = b, c = ...`"""

    arguments: list[Argument]


@dataclass(slots=True)
class Transition(Item):
    """`transition to @subagent.X`"""

    clauses: list[To | Argument]


@dataclass(slots=True)
class AvailableWhen(Item):
    """`available when condition`"""

    condition: Expr


@dataclass(slots=True)
class Collect(Item):
    """`collect @variables.x` with a body that holds `message:`."""

    target: Expr
    body: list["Statement"] = field(default_factory=list)


@dataclass(slots=True)
class SequenceItem(Item):
    """`- value`, `- key: value` (with a body), or `-` with a body."""

    value: "Value | Element | None" = None
    body: list["Statement"] = field(default_factory=list)


@dataclass(slots=True)
class Bare(Item):
    """An expression alone in the body of a key."""

    expression: Expr


@dataclass(slots=True)
class Bad(Item):
    """A line that could not be parsed; a diagnostic has said so."""

    text: str
    body: list["Statement"] = field(default_factory=list)


Statement = (
    Element | TemplateLine | If | Run | Set | With | Transition | AvailableWhen | Collect
    | SequenceItem | Bare | Bad
)  # fmt: skip


@dataclass(slots=True)
class Script:
    """A parsed script: its top-level items, the comments after the last, and its diagnostics."""

    items: list[Statement]
    comments: tuple[str, ...] = ()
    source: Source = field(default_factory=lambda: Source(""), compare=False, repr=False)
    diagnostics: list[Diagnostic] = field(default_factory=list, compare=False, repr=False)

    @property
    def ok(self) -> bool:
        """True if the script follows the grammar."""
        return not any(
            d.severity is Severity.ERROR and d.code not in ACCEPTED for d in self.diagnostics
        )


ACCEPTED = frozenset({"string-contains-newline"})
"""Errors found while parsing that the official grammar accepts and its linter rejects."""


def bodies(item: Statement) -> Iterator[list[Statement]]:
    """The lists of statements directly inside an item."""
    if isinstance(item, If):
        for branch in item.branches:
            yield branch.body
    elif isinstance(item, Element | Run | Collect | SequenceItem | Bad):
        yield item.body
        if isinstance(item, SequenceItem) and isinstance(item.value, Element):
            yield item.value.body


def walk(items: list[Statement]) -> Iterator[Statement]:
    """Every item in `items` and below, in source order."""
    stack = list(reversed(items))
    while stack:
        item = stack.pop()
        yield item
        for body in reversed(list(bodies(item))):
            stack.extend(reversed(body))


def expressions(item: Statement | Branch) -> Iterator[Expr]:
    """The expressions on the line of an item (not those of its body), left to right.

    The type in a declaration (`mutable string = ""`) is not among them; its default is.
    """
    match item:
        case Element(value=value) | SequenceItem(value=value):
            if isinstance(value, Element):
                yield from expressions(value)
            elif value is not None:
                yield from _of_value(value)
        case TemplateLine(template):
            yield from template.expressions()
        case Branch(condition=condition):
            if condition is not None:
                yield condition
        case Set(target=target, value=value):
            yield from (target, value)
        case With(arguments=arguments):
            yield from (argument.value for argument in arguments)
        case Transition(clauses=clauses):
            yield from map(_of_clause, clauses)
        case AvailableWhen(condition=condition):
            yield condition
        case Run(target=target) | Collect(target=target):
            yield target
        case Bare(expression=expression):
            yield expression


def _of_value(value: Value) -> Iterator[Expr]:
    match value:
        case Template():
            yield from value.expressions()
        case VariableDeclaration(default=default):
            if default is not None:
                yield default
        case Assignment(right=right):
            yield right
        case Clauses(expression=expression, clauses=clauses):
            yield expression
            yield from map(_of_clause, clauses)
        case _:
            yield value


def _of_clause(clause: To | Argument) -> Expr:
    return clause.target if isinstance(clause, To) else clause.value
