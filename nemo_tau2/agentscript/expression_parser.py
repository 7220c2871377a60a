"""Tokens to expressions: precedence climbing with a bound on depth.

Precedence, low to high: `a if c else b`, `or`, `and`, `not`, comparisons, `+ -`, `* /`, unary,
then calls, members and subscripts. All binary operators associate to the left.
"""

from nemo_tau2.agentscript.diagnostics import Diagnostic, Severity
from nemo_tau2.agentscript.expressions import (
    NONE,
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
)
from nemo_tau2.agentscript.lexer import DATE, NAME, NUMBER, OP, STRING, Token, unquote
from nemo_tau2.agentscript.source import Source

MAX_DEPTH = 80
"""Tallest expression tree accepted: brackets, operands and chained operators all add to it."""

_INFIX = {
    "or": 1, "and": 2, "==": 4, "!=": 4, "<": 4, ">": 4, "<=": 4, ">=": 4, "is": 4,
    "+": 5, "-": 5, "*": 6, "/": 6, "(": 8, ".": 8, "[": 8, "if": 0,
}  # fmt: skip
_WORDS = {"if", "or", "and", "is"}
_CONSTANTS = {"True": True, "False": False, "None": None}
_END = Token("end", "", 0, 0)


class TooDeepError(Exception):
    """Raised and caught inside this package: the expression nests beyond `MAX_DEPTH`."""


