"""Logical lines to the syntax tree, with recovery.

A line that cannot be parsed costs that line: its diagnostic names the place, and the lines below
it are parsed as if it had been right. Blocks are kept on an explicit stack, so the depth of a
script costs no Python recursion.
"""

from dataclasses import dataclass
from pathlib import Path

from nemo_tau2.agentscript.diagnostics import Diagnostic, Severity, in_source_order
from nemo_tau2.agentscript.expression_parser import ExpressionParser
from nemo_tau2.agentscript.expressions import Expr
from nemo_tau2.agentscript.layout import Line, lay_out
from nemo_tau2.agentscript.lexer import (
    scan,
)
from nemo_tau2.agentscript.line_parser import LineParser
from nemo_tau2.agentscript.source import Source, read
from nemo_tau2.agentscript.syntax import (
    Assignment,
    Bad,
    Branch,
    Clauses,
    Collect,
    Element,
    If,
    Run,
    Script,
    SequenceItem,
    Statement,
    VariableDeclaration,
    walk,
)
from nemo_tau2.agentscript.templates import Template

MAX_BRANCHES = 100
"""Most branches of one `if`."""
MAX_BLOCKS = 60
"""Deepest nesting of blocks accepted; real scripts stay under 10."""


@dataclass(slots=True)
class _Block:
    """An open block: the column of its lines and the list its items go to."""

    indent: int
    items: list[Statement]
    procedure: bool = False
    owner: Statement | Branch | None = None


def parse(source: Source | Path | str) -> Script:
    """Parses a script: its text, or the file at a `Path`.

    Never raises for what a script says: `Script.diagnostics` tells what was wrong.
    """
    if isinstance(source, Path):
        source = read(source)
    elif isinstance(source, str):
        source = Source.of(source)
    layout = lay_out(source)
    diagnostics = layout.diagnostics
    builder = _TreeBuilder(source, diagnostics)
    for line in layout.lines:
        builder.add(line)
    items = builder.finish()
    return Script(items, layout.comments, source, in_source_order(diagnostics))


def parse_expression(text: str) -> Expr:
    """Parses one expression, for sidecars and tests.

    Raises:
        ValueError: the text is not exactly one expression.
    """
    source, diagnostics = Source(text), []
    tokens, _ = scan(text, 0, len(text))
    reader = ExpressionParser(source, tokens, diagnostics)
    expression = reader.expression()
    if diagnostics or reader.position != len(tokens):
        reason = diagnostics[0].message if diagnostics else f"unexpected `{reader.token.text}`"
        raise ValueError(f"not an expression: {text!r} ({reason})")
    return expression


