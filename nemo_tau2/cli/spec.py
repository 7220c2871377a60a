"""`nemo-tau2 spec`: check, compile, show, format Agent Script, and compare with the official.

Reads YAML sidecars (`X.tau2.yaml` beside `X.agent`); everything else is `nemo_tau2.agentscript`.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import cyclopts

from nemo_tau2.errors import UserError

if TYPE_CHECKING:
    from nemo_tau2.agentscript import Diagnostic

app = cyclopts.App(name="spec", help="Check, compile, show and format Agent Script.")
app.command("nemo_tau2.cli.spec_rows:rows", name="rows")


@app.command
def check(*files: Path, format: Literal["text", "json", "sarif"] = "text") -> int:
    """Reports what is wrong with scripts, and with their sidecars.

    Exits with 1 if any finding is an error.

    Parameters
    ----------
    files
        Scripts to check.
    format
        `text` gives `file:line:col code message` lines; `sarif` is for code scanners.
    """
    from nemo_tau2 import __version__
    from nemo_tau2.agentscript.diagnostics import Severity
    from nemo_tau2.agentscript.export import diagnostic_to_json, to_sarif

    if not files:
        raise UserError("spec check: name at least one script")
    findings = [(str(path), found) for path in files for found in _findings(path)]
    if format == "json":
        _print_json([diagnostic_to_json(*finding) for finding in findings])
    elif format == "sarif":
        _print_json(to_sarif(findings, __version__))
    else:
        for path, found in findings:
            print(found.format(path))
        counts = [sum(f.severity is level for _, f in findings) for level in Severity]
        words = ", ".join(f"{n} {s.name.lower()}" for n, s in zip(counts, Severity, strict=True))
        print(f"{len(files)} checked: {words}", file=sys.stderr)
    return int(any(found.severity is Severity.ERROR for _, found in findings))


@app.command(name="compile")
def compile_command(
    file: Path,
    *,
    format: Literal["graph", "agentjson"] = "graph",
    output: Path | None = None,
    sidecar: Path | None = None,
) -> None:
    """Compiles a script to JSON.

    Parameters
    ----------
    file
        The script.
    format
        `graph` is the workflow graph; `agentjson` the official compiler's format.
    output
        Where to write; default the screen.
    sidecar
        Annotations; default `X.tau2.yaml` beside `X.agent`, if it is there.
    """
    from nemo_tau2.agentscript.agentjson import to_agentjson
    from nemo_tau2.agentscript.export import graph_to_json
    from nemo_tau2.simulation.scripts import load_graph

    graph = load_graph(file, sidecar)
    document = graph_to_json(graph) if format == "graph" else to_agentjson(graph)
    _write(json.dumps(document, indent=2, ensure_ascii=False) + "\n", output)


@app.command
def show(
    file: Path, *, format: Literal["mermaid", "svg"] = "mermaid", output: Path | None = None
) -> None:
    """Draws the graph of a script: nodes, tools, guarded edges.

    Parameters
    ----------
    file
        The script.
    format
        `mermaid` is text that many viewers draw; `svg` is a picture.
    output
        Where to write; default the screen.
    """
    from nemo_tau2.agentscript.draw import to_mermaid, to_svg
    from nemo_tau2.simulation.scripts import load_graph

    graph = load_graph(file)
    _write(to_mermaid(graph) if format == "mermaid" else to_svg(graph), output)


@app.command(name="format")
def format_command(*files: Path, write: bool = False, check: bool = False) -> int:
    """Prints scripts in one canonical layout; comments are kept.

    Parameters
    ----------
    files
        Scripts to format.
    write
        Change the files instead of printing.
    check
        Change nothing; exit with 1 if a file is not in the canonical layout.
    """
    from nemo_tau2.agentscript.diagnostics import AgentScriptError
    from nemo_tau2.agentscript.parser import parse
    from nemo_tau2.agentscript.printer import print_script

    if not files:
        raise UserError("spec format: name at least one script")
    scripts = [(path, parse(path)) for path in files]
    for path, script in scripts:
        if not script.ok:
            raise AgentScriptError(str(path), script.diagnostics)
    changed = False
    for path, script in scripts:
        text = print_script(script)
        differs = text != script.source.text
        changed = changed or differs
        if check:
            if differs:
                print(f"{path}: not in the canonical layout")
        elif not write:
            print(text, end="")
        elif differs:
            path.write_text(text, "utf-8")
    return int(check and changed)


@app.command
def conformance(directory: Path, *, json: bool = False) -> int:
    """Compares our compilation with the official one, for every script that has an expected file.

    Exits with 1 if anything differs.

    Parameters
    ----------
    directory
        Holds `X.agent` with `X.agent.json` or `X.agentjson.json`.
    json
        Print counts and differences as JSON.
    """
    from nemo_tau2.agentscript.conformance import KINDS, check_directory

    report = check_directory(directory)
    if json:
        _print_json(report.to_json())
        return int(not report.is_exact)
    print(f"{report.files} scripts")
    for kind in KINDS:
        count = report.counts[kind]
        extra = f", {count.extra} more than expected" if count.extra else ""
        print(f"{kind:8} {count.matched}/{count.expected}{extra}")
    for item in report.differences[:20]:
        place = f"{item['file']}: {item['kind']} {item.get('item', '')} {item.get('field', '')}"
        print(f"{place.rstrip()}\n    expected {item.get('expected')}\n    ours     {item['ours']}")
    return int(not report.is_exact)


def _findings(path: Path) -> "list[Diagnostic]":
    from nemo_tau2.agentscript import Diagnostic, apply_sidecar, compile, lint, parse
    from nemo_tau2.agentscript.fields import named

    script = parse(path)
    findings = lint(script)
    from nemo_tau2.simulation.scripts import read_sidecar, sidecar_of

    sidecar = sidecar_of(path)
    if sidecar.is_file() and script.ok and named(script.items, "start_agent"):
        try:
            apply_sidecar(compile(script), read_sidecar(sidecar), str(sidecar))
        except UserError as error:
            findings.append(Diagnostic("nt-sidecar", str(error)))
    return findings


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def _write(text: str, output: Path | None) -> None:
    if output is None:
        print(text, end="")
        return
    try:
        output.write_text(text, "utf-8")
    except OSError as error:
        raise UserError(f"{output}: cannot be written ({error.strerror or error})") from None
