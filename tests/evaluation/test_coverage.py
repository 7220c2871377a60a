"""Intervals and pass^k against planted pass rates: 200 tasks x 8 trials, 400 simulations."""

import numpy as np
import pytest

from nemo_tau2.evaluation.intervals import interval
from nemo_tau2.evaluation.pass_k import TaskTrials, values

SIMULATIONS, TASKS, TRIALS = 400, 200, 8


def simulate(k):
    """(truth covered?, estimate - truth) of each simulation; pass rates are drawn from Beta(1, 1)."""
    rng = np.random.default_rng(k)
    covered, errors = [], []
    truth = 1 / (
        k + 1
    )  # the mean of p^k under Beta(1, 1): what a new task of this kind passes with
    for _ in range(SIMULATIONS):
        wins = rng.binomial(TRIALS, rng.beta(1, 1, TASKS))
        found = values([TaskTrials(TRIALS, TRIALS, int(w)) for w in wins], k)
        low, high = interval([found], [1.0])
        covered.append(low <= truth <= high)
        errors.append(np.mean(found) - truth)
    return covered, errors


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 4])
def test_intervals_cover_the_truth_and_pass_k_is_unbiased(k):
    covered, errors = simulate(k)
    assert 0.93 <= np.mean(covered) <= 0.97
    assert abs(np.mean(errors)) < 3 * np.std(errors) / np.sqrt(SIMULATIONS)
