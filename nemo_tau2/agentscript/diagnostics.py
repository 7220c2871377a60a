"""What is wrong with a script, where, and how to mend it.

Every stage (lexer, parser, lowering, lint) reports `Diagnostic` values and goes on; none prints or
raises for bad input. Codes are the official compiler's where it has one for the same rule; our own
begin with `nt-`.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from nemo_tau2.errors import UserError


class Severity(IntEnum):
    """How much a finding matters; the order is the official one."""

    ERROR = 1
    WARNING = 2
    INFO = 3


class Span(NamedTuple):
    """A stretch of source. Lines and columns count from 1, in characters; the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


NOWHERE = Span(1, 1, 1, 1)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding about one place in a script."""

    code: str
    message: str
    span: Span = NOWHERE
    severity: Severity = Severity.ERROR

    def format(self, path: str) -> str:
        """Returns `file:line:col code message`; warnings and remarks say what they are."""
        level = "" if self.severity is Severity.ERROR else f" ({self.severity.name.lower()})"
        return f"{path}:{self.span.line}:{self.span.column} {self.code} {self.message}{level}"


class AgentScriptError(UserError):
    """A script that cannot be compiled; `diagnostics` holds every finding."""

    def __init__(self, path: str, diagnostics: list[Diagnostic]):
        self.diagnostics = diagnostics
        errors = [d for d in diagnostics if d.severity is Severity.ERROR]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        super().__init__((errors or diagnostics)[0].format(path) + more)


def in_source_order(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """Sorts by place, then severity; drops exact repeats."""
    unique = dict.fromkeys(diagnostics)
    return sorted(unique, key=lambda d: (d.span.line, d.span.column, d.severity, d.code))
