"""The calibration loop: by hand, on planted data, and against the paper's frequencies."""

import json
import math
from functools import cache

import numpy as np
import pytest
import yaml

from nemo_tau2.calibration.bootstrap import GroupBootstrap, correlation, moments
from nemo_tau2.calibration.generated import TABLE_4, generated_rows
from nemo_tau2.calibration.loop import Settings, calibrate, first_rewards
from nemo_tau2.calibration.rewards import stored_rewards, to_yaml, turn_rewards
from nemo_tau2.calibration.rollouts import RolloutSet, read_rollouts
from nemo_tau2.credit import TIERS
from nemo_tau2.credit.diagnostics import TAU2_TIERS


def rollouts(*rows):
    """(group, outcome, tiers, rewards) per rollout."""
    out = RolloutSet()
    for group, outcome, tiers, rewards in rows:
        row = {"group_id": group, "reward": outcome, "turn_tiers": tiers, "turn_rewards": rewards}
        out.add(row, "row")
    return out


@cache
def generated(**options):
    lines = (json.dumps(row).encode() + b"\n" for row in generated_rows(**options))
    return read_rollouts(lines, "generated")


def power_of(result):
    return {p.tier: p for p in result.power}


def test_discriminative_power_by_hand():
    """Gold in 3 of 4 passing and 1 of 4 failing rollouts: gap 50, ρ = (3·3 − 1·1)/(4·4) = 1/2."""
    plan = [(1, True)] * 3 + [(1, False), (0, True)] + [(0, False)] * 3
    data = rollouts(
        *((i % 2, o, ["gold_exact" if g else "message"], [0.0]) for i, (o, g) in enumerate(plan))
    )
    gold = power_of(calibrate(data, settings=Settings(min_support=1)))["gold_exact"]
    assert (gold.support, gold.pass_share, gold.fail_share, gold.gap) == (4, 0.75, 0.25, 0.5)
    assert gold.rho == pytest.approx(0.5)


def test_rewards_follow_rho_above_delta_with_support():
    data = generated(groups=60)
    power = calibrate(data).power
    rho = {p.tier: p.rho for p in power}
    first = first_rewards(power, Settings())
    assert first["gold_exact"] == round(rho["gold_exact"], 3)
    assert first["read_only"] == 0.0  # |ρ| ≤ δ
    assert first["message"] == 0.0  # in every rollout: ρ undefined
    assert first_rewards(power, Settings(min_support=10**6)) == dict.fromkeys(first, 0.0)
    assert first_rewards(power, Settings(alpha=9))["gold_exact"] == 1.0


def test_a_tier_against_its_intention_is_not_paid_into_place():
    """Soft matches in failing rollouts only: the loop says so instead of raising their reward."""
    rows = [
        (g, i % 2, ["message"] if i % 2 else ["soft_match"], [0.0])
        for g in range(20)
        for i in range(4)
    ]
    result = calibrate(rollouts(*rows))
    assert result.proposed["soft_match"] < 0
    assert not result.converged
    assert result.reasons[0].startswith("soft_match: found in failing rollouts (ρ = -1.00)")


def test_a_paid_read_that_is_suppressed_stops_being_paid():
    """Reads are in 3 of 4 passing rollouts, but far more of their turns are in failing ones."""
    rows = []
    for group in range(20):
        rows += [(group, 1, ["read_only"], [0.3])] * 3 + [(group, 1, ["message"], [0.0])]
        rows += [(group, 0, ["read_only"] * 12, [0.3] * 12)] + [(group, 0, ["message"], [0.0])] * 3
    result = calibrate(rollouts(*rows), "grpo")
    assert [mismatches for _, mismatches in result.rounds] == [("read_only",), ()]
    assert result.rounds[0][0]["read_only"] > 0
    assert result.proposed["read_only"] == 0


def test_equal_outcomes_have_a_reason_not_a_crash():
    result = calibrate(rollouts(*[("g", 1, ["gold_exact"], [1.0])] * 30))
    assert result.reasons == [
        "all outcomes are equal: roll out tasks that sometimes pass and sometimes fail"
    ]
    assert math.isnan(power_of(result)["gold_exact"].rho)


def test_rollouts_without_turns_do_not_hurt():
    result = calibrate(rollouts(*[("g", i % 2, [], []) for i in range(30)]))
    assert not result.converged


