"""Launching without NeMo RL: what is refused, what the workers are given."""

import sys

import pytest

from nemo_tau2.cli.main import main
from nemo_tau2.errors import UserError
from nemo_tau2.gym_compat import GYM_ROOT
from nemo_tau2.nemo_rl import launch


def test_a_folder_that_is_no_checkout_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"no NeMo RL checkout"):
        launch.locate(tmp_path)


def test_without_nemo_rl_the_command_says_where_to_get_it(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(launch.compat.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit) as exited:
        main(["train", "--check", "--config", str(tmp_path / "r.yaml")])
    assert exited.value.code == 2
    assert (
        "NeMo RL is not importable: run inside its container or name a checkout"
        in capsys.readouterr().err
    )


def test_workers_import_the_package_from_a_folder_with_nothing_else(tmp_path, monkeypatch):
    """A site-packages on the workers' path would replace their torch."""
    package = tmp_path / "site-packages" / "nemo_tau2"
    package.mkdir(parents=True)
    monkeypatch.setattr(launch, "PACKAGE", package)
    monkeypatch.setattr(launch.tempfile, "gettempdir", lambda: str(tmp_path))
    for _ in range(2):
        folder = launch._import_folder()
        assert [p.name for p in folder.iterdir()] == ["nemo_tau2"]
        assert (folder / "nemo_tau2").resolve() == package


def test_our_environments_are_inlined_with_the_recipes_overrides():
    config = str(GYM_ROOT / "environments" / "tau2_airline" / "config.yaml")
    over = {"tau2_airline": {"resources_servers": {"tau2_bench": {"rewards": "naive"}}}}
    gym = launch.inline_gym_configs(
        {"config_paths": ["of/gym.yaml", config], "port_range_low": 5, **over}
    )
    assert gym["config_paths"] == ["of/gym.yaml"] and gym["port_range_low"] == 5
    ((key, body),) = gym["tau2_airline"]["resources_servers"].items()
    assert key == str(GYM_ROOT / "resources_servers" / "tau2_bench")
    assert body["rewards"] == "naive" and body["entrypoint"] == "app.py"


def test_secrets_stay_interpolations():
    gym = launch.inline_gym_configs({"config_paths": [], "m": {"api_key": "${oc.env:NO_SUCH_KEY}"}})
    assert gym["m"]["api_key"] == "${oc.env:NO_SUCH_KEY}"


def test_importing_the_adapters_imports_neither_nemo_rl_nor_torch():
    import subprocess

    code = (
        "import sys, nemo_tau2.nemo_rl, nemo_tau2.nemo_rl.hooks, nemo_tau2.nemo_rl.check;"
        "bad = {'torch', 'ray', 'nemo_rl', 'nemo_gym'} & set(sys.modules); assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
