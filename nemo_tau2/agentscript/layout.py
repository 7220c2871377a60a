"""Physical lines to logical lines: indentation, continuation, comments, and template bodies.

A logical line is one element or statement. It spans several physical lines when a bracket is
open, when a line ends in `\\`, or when it holds a template, which takes every following line that
is indented deeper than its owner. Indentation columns count a space as 1 and a tab as 3, as the
official scanner does. Comments belong to the logical line below them (`comments`, with "" for a
blank line between) or beside them (`trailing`); they never change indentation.
"""

import re
from dataclasses import dataclass, field

from nemo_tau2.agentscript.diagnostics import Diagnostic
from nemo_tau2.agentscript.lexer import COMMENT, PIPE, STRING, TEMPLATE, Token, scan
from nemo_tau2.agentscript.source import Source

TAB_WIDTH = 3
MAX_STRING_LINES = 40
"""How far an unclosed string is searched for its closing quote before it is called unclosed."""

_INDENT = re.compile(r"[ \t\r\f\ufeff\u200b\u2060]*")
_LOOKS_LIKE_CODE = re.compile(
    r"""(?:\||(?:set|run|with|transition)[ ][@\w]
        |[A-Za-z_]\w*(?:[ ]\w+)?:[ \t]*
         (?:$|["@\[{|]|->|-?\d
           |(?:True|False|None|mutable|linked|list|string|number|boolean|object|date|id)\b))""",
    re.VERBOSE,
)
_REST_OF_STRING = re.compile(r'(?:[^"\\\n]|\\.)*"')
_STARTS_A_LINE = re.compile(r"(?:[A-Za-z_]\w*(?: \w+)?[ \t]*:|(?:set|run|with|transition) )")
_OPENERS, _CLOSERS = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}


@dataclass(slots=True)
class Line:
    """One logical line."""

    indent: int
    tokens: list[Token]
    comments: tuple[str, ...] = ()
    trailing: str | None = None
    gap: bool = False


@dataclass(slots=True)
class Layout:
    """The logical lines of a script, the comments after the last one, and what was wrong."""

    lines: list[Line] = field(default_factory=list)
    comments: tuple[str, ...] = ()
    diagnostics: list[Diagnostic] = field(default_factory=list)


def lay_out(source: Source) -> Layout:
    """Splits a script into logical lines. Linear in the length of the text."""
    layout = Layout()
    text, length, position = source.text, len(source.text), 0
    comments: list[str] = []
    gap = False
    blocks = [0]
    while position < length:
        end = _line_end(text, position)
        start = _INDENT.match(text, position, end).end()
        if start == end:
            if comments and comments[-1]:
                comments.append("")
            gap = gap or not comments
            position = end + 1
        elif text[start] == "#":
            comments.append(text[start:end].rstrip())
            position = end + 1
        else:
            indent = _column(text, position, start)
            owner = _block_column(blocks, indent, bool(layout.lines))
            reader = _LogicalLine(source, layout.diagnostics, indent, owner)
            position = reader.read(start, end)
            if reader.tokens:
                inner, trailing = reader.comments
                layout.lines.append(
                    Line(reader.indent, reader.tokens, (*comments, *inner), trailing, gap)
                )
                comments, gap = [], text[position - 2 : position] == "\n\n"
    layout.comments = tuple(comments[:-1] if comments and not comments[-1] else comments)
    return layout


def _block_column(blocks: list[int], indent: int, started: bool) -> int:
    """Opens or closes blocks for a line; returns the column of the block it belongs to.

    A line between two levels joins the outer block, so its own column is not that of its block.
    """
    if not started:
        blocks[0] = indent
    elif indent > blocks[-1]:
        blocks.append(indent)
    else:
        while len(blocks) > 1 and indent < blocks[-1]:
            blocks.pop()
    return blocks[-1]


