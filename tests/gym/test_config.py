"""Configurations: complete, found, and absolute for NeMo Gym 0.4.0."""

import json
from pathlib import Path

import pytest
import yaml

from nemo_tau2.errors import UserError
from nemo_tau2.gym.config import (
    absolute_config,
    environment_names,
    find_config,
    instances,
    model_server,
)
from nemo_tau2.gym.examples import SPEC_MODES
from nemo_tau2.gym.launch import LaunchConfig, Scripted, Served, free_ports, gym_config
from nemo_tau2.gym_compat import GYM_ROOT


def test_the_root_has_no_packages():
    """NeMo Gym's own folders of the same names have none, so both distributions' folders are found."""
    assert list(GYM_ROOT.rglob("__init__.py")) == []


@pytest.mark.parametrize(
    "path", sorted(GYM_ROOT.glob("*/*/app.py")), ids=lambda path: path.parent.name
)
def test_every_component_can_be_started_from_its_folder(path):
    assert (path.parent / "requirements.txt").read_text(encoding="utf-8").split() == ["nemo-tau2"]
    # NeMo Gym takes a server two levels below a pyproject.toml for its own checkout.
    assert not (path.parent.parent.parent / "pyproject.toml").exists()


def test_the_environments():
    tau2 = ["tau2_airline", "tau2_all", "tau2_retail", "tau2_telecom"]
    assert environment_names() == sorted([*SPEC_MODES, *tau2, "workplace_sandbox"])


@pytest.mark.parametrize("name", environment_names())
class TestEnvironment:
    def test_its_parts(self, name):
        folder = GYM_ROOT / "environments" / name
        assert (folder / "README.md").is_file()
        config = absolute_config(find_config(name))
        for kind, implementation in instances(config).values():
            if implementation == "workplace_assistant":
                continue  # NeMo Gym's own, found by its name
            assert (
                Path(implementation).is_absolute() and (Path(implementation) / "app.py").is_file()
            )
            assert Path(implementation).parent.name == kind


OWN_ROWS = [name for name in environment_names() if name != "workplace_sandbox"]
"""Environments with rows of ours; the rows of workplace_sandbox are NeMo Gym's (test_tool_server.py)."""


@pytest.mark.parametrize("name", OWN_ROWS)
def test_five_examples_for_agents_it_has(name):
    config = absolute_config(find_config(name))
    (path,) = [
        dataset["jsonl_fpath"]
        for instance, (kind, implementation) in instances(config).items()
        for dataset in config[instance][kind][implementation].get("datasets", [])
    ]
    rows = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 5 and {row["agent_ref"]["name"] for row in rows} <= set(config)


def test_a_config_includes_others(tmp_path):
    (tmp_path / "mine.yaml").write_text("config_paths: [tau2_airline]\nmore: 1\n", encoding="utf-8")
    config = absolute_config(tmp_path / "mine.yaml")
    assert set(config) == {"tau2_airline", "tau2_airline_agent", "more"}


@pytest.mark.parametrize("text", ["a: [", "- 1", ""])
def test_a_file_that_is_no_config(tmp_path, text):
    (tmp_path / "odd.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"odd\.yaml is not"):
        absolute_config(tmp_path / "odd.yaml")


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(UserError, match=r"'tau3'.*tau2_airline, tau2_all"):
        find_config("tau3")


class TestLaunch:
    def config(self, tmp_path, **more) -> LaunchConfig:
        return LaunchConfig(environment="tau2_retail", policy=Scripted(), run_dir=tmp_path, **more)

    def test_every_server_listens_on_loopback_on_its_own_port(self, tmp_path):
        settings, ports = gym_config(self.config(tmp_path), "http://x/v1", tmp_path)
        assert set(ports) == {"tau2_retail", "tau2_retail_agent", "policy_model", "head_server"}
        assert len(set(ports.values())) == 4
        for name, (kind, implementation) in instances(settings).items():
            server = settings[name][kind][implementation]
            assert server["host"] == "127.0.0.1" and server["port"] == ports[name]

    def test_overrides_reach_a_server(self, tmp_path):
        key = str(GYM_ROOT / "responses_api_agents" / "dialogue_agent")
        agent = {"responses_api_agents": {"dialogue_agent": {"max_turns": 7}}}
        overrides = {"tau2_retail_agent": agent}
        settings, _ = gym_config(
            self.config(tmp_path, overrides=overrides), "http://x/v1", tmp_path
        )
        assert settings["tau2_retail_agent"]["responses_api_agents"][key]["max_turns"] == 7

    def test_keys_stay_out_of_the_configuration(self, tmp_path):
        config = LaunchConfig(
            environment="tau2_retail",
            policy=Served(url="http://h/v1", model="m", api_key="sk-secret"),
            user=Served(url="http://h/v1", model="m", api_key="sk-other"),
            run_dir=tmp_path,
        )
        settings, ports = gym_config(config, None, tmp_path)
        assert "user_model" in ports and "sk-" not in yaml.safe_dump(settings)

    def test_token_ids_are_asked_for_by_choice(self):
        for wanted in (True, False):
            body = model_server("policy_model", "u", "m", wanted)["policy_model"][
                "responses_api_models"
            ]["vllm_model"]
            assert body["return_token_id_information"] is wanted

    def test_ports_are_free_and_distinct(self):
        assert len(set(free_ports(20))) == 20

    def test_unknown_keys_are_refused(self, tmp_path):
        with pytest.raises(ValueError, match="enviroment"):
            LaunchConfig(enviroment="x", policy=Scripted(), run_dir=tmp_path)
