"""Reads typed values off the elements of a syntax tree: strings, flags, types, declarations.

Repeated keys follow the official compiler: the last value wins, at the place of the first.
"""

from typing import Any

from nemo_tau2.agentscript.expressions import (
    DictOf,
    Expr,
    Index,
    ListOf,
    Literal,
    Name,
    Unary,
    bare,
    to_source,
)
from nemo_tau2.agentscript.graph import TypeRef
from nemo_tau2.agentscript.printer import template_source
from nemo_tau2.agentscript.syntax import (
    Assignment,
    Bare,
    Clauses,
    Element,
    SequenceItem,
    Statement,
    TemplateLine,
    Value,
    VariableDeclaration,
)
from nemo_tau2.agentscript.template_parser import parse_quoted
from nemo_tau2.agentscript.templates import Template, dedent_text


def by_word(items: list[Statement]) -> dict[str, Element]:
    """The elements of a body by their (first) word."""
    return {item.key.word: item for item in items if isinstance(item, Element)}


def named(items: list[Statement], word: str) -> dict[str, Element]:
    """The two-word elements `word <name>:` of a body, by name."""
    found: dict[str, Element] = {}
    for item in items:
        if isinstance(item, Element) and item.key.word == word:
            found[item.key.name or f"ILLEGAL_anonymous_{word}_{len(found) + 1}"] = item
    return found


def child(element: Element | None, *path: str) -> Element | None:
    """The element at a path of words below `element`."""
    for word in path:
        if element is None:
            return None
        element = by_word(element.body).get(word)
    return element


def value_of(element: Element | None) -> Value | None:
    """What stands to the right of a key, or alone below it."""
    if element is None:
        return None
    if element.value is not None:
        value = element.value
        return value.expression if isinstance(value, Clauses) else value
    if len(element.body) == 1:
        match element.body[0]:
            case Bare(expression):
                return expression
            case TemplateLine(template):
                return template
    return None


def string(element: Element | None) -> str | None:
    """A string or template value as text (`{!...}` left in place); None for anything else."""
    value = value_of(element)
    if isinstance(value, Template):
        return template_source(value)
    if isinstance(value, Literal) and isinstance(value.value, str):
        return value.value
    return None


def description(element: Element | None) -> str | None:
    """Like `string`, with the indentation of a quoted multi-line text removed."""
    value = value_of(element)
    text = string(element)
    return text if text is None or isinstance(value, Template) else dedent_text(text)


def flag(element: Element | None) -> bool | None:
    """A boolean value; the strings "true" and "false" count, in any case."""
    value = value_of(element)
    if isinstance(value, Literal):
        if isinstance(value.value, bool):
            return value.value
        if isinstance(value.value, str) and value.value.lower() in ("true", "false"):
            return value.value.lower() == "true"
    return None


def template(element: Element | None) -> Template | None:
    """A value that is sent as text: a template, or a string read as one."""
    value = value_of(element)
    if isinstance(value, Template):
        return value
    if isinstance(value, Literal) and isinstance(value.value, str):
        return parse_quoted(value.value, value.span)
    return None


def plain(value: Value | None) -> Any:
    """A literal as a JSON value; None for anything that is not a literal."""
    match value:
        case Template():
            return template_source(value)
        case Literal(value):
            return value
        case Unary("-", Literal(int() | float() as number)):
            return -number
        case ListOf(items):
            return [item for item in map(plain, items) if item is not None]
        case DictOf(entries):
            result = {}
            for key, item in entries:
                name = key.id if isinstance(key, Name) else plain(key)
                read = plain(item)
                if name is not None and read is not None:
                    result[name] = read
            return result
    return None


def mapping(element: Element | None) -> dict[str, Any]:
    """The literal values below a key (or of its dictionary), nested blocks included."""
    if element is None:
        return {}
    value = value_of(element)
    if isinstance(value, DictOf):
        return plain(value)
    result: dict[str, Any] = {}
    for word, item in by_word(element.body).items():
        read: Any = plain(value_of(item))
        if read is None and item.body:
            read = sequence(item) or mapping(item)
        if read is not None:
            result[word] = read
    return result


def sequence(element: Element) -> list[Any]:
    """The literal items of a `- item` block."""
    items = [item.value for item in element.body if isinstance(item, SequenceItem)]
    return [read for read in map(plain, items) if read is not None]


def declared(element: Element) -> tuple[Expr | None, Expr | None, str | None]:
    """Type, default and modifier of `name: [modifier] type [= default]`."""
    match element.value:
        case VariableDeclaration(modifier, kind, default):
            return kind, default, modifier
        case Assignment(left, right):
            return left, right, None
        case Clauses(expression):
            return expression, None, None
        case None | Template():
            return None, None, None
        case expression:
            return expression, None, None


def type_ref(expression: Expr | None) -> TypeRef | None:
    """`string` or `list[string]`; None for anything else."""
    expression = bare(expression) if expression is not None else None
    match expression:
        case Name(name):
            return TypeRef(name)
        case Index(Name(), Name(name)):
            return TypeRef(name, True)
        case Index(Name(name)):
            return TypeRef(name, True)
    return None


def type_text(expression: Expr | None) -> str | None:
    """A type as written."""
    return None if expression is None else to_source(expression)
