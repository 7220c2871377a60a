"""Trap 3 (verl #7244): who stays unbiased when the policy decides how many turns there are.

Expectations are exact: every combination of trajectories of a group is enumerated with its
probability, so an unbiased estimator matches the derivative of the expected return to rounding.
"""

from itertools import product

import numpy as np
import pytest

from nemo_tau2.bench.toy import toy_gradient
from nemo_tau2.credit import turn_advantages

P = [0.1, 0.5, 0.9]


@pytest.mark.parametrize("p", P)
@pytest.mark.parametrize("size", [2, 4, 8])
def test_trap_3_turn_rloo_has_reinforces_gradient(p, size):
    """Two arms: stop for an outcome of 1/2, or one more turn that pays 1: d/dθ E = p(1−p)/2."""
    got = toy_gradient("turn_rloo", p, size, gamma=1.0)
    assert got == pytest.approx(0.5 * p * (1 - p), rel=1e-12)


@pytest.mark.parametrize("p", P)
def test_trap_3_mt_grpo_sum_pushes_the_wrong_way(p):
    """The constant reward of the further turn has no variance, so only the outcome is left."""
    assert toy_gradient("mt_grpo", p, 8, gamma=1.0) < 0


STOP, GO = 0, 1
LOGITS = np.array([[0.3, -0.2], [-0.5, 0.4], [0.1, 0.2]])  # turn k: stop or go


def trajectories():
    """All rollouts of a three-turn chain: (actions, turn rewards, outcome), of random size."""
    rng = np.random.default_rng(7)
    out = []
    for actions in [(STOP,), (GO, STOP), (GO, GO, STOP), (GO, GO, GO)]:
        out.append((actions, rng.normal(size=len(actions)).tolist(), float(rng.normal())))
    return out


def score(actions):
    """∇ log π of each action with respect to the six logits: [K, 3, 2]."""
    probs = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
    out = np.zeros((len(actions), 3, 2))
    for k, action in enumerate(actions):
        out[k, k] = -probs[k]
        out[k, k, action] += 1
    return out, float(np.prod([probs[k, a] for k, a in enumerate(actions)]))


def expected_gradient(name, size, **options):
    """Σ over all groups of `size` trajectories of P(group) · mean_i Σ_k ∇log π · A[i,k]."""
    chains = trajectories()
    groups = list(product(range(len(chains)), repeat=size))
    flat = [c for group in groups for c in group]
    advantages = turn_advantages(
        [chains[c][2] for c in flat],
        np.repeat(np.arange(len(groups)), size),
        [chains[c][1] for c in flat],
        name,
        gamma=1.0,
        **options,
    )
    scores = [score(chain[0]) for chain in chains]
    probability = np.repeat([np.prod([scores[c][1] for c in group]) for group in groups], size)
    return sum(
        p / size * np.tensordot(a, scores[c][0], axes=1)
        for p, a, c in zip(probability, advantages, flat, strict=True)
    )


def reinforce():
    return sum(
        p * np.tensordot(np.cumsum(r[::-1])[::-1] + o, s, axes=1)
        for (_, r, o), (s, p) in ((c, score(c[0])) for c in trajectories())
    )


@pytest.mark.parametrize("norm", ["per_index", "zero_pad", "pooled"])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_trap_3_turn_rloo_is_unbiased_on_any_chain(norm, size):
    np.testing.assert_allclose(
        expected_gradient("turn_rloo", size, norm=norm), reinforce(), atol=1e-12
    )


@pytest.mark.parametrize("name", ["mt_grpo", "gtpo", "gtpo_hybrid"])
def test_trap_3_normalising_per_turn_is_not(name):
    """Not even up to a positive factor: its direction differs from REINFORCE's."""
    got, want = expected_gradient(name, 4).ravel(), reinforce().ravel()
    cosine = got @ want / np.linalg.norm(got) / np.linalg.norm(want)
    assert cosine < 0.99
