"""`nemo-tau2 calibrate` from a file to tables, YAML and a picture."""

import json

import pytest
import yaml

from nemo_tau2.calibration.generated import generated_rows
from nemo_tau2.cli.main import main
from nemo_tau2.credit import TIERS
from nemo_tau2.credit.diagnostics import TAU2_TIERS


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("rollouts") / "rollouts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in generated_rows(groups=30)))
    return path


def run(capsys, *tokens):
    with pytest.raises(SystemExit) as stop:
        main(["calibrate", *map(str, tokens)])
    return stop.value.code, capsys.readouterr()


def test_tables(stored, capsys):
    code, out = run(capsys, stored)
    assert code == 0
    for title in ("Discriminative power", "Mean advantage", "Estimators", "Gradient allocation"):
        assert title in out.out


def test_json_has_every_table(stored, capsys):
    code, out = run(capsys, stored, "--json", "--estimator", "mt_grpo", "--mode", "immediate")
    got = json.loads(out.out)
    assert code == 0
    assert (got["rollouts"], got["groups"], got["masked"]) == (480, 30, 0)
    assert {p["tier"] for p in got["power"]} == set(TIERS)
    for credit in (*got["stored"].values(), *got["proposed"].values()):
        shares = credit["allocation"]
        assert shares["useful"] + shares["noisy"] + shares["other"] == pytest.approx(1)


def test_write_and_plot(stored, capsys, tmp_path):
    rewards, picture = tmp_path / "rewards.yaml", tmp_path / "p.png"
    pytest.importorskip("matplotlib")
    code, _ = run(capsys, stored, "--write", rewards, "--plot", picture)
    assert code == 0
    assert set(yaml.safe_load(rewards.read_text())["tiers"]) == set(TAU2_TIERS)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["p.png", "rewards.yaml"]


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--write", "/nowhere/at/all/r.yaml"], "there is no folder /nowhere/at/all"),
        (["--gamma", "2"], "gamma is 2.0: it must be a number from 0 to 1"),
        (["--plot", "picture.xyz"], "--plot picture.xyz"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(stored, capsys, tmp_path, monkeypatch, extra, message):
    monkeypatch.chdir(tmp_path)
    code, out = run(capsys, stored, *extra)
    assert code == 2
    assert message in out.err


def test_a_missing_file_is_one_line_and_exit_2(capsys, tmp_path):
    code, out = run(capsys, tmp_path / "none.jsonl")
    assert code == 2
    assert "none.jsonl: No such file or directory: give a rollouts.jsonl" in out.err
