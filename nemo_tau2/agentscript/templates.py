"""Template text: `| Hello {!@variables.name}` as text and interpolated expressions.

The rules that decide the text of a template (which spaces belong to the script's indentation and
which to the author's text) follow the official parser, so that prompts come out byte for byte.
Rendering a template on state is `evaluate.render`'s job.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nemo_tau2.agentscript.expressions import Expr


@dataclass(frozen=True, slots=True)
class Interpolation:
    """`{!expression}` inside a template."""

    expression: "Expr"
    span: tuple[int, int] = field(default=(0, 0), compare=False, repr=False)


Part = str | Interpolation


@dataclass(frozen=True, slots=True)
class Template:
    """The parts of a template, indentation removed.

    `bare` says that `|` stood alone on its line with the text below it. `quoted` is the text of
    the string literal that the template was made from, where it was one.
    """

    parts: tuple[Part, ...]
    bare: bool = False
    quoted: str | None = None
    span: tuple[int, int] = field(default=(0, 0), compare=False, repr=False)

    def expressions(self) -> Iterator["Expr"]:
        """The interpolated expressions, in order."""
        return (part.expression for part in self.parts if isinstance(part, Interpolation))

    @property
    def is_blank(self) -> bool:
        """True without interpolations and with white space at most."""
        return all(isinstance(part, str) and not part.strip() for part in self.parts)


def dedent_parts(parts: list[Part], raw: str, pipe_column: int) -> tuple[tuple[Part, ...], bool]:
    """Removes the script's indentation from the raw parts of a template.

    Args:
        parts: text and interpolations as they stand after the `|`.
        raw: the source of the template, `|` included.
        pipe_column: characters before the `|` on its line.

    Returns:
        The cleaned parts, and whether the template is bare.
    """
    lines = "".join(part if isinstance(part, str) else "X" for part in parts).split("\n")
    strip = 0
    if len(lines) > 1:
        if lines[0].strip():
            spaced = raw.startswith("| ")
            strip = pipe_column + (1 if spaced else 0) + _indent(lines[0])
        else:
            strip = min((_indent(line) for line in lines[1:] if line.strip()), default=0)
    cleaned = _strip_continuation_lines(parts, strip) if strip else list(parts)
    after_pipe = raw[1:]
    gap = after_pipe[: len(after_pipe) - len(after_pipe.lstrip())]
    return tuple(part for part in _clean(cleaned) if part != ""), "\n" in gap and bool(parts)


def _strip_continuation_lines(parts: list[Part], strip: int) -> list[Part]:
    """Takes up to `strip` leading blanks off every line but the first."""
    result: list[Part] = []
    row, at_line_start = 0, True
    for part in parts:
        if not isinstance(part, str):
            at_line_start = False
            result.append(part)
            continue
        lines = part.split("\n")
        for i, line in enumerate(lines):
            if i:
                row += 1
                at_line_start = True
            if at_line_start and row and line:
                lines[i] = line[min(_indent(line), strip) :]
        at_line_start = not lines[-1]
        result.append("\n".join(lines))
    return result


def _clean(parts: list[Part]) -> list[Part]:
    """Drops the line break after a bare `|`, the blanks of blank lines, and trailing blanks.

    Two or more line breaks after `|` mean an intended blank line: one is kept.
    """
    first = next((i for i, part in enumerate(parts) if isinstance(part, str)), None)
    if first is not None:
        text = parts[first]
        stripped = text.lstrip("\n")
        if stripped == text:
            head, newline, tail = text.partition("\n")
            parts[first] = head.lstrip() + newline + tail
        else:
            parts[first] = ("\n" if len(text) - len(stripped) > 1 else "") + stripped
    for i, part in enumerate(parts):
        if isinstance(part, str) and "\n" in part:
            head, *rest = part.split("\n")
            parts[i] = "\n".join([head, *(line if line.strip() else "" for line in rest)])
    if parts and isinstance(parts[-1], str):
        parts[-1] = parts[-1].rstrip()
    return parts


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def dedent_text(text: str) -> str:
    """The official clean-up of a quoted description or system instruction."""
    leading = len(text) - len(text.lstrip("\n"))
    kept = "\n" if leading > 1 else ""
    lines = text.lstrip("\n").split("\n")
    lines[0] = lines[0].lstrip()
    if len(lines) == 1:
        return kept + lines[0]
    strip = min((_indent(line) for line in lines[1:] if line.strip()), default=0)
    if strip:
        lines[1:] = [line[strip:] if line.strip() else "" for line in lines[1:]]
    return kept + "\n".join(lines).rstrip()
