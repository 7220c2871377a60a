"""pass^k by hand."""

import json

import pytest

from nemo_tau2.errors import UserError
from nemo_tau2.evaluation import load


def row(task, trial=0, reward=0.0, masked=False):
    stop = "world_failed" if masked else "user_stop"
    return {"domain": "airline", "task_id": task, "trial": trial, "reward": reward,
            "mask_sample": masked, "stop_reason": stop, "num_turns": 3}  # fmt: skip


def evaluate(tmp_path, rows):
    file = tmp_path / "rollouts.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return load([tmp_path]).as_dict()


def test_pass_k_is_the_share_of_subsets_that_all_succeed(tmp_path):
    rows = [row("a", t, float(t < 3)) for t in range(4)] + [row("b", t, 0.0) for t in range(2)]
    pass_k = evaluate(tmp_path, rows)["domains"]["airline"]["pass_k"]
    assert pass_k["1"]["value"] == pytest.approx((3 / 4 + 0) / 2)
    assert pass_k["2"]["value"] == pytest.approx((3 / 6 + 0) / 2)
    assert pass_k["3"] | {"tasks": 1} == pass_k["3"] and pass_k["3"]["value"] == pytest.approx(
        1 / 4
    )


def test_one_success_and_three_infrastructure_failures_is_bounded_and_warned(tmp_path):
    rows = [row("0", 0, 1.0)] + [row(str(i), masked=True) for i in (1, 2, 3)]
    report = evaluate(tmp_path, rows)
    one = report["domains"]["airline"]["pass_k"]["1"]
    assert (one["value"], one["worst"], one["best"]) == (1.0, 0.25, 1.0)
    assert "3 of 4 planned trials were not graded" in report["warnings"][0]


def test_no_rows_is_one_clear_line(tmp_path):
    with pytest.raises(UserError, match="no rollouts yet"):
        evaluate(tmp_path, [])
