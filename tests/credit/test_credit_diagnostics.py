"""Per-tier metrics on a batch small enough to count by hand."""

import numpy as np
import pytest

from nemo_tau2.credit import credit_metrics, intended_sign
from nemo_tau2.errors import UserError

ADVANTAGES = [np.array([1.0, 0.5]), np.array([-0.5, 0.0, -1.0]), np.array([2.0])]
TIERS = [["gold_exact", "read_only"], ["read_only", "message", "gold_exact"], ["error"]]
OUTCOMES, GROUPS = [1, 0, 1], ["a", "a", "b"]


def metrics(**options):
    return credit_metrics(ADVANTAGES, TIERS, OUTCOMES, GROUPS, **options)


def test_by_hand():
    m = metrics()
    assert m.turns == {"gold_exact": 2, "read_only": 2, "message": 1, "error": 1}
    assert m.mean_advantage == {"gold_exact": 0, "read_only": 0, "message": 0, "error": 2}
    assert m.mismatches == ("error",)  # reinforced, though meant to be suppressed
    assert m.dead_share == pytest.approx(1 / 6)
    assert m.gradient_share["gold_exact"] == pytest.approx(2 / 5)  # Σ|A| = 5
    assert m.equal_outcome_share == pytest.approx(2 / 5)  # group b has one outcome
    flat, outcome = [1, 0.5, -0.5, 0, -1, 2], [1, 1, 0, 0, 0, 1]
    assert m.correlation == pytest.approx(np.corrcoef(flat, outcome)[0, 1])


def test_excluded_rollouts_do_not_count():
    m = metrics(exclude=[False, False, True])
    assert "error" not in m.turns
    assert m.mismatches == ()
    assert m.equal_outcome_share == 0


def test_a_read_is_intended_as_it_is_paid():
    assert [intended_sign("read_only", r) for r in (0.3, 0.0, -0.1)] == [1, 0, -1]
    assert [intended_sign("state_change", r) for r in (0.1, 0.0)] == [-1, -1]
    assert intended_sign("soft_match") == intended_sign("gold_exact") == 1


def test_a_paid_read_that_is_suppressed_is_a_mismatch():
    tiers, advantages = [["read_only"], ["message"]], [np.array([-1.0]), np.array([1.0])]
    paid = credit_metrics(advantages, tiers, [0, 1], [0, 0], rewards={"read_only": 0.3})
    assert paid.mismatches == ("read_only",)
    assert credit_metrics(advantages, tiers, [0, 1], [0, 0]).mismatches == ()


def test_nothing_at_all():
    m = credit_metrics([], [], [], [])
    assert (m.turns, m.mismatches, m.dead_share, m.equal_outcome_share) == ({}, (), 0, 0)
    assert np.isnan(m.correlation)


def test_flat_has_logger_keys():
    flat = metrics().flat()
    assert flat["mean_advantage/error"] == 2
    assert flat["mismatches"] == 1
    assert all(isinstance(v, float) for v in flat.values())


def test_bad_tiers_are_refused_by_rollout():
    with pytest.raises(UserError, match="rollout 1: unknown tier 'golden'"):
        credit_metrics([[0.0], [0.0]], [["error"], ["golden"]], [0, 0], [0, 0])
    with pytest.raises(UserError, match="rollout 0: 1 advantages for 2 tiers"):
        credit_metrics([[0.0]], [["error", "error"]], [0], [0])
