"""Characters to tokens, one physical line at a time.

The lexer knows nothing of indentation (see `layout`) nor of templates beyond the `|` that opens
one. Keywords are plain names: the parser reads their text.
"""

import re
from typing import NamedTuple

NAME, STRING, NUMBER, DATE, OP, BAD = "name", "string", "number", "date", "operator", "bad"
PIPE, TEMPLATE, COMMENT = "|", "template", "comment"

ESCAPES = {'"': '"', "'": "'", "\\": "\\", "n": "\n", "r": "\r", "t": "\t", "0": "\0"}
_ESCAPE_CODES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}

# An unclosed string runs to the end of its line: the next line is then read as code again.
TOKEN = re.compile(
    r"""
      (?P<space>[ \t\f\v\r\u00a0\u200b\u2060\ufeff]+)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<string>"(?:[^"\\\n]|\\[^\n])*(?:"|\\?(?=\n|\Z)))
    | (?P<date>\d{4}-\d{2}-\d{2}(?:T\d{1,2}(?::\d{2}){0,2}(?:\.\d+)?Z?)?(?![A-Za-z0-9_]))
    | (?P<operator>\.\.\.|->|[=!<>]=|\{!|[-+*/.,:=<>@()\[\]{}])
    | (?P<number>\d+\.?\d*)
    | (?P<comment>\#[^\n]*)
    | (?P<pipe>\|)
    | (?P<bad>.)
    """,
    re.VERBOSE,
)
_LEADING_DOT_NUMBER = re.compile(r"\.\d+")


class Token(NamedTuple):
    """A token: its kind, its text, and the character offsets it spans."""

    kind: str
    text: str
    start: int
    end: int


def scan(text: str, position: int, limit: int) -> tuple[list[Token], int]:
    """Lexes code from `position` up to `limit` (a line end).

    Returns the tokens and where it stopped: at `limit`, or just after a `|`, whose token is last.
    A comment token, where there is one, is last too.
    """
    tokens: list[Token] = []
    match = TOKEN.match
    while position < limit:
        found = match(text, position, limit)
        kind = found.lastgroup
        end = found.end()
        if kind == "space":
            position = end
            continue
        if kind == "operator" and text[position] == "." and end == position + 1:
            dotted = _LEADING_DOT_NUMBER.match(text, position, limit)
            if dotted and not (tokens and _is_operand_end(tokens[-1])):
                kind, end = NUMBER, dotted.end()
        if kind == "pipe":
            tokens.append(Token(PIPE, "|", position, end))
            return tokens, end
        tokens.append(Token(kind, text[position:end], position, end))
        position = end
    return tokens, limit


def scan_to_brace(text: str, position: int, limit: int) -> tuple[list[Token], Token | None]:
    """Lexes the inside of `{!...}` up to the `}` that closes it.

    Returns the tokens before that brace, and the brace; None when it is not found before `limit`.
    """
    tokens: list[Token] = []
    depth = 0
    while position < limit:
        found = TOKEN.match(text, position, limit)
        token = Token(found.lastgroup, found.group(), position, found.end())
        position = token.end
        if token.kind == "space":
            continue
        if token.text in ("{", "{!"):
            depth += 1
        elif token.text == "}":
            if not depth:
                return tokens, token
            depth -= 1
        tokens.append(token)
    return tokens, None


def unquote(literal: str) -> tuple[str, list[int], bool]:
    """Reads a string literal, quotes included.

    Returns its value, the offsets of invalid escapes in it, and whether it is closed.
    """
    closed = len(literal) > 1 and literal.endswith('"') and not _ends_in_escape(literal)
    body = literal[1:-1] if closed else literal[1:]
    if "\\" not in body:
        return body, [], closed
    value, invalid, i = [], [], 0
    while i < len(body):
        if body[i] == "\\" and i + 1 < len(body):
            replacement = ESCAPES.get(body[i + 1])
            if replacement is None:
                invalid.append(i + 1)
                replacement = body[i : i + 2]
            value.append(replacement)
            i += 2
        else:
            value.append(body[i])
            i += 1
    return "".join(value), invalid, closed


def quote(value: str) -> str:
    """Returns the string literal for `value`; the inverse of `unquote`."""
    return '"' + "".join(_ESCAPE_CODES.get(c, c) for c in value) + '"'


def _ends_in_escape(literal: str) -> bool:
    backslashes = len(literal) - 1 - len(literal[:-1].rstrip("\\"))
    return backslashes % 2 == 1


def _is_operand_end(token: Token) -> bool:
    return token.kind in (NAME, NUMBER) or token.text in (")", "]")
