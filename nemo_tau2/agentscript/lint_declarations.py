"""What the official linter checks about declarations: variables, inputs, outputs, their types."""

from collections.abc import Iterator

from nemo_tau2.agentscript.diagnostics import Severity
from nemo_tau2.agentscript.expressions import (
    DictOf,
    Expr,
    Index,
    ListOf,
    Literal,
    Name,
    bare,
    reference,
    to_source,
)
from nemo_tau2.agentscript.fields import by_word, child, declared, string, value_of
from nemo_tau2.agentscript.lint_context import LintContext, hint
from nemo_tau2.agentscript.names import words
from nemo_tau2.agentscript.syntax import Element
from nemo_tau2.agentscript.templates import Template

PRIMITIVE_TYPES = words(
    "string number boolean object currency date datetime time timestamp id integer long"
)
_VARIABLE_SOURCES = ("MessagingSession", "MessagingEndUser", "VoiceCall")


def check_variables(context: LintContext) -> None:
    """Checks the variables of the script."""
    block = context.blocks.get("variables")
    names: set[str] = set()
    for element in context.elements_of(block):
        check_declaration(context, element, "variable", names)
        for code, message in _variable_problems(element):
            context.error(code, message, element)
        _visibility(context, element)
        _default_type(context, element)


def _variable_problems(element: Element) -> Iterator[tuple[str, str]]:
    name = element.key.word
    kind, default, modifier = declared(element)
    stem = name.removesuffix("__c")
    if name.startswith("_") or stem.endswith("_") or "__" in stem:
        yield (
            "invalid-variable-name",
            f"`{name}`: no underscore first or last, none doubled (except a final __c)",
        )
    source = child(element, "source")
    if modifier == "mutable" and source is not None:
        yield (
            "mutable-variable-cannot-have-source",
            f"mutable `{name}` cannot have a source; only linked variables do",
        )
    if modifier != "linked":
        return
    if source is None:
        yield "linked-variable-missing-source", f"linked `{name}` needs a `source:`"
    text = to_source(kind) if kind is not None else ""
    if text.startswith("list["):
        yield "linked-variable-cannot-be-list", f"linked `{name}` cannot be a list"
    if text == "object":
        yield "linked-variable-cannot-be-object", f"linked `{name}` cannot be an object"
    if default is not None:
        yield "linked-variable-cannot-have-default", f"linked `{name}` cannot have a default"


def _visibility(context: LintContext, element: Element) -> None:
    text = string(child(element, "visibility"))
    if text is not None and text.lower() not in ("internal", "external"):
        context.error(
            "constraint-enum", f"`visibility` is Internal or External, not `{text}`",
            child(element, "visibility"),
        )  # fmt: skip
    source = child(element, "source")
    value = value_of(source)
    found = reference(value) if value is not None and not isinstance(value, Template) else None
    if found and found.namespace not in _VARIABLE_SOURCES:
        context.error(
            "constraint-allowed-namespaces",
            f"`source` is one of @{', @'.join(_VARIABLE_SOURCES)}, not @{found.namespace}"
            + hint(found.namespace, _VARIABLE_SOURCES),
            source,
        )


def _default_type(context: LintContext, element: Element) -> None:
    kind, default, _ = declared(element)
    if kind is None or default is None:
        return
    actual = _literal_type(bare(default))
    wanted = to_source(kind).lower()
    if actual and actual != wanted and "object" not in (actual, wanted):
        context.report_at(
            "variable-default-type-mismatch",
            f"`{element.key}` is declared `{wanted}` but its default is `{actual}`",
            default.span,
            Severity.WARNING,
        )


def _literal_type(value: Expr) -> str | None:
    match value:
        case ListOf():
            return "list"
        case DictOf():
            return "object"
        case Literal(bool()):
            return "boolean"
        case Literal(int() | float()):
            return "number"
        case Literal(str()):
            return "string"
    return None


def check_declaration(context: LintContext, element: Element, kind: str, names: set[str]) -> None:
    """Name and type of a variable, input or output."""
    name = element.key.word
    if element.key.name is not None:
        context.error("composite-key", f"`{element.key}`: one name only", element)
    if name in (*PRIMITIVE_TYPES, "mutable", "linked", "list") and not element.key.word_quoted:
        context.error("reserved-name", f"`{name}` is reserved", element)
    if name in names:
        context.error("duplicate-name", f"`{name}` is already defined", element)
    names.add(name)
    kind_of, _, _ = declared(element)
    if kind_of is None:
        if not (element.body and "type" in by_word(element.body)):
            context.error("missing-type", f"{kind} `{name}` lacks its type", element)
        return
    _type(context, kind_of, element)


def _type(context: LintContext, kind: Expr, element: Element) -> None:
    node = bare(kind)
    if isinstance(node, Index):
        if not (isinstance(node.value, Name) and node.value.id == "list"):
            text = to_source(node.value)
            context.report_at(
                "invalid-type-parameter", f"`{text}` takes no type parameter", node.span
            )
            return
        if isinstance(bare(node.index), Index):
            context.report_at("nested-list-type", "lists of lists are not supported", node.span)
            return
        node = bare(node.index)
    if not isinstance(node, Name):
        return
    if node.id not in PRIMITIVE_TYPES:
        message = f"unknown type `{node.id}`" + hint(node.id, PRIMITIVE_TYPES)
        context.report_at("unknown-type", message, node.span)
    elif node.id == "id":
        context.report_at(
            "deprecated-field", "'id' is deprecated: use string", node.span, Severity.WARNING
        )
