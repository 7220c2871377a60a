"""One logical line to one item of the syntax tree."""

import difflib

from nemo_tau2.agentscript.expression_parser import shorten
from nemo_tau2.agentscript.expressions import Expr, Name, reference
from nemo_tau2.agentscript.lexer import (
    NAME,
    NUMBER,
    OP,
    STRING,
    TEMPLATE,
    Token,
    unquote,
)
from nemo_tau2.agentscript.names import words
from nemo_tau2.agentscript.statement_parser import STATEMENT_WORDS, StatementParser
from nemo_tau2.agentscript.syntax import (
    Assignment,
    Bare,
    Branch,
    Clauses,
    Element,
    Key,
    SequenceItem,
    Statement,
    TemplateLine,
    Value,
    VariableDeclaration,
)
from nemo_tau2.agentscript.template_parser import parse_template
from nemo_tau2.agentscript.templates import Template

_NOT_A_NAME = words(
    "if else run set with to transition available and or not is True False None mutable linked "
    "empty"
)
_MODIFIERS = ("mutable", "linked")


class LineParser(StatementParser):
    """Parses one logical line into one item."""

    def item(self, in_procedure: bool) -> Statement | Branch:
        """Parses the line. In a procedure only statements may stand."""
        token = self.token
        if token.kind == TEMPLATE:
            return self._finish(TemplateLine(self._template()))
        if token.text == "-" and token.kind == OP and self._is_dash():
            return self._finish(self._sequence_item())
        statement = self._statement_parser(token)
        if statement is not None:
            item = statement()
            self.expect_end()
            return self._finish(item)
        if in_procedure:
            return self._finish(self._stray_in_procedure())
        return self._finish(self._element_or_bare())

    def _is_dash(self) -> bool:
        token, following = self.token, self.ahead()
        return following.kind == "end" or following.start > token.end

    def _template(self) -> Template:
        return parse_template(self.source, self.take(), self.diagnostics)

    def _stray_in_procedure(self) -> Statement:
        token = self.token
        if token.text in ("elif", "elseif", "elsif"):
            return self._bad(f"`{token.text}` does not exist; write `else if`")
        words = [*STATEMENT_WORDS, "with"]
        close = difflib.get_close_matches(token.text[:40], words, 1, 0.7)
        hint = f"; did you mean `{close[0]}`?" if close and close[0] != token.text else ""
        return self._bad(f"expected a statement, found `{shorten(token.text)}`{hint}")

    def _element_or_bare(self) -> Statement:
        token = self.token
        if token.kind not in (NAME, STRING, NUMBER):
            if token.text == ":":
                return self._bad("a key is missing before `:`")
            expression = self.expression()
            self.expect_end()
            return Bare(expression)
        if token.kind == STRING and len(self.tokens) == 1:
            return Bare(self.string())
        if token.kind == NUMBER and self.ahead().kind == "end":
            return Bare(self.expression())
        return self._element()

    def _element(self) -> Element:
        key = self._key()
        element = Element(key)
        if not self.accept(":"):
            if self.token.kind == "end" and self._is_lone_word(key):
                return Bare(Name(key.word, key.span))
            self._report_missing_colon(key)
            if self.token.text not in ("->", "@", "{!", "[") and self.token.kind not in (
                NAME, STRING, NUMBER, TEMPLATE,
            ):  # fmt: skip
                self.position = len(self.tokens)
                return element
        if self.accept("->"):
            element.arrow = True
        elif self.token.kind != "end":
            element.value = self._value()
        self.expect_end()
        return element

    def _is_lone_word(self, key: Key) -> bool:
        return key.word == "empty" and key.name is None

    def _report_missing_colon(self, key: Key) -> None:
        end = key.span[1]
        self.report("missing-token", f"missing `:` after `{key}`", end, end)

    def _key(self) -> Key:
        first = self.take()
        start, end = first.start, first.end
        if first.kind == NUMBER:
            self.report("syntax-error", "a key must not begin with a digit", start, end)
            word, quoted = first.text, False
            if self.token.kind == NAME and self.token.start == end:
                glued = self.take()
                word, end = word + glued.text, glued.end
        else:
            word, quoted = self._key_word(first)
        second = self.token
        name, name_quoted = None, False
        is_name = second.kind == NAME and second.text not in _NOT_A_NAME
        # `name value` without a colon is a key and its value, not a two-word key.
        is_last = self.ahead().text == ":" or (is_name and self.ahead().kind == "end")
        if is_last and (is_name or second.kind == STRING):
            self.take()
            name, name_quoted = self._key_word(second)
            end = second.end
        return Key(word, name, quoted, name_quoted, (start, end))

    def _key_word(self, token: Token) -> tuple[str, bool]:
        if token.kind != STRING:
            return token.text, False
        value, _, closed = unquote(token.text)
        if not closed:
            self.report("missing-token", "missing closing quote", token.start, token.end)
        return value, True

    def _value(self) -> Value:
        token = self.token
        if token.kind == TEMPLATE:
            return self._template()
        if token.kind == NAME and token.text in _MODIFIERS and self.ahead().kind != "end":
            return self._declaration()
        if token.kind == NAME and self.ahead().kind == NAME:
            close = difflib.get_close_matches(token.text[:40], _MODIFIERS, 1, 0.6)
            if close:
                self.report_here(
                    "invalid-modifier", f"unknown modifier; did you mean `{close[0]}`?"
                )
                return self._declaration()
        expression = self.expression()
        if self.token.text == "=" and self.token.kind == OP:
            self.take()
            value = self._rest()
            return Assignment(expression, value, (expression.span[0], self._end()))
        if self.token.kind == NAME and self.token.text in ("to", "with"):
            clauses = self.clauses()
            return Clauses(expression, clauses, (expression.span[0], self._end()))
        self._check_bare_to(expression)
        return expression

    def _check_bare_to(self, expression: Expr) -> None:
        """`@utils.transition @subagent.X` lacks its `to`."""
        found = reference(expression)
        if found == ("utils", "transition") and self.token.text == "@":
            self.report_here("missing-token", "missing `to`: write `@utils.transition to <target>`")
            self.position = len(self.tokens)

    def _declaration(self) -> VariableDeclaration:
        modifier = self.take()
        if self.token.kind == NAME and self.token.text in _MODIFIERS:
            self.report_here("syntax-error", "a variable has one modifier")
            self.take()
        kind = self.expression()
        default = self._rest() if self.accept("=") else None
        return VariableDeclaration(modifier.text, kind, default, (modifier.start, self._end()))

    def _sequence_item(self) -> Statement:
        self.take()
        token = self.token
        if token.kind == "end":
            return SequenceItem()
        is_key = token.kind in (NAME, STRING) and (
            self.ahead().text == ":"
            or (self.ahead().kind in (NAME, STRING) and self.ahead(2).text == ":")
        )
        if is_key:
            element = self._element()
            element.span = (token.start, self.tokens[-1].end)
            return SequenceItem(element)
        value = self._value()
        self.expect_end()
        return SequenceItem(value)
