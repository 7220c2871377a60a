"""The worked example of the reference: G = 4, K = 3, 2, 3, 1; ddof 1, ε 1e-6, γ 0.9, λ 0.3.

The numbers were computed by hand and by an independent script, to four digits.
"""

import numpy as np
import pytest

from nemo_tau2.credit import turn_advantages

R = [[0.3, 1, 0], [0.3, -0.1], [0, 1, 1], [0.1]]
O = [1, 0, 1, 0]  # noqa: E741
ORACLE = {
    ("grpo", "sum"): [[0.8660] * 3, [-0.8660] * 2, [0.8660] * 3, [-0.8660]],
    # The others of a pass are 0, 1, 0: (1 − 1/3)/√(1/3) = 2/√3; of a failure 1, 1, 0: −2/√3.
    ("rloo_norm", "sum"): [[1.1547] * 3, [-1.1547] * 2, [1.1547] * 3, [-1.1547]],
    ("mt_grpo", "immediate"): [
        [1.6994, 1.4434, 0.1589],
        [-0.0327, -2.0207],
        [-0.3006, 1.4434, 1.5731],
        [-1.366],
    ],
    ("mt_grpo", "sum"): [
        [1.5696, 0.7363, 0.1589],
        [-1.1874, -2.0207],
        [0.9838, 2.1505, 1.5731],
        [-1.366],
    ],
    ("gtpo", "sum"): [
        [0.6379, 0.2346, -0.7071],
        [-0.8059, -1.0964],
        [1.0662, 0.8618, 0.7071],
        [-0.8982],
    ],
    ("gtpo_hybrid", "sum"): [
        [0.8977, 0.4944, -0.4473],
        [-1.0657, -1.3563],
        [1.326, 1.1216, 0.9669],
        [-1.1581],
    ],
    ("turn_rloo", "sum"): [
        [1.0127, 0.505, -1.0],
        [-1.2793, -2.36],
        [1.6927, 1.855, 1.0],
        [-1.426],
    ],
}


@pytest.mark.parametrize(("name", "mode"), ORACLE)
def test_every_estimator_to_four_digits(name, mode):
    got = turn_advantages(O, ["g"] * 4, R, name, gamma=0.9, lam=0.3, mode=mode)
    for row, want in zip(got, ORACLE[name, mode], strict=True):
        np.testing.assert_allclose(row, want, atol=5.1e-5)


def test_defaults_are_the_papers_hybrid():
    got = turn_advantages(O, ["g"] * 4, R)
    np.testing.assert_allclose(got[0], ORACLE["gtpo_hybrid", "sum"][0], atol=5.1e-5)


def test_ddof_0_divides_by_the_population_std():
    # o = 1, 0, 1, 0: mean 1/2, population std 1/2.
    got = turn_advantages(O, ["g"] * 4, R, "grpo", ddof=0)
    assert [round(row[0], 4) for row in got] == [1, -1, 1, -1]


def test_zero_pad_counts_an_absent_turn_as_zero():
    # Turn 1 holds 1, −0.1, 1 and an absent 0: mean 0.475; squares .275625·2 + .330625 + .225625.
    std = np.sqrt((2 * 0.525**2 + 0.575**2 + 0.475**2) / 3)
    got = turn_advantages([0] * 4, ["g"] * 4, R, "mt_grpo", norm="zero_pad", mode="immediate")
    np.testing.assert_allclose(got[1][1], -0.575 / (std + 1e-6), rtol=1e-12)
    # Turn 2 is 0 and 1 with two absent zeros: mean 1/4, std 1/2.
    np.testing.assert_allclose([got[0][2], got[2][2]], [-0.5, 1.5], atol=1e-5)


def test_pooled_compares_with_all_turns_of_the_group():
    everything = np.concatenate(R)
    got = turn_advantages([0] * 4, ["g"] * 4, R, "mt_grpo", norm="pooled", mode="immediate")
    want = (everything - everything.mean()) / (everything.std(ddof=1) + 1e-6)
    np.testing.assert_allclose(np.concatenate(got), want, rtol=1e-12)


def test_turn_rloo_baselines_under_each_norm():
    ret = [[1.929, 1.81, 0.9], [0.21, -0.1], [2.439, 2.71, 1.9], [0.1]]
    padded = turn_advantages(O, ["g"] * 4, R, "turn_rloo", norm="zero_pad")
    # Turn 1 of rollout 0: the others are −0.1, 2.71 and an absent 0.
    np.testing.assert_allclose(padded[0][1], 1.81 - 2.61 / 3, rtol=1e-12)
    pooled = turn_advantages(O, ["g"] * 4, R, "turn_rloo", norm="pooled")
    others = np.mean([*ret[1], *ret[2], *ret[3]])
    np.testing.assert_allclose(pooled[0], np.array(ret[0]) - others, rtol=1e-12)


def test_turn_rloo_falls_back_to_the_others_outcomes():
    # Only rollout 0 has turn 1: Ret = 0.9·1 there, the others' outcomes 0 and 1 have mean 1/2.
    got = turn_advantages([1, 0, 1], ["g"] * 3, [[0, 0], [0], [0]], "turn_rloo")
    np.testing.assert_allclose(got[0][1], 0.9 - 0.5, rtol=1e-12)


def test_turn_rloo_scaled_is_the_unscaled_over_one_std_per_group():
    plain = np.concatenate(turn_advantages(O, ["g"] * 4, R, "turn_rloo"))
    scaled = np.concatenate(turn_advantages(O, ["g"] * 4, R, "turn_rloo", scale=True))
    ret = [1.929, 1.81, 0.9, 0.21, -0.1, 2.439, 2.71, 1.9, 0.1]
    np.testing.assert_allclose(scaled, plain / (np.std(ret, ddof=1) + 1e-6), rtol=1e-12)


def test_clip_bounds_every_advantage():
    got = np.concatenate(turn_advantages(O, ["g"] * 4, R, "mt_grpo", clip=1.0))
    assert np.abs(got).max() == 1.0
