"""Stored rollouts: a finished row is never lost, a torn one never read."""

import json

import pytest

from nemo_tau2.errors import UserError
from nemo_tau2.rollouts.store import RolloutStore
from nemo_tau2.rollouts.summary import summarise


def row(
    task, trial=0, reward=1.0, masked=False, domain="airline", stop="user_stop", tiers=("message",)
):
    return {
        "domain": domain,
        "task_id": task,
        "trial": trial,
        "reward": reward,
        "mask_sample": masked,
        "stop_reason": stop,
        "turn_tiers": list(tiers),
    }


def test_rows_come_back_after_reopening(tmp_path):
    store = RolloutStore(tmp_path)
    store.add(row("0"))
    store.add(row("0", trial=1))
    store.close()
    again = RolloutStore(tmp_path, resume=True)
    assert again.finished == {("airline", "0", 0), ("airline", "0", 1)}


def test_an_existing_run_is_not_overwritten(tmp_path):
    RolloutStore(tmp_path).add(row("0"))
    with pytest.raises(UserError, match="--resume"):
        RolloutStore(tmp_path)


def test_a_torn_last_line_is_cut_off(tmp_path):
    store = RolloutStore(tmp_path)
    store.add(row("0"))
    with store.path.open("ab") as file:
        file.write(b'{"domain": "airl')
    again = RolloutStore(tmp_path, resume=True)
    again.add(row("1"))
    assert [r["task_id"] for r in again.rows()] == ["0", "1"]


def test_infrastructure_failures_are_played_again(tmp_path):
    store = RolloutStore(tmp_path)
    store.add(row("0", masked=True, stop="policy_endpoint_failed"))
    store.add(row("1"))
    again = RolloutStore(tmp_path, resume=True)
    assert again.finished == {("airline", "1", 0)}
    assert [r["task_id"] for r in again.rows()] == ["1"]


def test_a_full_disk_keeps_what_is_finished(tmp_path, monkeypatch):
    store = RolloutStore(tmp_path)
    store.add(row("0"))

    class Full:
        def __init__(self, file):
            self.file = file

        def write(self, data):
            self.file.write(data[:10])
            return 10

        def __getattr__(self, name):
            return getattr(self.file, name)

    store._file = Full(store._file)
    with pytest.raises(UserError, match="finished rows are kept, make room"):
        store.add(row("1"))
    lines = store.path.read_text().splitlines()
    assert [json.loads(line)["task_id"] for line in lines] == ["0"]


def test_text_that_is_no_unicode_is_stored(tmp_path):
    store = RolloutStore(tmp_path)
    store.add(row("0") | {"response": {"output": [{"content": "\ud800"}]}})
    assert next(iter(store.rows()))["response"]["output"][0]["content"] == "\ud800"


def test_a_line_that_is_no_row_is_named(tmp_path):
    (tmp_path / "rollouts.jsonl").write_text('{"a": 1}\n')
    with pytest.raises(UserError, match="line 1: not a rollout row"):
        RolloutStore(tmp_path, resume=True)


class TestSummary:
    def test_masked_rows_are_counted_and_take_no_part(self):
        rows = [row("0"), row("0", 1, 0.0), row("1", masked=True, reward=0.0, stop="world_failed")]
        total = summarise(rows)
        assert (total["episodes"], total["graded"], total["masked"]) == (3, 2, 1)
        assert total["reward_mean"] == 0.5 and total["pass^1"] == 0.5
        assert total["stop_reasons"] == {"user_stop": 2, "world_failed": 1}

    def test_nothing_graded_has_no_mean(self):
        total = summarise([row("0", masked=True)])
        assert total["reward_mean"] is None and total["pass^1"] is None
        assert summarise([])["episodes"] == 0

    def test_unequal_trials_weigh_tasks_equally(self):
        rows = [row("0", t, 1.0) for t in range(3)] + [row("1", 0, 0.0)]
        assert summarise(rows)["pass^1"] == 0.5
