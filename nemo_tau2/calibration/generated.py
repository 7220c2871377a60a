"""A generated rollout set with the tier frequencies of the paper's Table 4.

It tests the calibration against published numbers; it is no model of a policy. What the paper does
not publish was fixed before anything was measured: 372 groups of 16 (its 5,952 rollouts), a group's
pass rate from Beta(3, 2), each tier of Table 4 present with its printed frequency among passing or
failing rollouts, 1 to 3 gold calls, 1 to 4 reads, one call of any other tier, 1 to 3 messages, in
random order. Table 4 says nothing about length; Table 8 shows a failing episode twice as long as a
trained one, so `long_failures` doubles the reads and messages of failing rollouts.

Three rows of Table 4 (soft match, read-only, error) add up to 100 and can be read another way: of
the rollouts with the tier, so many pass. `shares` reads them so, each of the three tiers being in
40 % of all rollouts (error allows no more than 45 %).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from nemo_tau2.calibration.rewards import NAIVE

TABLE_4 = {
    "gold_exact": (0.684, 0.013),
    "soft_match": (0.542, 0.458),
    "read_only": (0.501, 0.500),
    "state_change": (0.010, 0.026),
    "error": (0.120, 0.880),
}
"""Frequency in passing and in failing rollouts."""
PASS_RATE, OVERALL = 0.6, 0.4
AS_SHARES = TABLE_4 | {
    tier: (OVERALL * passing / PASS_RATE, OVERALL * failing / (1 - PASS_RATE))
    for tier, (passing, failing) in TABLE_4.items()
    if tier in ("soft_match", "read_only", "error")
}
"""The same table with the rows that add up to 100 read as shares of the rollouts with the tier."""
MOST_CALLS = {"gold_exact": 3, "read_only": 4}


def generated_rows(
    seed: int = 0,
    groups: int = 372,
    size: int = 16,
    *,
    long_failures: bool = False,
    shares: bool = False,
) -> Iterator[dict[str, Any]]:
    """Rows of `nemo-tau2 rollout`, paid the paper's naive dense rewards."""
    rng = np.random.default_rng(seed)
    for group in range(groups):
        rate = rng.beta(3, 2)
        for trial in range(size):
            passed = bool(rng.random() < rate)
            table = AS_SHARES if shares else TABLE_4
            tiers = _turns(rng, table, passed, 2 if long_failures and not passed else 1)
            yield {
                "task_id": str(group),
                "domain": "generated",
                "group_id": str(group),
                "trial": trial,
                "reward": float(passed),
                "turn_rewards": [
                    float(rng.uniform(0.5, 0.99)) if t == "soft_match" else NAIVE[t] for t in tiers
                ],
                "turn_tiers": tiers,
                "stop_reason": "user_stop",
                "mask_sample": False,
                "reward_info": {},
            }


def _turns(
    rng: np.random.Generator, table: dict[str, tuple[float, float]], passed: bool, stretch: int
) -> list[str]:
    tiers = ["message"] * int(stretch * rng.integers(1, 4))
    for tier, (in_passing, in_failing) in table.items():
        if rng.random() < (in_passing if passed else in_failing):
            calls = int(rng.integers(1, MOST_CALLS.get(tier, 1) + 1))
            tiers += [tier] * (calls * stretch if tier == "read_only" else calls)
    rng.shuffle(tiers)
    return tiers
