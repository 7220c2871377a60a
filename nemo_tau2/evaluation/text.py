"""The report as terminal tables."""

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

COUNTS = {
    "planned": "planned",
    "finished": "finished",
    "infra failed": "infrastructure_failed",
    "graded": "graded",
}
"""Rows of the table: every denominator."""


def print_report(report: dict[str, Any], console: Console) -> None:
    """Prints `Evaluation.as_dict()`: a column per domain and mean, then the warnings."""
    overall = report["overall"]
    longest = [k for k in overall["pass_k"] if overall["pass_k"][k]["value"] is not None] or ["1"]
    title = "pass^k in %, 95 % interval over tasks [worst, best case]"
    table = Table("", *report["domains"], "weighted", "macro", title=title, box=SIMPLE_HEAD)
    parts = [*report["domains"].values(), overall]
    for label, name in COUNTS.items():
        table.add_row(label, *(str(part["denominators"][name]) for part in parts), "")
    for k in longest:
        scores = [*(part["pass_k"] for part in parts), overall["macro"]]
        table.add_row(f"pass^{k}", *(_cell(one[k]) if k in one else "-" for one in scores))
    console.print(table)
    for name, part in report["domains"].items():
        stops = ", ".join(f"{reason} {count}" for reason, count in part["stop_reasons"].items())
        console.print(
            f"{name}: stops {stops}; turns {_number(part['turns'])}, "
            f"tokens {_number(part['tokens'])}, seconds {_number(part['seconds'])} a rollout"
        )
        for title in ("patterns", "blame"):
            found = ", ".join(f"{kind} {count}" for kind, count in part[title].items())
            console.print(f"{name}: {title}: {found or '-'}")
    console.print(report["convention"])
    for line in report["warnings"]:
        console.print(f"warning: {line}", style="yellow")


def _cell(one: dict[str, Any]) -> str:
    if one["value"] is None:
        return "-"
    text = f"{100 * one['value']:.1f}\n{100 * one['low']:.1f}-{100 * one['high']:.1f}"
    if one["worst"] != one["best"]:
        text += f"\n\\[{100 * one['worst']:.1f}, {100 * one['best']:.1f}]"
    return text


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
