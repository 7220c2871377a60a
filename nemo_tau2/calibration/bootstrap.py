"""Bootstrap intervals that resample whole groups.

Rollouts of one task resemble each other, and an advantage is relative to its group, so the group is
the unit: within a resampled group every advantage stays what it was. A statistic that is a function
of sums over rollouts then needs only per-group sums, [P, S], and a matrix of how often each group
was drawn, [B, P].
"""

from collections.abc import Callable

import numpy as np

Interval = tuple[float, float]
NO_INTERVAL: Interval = (float("nan"), float("nan"))


class GroupBootstrap:
    """B resamples of P groups, drawn once: every interval of a report rests on the same draws."""

    def __init__(self, group: np.ndarray, seed: int = 0, resamples: int = 2000):
        """`group` int [N]: 0..P-1."""
        self.group = group
        self.groups = int(group.max()) + 1
        rng = np.random.default_rng(seed)
        even = np.full(self.groups, 1 / self.groups)
        self.draws = rng.multinomial(self.groups, even, size=resamples)

    def interval(
        self, sums: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray], level: float = 0.95
    ) -> Interval:
        """Percentile interval of `statistic`, which maps sums [..., S] to values [...].

        `sums` [N, S] holds each rollout's contribution. (nan, nan) with a single group.
        """
        if self.groups < 2:
            return NO_INTERVAL
        per_group = np.stack([np.bincount(self.group, column) for column in sums.T], axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            values = statistic(self.draws @ per_group)
        values = values[np.isfinite(values)]
        if not len(values):
            return NO_INTERVAL
        low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)


def correlation(sums: np.ndarray) -> np.ndarray:
    """Pearson correlation from sums [..., 6] of 1, x, y, x², y², xy; nan where one is constant."""
    n, x, y, xx, yy, xy = np.moveaxis(np.asarray(sums, dtype=np.float64), -1, 0)
    variance = (n * xx - x * x) * (n * yy - y * y)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(variance > 0, (n * xy - x * y) / np.sqrt(np.maximum(variance, 0)), np.nan)


def moments(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The rows `correlation` sums: [N, 6]."""
    return np.stack([np.ones(len(x)), x, y, x * x, y * y, x * y], axis=1)
