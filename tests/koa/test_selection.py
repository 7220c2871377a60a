"""Rows are kept by the variance of at least 8 rollouts."""

import json

import pytest

from nemo_tau2.datasets.selection import rewards_by_group, select, variance
from tests.koa.conftest import lines, run


@pytest.mark.parametrize(
    ("values", "expected"),
    [([0, 1], 0.25), ([0, 0, 0, 1], 0.1875), ([0.3] * 8, 0.0), ([1.0], 0.0)],
)
def test_variance_by_hand(values, expected):
    assert variance(values) == expected


def test_groups_without_variance_say_why():
    rewards = {"a": [0.0] * 8, "b": [1.0] * 8, "c": [0.5] * 8, "d": [0, 1] * 4, "e": [0, 1]}
    found = select("abcdef", rewards)
    assert (found.kept, found.never, found.always, found.flat) == (["d"], ["a"], ["b"], ["c"])
    assert found.too_few == ["e", "f"]
    assert select("d", rewards, min_variance=0.25).kept == []


def test_masked_rollouts_do_not_count():
    rows = [{"group_id": "a", "reward": 1.0, "mask_sample": i > 3} for i in range(9)]
    assert rewards_by_group(rows) == {"a": [1.0] * 4}


def test_the_verb(tmp_path, capsys):
    rows, rollouts = tmp_path / "rows.jsonl", tmp_path / "rollouts.jsonl"
    row = {"responses_create_params": {"input": []}}
    names = ("mixed", "easy")
    made = [row | {"verifier_metadata": {"group_id": name}} for name in names]
    rows.write_text("".join(json.dumps(r) + "\n" for r in made))
    played = [
        {"group_id": name, "reward": float(name == "easy" or i % 2), "mask_sample": False}
        for name in names
        for i in range(8)
    ]
    rollouts.write_text("".join(json.dumps(r) + "\n" for r in played))
    output = tmp_path / "out.jsonl"
    assert run("data", "select", rows, "--rollouts", tmp_path, "--output", output) == 0
    assert lines(output) == [made[0]]
    assert "1 always solved" in capsys.readouterr().out
    rollouts.write_text("{")
    assert run("data", "select", rows, "--rollouts", tmp_path, "--output", output) == 2
    assert "line 1: not JSON" in capsys.readouterr().err
