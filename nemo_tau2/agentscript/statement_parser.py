"""One logical line that holds a statement: `if`, `run`, `set`, `with`, `transition`, ..."""

from collections.abc import Callable

from nemo_tau2.agentscript.diagnostics import Diagnostic
from nemo_tau2.agentscript.expression_parser import ExpressionParser, shorten
from nemo_tau2.agentscript.expressions import Broken, Ellipsis, Expr
from nemo_tau2.agentscript.layout import Line
from nemo_tau2.agentscript.lexer import (
    NAME,
    OP,
    STRING,
    Token,
    unquote,
)
from nemo_tau2.agentscript.source import Source
from nemo_tau2.agentscript.syntax import (
    Argument,
    AvailableWhen,
    Bad,
    Branch,
    Collect,
    If,
    Run,
    Set,
    Statement,
    To,
    Transition,
    With,
)

STATEMENT_WORDS = ("if", "else", "for", "run", "set", "transition", "collect")


class StatementParser(ExpressionParser):
    """Parses the statements of procedures and tools; `LineParser` adds everything else."""

    def __init__(self, source: Source, line: Line, diagnostics: list[Diagnostic]):
        super().__init__(source, line.tokens, diagnostics)
        self.line = line

    @property
    def _span(self) -> tuple[int, int]:
        return (self.tokens[0].start, self.tokens[-1].end)

    def _finish(self, item: Statement | Branch) -> Statement | Branch:
        item.comments, item.trailing = self.line.comments, self.line.trailing
        item.gap, item.span = self.line.gap, self._span
        return item

    def report_line(self, code: str, message: str) -> None:
        """Records an error about the first token of the line."""
        first = self.tokens[0]
        self.report(code, message, first.start, first.end)

    def expect_end(self) -> None:
        """Reports whatever is left on the line."""
        if self.position < len(self.tokens):
            token = self.token
            self.report(
                "syntax-error", f"unexpected `{shorten(token.text)}`", token.start, token.end
            )
            self.position = len(self.tokens)

    def _bad(self, message: str) -> Statement:
        self.report_here("syntax-error", message)
        start, end = self._span
        return Bad(self.source.text[start:end])

    def _statement_parser(self, token: Token) -> Callable[[], Statement | Branch] | None:
        if token.kind != NAME:
            return None
        following = self.ahead()
        if token.text == "with":
            return None if following.text == ":" else self._with
        if token.text == "available":
            return self._available_when if following.text == "when" else None
        if token.text in STATEMENT_WORDS:
            return getattr(self, f"_{token.text}")
        return None

    def _if(self) -> Statement:
        self.take()
        return If([self._conditional_branch()])

    def _conditional_branch(self) -> Branch:
        condition = self._condition()
        return self._finish(Branch(condition, self._colon("if")))

    def _condition(self) -> Expr:
        condition = self.expression()
        if self.token.text == "=":
            self.report_here("syntax-error", "a comparison is `==`, not `=`")
            self.take()
            self.expression(5)
        return condition

    def _colon(self, word: str) -> list[Statement]:
        """Consumes the `:` that ends a line; what wrongly follows it is returned as a body."""
        if self.token.kind != "end" and self.token.text != ":":
            self.report_here("syntax-error", f"unexpected `{shorten(self.token.text)}`")
            self._skip_to_colon()
        if not self.accept(":"):
            self.report_here("missing-token", f"missing `:` at the end of `{word}`")
        elif self.token.kind != "end":
            self.report_here("syntax-error", f"the body of `{word}` goes on its own lines")
            start, end = self.token.start, self.tokens[-1].end
            self.position = len(self.tokens)
            return [Bad(self.source.text[start:end], span=(start, end))]
        return []

    def _skip_to_colon(self) -> None:
        while self.token.kind != "end" and self.token.text != ":":
            self.take()

    def _else(self) -> Branch:
        self.take()
        if self.accept("if"):
            return self._conditional_branch()
        return Branch(None, self._colon("else"))

    def _for(self) -> Statement:
        return self._skip_line("the language has no loops: `for` is not a statement")

    def _skip_line(self, message: str) -> Statement:
        bad = self._bad(message)
        self.position = len(self.tokens)
        return bad

    def _run(self) -> Statement:
        self.take()
        if self.token.kind == "end":
            self.report_here("syntax-error", "`run` needs a target: `run @actions.Name`")
            return Run(Broken())
        return Run(self.expression())

    def _set(self) -> Statement:
        self.take()
        target = self.expression(5)
        if self.token.text == "==":
            self.report_here("syntax-error", "an assignment is `=`, not `==`")
            self.take()
        elif not self.accept("="):
            self.report_here("missing-token", "missing `=` in `set target = value`")
            return Set(target, Broken()) if self.token.kind == "end" else Set(target, self._rest())
        return Set(target, self._rest())

    def _rest(self) -> Expr:
        if self.token.kind == "end":
            self.report_here("missing-value", "a value is missing after `=`")
            return Broken()
        return self.expression()

    def _with(self) -> Statement:
        keyword = self.take()
        if self.token.kind not in (NAME, STRING):
            self.report(
                "syntax-error",
                "`with` needs a named argument: `with name = value`",
                keyword.start,
                self.tokens[-1].end,
            )
            self.position = len(self.tokens)
            return With([])
        return With(self._arguments())

    def _arguments(self) -> list[Argument]:
        """`a = b, c = d`; stops before a comma that no `name =` follows."""
        arguments = [self._argument()]
        while self.token.text == "," and self.ahead().kind in (NAME, STRING):
            if self.ahead().text in ("with", "to") and self.ahead(2).text != "=":
                break
            self.take()
            arguments.append(self._argument())
        return arguments

    def _argument(self) -> Argument:
        name = self.take()
        quoted = name.kind == STRING
        text = unquote(name.text)[0] if quoted else name.text
        if self.accept("="):
            value = self._rest()
        else:
            self.report_here("missing-token", f"missing `=` after `with {text}`")
            value = Ellipsis() if self.token.kind in ("end", OP) else self.expression()
        return Argument(text, value, quoted, (name.start, self._end()))

    def _transition(self) -> Statement:
        keyword = self.take()
        if self.token.kind == "end":
            return Transition([])
        if self.token.text not in ("to", "with"):
            self.report_here("missing-token", "missing `to`: write `transition to <target>`")
            target = self.expression()
            return Transition([To(target, (keyword.start, self._end()))])
        return Transition(self.clauses())

    def clauses(self) -> list[To | Argument]:
        """`to X, with a = b, ...`"""
        clauses: list[To | Argument] = []
        while self.token.kind == NAME and self.token.text in ("to", "with"):
            keyword = self.take()
            if keyword.text == "with":
                if self.token.kind in (NAME, STRING):
                    clauses += self._arguments()
                else:
                    self.report_here("syntax-error", "`with` needs a named argument")
            elif self.token.kind == "end":
                self.report_here("syntax-error", "`to` needs a target: `to @subagent.Name`")
            else:
                clauses.append(To(self.expression(), (keyword.start, self._end())))
            if not self.accept(","):
                break
        return clauses

    def _available_when(self) -> Statement:
        self.take(), self.take()
        if self.token.kind == "end":
            self.report_here("syntax-error", "`available when` needs a condition")
            return AvailableWhen(Broken())
        return AvailableWhen(self._condition())

    def _collect(self) -> Statement:
        self.take()
        if self.token.kind == "end":
            self.report_here("syntax-error", "`collect` needs a variable")
            return Collect(Broken())
        return Collect(self.expression())
