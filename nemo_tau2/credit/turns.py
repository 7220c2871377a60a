"""A batch of rollouts of unequal length, laid out flat.

Notation: N rollouts in P groups, rollout i has K_i turns, M = Σ K_i turns in all. Arrays over
rollouts have shape [N], arrays over turns shape [M], rollout after rollout, turn 0 first.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nemo_tau2.errors import UserError


@dataclass(frozen=True)
class Turns:
    """Outcomes o[i], groups and turn rewards r[i,k] of N rollouts, checked and flat."""

    outcome: np.ndarray
    """float64 [N]: the reward of the whole episode."""
    group: np.ndarray
    """int [N]: 0..P-1, in order of first appearance."""
    length: np.ndarray
    """int [N]: K_i."""
    reward: np.ndarray
    """float64 [M]: the reward of each turn."""

    @cached_property
    def row(self) -> np.ndarray:
        """int [M]: the rollout of each turn."""
        return np.repeat(np.arange(len(self.length)), self.length)

    @cached_property
    def index(self) -> np.ndarray:
        """int [M]: k, the place of each turn in its rollout."""
        return np.arange(len(self.reward)) - np.repeat(self.start, self.length)

    @cached_property
    def start(self) -> np.ndarray:
        """int [N]: where each rollout begins in the flat arrays."""
        return np.cumsum(self.length) - self.length

    @cached_property
    def size(self) -> np.ndarray:
        """int [P]: the rollouts of each group."""
        return np.bincount(self.group)

    @cached_property
    def by_index(self) -> list[np.ndarray]:
        """For k = 0, 1, …: the flat places of all turns k."""
        order = np.argsort(self.index, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.index))[:-1]) if len(order) else []

    def keep(self, rollouts: np.ndarray) -> "Turns":
        """The batch of the rollouts in a bool [N] mask, its groups renumbered."""
        _, group = np.unique(self.group[rollouts], return_inverse=True)
        turns = np.repeat(rollouts, self.length)
        return Turns(self.outcome[rollouts], group, self.length[rollouts], self.reward[turns])

    def split(self, values: np.ndarray) -> list[np.ndarray]:
        """Cuts a flat [M] array into one array of K_i per rollout."""
        spans = zip(self.start.tolist(), self.length.tolist(), strict=True)
        return [values[a : a + k] for a, k in spans]

    def discount(self, values: np.ndarray, terminal: np.ndarray, gamma: float) -> np.ndarray:
        """Discounted sums: out[i,k] = values[i,k] + γ·out[i,k+1], out[i,K_i] = terminal[i].

        values [M], terminal [N] → [M].
        """
        out = np.empty(len(values))
        carry = terminal.astype(np.float64)
        for place in reversed(self.by_index):
            rows = self.row[place]
            carry[rows] = out[place] = values[place] + gamma * carry[rows]
        return out


def exclusion(exclude: Sequence[bool] | None, n: int) -> np.ndarray:
    """The rollouts to leave out, as a bool [N] mask."""
    if exclude is None:
        return np.zeros(n, dtype=bool)
    mask = np.asarray(exclude)
    if mask.shape != (n,) or mask.dtype != bool:
        raise UserError(
            f"exclude must be {n} booleans, one per rollout, not {mask.dtype} {mask.shape}"
        )
    return mask


def group_numbers(groups: Sequence[Hashable]) -> np.ndarray:
    """Numbers any hashable group ids 0..P-1 in order of first appearance: int [N]."""
    seen: dict[Hashable, int] = {}
    ids = groups.tolist() if isinstance(groups, np.ndarray) else groups
    return np.array([seen.setdefault(g, len(seen)) for g in ids], dtype=np.intp)


def flatten(
    outcomes: Sequence[float],
    groups: Sequence[Hashable],
    turn_rewards: Sequence[Sequence[float]],
    skip: np.ndarray,
) -> Turns:
    """Checks and flattens a batch; rollouts in `skip` (bool [N]) may hold anything in their values.

    Raises `UserError` where lengths disagree or a value is not a finite number, naming the rollout.
    """
    n = len(outcomes)
    if len(groups) != n or len(turn_rewards) != n:
        raise UserError(
            f"{n} outcomes, {len(groups)} groups and {len(turn_rewards)} lists of turn rewards: "
            "give one of each per rollout"
        )
    rows = [_row(i, rewards) for i, rewards in enumerate(turn_rewards)]
    length = np.array([len(row) for row in rows], dtype=np.intp)
    turns = Turns(
        outcome=_row_of_outcomes(outcomes),
        group=group_numbers(groups),
        length=length,
        reward=np.concatenate(rows) if rows else np.empty(0),
    )
    bad = ~np.isfinite(turns.outcome) & ~skip
    if bad.any():
        i = int(np.argmax(bad))
        raise UserError(
            f"rollout {i}: its outcome is {turns.outcome[i]}: it must be finite, or exclude it"
        )
    bad = ~np.isfinite(turns.reward) & ~np.repeat(skip, length)
    if bad.any():
        m = int(np.argmax(bad))
        i, k = int(turns.row[m]), int(turns.index[m])
        raise UserError(
            f"rollout {i}: the reward of turn {k} is {turns.reward[m]}: "
            "it must be finite, or exclude it"
        )
    return turns


def _row_of_outcomes(outcomes: Sequence[float]) -> np.ndarray:
    try:
        values = np.asarray(outcomes, dtype=np.float64)
    except (TypeError, ValueError):
        values = None
    if values is None or values.ndim != 1:
        raise UserError("outcomes must be one number per rollout")
    return values


def _row(i: int, rewards: Sequence[float]) -> np.ndarray:
    try:
        row = np.asarray(rewards, dtype=np.float64)
    except (TypeError, ValueError):
        row = None
    if row is None or row.ndim != 1:
        raise UserError(f"rollout {i}: its turn rewards must be a list of numbers, one per turn")
    return row
