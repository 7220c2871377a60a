"""`nemo-tau2 doctor`: what is installed, what works together, what is missing and what mends it."""

import json as jsonlib


def doctor(*, json: bool = False) -> int:
    """Say what is installed and what is missing. Exits with 1 when something needed is missing.

    Parameters
    ----------
    json
        Print one JSON object instead of a table.
    """
    from nemo_tau2.diagnosis import diagnose

    findings = diagnose()
    if json:
        body = {
            "ok": all(f.ok or not f.needed for f in findings),
            "findings": [vars(f) for f in findings],
        }
        print(jsonlib.dumps(body, ensure_ascii=False, indent=2))
    else:
        _print(findings)
    return 1 if any(f.needed and not f.ok for f in findings) else 0


def _print(findings: list) -> None:
    from rich.console import Console
    from rich.table import Table

    from nemo_tau2.diagnosis import GYM_LINES

    table = Table("", "what", "found", "works with", box=None)
    for finding in findings:
        mark = (
            "[green]ok[/]"
            if finding.ok
            else "[red]missing[/]"
            if finding.needed
            else "[dim]none[/]"
        )
        table.add_row(mark, finding.name, finding.found or "", finding.wanted)
    console = Console()
    console.print(table)
    for finding in findings:
        if not finding.ok and finding.mend:
            need = "needed" if finding.needed else "optional"
            line = f"{finding.name} ({need}): {finding.mend}"
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    for name, line in GYM_LINES.items():
        text = f"NeMo Gym {name}: Python {line['python']}, NeMo RL {line['nemo_rl']}"
        console.print(f"works together: {text}", markup=False, highlight=False, soft_wrap=True)