class _TreeBuilder:
    """Puts the items of the lines into the blocks they belong to."""

    def __init__(self, source: Source, diagnostics: list[Diagnostic]):
        self.source, self.diagnostics = source, diagnostics
        self.blocks = [_Block(0, [])]
        self._started = False
        self._too_deep = False

    def add(self, line: Line) -> None:
        """Parses one line and files its item."""
        self._adjust_blocks(line)
        block = self.blocks[-1]
        reader = LineParser(self.source, line, self.diagnostics)
        if self._continues_element(reader, block):
            return
        item = reader.item(block.procedure)
        if isinstance(item, Branch):
            self._file_branch(item, block)
            return
        if isinstance(item, SequenceItem) != self._is_sequence(block) and block.items:
            what = "`- item` among keys" if isinstance(item, SequenceItem) else "a key among items"
            reader.report_line("syntax-error", f"{what}: a block is a mapping or a sequence")
        block.items.append(item)

    def finish(self) -> list[Statement]:
        """Closes every block and returns the top-level items."""
        items = self.blocks[0].items
        for item in walk(items):
            if isinstance(item, If) and len(item.branches) > MAX_BRANCHES:
                span = self.source.span(*item.branches[MAX_BRANCHES].span)
                message = f"an `if` has at most {MAX_BRANCHES} branches"
                self.diagnostics.append(Diagnostic("nt-too-deep", message, span))
                del item.branches[MAX_BRANCHES:]
            for opener in item.branches if isinstance(item, If) else (item,):
                self._check_body(opener)
        return items

    def _check_body(self, opener: Statement | Branch) -> None:
        """`->`, `if`, `else` and `collect` need something below them."""
        match opener:
            case Branch(body=[]) | Element(arrow=True, body=[]) | Collect(body=[]):
                end = opener.span[1]
                message = "nothing is indented below this line"
                span = self.source.span(end, end)
                self.diagnostics.append(Diagnostic("syntax-error", message, span))

    def _adjust_blocks(self, line: Line) -> None:
        if not self._started:
            self.blocks[0].indent, self._started = line.indent, True
            return
        if line.indent > self.blocks[-1].indent:
            self._open(line)
            return
        closed = False
        while len(self.blocks) > 1 and line.indent < self.blocks[-1].indent:
            self.blocks.pop()
            closed = True
        if closed and line.indent > self.blocks[-1].indent:
            start = line.tokens[0].start
            self.diagnostics.append(
                Diagnostic(
                    "nt-uneven-indent",
                    "this line fits no open block; it is read as the next item of the outer one",
                    self.source.span(start, start + 1),
                    Severity.WARNING,
                )
            )

    def _open(self, line: Line) -> None:
        block = self.blocks[-1]
        owner = block.items[-1] if block.items else None
        if isinstance(owner, If):
            owner = owner.branches[-1]
        target = _body_of(owner)
        start = line.tokens[0].start
        span = self.source.span(start, line.tokens[0].end)
        if target is None:
            self.diagnostics.append(
                Diagnostic("syntax-error", "unexpected indentation: nothing opens a block", span)
            )
            self.blocks.append(_Block(line.indent, block.items, block.procedure))
        elif len(self.blocks) > MAX_BLOCKS:
            if not self._too_deep:
                self._too_deep = True
                message = f"blocks nest deeper than {MAX_BLOCKS} levels"
                self.diagnostics.append(Diagnostic("nt-too-deep", message, span))
            self.blocks.append(_Block(line.indent, block.items, block.procedure))
        else:
            is_procedure = isinstance(owner, Branch | Run) or (
                isinstance(owner, Element) and owner.arrow
            )
            self.blocks.append(_Block(line.indent, target, is_procedure, owner))

    def _is_sequence(self, block: _Block) -> bool:
        return bool(block.items) and isinstance(block.items[0], SequenceItem)

    def _continues_element(self, reader: "LineParser", block: _Block) -> bool:
        """`go: @utils.transition` with `to @subagent.X` alone on the next line."""
        owner = block.owner
        if reader.token.text != "to" or block.items or not isinstance(owner, Element):
            return False
        if owner.value is None or isinstance(
            owner.value, Template | VariableDeclaration | Assignment | Clauses
        ):
            return False
        clauses = reader.clauses()
        reader.expect_end()
        owner.value = Clauses(owner.value, clauses, owner.value.span)
        owner.comments += reader.line.comments
        return True

    def _file_branch(self, branch: Branch, block: _Block) -> None:
        last = block.items[-1] if block.items else None
        if isinstance(last, If) and last.branches[-1].condition is not None:
            last.branches.append(branch)
            return
        start, end = branch.span
        word = self.source.text[start : start + 4]
        self.diagnostics.append(
            Diagnostic(
                "syntax-error",
                f"`{word}` without an `if` above it at the same column",
                self.source.span(start, min(end, start + 4)),
            )
        )
        text = self.source.text[start:end]
        block.items.append(Bad(text, branch.body, comments=branch.comments, span=branch.span))


def _body_of(owner: Statement | Branch | None) -> list[Statement] | None:
    """The list a deeper line below `owner` goes to; None where no block may follow."""
    match owner:
        case SequenceItem(value=Element() as element):
            return element.body
        case SequenceItem(value=None) | Element() | Branch() | Run() | Collect() | Bad():
            return owner.body
    return None
