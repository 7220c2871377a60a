"""The syntax tree as source text, in one canonical layout.

Parsing the printed text gives the same tree (comments included) for every script that follows the
grammar. Blocks are indented by four spaces; blank lines of the original are kept, one at a time.
"""

from nemo_tau2.agentscript.expressions import EXPRESSION_TYPES, to_source
from nemo_tau2.agentscript.lexer import quote
from nemo_tau2.agentscript.syntax import (
    Argument,
    Assignment,
    AvailableWhen,
    Bad,
    Bare,
    Branch,
    Clauses,
    Collect,
    Element,
    If,
    Key,
    Run,
    Script,
    SequenceItem,
    Set,
    Statement,
    TemplateLine,
    To,
    Transition,
    Value,
    VariableDeclaration,
    With,
)
from nemo_tau2.agentscript.templates import Template

INDENT = 4


def print_script(script: Script) -> str:
    """Returns the canonical text of a script, with a final newline."""
    printer = _Printer()
    printer.items(script.items, 0)
    printer.lines += script.comments
    return "\n".join(printer.lines) + "\n"


class _Printer:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def items(self, items: list[Statement], column: int) -> None:
        for item in items:
            if isinstance(item, If):
                self._if(item, column)
            else:
                self._line(item, column, self._head(item, column))
                self.items(_body(item), column + INDENT)

    def _line(self, item: Statement | Branch, column: int, text: str) -> None:
        if item.gap and self.lines:
            self.lines.append("")
        pad = " " * column
        self.lines += [pad + comment if comment else "" for comment in item.comments]
        trailing = f"  {item.trailing}" if item.trailing else ""
        self.lines += f"{pad}{text}{trailing}".split("\n")

    def _if(self, item: If, column: int) -> None:
        for i, branch in enumerate(item.branches):
            if branch.condition is None:
                head = "else:"
            else:
                head = f"{'else if' if i else 'if'} {to_source(branch.condition)}:"
            self._line(branch, column, head)
            self.items(branch.body, column + INDENT)

    def _head(self, item: Statement, column: int) -> str:
        match item:
            case Element():
                return element_head(item, column)
            case TemplateLine(template):
                return print_template(template, column, column)
            case Run(target):
                return f"run {to_source(target)}"
            case Set(target, value):
                return f"set {to_source(target)} = {to_source(value)}"
            case With(arguments):
                return f"with {', '.join(map(_argument, arguments))}"
            case Transition(clauses):
                return f"transition {_clauses(clauses)}".rstrip()
            case AvailableWhen(condition):
                return f"available when {to_source(condition)}"
            case Collect(target):
                return f"collect {to_source(target)}"
            case SequenceItem(None):
                return "-"
            case SequenceItem(Element() as element):
                return "- " + element_head(element, column + 2, column)
            case SequenceItem(value):
                return "- " + print_value(value, column + 2, column)
            case Bare(expression):
                return to_source(expression)
            case Bad(text):
                return text
        raise TypeError(f"not a statement: {item!r}")


def _body(item: Statement) -> list[Statement]:
    if isinstance(item, SequenceItem) and isinstance(item.value, Element):
        return item.value.body
    return getattr(item, "body", [])


def element_head(element: Element, column: int, owner: int | None = None) -> str:
    """`key:`, `key: ->` or `key: value`, starting at `column`."""
    key = print_key(element.key) + ":"
    if element.arrow:
        return f"{key} ->"
    if element.value is None:
        return key
    owner = column if owner is None else owner
    return f"{key} {print_value(element.value, column + len(key) + 1, owner)}"


def print_key(key: Key) -> str:
    """`description`, `subagent Orders`, `"quoted"`."""
    word = quote(key.word) if key.word_quoted else key.word
    if key.name is None:
        return word
    return f"{word} {quote(key.name) if key.name_quoted else key.name}"


def print_value(value: Value, column: int, owner: int) -> str:
    """The right-hand side of a key that starts at `column` in a line indented by `owner`."""
    match value:
        case Template():
            return print_template(value, column, owner)
        case VariableDeclaration(modifier, kind, default):
            suffix = f" = {to_source(default)}" if default is not None else ""
            return f"{modifier} {to_source(kind)}{suffix}"
        case Assignment(left, right):
            return f"{to_source(left)} = {to_source(right)}"
        case Clauses(expression, clauses):
            return f"{to_source(expression)} {_clauses(clauses)}"
        case _ if isinstance(value, EXPRESSION_TYPES):
            return to_source(value)
    raise TypeError(f"not a value: {value!r}")


def print_template(template: Template, column: int, owner: int) -> str:
    """A template whose `|` stands at `column` in a line indented by `owner`."""
    text = template_source(template)
    if template.bare:
        pad = " " * (owner + INDENT)
        return "\n".join(["|", *(pad + line if line else "" for line in text.split("\n"))])
    first, *rest = text.split("\n")
    pad = " " * (column + 2)
    head = f"| {first}" if first else "|"
    return "\n".join([head, *(pad + line if line else "" for line in rest)])


def template_source(template: Template) -> str:
    """The text of a template with its interpolations as `{!expression}`."""
    if template.quoted is not None:
        return template.quoted
    return "".join(
        part if isinstance(part, str) else f"{{!{to_source(part.expression)}}}"
        for part in template.parts
    )


def _clauses(clauses: list[To | Argument]) -> str:
    return ", ".join(
        f"to {to_source(clause.target)}" if isinstance(clause, To) else f"with {_argument(clause)}"
        for clause in clauses
    )


def _argument(argument: Argument) -> str:
    name = quote(argument.name) if argument.quoted else argument.name
    return f"{name} = {to_source(argument.value)}"
