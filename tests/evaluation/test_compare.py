"""Comparisons paired by task, by hand numbers, and several runs a side."""

import json

import pytest

from nemo_tau2.cli.main import main
from nemo_tau2.evaluation import load
from nemo_tau2.evaluation.compare import compare, over_runs, permutation_p


def store(folder, wins):
    """Rows with {task: [reward of each trial]}."""
    folder.mkdir()
    rows = [
        {
            "domain": "airline", "task_id": task, "trial": trial, "reward": float(reward),
            "mask_sample": False, "stop_reason": "user_stop", "turn_tiers": [], "call_tiers": [],
            "num_turns": 1,
        }
        for task, rewards in wins.items()
        for trial, reward in enumerate(rewards)
    ]  # fmt: skip
    (folder / "rollouts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture
def sides(tmp_path):
    a = store(tmp_path / "a", {"0": [1, 0], "1": [0, 0], "2": [1, 1], "3": [0, 1]})
    b = store(tmp_path / "b", {"0": [1, 1], "1": [0, 0], "2": [1, 0], "3": [1, 1], "9": [1, 1]})
    return a, b


def test_the_difference_is_over_shared_tasks(sides):
    found = compare(*(load([side]) for side in sides))
    assert (found["a"], found["b"], found["difference"]) == (0.5, 0.625, 0.125)
    assert (found["won"], found["lost"], found["tied"], found["unpaired"]) == (2, 1, 1, 1)
    assert {task["task_id"] for task in found["moved_most"]} == {"0", "2", "3"}
    assert found["low"] <= 0.125 <= found["high"]


def test_pass_2_by_hand(sides):
    found = compare(*(load([side]) for side in sides), k=2)
    assert (found["a"], found["b"]) == (0.25, 0.5)


@pytest.mark.parametrize(
    "moves, p",
    [([0.0, 0.0], 1.0), ([1.0], 1.0), ([1.0, 1.0], 0.5), ([1.0] * 4, 0.125), ([1.0, -1.0], 1.0)],
)
def test_the_permutation_p_value_is_the_exact_one(moves, p):
    """Exact sign-flip p: the share of the 2^n sign patterns whose sum is as extreme."""
    assert permutation_p(moves) == pytest.approx(p, abs=0.02)


def test_several_runs_a_side(tmp_path):
    left = [load([store(tmp_path / f"a{i}", {"0": [i, 0], "1": [1, 0]})]) for i in (0, 1)]
    right = [load([store(tmp_path / f"b{i}", {"0": [1, 1], "1": [1, i]})]) for i in (0, 1)]
    one = over_runs(left, right)["domains"]["airline"]
    assert (one["mean_a"], one["mean_b"], one["difference"]) == (37.5, 87.5, 50.0)
    assert one["sd_a"] == pytest.approx(17.678, abs=1e-3)
    with pytest.raises(ValueError, match="at least two runs"):
        over_runs(left[:1], right)


def run(*arguments):
    with pytest.raises(SystemExit) as raised:
        main([str(argument) for argument in arguments])
    return raised.value.code


def test_the_verb_prints_a_table_or_json(sides, capsys):
    assert run("compare", *sides) == 0
    assert "difference +12.5 points" in capsys.readouterr().out.replace("\n", " ")
    assert run("compare", *sides, "--json") == 0
    assert json.loads(capsys.readouterr().out)["won"] == 2


def test_the_verb_takes_several_runs_a_side(tmp_path, capsys):
    a = [store(tmp_path / f"a{i}", {"0": [i, 0], "1": [1, 0]}) for i in (0, 1)]
    b = [store(tmp_path / f"b{i}", {"0": [1, 1], "1": [1, i]}) for i in (0, 1)]
    assert run("compare", *a, "--against", *b, "--json") == 0
    assert (
        json.loads(capsys.readouterr().out)["over_runs"]["domains"]["airline"]["difference"] == 50.0
    )


def test_the_table_over_runs_fits_a_terminal_and_has_its_guide(tmp_path, capsys):
    a = [store(tmp_path / f"a{i}", {"0": [i, 0], "1": [1, 0]}) for i in (0, 1)]
    b = [store(tmp_path / f"b{i}", {"0": [1, 1], "1": [1, i]}) for i in (0, 1)]
    assert run("compare", *a, "--against", *b) == 0
    shown = capsys.readouterr().out
    assert "37.5 ± 17.7" in shown and "above 2 high" in shown and "…" not in shown
    assert "warning" not in shown


def test_one_run_is_refused_in_one_line(sides, capsys):
    assert run("compare", sides[0]) == 2
    assert "give two runs" in capsys.readouterr().err
