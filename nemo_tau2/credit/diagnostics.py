"""What a batch of turn advantages teaches, tier by tier. It measures; it decides nothing.

A *mismatch* is a tier whose mean advantage has the wrong sign. A *dead* turn has |A| ≤ tol.
Rollouts left out of the estimator are left out here too.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nemo_tau2.credit.turns import exclusion, group_numbers
from nemo_tau2.errors import UserError

TAU2_TIERS = (
    "gold_exact", "soft_match", "read_only", "state_change", "message", "error", "duplicate",
)  # fmt: skip
SPEC_TIERS = (
    "grounding_call", "useful_read", "route", "read_only", "state_change", "message", "error",
    "wrong_subagent", "duplicate",
)  # fmt: skip
TIERS = tuple(dict.fromkeys(TAU2_TIERS + SPEC_TIERS))
"""Every tier an environment of this package reports: τ²'s, then those of spec-driven ones."""
_SIGN = {"gold_exact": 1, "soft_match": 1, "state_change": -1, "error": -1, "duplicate": -1}
_SIGN |= {"grounding_call": 1, "wrong_subagent": -1}
TOL = 1e-6


@dataclass(frozen=True)
class CreditMetrics:
    """One batch under one estimator; tiers without a turn are absent from the dictionaries."""

    mean_advantage: dict[str, float]
    turns: dict[str, int]
    mismatches: tuple[str, ...]
    correlation: float
    """Pearson correlation of a turn's advantage with its rollout's outcome; nan where undefined."""
    dead_share: float
    """Share of turns with |A| ≤ tol."""
    gradient_share: dict[str, float]
    """Share of Σ|A| that falls on each tier."""
    equal_outcome_share: float
    """Share of Σ|A| in groups of equal outcomes: there only turn rewards and length speak."""

    def flat(self) -> dict[str, float]:
        """The metrics under logger keys, such as `mean_advantage/gold_exact`."""
        out = {f"mean_advantage/{tier}": value for tier, value in self.mean_advantage.items()}
        out |= {f"gradient_share/{tier}": value for tier, value in self.gradient_share.items()}
        return out | {
            "mismatches": float(len(self.mismatches)),
            "corr_advantage_outcome": self.correlation,
            "dead_turns": self.dead_share,
            "equal_outcome_gradient": self.equal_outcome_share,
        }


def intended_sign(tier: str, reward: float = 0.0) -> int:
    """The sign a tier's mean advantage should have: 1, -1, or 0 for no intention.

    Gold and soft matches are to be reinforced, state changes, errors and duplicates suppressed,
    whatever they are paid. A read or a message is neutral by nature, so there the intention is the
    sign of the reward its designer gave it.
    """
    return _SIGN.get(tier, int(np.sign(reward)))


def credit_metrics(
    advantages: Sequence[np.ndarray],
    tiers: Sequence[Sequence[str]],
    outcomes: Sequence[float],
    groups: Sequence[Hashable],
    *,
    rewards: Mapping[str, float] | None = None,
    exclude: Sequence[bool] | None = None,
    tol: float = TOL,
) -> CreditMetrics:
    """Summarises N rollouts' turn advantages by tier.

    `advantages` N arrays of K_i, `tiers` N lists of K_i tier names, `outcomes` and `groups` [N],
    `rewards` the reward per tier (for the intention of reads and messages).
    Raises `UserError` for an unknown tier or counts that disagree, naming the rollout.
    """
    kept = np.flatnonzero(~exclusion(exclude, len(outcomes)))
    for i in kept:
        if len(advantages[i]) != len(tiers[i]):
            raise UserError(
                f"rollout {i}: {len(advantages[i])} advantages for {len(tiers[i])} tiers"
            )
    code = np.array([tier_number(t, i) for i in kept for t in tiers[i]], dtype=np.intp)
    advantage = np.concatenate([np.zeros(0), *(advantages[i] for i in kept)])
    outcome = np.asarray([outcomes[i] for i in kept], dtype=np.float64)
    group = group_numbers([groups[i] for i in kept])
    length = [len(advantages[i]) for i in kept]

    turns = np.bincount(code, minlength=len(TIERS))
    mean = np.bincount(code, advantage, minlength=len(TIERS)) / np.maximum(turns, 1)
    size = np.bincount(code, np.abs(advantage), minlength=len(TIERS))
    mixed = np.zeros(len(group), dtype=bool)
    if len(group):
        sample = np.zeros(len(group))
        sample[group] = outcome
        mixed = (np.bincount(group, outcome != sample[group]) > 0)[group]
    total = size.sum()
    uniform = np.abs(advantage)[~np.repeat(mixed, length)].sum()
    present = [(c, tier) for c, tier in enumerate(TIERS) if turns[c]]
    signs = {tier: intended_sign(tier, (rewards or {}).get(tier, 0.0)) for _, tier in present}
    return CreditMetrics(
        mean_advantage={tier: float(mean[c]) for c, tier in present},
        turns={tier: int(turns[c]) for c, tier in present},
        mismatches=tuple(tier for c, tier in present if signs[tier] * mean[c] < 0),
        correlation=_correlation(advantage, np.repeat(outcome, length)),
        dead_share=float(np.mean(np.abs(advantage) <= tol)) if len(advantage) else 0.0,
        gradient_share={tier: float(size[c] / total) if total else 0.0 for c, tier in present},
        equal_outcome_share=float(uniform / total) if total else 0.0,
    )


def tier_number(tier: str, rollout: int) -> int:
    """A tier's place in `TIERS`; raises `UserError` for another name, naming the rollout."""
    if tier not in TIERS:
        raise UserError(
            f"rollout {rollout}: unknown tier {tier!r}: the tiers are {', '.join(TIERS)}"
        )
    return TIERS.index(tier)


def _correlation(x: np.ndarray, y: np.ndarray) -> float:
    if len(x) < 2 or (x == x[0]).all() or (y == y[0]).all():
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])
