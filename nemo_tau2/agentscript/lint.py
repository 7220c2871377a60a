"""Checks a script: the official linter's rules under the official codes, and our own (`nt-`).

`lint` finds; it changes nothing and never raises for what a script says. Errors of the parser come
first, as far as the script could be read the rest is checked too.
"""

from pathlib import Path

from nemo_tau2.agentscript.diagnostics import Diagnostic, in_source_order
from nemo_tau2.agentscript.fields import named
from nemo_tau2.agentscript.lint_context import LintContext
from nemo_tau2.agentscript.lint_declarations import check_variables
from nemo_tau2.agentscript.lint_graph import check_graph
from nemo_tau2.agentscript.lint_procedures import check_procedures
from nemo_tau2.agentscript.lint_references import check_references
from nemo_tau2.agentscript.lint_schema import check_schema
from nemo_tau2.agentscript.lint_settings import check_settings
from nemo_tau2.agentscript.lowering import lower
from nemo_tau2.agentscript.parser import parse
from nemo_tau2.agentscript.source import Source, read
from nemo_tau2.agentscript.syntax import Script


def lint(source: str | Path | Source | Script) -> list[Diagnostic]:
    """Returns every finding about a script, in source order.

    Args:
        source: a path, the text of a script, or what `parse` returned.

    Raises:
        UserError: the file cannot be read.
    """
    if isinstance(source, str | Path):
        source = read(source)
    script = source if isinstance(source, Script) else parse(source)
    graph = lower(script) if named(script.items, "start_agent") else None
    context = LintContext(script, graph)
    check_schema(context)
    check_settings(context)
    check_variables(context)
    check_procedures(context)
    check_references(context)
    if graph is not None:
        check_graph(context, graph)
    return in_source_order([*script.diagnostics, *context.found])
