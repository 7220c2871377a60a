"""Failure patterns by number of gold actions, by tool, by parameter; blame by rule.

Counts are of graded rollouts: one that skips a tool twice counts once for that tool.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, Protocol

from nemo_tau2.evaluation.transcript import Finding

NO_TOOL = "(no tool)"
"""The row of patterns that are about no tool."""
MAX_TOOLS = 200
"""Tools counted by name; a policy may make up any number."""


class Judged(Protocol):
    """What is counted of a rollout."""

    success: bool
    gold_actions: int | None
    patterns: tuple[Finding, ...]
    blame: Finding | None


def by_gold(outcomes: Iterable[Judged]) -> dict[str, dict[str, Any]]:
    """Number of gold actions (as text) to `rollouts`, `failed` and `patterns`."""
    groups: dict[int, list[Judged]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.gold_actions is not None:
            groups[outcome.gold_actions].append(outcome)
    return {
        str(number): {
            "rollouts": len(found),
            "failed": sum(not outcome.success for outcome in found),
            "patterns": _most_common(kind for o in found for kind in {f.kind for f in o.patterns}),
        }
        for number, found in sorted(groups.items())
    }


def by_tool(outcomes: Iterable[Judged]) -> dict[str, dict[str, int]]:
    """Tool to pattern to the number of rollouts, the tool most in trouble first."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for outcome in outcomes:
        for tool, kind in {(f.tool or NO_TOOL, f.kind) for f in outcome.patterns}:
            counts[tool][kind] += 1
    ordered = sorted(counts, key=lambda tool: (tool == NO_TOOL, -counts[tool].total(), tool))
    return {tool: _most_common(counts[tool].elements()) for tool in ordered[:MAX_TOOLS]}


def by_parameter(outcomes: Iterable[Judged]) -> dict[str, int]:
    """`tool.parameter` to the number of rollouts in which it was wrong."""
    wrong = (
        about
        for outcome in outcomes
        for about in {f.about for f in outcome.patterns if f.kind == "wrong_parameter"}
    )
    return dict(list(_most_common(wrong).items())[:MAX_TOOLS])


def by_rule(outcomes: Iterable[Judged]) -> dict[str, dict[str, int]]:
    """Party to rule to the number of rollouts; successes that are the task's are counted here too."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for outcome in outcomes:
        if outcome.blame is not None:
            rule = outcome.blame.about or "no rule"
            counts[outcome.blame.kind][rule if outcome.blame.by != "default" else "undecided"] += 1
    return {party: _most_common(found.elements()) for party, found in sorted(counts.items())}


def _most_common(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items(), key=lambda pair: (-pair[1], pair[0])))
