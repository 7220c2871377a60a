"""The calibration loop: rewards from discriminative power, advantages from rewards, signs checked.

For each tier, r = α·ρ where |ρ| > δ and enough rollouts have the tier, else 0; ρ is the
point-biserial correlation of the tier's presence in a rollout with the outcome. Then the advantages
that training would use are computed, and every tier whose mean advantage has the wrong sign is
mended and the advantages are computed again:

* a read or a message stops being paid (nothing is intended of it then);
* another tier's reward is doubled in the intended direction, up to ±1, unless ρ itself says the
  opposite: then no calibrated reward can help, and the report says so.

On stored rollouts ρ does not change from round to round; after training on the proposal, roll out
and calibrate again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nemo_tau2.calibration.bootstrap import GroupBootstrap, Interval, correlation, moments
from nemo_tau2.calibration.rewards import stored_rewards, turn_rewards
from nemo_tau2.calibration.rollouts import RolloutSet
from nemo_tau2.credit import TIERS, credit_metrics, intended_sign, turn_advantages
from nemo_tau2.credit.diagnostics import TOL, CreditMetrics
from nemo_tau2.credit.options import NAMES
from nemo_tau2.credit.turns import group_numbers

MAX_ROUNDS = 12


@dataclass(frozen=True)
class Settings:
    """The knobs of the loop; the paper publishes none of their values, these are ours."""

    alpha: float = 1.0
    """Reward per unit of correlation."""
    delta: float = 0.05
    """A smaller |ρ| counts as none."""
    eta: float = 0.1
    """The correlation of mean turn reward and outcome a calibrated set must exceed."""
    min_support: int = 20
    """A tier in fewer rollouts gets 0 and is not judged."""
    tol: float = TOL
    """|A| up to this is a dead turn."""
    seed: int = 0
    """Of the bootstrap."""


@dataclass(frozen=True)
class Power:
    """How well a tier's presence tells passing from failing rollouts."""

    tier: str
    support: int
    """Rollouts that have it."""
    pass_share: float
    """Share of the passing rollouts that have it."""
    fail_share: float
    gap: float
    gap_interval: Interval
    rho: float
    """nan where every rollout or none has the tier, or all outcomes are equal."""
    rho_interval: Interval


@dataclass(frozen=True)
class Credit:
    """One set of turn rewards under one estimator."""

    metrics: CreditMetrics
    mismatches: tuple[str, ...]
    """Tiers of the wrong sign among those with enough support."""
    interval: dict[str, Interval] = field(default_factory=dict)
    """Of each tier's mean advantage."""


@dataclass(frozen=True)
class Calibration:
    """What `nemo-tau2 calibrate` reports."""

    estimator: str
    power: list[Power]
    judged: frozenset[str]
    """The tiers with enough support."""
    stored: dict[str, float]
    """The reward per tier the rollouts were stored with."""
    proposed: dict[str, float]
    before: dict[str, Credit]
    """By estimator, under the stored turn rewards."""
    after: dict[str, Credit]
    """By estimator, under the proposed ones."""
    reward_correlation: tuple[float, float]
    """Of a rollout's mean turn reward with its outcome: stored, proposed."""
    rounds: list[tuple[dict[str, float], tuple[str, ...]]]
    """The rewards tried, each with its mismatches."""
    reasons: list[str]
    """Why the loop could not end well; empty where it did."""

    @property
    def converged(self) -> bool:
        return not self.reasons


def calibrate(
    rollouts: RolloutSet,
    estimator: str = "gtpo_hybrid",
    options: Mapping[str, Any] | None = None,
    settings: Settings | None = None,
) -> Calibration:
    """Runs the loop; `options` are keyword arguments of `turn_advantages` for every estimator."""
    settings, options = settings or Settings(), options or {}
    boot = GroupBootstrap(group_numbers(rollouts.groups), settings.seed)
    power = [discriminative_power(rollouts, tier, boot) for tier in TIERS]
    judged = {p.tier for p in power if p.support >= settings.min_support}

    def credit(name: str, turns: Sequence, rewards: Mapping[str, float]) -> Credit:
        return _credit(rollouts, turns, name, options, rewards, judged, settings.tol, boot)

    rewards = first_rewards(power, settings)
    rounds: list[tuple[dict[str, float], tuple[str, ...]]] = []
    while True:
        turns = turn_rewards(rollouts, rewards)
        bare = _credit(rollouts, turns, estimator, options, rewards, judged, settings.tol, None)
        rounds.append((rewards, bare.mismatches))
        mended, reasons = _mend(rewards, bare.mismatches, power, settings)
        if mended == rewards or len(rounds) == MAX_ROUNDS:
            break
        rewards = mended

    stored = stored_rewards(rollouts)
    reward_correlation = (
        _reward_correlation(rollouts, rollouts.turn_rewards),
        _reward_correlation(rollouts, turns),
    )
    return Calibration(
        estimator=estimator,
        power=power,
        judged=frozenset(judged),
        stored=stored,
        proposed=rewards,
        before={name: credit(name, rollouts.turn_rewards, stored) for name in NAMES},
        after={name: credit(name, turns, rewards) for name in NAMES},
        reward_correlation=reward_correlation,
        rounds=rounds,
        reasons=[*reasons, *_weak(reward_correlation[1], rollouts, settings)],
    )


