"""The two-armed toy of verl #7244: is an estimator unbiased when the policy decides when to stop?

One decision: stop (outcome 1/2) or take one more turn (a constant turn reward of 1, outcome 0). The
policy goes on with probability p = σ(θ), so d/dθ E[return] = p(1 − p)·(γ·1 − γ·1/2). An estimator
that normalises the further turn by itself never sees its reward: every rollout that has the turn
has the same one.
"""

from math import comb

import numpy as np

from nemo_tau2.credit import turn_advantages

STOP_OUTCOME, TURN_REWARD = 0.5, 1.0


def toy_gradient(name: str, p: float, size: int, gamma: float = 1.0, **options) -> float:
    """The exact expected gradient of the toy under an estimator, for groups of `size` rollouts.

    Every number n of rollouts that go on is enumerated with its binomial probability:
    Σ_n P(n) · mean_i ∇log π(a_i)·A[i,0]. `options` go to `turn_advantages`.
    """
    go = np.tril(np.ones((size + 1, size), dtype=bool), -1)
    flat = go.ravel()
    advantages = turn_advantages(
        np.where(flat, 0.0, STOP_OUTCOME),
        np.repeat(np.arange(size + 1), size),
        [[0.0, TURN_REWARD] if g else [0.0] for g in flat],
        name,
        gamma=gamma,
        **options,
    )
    first = np.array([a[0] for a in advantages]).reshape(go.shape)
    score = np.where(go, 1 - p, -p)
    probability = [comb(size, n) * p**n * (1 - p) ** (size - n) for n in range(size + 1)]
    return float(probability @ (score * first).mean(axis=1))


def true_gradient(p: float) -> float:
    """REINFORCE's expected gradient at γ = 1."""
    return p * (1 - p) * (TURN_REWARD - STOP_OUTCOME)
