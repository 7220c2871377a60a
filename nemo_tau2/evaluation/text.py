"""The report as terminal tables."""

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

COUNTS = {
    "planned": "planned",
    "finished": "finished",
    "infra failed": "infrastructure_failed",
    "graded": "graded",
}
"""Rows of the table: every denominator."""
MOST_K = 16
"""Values of k printed; --json has all."""
MOST = 12
"""Tools and parameters printed per domain; --json has all."""


def print_report(report: dict[str, Any], console: Console) -> None:
    """Prints `Evaluation.as_dict()`: a column per domain and mean, then the warnings."""
    overall = report["overall"]
    longest = [k for k in overall["pass_k"] if overall["pass_k"][k]["value"] is not None] or ["1"]
    title = "pass^k in %, 95 % interval over tasks [worst, best case]"
    heads = ("", *report["domains"], "weighted", "macro")
    columns = (Column(escape(head), overflow="fold") for head in heads)
    table = Table(*columns, title=title, box=SIMPLE_HEAD)
    parts = [*report["domains"].values(), overall]
    for label, name in COUNTS.items():
        table.add_row(label, *(str(part["denominators"][name]) for part in parts), "")
    means = {"mean reward": "reward_mean", "coverage": "coverage_mean"}
    for label, name in means.items():
        if any(part[name] is not None for part in parts):
            table.add_row(label, *(_share(part[name]) for part in parts), "")
    for k in longest[:MOST_K]:
        scores = [*(part["pass_k"] for part in parts), overall["macro"]]
        table.add_row(f"pass^{k}", *(_cell(one[k]) if k in one else "-" for one in scores))
    console.print(table)
    for k in longest[MOST_K : MOST_K + 1]:
        console.print(f"pass^{k} and on: with --json")
    for name, part in report["domains"].items():
        name = escape(name)
        stops = ", ".join(f"{reason} {count}" for reason, count in part["stop_reasons"].items())
        console.print(
            f"{name}: stops {escape(stops)}; turns {_number(part['turns'])}, "
            f"tokens {_number(part['tokens'])}, seconds {_number(part['seconds'])} a rollout"
        )
        console.print(f"{name}: patterns: {_counts(part['patterns'])}")
        rules = (f"{escape(party)} ({_counts(by)})" for party, by in part["blame_by_rule"].items())
        console.print(f"{name}: owed to: {', '.join(rules) or '-'}")
    _print_patterns(report["domains"], console)
    console.print(report["convention"])
    for line in report["warnings"]:
        console.print(f"warning: {escape(line)}", style="yellow")


def _print_patterns(domains: dict[str, Any], console: Console) -> None:
    """What failed on which tasks and with which tools, where anything did."""
    by_gold = Table(
        "domain", "gold actions", "rollouts", "failed", "patterns",
        title="patterns by number of gold actions (rollouts)", box=SIMPLE_HEAD,
    )  # fmt: skip
    by_tool = Table(
        "domain", "tool", "patterns", title="patterns by tool (rollouts)", box=SIMPLE_HEAD
    )
    for name, part in domains.items():
        for number, group in part["patterns_by_gold"].items():
            counts = (number, str(group["rollouts"]), str(group["failed"]))
            by_gold.add_row(escape(name), *counts, _counts(group["patterns"]))
        for tool, found in list(part["patterns_by_tool"].items())[:MOST]:
            by_tool.add_row(escape(name), escape(tool), _counts(found))
    for table in (by_gold, by_tool):
        if table.row_count:
            console.print(table)
    for name, part in domains.items():
        if wrong := dict(list(part["wrong_parameters"].items())[:MOST]):
            console.print(f"{escape(name)}: wrong parameters: {_counts(wrong)}")


def _counts(counts: dict[str, int]) -> str:
    """Names and counts; a tool's name may be anything a policy made up."""
    return escape(", ".join(f"{name} {count}" for name, count in counts.items()) or "-")


def _cell(one: dict[str, Any]) -> str:
    text = "-"
    if one["value"] is not None:
        text = f"{100 * one['value']:.1f}\n{100 * one['low']:.1f}-{100 * one['high']:.1f}"
    if one["worst"] is not None and one["worst"] != one["best"]:
        text += f"\n\\[{100 * one['worst']:.1f}, {100 * one['best']:.1f}]"
    return text


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