def test_mean_advantage_intervals_cover_the_mean():
    result = calibrate(generated(groups=60))
    for credit in (*result.before.values(), *result.after.values()):
        for tier, (low, high) in credit.interval.items():
            assert low <= credit.metrics.mean_advantage[tier] <= high


@pytest.mark.parametrize("long_failures", [False, True])
def test_the_papers_frequencies_come_out_of_the_generator(long_failures):
    data = generated(long_failures=long_failures)
    for tier, shares in TABLE_4.items():
        present = data.present[:, TIERS.index(tier)]
        got = [present[data.passed].mean(), present[~data.passed].mean()]
        assert got == pytest.approx(shares, abs=0.03)


def test_rows_that_add_up_to_100_read_as_shares():
    """Of the rollouts with a soft match 54.2 % pass, with a read 50.1 %, with an error 12 %."""
    data = generated(shares=True)
    for tier in ("soft_match", "read_only", "error"):
        present = data.present[:, TIERS.index(tier)]
        assert data.passed[present].mean() == pytest.approx(TABLE_4[tier][0], abs=0.03)


def test_read_as_shares_soft_matches_speak_against_themselves():
    """54.2 % is below the pass rate of 60 %: ρ < 0, so no calibrated reward may raise them."""
    result = calibrate(generated(shares=True))
    assert result.before["mt_grpo"].mismatches == ("read_only",)
    assert result.after["gtpo_hybrid"].mismatches == ("soft_match",)
    assert "soft_match: found in failing rollouts" in result.reasons[0]


@pytest.mark.parametrize("long_failures", [False, True])
def test_against_the_paper(long_failures):
    """Its Table 4 in: reads flip under naive mt_grpo, nothing does under the calibrated hybrid.

    Soft matches do not flip, unlike in the paper: docs/credit.md says why.
    """
    data = generated(long_failures=long_failures)
    assert calibrate(data, "mt_grpo").before["mt_grpo"].mismatches == ("read_only",)
    hybrid = calibrate(data, "gtpo_hybrid")
    assert hybrid.after["gtpo_hybrid"].mismatches == ()
    assert hybrid.converged


def test_turn_rewards_sum_over_calls_and_keep_grades():
    data = RolloutSet()
    data.add(
        {
            "group_id": 0,
            "reward": 1,
            "turn_tiers": ["gold_exact", "soft_match", "soft_match", "message"],
            "turn_rewards": [0.9, 0.8, 1.4, 0.0],
            "call_tiers": [
                ["gold_exact", "error"],
                ["soft_match"],
                ["soft_match", "soft_match"],
                [],
            ],
        },
        "row",
    )
    paid = {
        "gold_exact": 1.0,
        "soft_match": "graded",
        "read_only": 0.0,
        "message": 0.05,
        "error": -0.1,
    }
    np.testing.assert_allclose(turn_rewards(data, paid)[0], [0.9, 0.8, 1.5, 0.05])
    assert stored_rewards(data)["soft_match"] == pytest.approx(1.1)  # the median of 0.8 and 1.4


def test_the_reward_file_is_yaml_of_the_agreed_form():
    proposed = calibrate(generated(groups=40)).proposed
    got = yaml.safe_load(to_yaml(proposed, "one\ntwo"))
    assert got == {"tiers": {t: proposed[t] for t in TAU2_TIERS}, "combine": "sum"}


def test_correlation_is_pearsons():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 50))
    assert correlation(moments(x, y).sum(axis=0)) == pytest.approx(np.corrcoef(x, y)[0, 1])


def test_bootstrap_of_a_mean_is_near_the_textbook():
    """400 groups of one: the 95 % interval of a mean is about ±1.96·s/√400."""
    x = np.random.default_rng(0).normal(size=400)
    sums = np.stack([x, np.ones(400)], axis=1)
    low, high = GroupBootstrap(np.arange(400)).interval(sums, lambda s: s[..., 0] / s[..., 1])
    half = 1.96 * x.std(ddof=1) / 20
    np.testing.assert_allclose([low, high], [x.mean() - half, x.mean() + half], atol=0.15 * half)


def test_one_group_has_no_interval():
    boot = GroupBootstrap(np.zeros(5, dtype=int))
    assert all(map(math.isnan, boot.interval(np.ones((5, 2)), lambda s: s[..., 0])))
