"""The advantage of every turn under every estimator, as training on these groups would have it."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nemo_tau2.credit import ESTIMATORS, turn_advantages

DIGITS = 6
"""Decimals kept of an advantage."""


@dataclass
class Credit:
    """What credit needs of the rows, in row order; lists of equal length."""

    outcomes: list[float] = field(default_factory=list)
    groups: list[Hashable] = field(default_factory=list)
    rewards: list[list[float]] = field(default_factory=list)
    tiers: list[list[str]] = field(default_factory=list)
    masked: list[bool] = field(default_factory=list)

    def add(self, row: dict[str, Any], group: Hashable) -> None:
        """Takes what is needed of one row; `group` names the rollouts it is compared with."""
        self.outcomes.append(row["reward"])
        self.groups.append(group)
        self.rewards.append(list(row.get("turn_rewards") or []))
        self.tiers.append(list(row.get("turn_tiers") or []))
        self.masked.append(bool(row["mask_sample"]))

    def advantages(self) -> dict[str, list[np.ndarray]]:
        """Estimator to one array of K_i per rollout, default options; masked rollouts get zeros.

        Raises `UserError` where a graded row's rewards are no finite numbers.
        """
        return {
            name: turn_advantages(
                self.outcomes, self.groups, self.rewards, name, exclude=self.masked
            )
            for name in ESTIMATORS
        }

    def members(self) -> dict[Hashable, list[int]]:
        """Each group's rollouts, in order of first appearance."""
        members: dict[Hashable, list[int]] = {}
        for number, group in enumerate(self.groups):
            members.setdefault(group, []).append(number)
        return members


def rollout_credit(
    credit: Credit, advantages: dict[str, list[np.ndarray]], number: int
) -> dict[str, Any]:
    """One rollout's strips: K_i tiers, rewards, and advantages per estimator."""
    return {
        "rollout": number,
        "tiers": credit.tiers[number],
        "rewards": credit.rewards[number],
        "advantages": {
            name: np.round(values[number], DIGITS).tolist() for name, values in advantages.items()
        },
    }


def tier_table(
    credit: Credit, advantages: dict[str, list[np.ndarray]], rollouts: Sequence[int]
) -> dict[str, dict[str, Any]]:
    """Tier to `turns` and the mean advantage per estimator, over the graded ones of `rollouts`."""
    places: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for i in rollouts:
        if not credit.masked[i]:
            turns = min(len(credit.tiers[i]), len(credit.rewards[i]))
            for k, tier in enumerate(credit.tiers[i][:turns]):
                places[tier].append((i, k))
    return {
        tier: {
            "turns": len(found),
            "advantages": {
                name: float(np.mean([values[i][k] for i, k in found]))
                for name, values in advantages.items()
            },
        }
        for tier, found in sorted(places.items(), key=lambda entry: -len(entry[1]))
    }
