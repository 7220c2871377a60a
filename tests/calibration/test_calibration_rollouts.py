"""Reading stored rollouts: what counts, what is left out, and what a bad row is told."""

import json

import pytest

from nemo_tau2.calibration.rollouts import read_rollouts
from nemo_tau2.errors import UserError

ROW = {
    "task_id": "3",
    "domain": "airline",
    "group_id": "g",
    "trial": 0,
    "reward": 1.0,
    "turn_rewards": [1.0, 0.0],
    "turn_tiers": ["gold_exact", "message"],
    "stop_reason": "user_stop",
    "mask_sample": False,
    "reward_info": {},
}


def line(**changes):
    return json.dumps({**ROW, **changes}).encode() + b"\n"


def test_masked_rows_are_left_out_and_counted():
    got = read_rollouts([line(), line(mask_sample=True, reward=None), b"\n", line(reward=0)], "f")
    assert (len(got), got.masked, got.outcomes) == (2, 1, [1.0, 0.0])


def test_a_row_cut_off_at_the_end_is_left_out_and_counted():
    got = read_rollouts([line(), line()[:40]], "f")
    assert (len(got), got.unfinished) == (1, 1)


def test_the_same_group_id_in_two_domains_is_two_groups():
    got = read_rollouts([line(), line(domain="retail")], "f")
    assert len(set(got.groups)) == 2


def test_a_turn_without_a_call_is_a_message():
    got = read_rollouts([line(call_tiers=[["gold_exact", "error"], []])], "f")
    assert got.call_tiers == [[["gold_exact", "error"], ["message"]]]
    assert got.present.sum() == 3  # the error inside the gold turn counts as present


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (b"{\n", "f:2: not JSON"),
        (b"[" * 100_000 + b"\n", "f:2: not JSON"),
        (b"[]\n", "f:2: not an object"),
        (b'{"reward": 1}\n', "f:2: no group_id, turn_rewards, turn_tiers"),
        (line(turn_rewards=[1.0]), "f:2: turn_rewards and turn_tiers must be lists of one length"),
        (line(turn_tiers="ab"), "f:2: turn_rewards and turn_tiers must be lists of one length"),
        (line(turn_tiers=["gold", "message"]), "f:2: unknown tier 'gold'"),
        (line(turn_tiers=[[], "message"]), "f:2: unknown tier"),
        (line(call_tiers=[["gold_exact"]]), "f:2: call_tiers must be one list"),
        (line(reward=float("nan")), "f:2: reward has nan"),
        (line(reward="1"), "f:2: reward has '1'"),
        (line(turn_rewards=[1.0, None]), "f:2: turn_rewards has None"),
    ],
)
def test_bad_rows_are_refused_by_line(bad, message):
    with pytest.raises(UserError, match=message):
        read_rollouts([line(), bad], "f")


def test_nothing_to_calibrate_on():
    with pytest.raises(UserError, match=r"f: no rollout to calibrate on \(1 masked, 0 pivot\)"):
        read_rollouts([line(mask_sample=True)], "f")
