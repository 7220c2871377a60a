"""The raw text of a template to its parts: text and parsed `{!expressions}`."""

from nemo_tau2.agentscript.diagnostics import Diagnostic
from nemo_tau2.agentscript.expression_parser import ExpressionParser, shorten
from nemo_tau2.agentscript.expressions import Broken, Expr
from nemo_tau2.agentscript.lexer import Token, scan_to_brace
from nemo_tau2.agentscript.source import Source
from nemo_tau2.agentscript.templates import Interpolation, Part, Template, dedent_parts


def parse_template(source: Source, token: Token, diagnostics: list[Diagnostic]) -> Template:
    """Splits a template token at its `{!expression}`s and removes its indentation."""
    text, start = token.text, token.start
    parts: list[Part] = []
    position = 1
    while True:
        opening = text.find("{!", position)
        if opening < 0:
            break
        if opening > position:
            parts.append(text[position:opening])
        part, position = _interpolation(source, token, opening, diagnostics)
        parts.append(part)
    if position < len(text):
        parts.append(text[position:])
    line_start = source.text.rfind("\n", 0, start) + 1
    cleaned, bare = dedent_parts(parts, text, start - line_start)
    return Template(cleaned, bare, span=(start, token.end))


def parse_quoted(text: str, span: tuple[int, int] = (0, 0)) -> Template:
    """A string literal as a template; what is no expression stays text."""
    source, diagnostics, parts = Source(text), [], []
    token, position = Token("string", text, 0, len(text)), 0
    while (opening := text.find("{!", position)) >= 0:
        part, after = _interpolation(source, token, opening, diagnostics)
        if diagnostics:
            break
        parts += [text[position:opening], part]
        position = after
    parts.append(text[position:])
    return Template(tuple(part for part in parts if part != ""), quoted=text, span=span)


def _interpolation(
    source: Source, token: Token, opening: int, diagnostics: list[Diagnostic]
) -> tuple[Part, int]:
    """Parses `{!...}` at `opening` in a template; returns it and where the text goes on."""
    stop = token.text.find("\n", opening)
    stop = len(token.text) if stop < 0 else stop
    at, limit = token.start + opening, token.start + stop
    tokens, closing = scan_to_brace(source.text, at + 2, limit)
    reader = ExpressionParser(source, tokens, diagnostics)
    if closing is None:
        reader.report("missing-token", "`{!` is never closed by `}`", at, at + 2)
        return Interpolation(Broken(source.text[at + 2 : limit]), (at, limit)), stop
    expression: Expr = Broken()
    if not tokens:
        reader.report("syntax-error", "`{!}` holds no expression", at, closing.end)
    else:
        expression = reader.expression()
        if reader.position < len(tokens):
            extra = reader.token
            message = f"unexpected `{shorten(extra.text)}`"
            reader.report("syntax-error", message, extra.start, extra.end)
    return Interpolation(expression, (at, closing.end)), closing.end - token.start
