"""`bench spec`: what it measures, on a few episodes; no test asserts a time."""

import json

import pytest

from nemo_tau2.cli.main import main


@pytest.mark.parametrize("mode", ["flat", "routed", "sandbox", "pivot"])
def test_every_episode_it_times_is_a_whole_one(mode, capsys):
    with pytest.raises(SystemExit) as raised:
        main(["bench", "spec", "--mode", mode, "--episodes", "6", "--gym-episodes", "0", "--json"])
    assert raised.value.code in (0, None)
    measured = json.loads(capsys.readouterr().out)
    assert measured["reward_mean_in_process"] == 1.0
    assert measured["eps"] > 0 and measured["kib_per_live_episode"] > 0


def test_a_script_without_rows_is_one_line(tmp_path, capsys):
    with pytest.raises(SystemExit) as raised:
        main(["bench", "spec", "--script", str(tmp_path / "none.agent")])
    assert raised.value.code == 2
    assert "none.agent" in capsys.readouterr().err