def discriminative_power(rollouts: RolloutSet, tier: str, boot: GroupBootstrap) -> Power:
    """Counts a tier in passing and failing rollouts, with intervals."""
    x = rollouts.present[:, TIERS.index(tier)].astype(np.float64)
    passed = rollouts.passed.astype(np.float64)
    counts = np.stack([x * passed, passed, x * (1 - passed), 1 - passed], axis=1)
    pairs = moments(x, rollouts.outcome)

    def gap(sums: np.ndarray) -> np.ndarray:
        return sums[..., 0] / sums[..., 1] - sums[..., 2] / sums[..., 3]

    total = counts.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        pass_share, fail_share = total[0] / total[1], total[2] / total[3]
    return Power(
        tier=tier,
        support=int(x.sum()),
        pass_share=float(pass_share),
        fail_share=float(fail_share),
        gap=float(pass_share - fail_share),
        gap_interval=boot.interval(counts, gap),
        rho=float(correlation(pairs.sum(axis=0))),
        rho_interval=boot.interval(pairs, correlation),
    )


def first_rewards(power: Sequence[Power], settings: Settings) -> dict[str, float]:
    """r = α·ρ where |ρ| > δ with enough support, else 0; within ±1, to three digits."""
    rewards = {}
    for p in power:
        speaks = p.support >= settings.min_support and abs(p.rho) > settings.delta
        value = settings.alpha * p.rho if speaks else 0.0
        rewards[p.tier] = round(float(np.clip(value, -1.0, 1.0)), 3)
    return rewards


def _credit(
    rollouts: RolloutSet,
    turns: Sequence,
    estimator: str,
    options: Mapping[str, Any],
    rewards: Mapping[str, float],
    judged: set[str],
    tol: float,
    boot: GroupBootstrap | None,
) -> Credit:
    """Metrics of one estimator on one set of turn rewards; intervals where `boot` is given."""
    advantages = turn_advantages(rollouts.outcomes, rollouts.groups, turns, estimator, **options)
    metrics = credit_metrics(
        advantages,
        rollouts.turn_tiers,
        rollouts.outcomes,
        rollouts.groups,
        rewards=rewards,
        tol=tol,
    )
    mismatches = tuple(tier for tier in metrics.mismatches if tier in judged)
    if boot is None:
        return Credit(metrics, mismatches)
    code = [TIERS.index(t) for tiers in rollouts.turn_tiers for t in tiers]
    row = np.repeat(np.arange(len(rollouts)), [len(a) for a in advantages])
    cell = row * len(TIERS) + np.array(code, dtype=np.intp)
    shape, cells = (len(rollouts), len(TIERS)), len(rollouts) * len(TIERS)
    total = np.bincount(cell, np.concatenate(advantages), minlength=cells).reshape(shape)
    count = np.bincount(cell, minlength=cells).reshape(shape)

    def mean(sums: np.ndarray) -> np.ndarray:
        return sums[..., 0] / sums[..., 1]

    intervals = {
        tier: boot.interval(np.stack([total[:, c], count[:, c]], axis=1), mean)
        for c, tier in enumerate(TIERS)
        if tier in metrics.turns
    }
    return Credit(metrics, mismatches, intervals)


def _mend(
    rewards: Mapping[str, float], mismatches: Sequence[str], power: Sequence[Power], cfg: Settings
) -> tuple[dict[str, float], list[str]]:
    """The next rewards to try, and for every tier that cannot be mended the reason."""
    rho = {p.tier: p.rho for p in power}
    mended, reasons = dict(rewards), []
    for tier in mismatches:
        sign = intended_sign(tier)
        if sign == 0:
            mended[tier] = 0.0
        elif abs(rho[tier]) > cfg.delta and rho[tier] * sign < 0:
            word = "failing" if sign > 0 else "passing"
            reasons.append(
                f"{tier}: found in {word} rollouts (ρ = {rho[tier]:+.2f}), against its intention: "
                "look at how it is assigned before paying it"
            )
        elif rewards[tier] * sign >= 1.0:
            reasons.append(
                f"{tier}: the wrong sign even at its bound of {sign:+d}: "
                "its turns fall in rollouts whose returns say the opposite"
            )
        else:
            size = min(1.0, max(0.1, 2 * abs(rewards[tier])))
            mended[tier] = round(sign * size, 3)
    return mended, reasons


def _reward_correlation(rollouts: RolloutSet, turns: Sequence) -> float:
    """Pearson correlation, over rollouts that have turns, of mean turn reward and outcome."""
    pairs = [(np.mean(r), o) for r, o in zip(turns, rollouts.outcomes, strict=True) if len(r) > 0]
    x, y = np.array(pairs).T if pairs else np.zeros((2, 0))
    if len(x) < 2 or (x == x[0]).all() or (y == y[0]).all():
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])


def _weak(value: float, rollouts: RolloutSet, cfg: Settings) -> list[str]:
    if np.ptp(rollouts.outcome) == 0:
        return ["all outcomes are equal: roll out tasks that sometimes pass and sometimes fail"]
    if not value > cfg.eta:
        return [f"mean turn reward and outcome correlate by {value:.2f}, not above {cfg.eta:g}"]
    return []
