"""What a report keeps apart and what it takes together: modes, run folders, rewards that are no 0 or 1."""

import json

import pytest

from nemo_tau2.errors import UserError
from nemo_tau2.evaluation import load
from nemo_tau2.rollouts.summary import summarise
from tests.rollouts.test_spec_rollouts import read, rollout, rows  # noqa: F401
from tests.rollouts.test_spec_rollouts import run as verb


def row(task, reward, mode=None, domain="Desk", verdicts=None, coverage=0.0, trial=0, **fields):
    info = {"coverage": coverage, "verdicts": verdicts or {}}
    return {
        "domain": domain, "task_id": task, "trial": trial, "reward": reward, "mask_sample": False,
        "stop_reason": "user_stop", "turn_tiers": [], "call_tiers": [], "num_turns": 1,
        "reward_info": info, "verifier_metadata": {"mode": mode} if mode else {},
    } | fields  # fmt: skip


def store(folder, stored):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rollouts.jsonl").write_text("".join(json.dumps(one) + "\n" for one in stored))
    return folder


def test_modes_of_one_domain_are_reported_apart(tmp_path):
    stored = [row("a", 1.0, "flat"), row("b", 0.0, "pivot"), row("1", 1.0, domain="airline")]
    report = load([store(tmp_path, stored)]).as_dict()
    scores = {name: part["pass_k"]["1"]["value"] for name, part in report["domains"].items()}
    assert scores == {"Desk flat": 1.0, "Desk pivot": 0.0, "airline": 1.0}
    assert set(summarise(stored)["by_domain"]) == set(scores)


def test_a_share_of_the_reward_is_in_the_mean_and_no_success(tmp_path):
    answered = {"1": True, "2": False}
    stored = [
        row("a", 0.5, "flat", verdicts=answered, coverage=0.5),
        row("b", 1.0, "flat", verdicts={"1": True}, coverage=1.0),
        row("c", 1.0, "flat"),  # nothing was asked
    ]
    part = load([store(tmp_path, stored)]).as_dict()["domains"]["Desk flat"]
    assert part["pass_k"]["1"]["value"] == pytest.approx(2 / 3)
    assert part["reward_mean"] == pytest.approx(2.5 / 3)
    assert part["coverage_mean"] == 0.75


def test_a_masked_reward_is_in_no_mean(tmp_path):
    stored = [row("a", 1.0), row("b", 0.0, mask_sample=True, stop_reason="world_failed")]
    part = load([store(tmp_path, stored)]).as_dict()["domains"]["Desk"]
    assert (part["reward_mean"], part["coverage_mean"]) == (1.0, None)


@pytest.mark.parametrize("fields", [{"domain": {}}, {"domain": None}, {"task_id": []}])
def test_a_row_of_no_domain_or_task_is_refused(tmp_path, fields):
    with pytest.raises(UserError, match="line 1: not a rollout row"):
        load([store(tmp_path, [row("a", 1.0) | fields])])


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), "much", None])
def test_a_reward_that_is_no_number_is_refused(tmp_path, reward):
    with pytest.raises(UserError, match="task a, trial 0"):
        load([store(tmp_path, [row("a", reward)])])


def test_a_folder_of_run_folders_is_read_as_its_runs(tmp_path, capsys):
    for domain in ("airline", "retail"):
        store(tmp_path / domain, [row("1", 1.0, domain=domain)])
    assert set(load([tmp_path]).as_dict()["domains"]) == {"airline", "retail"}
    assert verb("report", tmp_path, "--html", tmp_path / "page.html") == 0
    with pytest.raises(UserError, match="given twice"):
        load([tmp_path, tmp_path / "retail"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no such file"):
        load([tmp_path / "empty"])


@pytest.mark.parametrize("torn", ["é".encode()[:1], b"\xff\xfe{", b"[" * 100_000, b"{", b"7"])
def test_a_torn_or_foreign_line_is_named(tmp_path, torn):
    file = store(tmp_path, [row("a", 1.0)]) / "rollouts.jsonl"
    file.write_bytes(file.read_bytes() + torn)
    with pytest.raises(UserError, match="line 2: not a rollout row"):
        load([tmp_path])


def test_a_comparison_says_what_was_not_graded(tmp_path, capsys):
    lost = row("b", 0.0, mask_sample=True, stop_reason="world_failed")
    a = store(tmp_path / "a", [row("a", 1.0), lost])
    b = store(tmp_path / "b", [row("a", 1.0), row("b", 1.0)])
    verb("compare", a, b, "--json")
    (warning,) = json.loads(capsys.readouterr().out)["warnings"]
    assert warning.startswith("A: Desk: 1 of 2 planned trials were not graded")
    verb("compare", a, b)
    assert "warning: A: Desk" in capsys.readouterr().out


def test_a_domain_that_was_planned_and_never_reached_is_counted(tmp_path, capsys):
    store(tmp_path / "airline", [row("1", 1.0, domain="airline")])
    (tmp_path / "retail").mkdir()
    (tmp_path / "retail" / "planned.json").write_text('{"retail": {"1": 1, "2": 1}}')
    report = load([tmp_path]).as_dict()
    assert report["domains"]["retail"]["denominators"]["planned"] == 2
    overall = report["overall"]
    assert overall["denominators"] == {
        "planned": 3, "finished": 1, "infrastructure_failed": 0, "graded": 1,
        "tasks_planned": 3, "tasks_graded": 1,
    }  # fmt: skip
    weighted, macro = overall["pass_k"]["1"], overall["macro"]["1"]
    assert (weighted["worst"], weighted["best"]) == (pytest.approx(1 / 3), 1.0)
    assert (macro["worst"], macro["best"]) == (0.5, 1.0)
    assert any("retail: 2 of 2 planned trials were not graded" in w for w in report["warnings"])
    assert verb("report", tmp_path, "--html", tmp_path / "page.html") == 0
    assert "[0.0, 100.0]" in capsys.readouterr().out
    with pytest.raises(UserError, match="no such file"):
        load([tmp_path / "retail" / "typo.jsonl"])


def test_names_from_rows_are_no_markup_of_the_terminal(tmp_path, capsys):
    stored = [row("[/b]", 0.0, domain="[/red]x[", stop_reason="[/i]", trial=n) for n in range(20)]
    side = store(tmp_path / "a", stored)
    other = store(tmp_path / "b", [one | {"reward": 1.0} for one in stored])
    assert verb("report", side) == 0
    assert verb("compare", side, other) in (0, None)
    assert "[/red]x[ [/b]" in capsys.readouterr().out


def test_rows_of_agent_script_environments_are_reported_by_mode(rows, tmp_path, capsys):  # noqa: F811
    assert rollout(rows, tmp_path, "--group-size", 2, "--fault-rate", 0.5) == 0
    report = load([tmp_path]).as_dict()
    stored = read(tmp_path / "rollouts.jsonl")
    modes = {f"Bank_Cards {r['verifier_metadata']['mode']}" for r in stored}
    assert set(report["domains"]) == modes and len(modes) == 4
    for name, part in report["domains"].items():
        counts = part["denominators"]
        assert counts["planned"] == counts["finished"] == counts["graded"]
        asked = name.endswith(("flat", "routed"))
        assert (part["coverage_mean"] is not None) == asked
    assert verb("report", tmp_path) == 0
    assert "coverage" in capsys.readouterr().out
