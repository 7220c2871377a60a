"""Rows of spec-driven environments calibrate, and the proposal is a settings file of theirs."""

import asyncio
import json

import pytest
import yaml

from nemo_tau2.calibration.rewards import to_yaml
from nemo_tau2.cli.main import main
from nemo_tau2.credit import TIERS
from nemo_tau2.rewards.spec_tiers import SpecTier
from nemo_tau2.rollouts.spec_plan import read_settings
from nemo_tau2.simulation.factory import new_episode, plain_row
from nemo_tau2.simulation.policies import Oracle, RandomWalk, bluffer, play, silent


def verdicts(mode, *policies):
    row = plain_row("travel", mode, 1)
    found = [asyncio.run(play(new_episode(row), policy)) for policy in policies]
    return [json.dumps(one).encode() + b"\n" for one in found]


def calibrated(capsys, file, *flags):
    with pytest.raises(SystemExit) as stop:
        main(["calibrate", str(file), *map(str, flags)])
    return stop.value.code, capsys.readouterr()


def test_rows_are_read_and_the_proposal_goes_back_to_the_environments(tmp_path, capsys):
    file, settings = tmp_path / "rollouts.jsonl", tmp_path / "settings.yaml"
    file.write_bytes(b"".join(verdicts("routed", *(Oracle(), *map(RandomWalk, range(40))))))
    code, out = calibrated(capsys, file, "--write", settings, "--json")
    found = json.loads(out.out)
    assert (code, found["rollouts"]) == (0, 41)
    proposed = {tier.value: found["rewards"][tier] for tier in SpecTier}
    assert read_settings(settings).rewards.model_dump() == proposed and any(proposed.values())
    shares = found["stored"]["grpo"]["tiers"]
    useful = shares["grounding_call"]["gradient_share"] + shares["useful_read"]["gradient_share"]
    assert found["stored"]["grpo"]["allocation"]["useful"] == pytest.approx(useful) and useful > 0


def test_tiers_that_are_there_decide_the_form_even_where_all_are_worth_nothing():
    nothing = dict.fromkeys(TIERS, 0.0)
    assert yaml.safe_load(to_yaml(nothing, "x", {"route"})) == {
        "rewards": dict.fromkeys(map(str, SpecTier), 0.0)
    }


def test_pivot_rows_have_no_paid_tiers(tmp_path, capsys):
    file = tmp_path / "rollouts.jsonl"
    file.write_bytes(b"".join(verdicts("pivot", silent, bluffer)))
    code, out = calibrated(capsys, file)
    assert code == 2 and "no rollout to calibrate on (0 masked, 2 pivot)" in out.err
