"""`nemo-tau2 rollout --rows`: rows of Agent Script environments, played in process."""

import json
from pathlib import Path

import pytest

from nemo_tau2.cli.main import main
from nemo_tau2.rollouts.spec_plan import SpecPlan, SpecSettings

MODES = ("flat", "routed", "sandbox", "pivot")


def run(*arguments):
    with pytest.raises(SystemExit) as raised:
        main([str(a) for a in arguments])
    return raised.value.code


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Four modes of one script in one file, as a mixture has them."""
    folder = tmp_path_factory.mktemp("rows")
    for mode in MODES:
        file = folder / f"{mode}.jsonl"
        assert run("spec", "rows", "bank_cards", "--mode", mode, "--scenarios", 4, "--output", file) in (
            0, None,
        )  # fmt: skip
    mixed = folder / "mixed.jsonl"
    mixed.write_text("".join((folder / f"{mode}.jsonl").read_text() for mode in MODES))
    return mixed


def rollout(rows, output, *more):
    return run("rollout", "--rows", rows, "--backend", "direct", "--output", output, *more)


def test_every_row_is_played_as_often_as_asked(rows, tmp_path):
    assert rollout(rows, tmp_path, "--group-size", 3, "--fault-rate", 0.5) == 0
    stored = read(tmp_path / "rollouts.jsonl")
    planned = read(rows)
    assert len(stored) == 3 * len(planned)
    keys = {(r["task_id"], r["trial"]) for r in stored}
    assert len(keys) == len(stored)
    assert {r["task_id"] for r in stored} == {r["verifier_metadata"]["task_id"] for r in planned}
    assert {0, 1, 2} == {r["trial"] for r in stored}


def test_a_policy_with_full_knowledge_is_rewarded_in_every_mode(rows, tmp_path):
    assert rollout(rows, tmp_path, "--fault-rate", 0) == 0
    for row in read(tmp_path / "rollouts.jsonl"):
        assert row["reward"] == 1.0, (row["task_id"], row["stop_reason"])


def test_the_same_seed_plays_the_same_faults(rows, tmp_path):
    for name in ("a", "b"):
        rollout(rows, tmp_path / name, "--fault-rate", 0.5, "--seed", 7)
    first, second = (read(tmp_path / name / "rollouts.jsonl") for name in ("a", "b"))
    tiers = {row["task_id"]: row["turn_tiers"] for row in first}
    assert tiers == {row["task_id"]: row["turn_tiers"] for row in second}


def test_rows_say_what_they_were_made_with(rows, tmp_path):
    rollout(rows, tmp_path)
    for row in read(tmp_path / "rollouts.jsonl"):
        provenance = row["provenance"]
        assert len(provenance["script_sha256"]) == 64
        assert set(provenance["helper_prompts"]) == {"customer", "emulator", "judge"}
        assert provenance["policy"] == "scripted"


def test_resume_plays_only_what_is_missing(rows, tmp_path):
    rollout(rows, tmp_path, "--limit", 2)
    before = (tmp_path / "rollouts.jsonl").read_text()
    assert rollout(rows, tmp_path, "--resume") == 0
    after = (tmp_path / "rollouts.jsonl").read_text()
    assert after.startswith(before)
    assert len(read(tmp_path / "rollouts.jsonl")) == len(read(rows))


def test_a_row_that_a_mixture_repeats_gets_further_trials(rows, tmp_path):
    one = rows.read_text().splitlines()[0]
    twice = tmp_path / "twice.jsonl"
    twice.write_text(f"{one}\n{one}\n")
    assert rollout(twice, tmp_path / "out", "--group-size", 2) == 0
    assert sorted(r["trial"] for r in read(tmp_path / "out" / "rollouts.jsonl")) == [0, 1, 2, 3]


def test_settings_reach_the_episodes(rows, tmp_path):
    settings = tmp_path / "settings.yaml"
    settings.write_text("options: {max_turns: 1}\nrewards: {error: -0.5}\n")
    assert rollout(rows, tmp_path / "out", "--settings", settings) == 0
    for row in read(tmp_path / "out" / "rollouts.jsonl"):
        assert row["num_turns"] <= 1
    assert row["provenance"]["settings"]["rewards"]["error"] == -0.5


def plan_of(rows, **changes):
    fields = {
        name: None for name in ("limit", "policy", "customer", "judge", "helper", "max_turns")
    }
    given = {
        "file": rows,
        "group_size": 1,
        "policy_token_ids": False,
        "backend": "gym",
        "concurrency": 1,
    }
    return SpecPlan(
        **fields | given | {"seed": 0, "fault_rate": 0.0, "settings": SpecSettings()} | changes
    )


def test_each_agent_of_the_rows_is_started_and_no_other(rows, tmp_path):
    plan = plan_of(rows, max_turns=9)
    planned, _ = plan.rows()
    text = Path(plan.environment(planned, tmp_path)).read_text()
    for name in ("support_flat", "service_routed", "tool_sandbox", "pivot_turn"):
        assert name in text
    assert plan.environment(planned[:1], tmp_path) == "support_flat"
    agent = plan.overrides(planned[:1])["support_flat_agent"]["responses_api_agents"]
    assert agent == {"dialogue_agent": {"max_turns": 9}}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--domain", "airline"], "exclude each other"),
        (["--task-id", "1"], "exclude each other"),
        (["--user-url", "http://x/v1", "--user-model", "m"], "scripted policy"),
        (["--helper-url", "http://x/v1"], "--helper-model"),
        (["--fault-rate", "2"], "between 0 and 1"),
        (["--settings", "absent.yaml"], "absent.yaml"),
    ],
)  # fmt: skip
def test_flags_that_cannot_be(rows, tmp_path, capsys, arguments, said):
    assert rollout(rows, tmp_path / "out", *arguments) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no row in it"),
        ("{\n", "line 1"),
        ("[" * 100_000 + "\n", "not a dataset row"),
        ('{"a": 1}\n', "not a dataset row"),
        ('{"agent_ref": {"name": "tau2_airline_agent"}, "verifier_metadata": {}, '
         '"responses_create_params": {"input": []}}\n', "--domain"),
        ('{"agent_ref": {"name": "support_flat_agent"}, "verifier_metadata": {"mood": 1}, '
         '"responses_create_params": {"input": []}}\n', "line 1"),
    ],
)  # fmt: skip
def test_files_that_are_no_rows(tmp_path, capsys, text, said):
    bad = tmp_path / "bad.jsonl"
    bad.write_text(text)
    assert rollout(bad, tmp_path / "out") == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


def test_two_rows_of_one_name_are_refused_since_they_would_be_one_group(rows, tmp_path, capsys):
    row = read(rows)[0]
    other = json.loads(json.dumps(row))
    other["verifier_metadata"]["seed"] += 1
    bad = tmp_path / "bad.jsonl"
    bad.write_text(json.dumps(row) + "\n" + json.dumps(other) + "\n")
    assert rollout(bad, tmp_path / "out") == 2
    assert "line 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rewards: {groundin_call: 1}", "did you mean 'grounding_call'?"),
        ("options: {focuss: change}", "did you mean 'focus'?"),
        ("tiers: {error: 1}", "tiers"),
    ],
)
def test_a_misspelt_setting_is_named_with_the_right_word(rows, tmp_path, capsys, text, said):
    settings = tmp_path / "settings.yaml"
    settings.write_text(text)
    assert rollout(rows, tmp_path / "out", "--settings", settings) == 2
    assert said in " ".join(capsys.readouterr().err.split())
