"""Tier rewards: what one call of each tier pays, and the turn rewards they give stored rollouts."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from nemo_tau2.calibration.rollouts import RolloutSet
from nemo_tau2.credit import TIERS
from nemo_tau2.credit.diagnostics import SPEC_TIERS, TAU2_TIERS

GRADED = "graded"
"""The value of `soft_match` that pays 0.5 + 0.5·(share of the gold arguments that agree)."""

NAIVE = {
    "gold_exact": 1.0,
    "soft_match": GRADED,
    "read_only": 0.3,
    "state_change": 0.1,
    "message": 0.0,
    "error": -0.1,
    "duplicate": -0.2,
}
"""The paper's naive dense rewards ("V5")."""


def stored_rewards(rollouts: RolloutSet) -> dict[str, float]:
    """What the stored turns of each tier were paid: the median over the turns, 0 without any."""
    paid: dict[str, list[float]] = {tier: [] for tier in TIERS}
    for tiers, rewards in zip(rollouts.turn_tiers, rollouts.turn_rewards, strict=True):
        for tier, reward in zip(tiers, rewards, strict=True):
            paid[tier].append(reward)
    return {tier: float(np.median(values)) if values else 0.0 for tier, values in paid.items()}


def turn_rewards(rollouts: RolloutSet, rewards: Mapping[str, float | str]) -> list[np.ndarray]:
    """The turn rewards that tier rewards give: the sum over a turn's calls. → N arrays of K_i

    A graded soft match needs the share of arguments that agreed, which rows do not hold: a turn
    whose one call is soft keeps its stored reward where that is a grade (0.5 to 1), others count
    0.75.
    """
    fixed = {tier: value for tier, value in rewards.items() if value != GRADED}
    out = []
    for calls, stored in zip(rollouts.call_tiers, rollouts.turn_rewards, strict=True):
        values = np.empty(len(stored))
        for k, turn in enumerate(calls):
            grade = stored[k] if len(turn) == 1 and 0.5 <= stored[k] <= 1 else 0.75
            values[k] = sum(fixed.get(tier, grade) for tier in turn)
        out.append(values)
    return out


def to_yaml(rewards: Mapping[str, float | str], comment: str, seen: Collection[str] = ()) -> str:
    """The file that the environments read: a reward file of τ², or `rollout --rows --settings`.

    `seen`: the tiers that the rollouts have; any that only spec-driven environments report make it theirs.
    """
    head = [f"# {line}" for line in comment.splitlines()]
    own = [tier for tier in SPEC_TIERS if tier not in TAU2_TIERS]
    if any(tier in seen or rewards.get(tier) for tier in own):
        return "\n".join([*head, "rewards:", *_lines(rewards, SPEC_TIERS), ""])
    return "\n".join([*head, "tiers:", *_lines(rewards, TAU2_TIERS), "combine: sum", ""])


def _lines(rewards: Mapping[str, float | str], tiers: Sequence[str]) -> list[str]:
    return [f"  {tier}: {rewards[tier]}" for tier in tiers]
