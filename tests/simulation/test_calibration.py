"""Rows of spec-driven environments calibrate, and the proposal is a table of their own tiers."""

import asyncio
import json

import yaml

from nemo_tau2.calibration.rewards import to_yaml
from nemo_tau2.calibration.rollouts import read_rollouts
from nemo_tau2.rewards.spec_tiers import SpecTier, SpecTierRewards
from nemo_tau2.simulation.factory import new_episode, plain_row
from nemo_tau2.simulation.policies import Oracle, RandomWalk, play


def test_rows_are_read_and_tiers_written():
    rows = [
        asyncio.run(play(new_episode(plain_row("travel", "routed", 1)), policy))
        for policy in (Oracle(), RandomWalk(1), RandomWalk(2))
    ]
    found = read_rollouts([json.dumps(row).encode() + b"\n" for row in rows], "rows")
    assert len(found) == 3 and found.present.any()
    rewards = dict.fromkeys(SpecTier, 0.0) | {"grounding_call": 1.0}
    written = yaml.safe_load(to_yaml({str(k): v for k, v in rewards.items()}, "x"))["tiers"]
    assert SpecTierRewards(**written).grounding_call == 1.0
