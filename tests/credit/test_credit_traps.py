"""The five known traps of turn-level credit, one named test or more each."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemo_tau2.credit import ESTIMATORS, credit_metrics, informative, turn_advantages

UNIT = st.floats(0, 1, width=32)


@pytest.mark.parametrize(
    ("outcomes", "first"),
    [([0] + [0.95] * 7, -0.95), ([1.0] + [0.3] * 7, 0.7), ([0] + [0.9] * 7, -0.9)],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_trap_1_equal_others_have_no_std(outcomes, first, dtype):
    """In float32 their std comes out as 4.6e-4: NeMo RL main (7ea279abf) gives −2075, 7428."""
    got = turn_advantages(np.array(outcomes, dtype), [0] * 8, [[0.0]] * 8, "rloo_norm")
    assert got[0][0] == pytest.approx(first, abs=1e-6)
    assert np.abs(np.concatenate(got)).max() <= 10


@pytest.mark.parametrize("name", ESTIMATORS)
@given(mine=UNIT, others=UNIT, ulps=st.lists(st.integers(-1, 1), min_size=1, max_size=31))
def test_trap_1_rounding_of_the_others_never_spikes(name, mine, others, ulps):
    """A standardised value is at most (n − 1)/√n for n rollouts: 5.5 for 32."""
    near = [np.float32(others + u * np.spacing(np.float32(others))) for u in ulps]
    n = len(near) + 1
    got = turn_advantages([mine, *near], [0] * n, [[0.0]] * n, name)
    assert np.abs(np.concatenate(got)).max() <= 10


@pytest.mark.parametrize("name", ESTIMATORS)
def test_trap_2_a_lone_success_keeps_its_advantage(name):
    got = np.concatenate(turn_advantages([1, 0, 0, 0], [0] * 4, [[0.0]] * 4, name))
    assert got[0] > 0 > got[1:].max()
    assert np.abs(got).max() <= 10


def test_trap_2_leave_one_out_values():
    """The winner's others are all equal, so it stays unscaled at 1; the rest get −(1/3)/√(1/3)."""
    got = np.concatenate(turn_advantages([1, 0, 0, 0], [0] * 4, [[0.0]] * 4, "rloo_norm"))
    np.testing.assert_allclose(got, [1.0, -0.5773, -0.5773, -0.5773], atol=1e-4)


def test_trap_2_dynamic_sampling_keeps_or_drops_whole_groups():
    groups = ["lone win"] * 4 + ["all pass"] * 3 + ["lone loss"] * 8
    outcomes = [1, 0, 0, 0] + [1, 1, 1] + [0] + [0.95] * 7
    assert informative(outcomes, groups).tolist() == [True] * 4 + [False] * 3 + [True] * 8


def test_trap_2_the_filter_sees_only_rollouts_that_count():
    exclude = [True, False, False, False]
    assert not informative([1, 0, 0, 0], [0] * 4, exclude).any()
    assert not informative([np.nan, 1, 1], [0] * 3, [True, False, False]).any()
    assert informative([], []).tolist() == []


@pytest.mark.parametrize("name", ["gtpo", "gtpo_hybrid"])
def test_trap_4_an_all_pass_group_is_not_dead(name):
    """γ^(K−k) favours the shorter rollout; the diagnostic says how much of the gradient that is."""
    rewards = [[0.0], [0.0] * 3]
    got = turn_advantages([1, 1], [0] * 2, rewards, name)
    assert got[0][0] > 0 > got[1][0]
    tiers = [["message"] * len(r) for r in rewards]
    assert credit_metrics(got, tiers, [1, 1], [0, 0]).equal_outcome_share == 1.0


@pytest.mark.parametrize("name", ["grpo", "rloo_norm", "mt_grpo"])
def test_trap_4_the_others_are_dead_there(name):
    got = turn_advantages([1, 1], [0] * 2, [[0.0], [0.0] * 3], name)
    assert not np.concatenate(got).any()


def test_trap_5_a_tier_reward_of_zero_still_has_an_advantage():
    """Both rollouts read first (reward 0); the outcome alone gives that turn ±."""
    got = turn_advantages([1, 0], [0, 0], [[0.0, 1.0], [0.0, 0.0]], "gtpo_hybrid")
    assert got[0][0] > 0 > got[1][0]