class ExpressionParser:
    """Reads expressions off the tokens of one logical line.

    The statement parser builds on it: both move `position` over the same tokens.
    """

    def __init__(self, source: Source, tokens: list[Token], diagnostics: list[Diagnostic]):
        self.source = source
        self.tokens = tokens
        self.diagnostics = diagnostics
        self.position = 0
        self._depth = 0
        self._height = 0  # of the tree that was parsed last

    # Tokens ---------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        """The next token; an empty one past the last."""
        return self.tokens[self.position] if self.position < len(self.tokens) else _END

    def ahead(self, distance: int = 1) -> Token:
        """The token `distance` after the next."""
        i = self.position + distance
        return self.tokens[i] if i < len(self.tokens) else _END

    def take(self) -> Token:
        """Consumes the next token."""
        token = self.token
        self.position += 1
        return token

    def accept(self, text: str) -> bool:
        """Consumes the next token if it is this operator or word."""
        token = self.token
        if token.text == text and token.kind in (OP, NAME):
            self.position += 1
            return True
        return False

    def report(self, code: str, message: str, start: int, end: int) -> None:
        """Records an error about the characters `start` to `end`; one place gets one error."""
        span = self.source.span(start, end)
        last = self.diagnostics[-1] if self.diagnostics else None
        is_repeat = last and last.severity is Severity.ERROR and last.span[:2] == span[:2]
        if not is_repeat:
            self.diagnostics.append(Diagnostic(code, message, span))

    def report_here(self, code: str, message: str) -> None:
        """Records an error at the next token, or at the end of the line."""
        token = self.token
        if token is _END:
            last = self.tokens[-1].end if self.tokens else 0
            self.report(code, message, last, last)
        else:
            self.report(code, message, token.start, token.end)

    # Expressions ----------------------------------------------------------------------------

    def expression(self, lowest: int = 0) -> Expr:
        """Parses one expression. What cannot be parsed becomes `Broken`, with a diagnostic."""
        start = self.position
        try:
            return self._expression(lowest)
        except TooDeepError:
            self._depth = 0
            first, last = self.tokens[start], self.tokens[-1]
            self.report(
                "nt-too-deep",
                f"the expression nests deeper than {MAX_DEPTH} levels; split it up",
                first.start,
                min(last.end, first.start + 80),
            )
            self.position = len(self.tokens)
            return Broken("", (first.start, last.end))

    def _expression(self, lowest: int) -> Expr:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise TooDeepError
        left = self._prefix()
        height = self._height
        while True:
            token = self.token
            strength = _INFIX.get(token.text, -1)
            if strength < lowest or strength < 0:
                break
            if token.kind != (NAME if token.text in _WORDS else OP):
                break
            self._height = 0
            left = self._infix(left, strength)
            height = max(height, self._height) + 1
            if height > MAX_DEPTH:
                raise TooDeepError
        self._depth -= 1
        self._height = height
        return left

    def _prefix(self) -> Expr:
        token = self.token
        self._height = 0
        node = self._prefixed(token)
        self._height += 1
        return node

    def _prefixed(self, token: Token) -> Expr:
        start = token.start
        if token.kind == NAME and token.text == "not":
            self.take()
            operand = self._expression(4) if self.token.text != "not" else self._expression(3)
            return Unary("not", operand, (start, self._end()))
        if token.kind == OP and token.text in "+-":
            self.take()
            return Unary(token.text, self._expression(8), (start, self._end()))
        if token.text == "*" and token.kind == OP:
            self.take()
            return Spread(self._expression(8), (start, self._end()))
        if token.text == "(" and token.kind == OP:
            self.take()
            inner = self._expression(0)
            self._close(")", token)
            return Paren(inner, (start, self._end()))
        return self._atom()

    def _atom(self) -> Expr:
        token = self.token
        span = (token.start, token.end)
        if token.kind == NAME:
            self.take()
            if token.text in _CONSTANTS:
                return Literal(_CONSTANTS[token.text], None, span)
            return Name(token.text, span)
        if token.kind == STRING:
            return self.string()
        if token.kind == NUMBER:
            self.take()
            return Literal(_number(token.text), token.text, span)
        if token.kind == DATE:
            self.take()
            return DateTime(token.text, span)
        if token.kind == OP:
            if token.text == "@":
                return self._namespace()
            if token.text == "...":
                self.take()
                return Ellipsis(span)
            if token.text == "[":
                return self._list()
            if token.text in ("{", "{!"):
                return self._dict()
        self._report_missing_operand()
        return Broken("", (self._end(), self._end()))

    def _report_missing_operand(self) -> None:
        token = self.token
        if token is _END:
            self.report_here("syntax-error", "an expression is missing here")
        else:
            self.report_here("syntax-error", f"expected an expression, found `{token.text[:40]}`")

    def string(self) -> Literal:
        """Consumes a string literal; reports bad escapes and a missing quote."""
        token = self.take()
        value, invalid, closed = unquote(token.text)
        for offset in invalid:
            at = token.start + offset
            self.report(
                "syntax-error",
                f"unknown escape `{token.text[offset : offset + 2]}`; "
                "known: \\\" \\' \\\\ \\n \\r \\t \\0",
                at,
                at + 2,
            )
        if not closed:
            self.report("missing-token", "missing closing quote", token.start, token.end)
        return Literal(value, None, (token.start, token.end))

    def _namespace(self) -> Expr:
        at = self.take()
        name = self.token
        if name.kind != NAME or name.start != at.end:
            self.report("syntax-error", "`@` needs a name after it", at.start, at.end)
            return Namespace("", (at.start, at.end))
        self.take()
        return Namespace(name.text, (at.start, name.end))

    def _list(self) -> Expr:
        opening = self.take()
        items = self._items("]")
        self._close("]", opening)
        return ListOf(tuple(items), (opening.start, self._end()))

    def _items(self, closing: str) -> list[Expr]:
        items, height = [], 0
        while self.token.text != closing and self.token is not _END:
            items.append(self._expression(0))
            height = max(height, self._height)
            if not self.accept(","):
                break
        self._height = height
        return items

    def _dict(self) -> Expr:
        opening = self.take()
        if opening.text == "{!":
            self.report(
                "syntax-error", "`{!` belongs inside a template", opening.start, opening.end
            )
        entries, height = [], 0
        while self.token.text != "}" and self.token is not _END:
            key = self.token
            if key.kind not in (NAME, STRING, NUMBER):
                self.report_here("syntax-error", "a dictionary key is a name or a string")
                break
            name = self._atom()
            if not self.accept(":"):
                self.report_here("missing-token", "missing `:` after the dictionary key")
            entries.append((name, self._expression(0)))
            height = max(height, self._height)
            if not self.accept(","):
                break
        self._height = height
        self._close("}", opening)
        return DictOf(tuple(entries), (opening.start, self._end()))

    def _infix(self, left: Expr, strength: int) -> Expr:
        operator = self.take()
        start = left.span[0]
        match operator.text:
            case ".":
                return self._member(left, operator)
            case "[":
                index = self._expression(0)
                self._close("]", operator)
                return Index(left, index, (start, self._end()))
            case "(":
                arguments = self._items(")")
                if arguments and self.tokens[self.position - 1].text == ",":
                    self.report_here("syntax-error", "an argument is missing after `,`")
                self._close(")", operator)
                return Call(left, tuple(arguments), (start, self._end()))
            case "if":
                return self._ternary(left)
            case "and" | "or" | "+" | "-" | "*" | "/":
                right = self._expression(strength + 1)
                return Binary(operator.text, left, right, (start, self._end()))
        text = operator.text
        if text == "is" and self.accept("not"):
            text = "is not"
        right = self._expression(5)
        between = self.source.text[_inner(left).span[1] : _inner(right).span[0]]
        return Compare(text, left, right, between, (start, self._end()))

    def _member(self, value: Expr, dot: Token) -> Expr:
        name = self.token
        if name.kind != NAME:
            self.report("syntax-error", "a name is missing after `.`", dot.start, dot.end)
            if name.kind == NUMBER:
                self.take()
            return Member(value, "", (value.span[0], self._end()))
        self.take()
        return Member(value, name.text, (value.span[0], name.end))

    def _ternary(self, then: Expr) -> Expr:
        condition = self._expression(1)
        height = self._height
        if self.accept("else"):
            otherwise = self._expression(0)
            self._height = max(height, self._height)
        else:
            self.report_here("syntax-error", "`a if condition` needs `else b`")
            otherwise = NONE
        return Ternary(then, condition, otherwise, (then.span[0], self._end()))

    def _close(self, closing: str, opening: Token) -> None:
        if not self.accept(closing):
            self.report(
                "missing-token",
                f"`{opening.text}` is never closed by `{closing}`",
                opening.start,
                opening.end,
            )

    def _end(self) -> int:
        last = min(self.position, len(self.tokens)) - 1
        return self.tokens[last].end if last >= 0 else 0


def _inner(expression: Expr) -> Expr:
    while isinstance(expression, Paren):
        expression = expression.inner
    return expression


def _number(text: str) -> int | float:
    """`5` is an int, `5.0` a float; digits beyond any real number are read as a float."""
    return int(text) if text.isdigit() and len(text) < 300 else float(text)


def shorten(text: str) -> str:
    """A token as messages show it."""
    return text if len(text) <= 40 else text[:40] + "…"
