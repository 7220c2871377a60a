"""Installing, refusing and undoing, on NeMo RL itself."""

import importlib
import importlib.util
import sys
from types import SimpleNamespace

import pytest

from nemo_tau2.errors import UserError

pytestmark = pytest.mark.nemo_rl


def names(root):
    """Every attribute the hooks may touch, with its present value."""
    from nemo_rl.algorithms import grpo
    from nemo_rl.environments import nemo_gym
    from nemo_rl.utils import logger

    from nemo_tau2.nemo_rl import compat

    modules = [
        grpo,
        nemo_gym,
        logger.MLflowLogger,
        *(sys.modules.get(f"nemo_rl.algorithms.{m}") for m in ("grpo_sync",)),
    ]
    return {
        (m.__name__, n): getattr(m, n)
        for m in modules
        if m is not None
        for n in (
            "_create_advantage_estimator",
            "NemoGym",
            "dynamic_sampling",
            "_log_mixed_rewards_and_advantages_information",
            compat.rollout_function(),
            "log_metrics",
        )
        if hasattr(m, n)
    }


def test_uninstall_restores_every_name(nemo_rl_root, recwarn):
    import nemo_rl.algorithms.grpo_sync  # noqa: F401  binds the factory at import

    from nemo_tau2.nemo_rl import compat, install, uninstall

    before = names(nemo_rl_root)
    install()
    install()
    during = names(nemo_rl_root)
    replaced = {key for key in before if before[key] is not during[key]}
    assert {name for _, name in replaced} == {
        "_create_advantage_estimator",
        "NemoGym",
        "dynamic_sampling",
        "_log_mixed_rewards_and_advantages_information",
        compat.rollout_function(),
        "log_metrics",
    }
    assert ("nemo_rl.algorithms.grpo_sync", "_create_advantage_estimator") in replaced
    uninstall()
    uninstall()
    assert names(nemo_rl_root) == before
    assert not [w for w in recwarn if "replaced again" in str(w.message)]


def test_a_module_that_copied_a_hook_on_import_is_restored_too(nemo_rl_root):
    from nemo_rl.algorithms import grpo

    from nemo_tau2.nemo_rl import install, uninstall

    sys.modules.pop("nemo_rl.algorithms.grpo_sync", None)
    install()
    late = importlib.import_module("nemo_rl.algorithms.grpo_sync")
    assert late._create_advantage_estimator is grpo._create_advantage_estimator
    install()
    uninstall()
    assert late._create_advantage_estimator.__module__ == "nemo_rl.algorithms.grpo"
    assert late._create_advantage_estimator is grpo._create_advantage_estimator
    assert not hasattr(late._create_advantage_estimator, "__wrapped__")


def test_a_name_that_another_plugin_replaced_is_left_alone(nemo_rl_root, monkeypatch):
    from nemo_rl.algorithms import grpo
    from nemo_rl.environments import nemo_gym

    from nemo_tau2.nemo_rl import install

    original = nemo_gym.NemoGym
    monkeypatch.setattr(grpo, "dynamic_sampling", lambda *a, **k: None)
    with pytest.raises(UserError, match=r"dynamic_sampling is not NeMo RL's own"):
        install()
    assert nemo_gym.NemoGym is original


def test_an_mlflow_logger_that_another_plugin_replaced_is_left_alone(nemo_rl_root, monkeypatch):
    from nemo_rl.environments import nemo_gym
    from nemo_rl.utils.logger import MLflowLogger

    from nemo_tau2.nemo_rl import install

    original = nemo_gym.NemoGym
    monkeypatch.setattr(MLflowLogger, "log_metrics", lambda *a, **k: None)
    with pytest.raises(UserError, match=r"MLflowLogger.log_metrics is not NeMo RL's own"):
        install()
    assert nemo_gym.NemoGym is original


def config(**keys):
    estimator = {"adv_estimator": {"name": "gtpo"}}
    return SimpleNamespace(**({"grpo": estimator, "loss_fn": None, "nemo_tau2": {}} | keys))


def test_the_data_plane_is_refused_before_training_starts(hooks):
    from nemo_rl.algorithms import grpo

    with pytest.raises(
        UserError, match=r"data_plane.enabled: true .* set data_plane.enabled: false"
    ):
        grpo._create_advantage_estimator(config(data_plane={"enabled": True}))


def test_single_controller_is_refused_unless_opened(hooks):
    from nemo_rl.algorithms import grpo

    with pytest.raises(UserError, match=r"SingleController .*nemo_tau2.single_controller"):
        grpo._create_advantage_estimator(config(data_plane={"enabled": True}, async_rl={}))


def test_a_batch_without_message_logs_is_refused(hooks):
    """The data plane's estimator call, should a loop get that far."""
    import torch
    from nemo_rl.algorithms import grpo

    estimator = grpo._create_advantage_estimator(config())
    with pytest.raises(UserError, match="no message logs"):
        estimator.compute_advantage(
            prompt_ids=torch.zeros(2, 1),
            rewards=torch.ones(2),
            mask=torch.ones(2, 3),
            repeated_batch={"total_reward": torch.ones(2)},
        )


def test_unknown_estimator_keys_are_refused_with_the_known_ones(hooks):
    from nemo_rl.algorithms import grpo

    block = {"adv_estimator": {"name": "gtpo", "gama": 0.9}}
    with pytest.raises(UserError, match=r"gama.*gamma, lambda, norm"):
        grpo._create_advantage_estimator(config(grpo=block))


def test_the_entry_point_is_nemo_rls_own_and_takes_our_recipes(
    hooks, nemo_rl_root, tmp_path, monkeypatch
):
    """Its main() runs up to Ray; the config it prints has our estimator stashed."""
    from nemo_tau2.nemo_rl import launch
    from nemo_tau2.nemo_rl.recipes import FOLDER

    data = tmp_path / "rows.jsonl"
    data.write_text(
        '{"responses_create_params": {"input": []}, "agent_ref": {"name": "tau2_airline_agent"}}\n'
    )
    recipe = FOLDER / "smoke_qwen3_0.6b.yaml"
    overrides = [f"data.{split}.data_path={data}" for split in ("train", "validation")]
    overrides.append(f"logger.log_dir={tmp_path}/logs")

    class Reached(Exception):
        pass

    seen = {}
    load = launch.load_entry

    def load_entry(root, fields):
        module = load(root, fields)
        make = module.MasterConfig

        def keep(**given):
            seen["config"] = make(**given)
            raise Reached

        module.MasterConfig = keep
        return module

    monkeypatch.setattr(launch, "load_entry", load_entry)
    with pytest.raises(Reached):
        launch.run(recipe, overrides)
    config = seen["config"]
    from nemo_tau2.nemo_rl.config import estimator_of, read

    assert read(read(config.grpo, "adv_estimator"), "name") == "grpo"
    assert estimator_of(config).name == "gtpo_hybrid"
    implementation = next(iter(config.env["nemo_gym"]["tau2_airline"]["resources_servers"]))
    assert implementation.endswith("gym_root/resources_servers/tau2_bench")


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
def test_the_package_travels_by_value_only_while_installed(nemo_rl_root):
    from ray import cloudpickle

    from nemo_tau2.nemo_rl import install, uninstall

    install()
    assert "nemo_tau2" in cloudpickle.list_registry_pickle_by_value()
    uninstall()
    assert "nemo_tau2" not in cloudpickle.list_registry_pickle_by_value()
