"""Percentile bootstrap intervals with tasks as the unit: the trials of a task are not independent."""

from collections.abc import Sequence

import numpy as np

LEVEL = 0.95


def bootstrap_means(values: Sequence[float], draws: int, rng: np.random.Generator) -> np.ndarray:
    """Means of `draws` resamples of the tasks' values, shape (draws,)."""
    array = np.asarray(values, dtype=float)
    return array[rng.integers(0, len(array), (draws, len(array)))].mean(axis=1)


def interval(
    strata: Sequence[Sequence[float]],
    weights: Sequence[float],
    draws: int = 2000,
    seed: int = 0,
) -> tuple[float, float]:
    """95 % interval of the weighted sum of the strata's means; tasks are drawn within each stratum.

    Raises ValueError for an empty stratum. Degenerate (low = high) where a stratum has no spread:
    the bootstrap knows nothing of outcomes it never saw.
    """
    if not strata or any(len(stratum) == 0 for stratum in strata):
        raise ValueError("an interval needs at least one task in every stratum")
    rng = np.random.default_rng(seed)
    means = sum(w * bootstrap_means(s, draws, rng) for s, w in zip(strata, weights, strict=True))
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
