"""Selection of rows by what their rollouts teach (PivotRL): a group without variance has no gradient.

A group-relative advantage is 0 where all rewards of a row are equal, so rows that a policy always or
never solves only cost rollouts. The variance is that of the population, over the rollouts that count.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

MIN_ROLLOUTS = 8
"""Rollouts a row needs before its variance says anything."""


@dataclass
class Selection:
    """Which groups stay, and why the others do not."""

    kept: list[str] = field(default_factory=list)
    too_few: list[str] = field(default_factory=list)
    always: list[str] = field(default_factory=list)
    never: list[str] = field(default_factory=list)
    flat: list[str] = field(default_factory=list)
    """All rewards nearly equal, neither 0 nor 1."""


def rewards_by_group(rollouts: Iterable[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Rewards of the rollouts that count: masked ones (infrastructure) are left out."""
    rewards: dict[str, list[float]] = defaultdict(list)
    for row in rollouts:
        group = row.get("group_id") or (row.get("verifier_metadata") or {}).get("group_id")
        if group is not None and not row.get("mask_sample") and row.get("reward") is not None:
            rewards[str(group)].append(float(row["reward"]))
    return dict(rewards)


def select(
    groups: Iterable[str],
    rewards: Mapping[str, list[float]],
    min_rollouts: int = MIN_ROLLOUTS,
    min_variance: float = 0.0,
) -> Selection:
    """Keeps groups of at least `min_rollouts` rollouts whose variance is above `min_variance`."""
    selection = Selection()
    for group in groups:
        values = rewards.get(group, [])
        if len(values) < min_rollouts:
            selection.too_few.append(group)
        elif variance(values) > min_variance:
            selection.kept.append(group)
        elif min(values) >= 1.0:
            selection.always.append(group)
        elif max(values) <= 0.0:
            selection.never.append(group)
        else:
            selection.flat.append(group)
    return selection


def variance(values: list[float]) -> float:
    """Population variance; exactly 0 where all values are equal."""
    if min(values) == max(values):
        return 0.0
    mean = sum(values) / len(values)
    return sum((v - mean) ** 2 for v in values) / len(values)