class _LogicalLine:
    """Reads one logical line, however many physical lines it takes."""

    def __init__(self, source: Source, diagnostics: list[Diagnostic], indent: int, owner: int):
        self.source, self.text = source, source.text
        self.indent, self.owner = indent, owner
        self.diagnostics = diagnostics
        self.tokens: list[Token] = []
        self._open: list[str] = []
        self._comments: list[tuple[str, bool]] = []

    @property
    def comments(self) -> tuple[list[str], str | None]:
        """Comments found inside brackets, and the one at the end of the line."""
        inner = [text for text, last in self._comments if not last]
        trailing = next((text for text, last in self._comments if last), None)
        return inner, trailing

    def read(self, start: int, end: int) -> int:
        """Reads from `start`; returns where the next physical line begins."""
        while True:
            tokens, _ = scan(self.text, start, end)
            comment = tokens.pop() if tokens and tokens[-1].kind == COMMENT else None
            if tokens and tokens[-1].kind == PIPE:
                pipe = tokens.pop()
                self.tokens += tokens
                return self._read_template(pipe)
            if comment is None and tokens and self._is_unclosed_string(tokens[-1], end):
                resumed = self._join_string(tokens, end)
                if resumed is not None:
                    self.tokens += tokens
                    start, end = resumed, _line_end(self.text, resumed)
                    continue
            joined = bool(tokens) and comment is None and tokens[-1].text == "\\"
            if joined:
                tokens.pop()
            self._track_brackets(tokens)
            self.tokens += tokens
            following = end + 1
            resumed = following if joined else self._continuation(following)
            go_on = resumed is not None and resumed < len(self.text)
            if comment is not None:
                self._comments.append((comment.text.rstrip(), not go_on))
            if not go_on:
                return following
            start, end = resumed, _line_end(self.text, resumed)

    def _track_brackets(self, tokens: list[Token]) -> None:
        for token in tokens:
            if token.text in _OPENERS and token.kind != STRING:
                self._open.append(token.text)
            elif token.text in _CLOSERS and self._open:
                self._open.pop()

    def _continuation(self, position: int) -> int | None:
        """Where an open bracket goes on, at or below the line at `position`; None if it does not.

        An unclosed bracket must not swallow the rest of the file: the next line has to be deeper
        than this one or begin with a closing bracket, and must not look like a key or a
        statement; `(…:` and `[…:` end a line for good.
        """
        if not self._open:
            return None
        if self.tokens and self.tokens[-1].text == ":" and self._open[-1] != "{":
            return None
        while position < len(self.text):
            end = _line_end(self.text, position)
            start = _INDENT.match(self.text, position, end).end()
            if start < end:
                column = _column(self.text, position, start)
                closes = self.text[start] in _CLOSERS and column == self.indent
                goes_on = column > self.indent or closes
                if self._open[-1] != "{" and _STARTS_A_LINE.match(self.text, start, end):
                    goes_on = False
                return position if goes_on else None
            position = end + 1
        return None

    def _is_unclosed_string(self, token: Token, end: int) -> bool:
        return token.kind == STRING and token.end == end and not _is_closed(token.text)

    def _join_string(self, tokens: list[Token], end: int) -> int | None:
        """Extends the last token over the following lines up to its closing quote.

        The lines in between must read like text, or one missing quote would swallow the code
        after it. Returns where to go on reading, or None when there is no such quote.
        """
        opening, line = tokens[-1], end + 1
        for _ in range(MAX_STRING_LINES):
            if line >= len(self.text):
                return None
            stop = _line_end(self.text, line)
            start = _INDENT.match(self.text, line, stop).end()
            if start < stop:
                deeper = _column(self.text, line, start) > self.indent
                if not deeper or _LOOKS_LIKE_CODE.match(self.text, start, stop):
                    return None
                closing = _REST_OF_STRING.match(self.text, start, stop)
                if closing:
                    self._report(
                        "string-contains-newline",
                        "a string must not contain raw newlines; use a template (`| ...`)",
                        opening,
                    )
                    whole = self.text[opening.start : closing.end()]
                    tokens[-1] = Token(STRING, whole, opening.start, closing.end())
                    return closing.end()
            line = stop + 1
        return None

    def _read_template(self, pipe: Token) -> int:
        """Takes the rest of the line and every deeper or blank line; returns the next line."""
        end = _line_end(self.text, pipe.end)
        position, last = end + 1, end
        while position < len(self.text):
            stop = _line_end(self.text, position)
            start = _INDENT.match(self.text, position, stop).end()
            if start < stop:
                if _column(self.text, position, start) <= self.owner:
                    break
                last = stop
            position = stop + 1
        body = self.text[pipe.start : last]
        self.tokens.append(Token(TEMPLATE, body, pipe.start, last))
        return min(last + 1, len(self.text))

    def _report(self, code: str, message: str, token: Token) -> None:
        span = self.source.span(token.start, token.end)
        self.diagnostics.append(Diagnostic(code, message, span))


def _is_closed(literal: str) -> bool:
    if len(literal) < 2 or not literal.endswith('"'):
        return False
    backslashes = len(literal) - 1 - len(literal[:-1].rstrip("\\"))
    return backslashes % 2 == 0


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def _column(text: str, start: int, end: int) -> int:
    """Width of the indentation `text[start:end]`; a bare carriage return starts it anew."""
    white = text[start:end]
    white = white[white.rfind("\r") + 1 :]
    return white.count(" ") + TAB_WIDTH * white.count("\t")
