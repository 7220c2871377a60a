"""Where NeMo RL versions differ: one function per difference, with its source and when it can go.

Tested: main 7ea279abf (2026-08-22) and v0.7.0, plus stand-ins for later signatures.
"""

import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from nemo_tau2.errors import UserError
from nemo_tau2.nemo_rl.config import read

GRPO = "nemo_rl.algorithms.grpo"
GYM = "nemo_rl.environments.nemo_gym"
ROLLOUTS = "nemo_rl.experience.rollouts"
LOGGER = "nemo_rl.utils.logger"
SINGLE_CONTROLLER = "nemo_rl.algorithms.single_controller"
SC_SETUP = "nemo_rl.algorithms.single_controller_utils.setup"


def nemo_rl_root() -> Path:
    """The checkout that holds the imported `nemo_rl`; raises `UserError` where there is none."""
    spec = importlib.util.find_spec("nemo_rl")
    if spec is None or not spec.origin:
        raise UserError(
            "NeMo RL is not importable: run inside its container or name a checkout with --nemo-rl DIR"
        )
    return Path(spec.origin).resolve().parent.parent


def module(name: str) -> ModuleType:
    """Imports a module of NeMo RL; raises `UserError` where that fails."""
    nemo_rl_root()
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UserError(f"NeMo RL cannot be imported here ({name}): {error}") from error


def loaded(name: str) -> ModuleType | None:
    """A module that is already imported, or None."""
    return sys.modules.get(name)


def nemo_rl_modules() -> list[ModuleType]:
    """Every module of NeMo RL that is imported now."""
    return [m for name, m in list(sys.modules.items()) if name.partition(".")[0] == "nemo_rl" and m]


def factory_bindings() -> list[tuple[ModuleType, str]]:
    """Every loaded module that holds the estimator factory under its own name.

    `grpo` defines it; `grpo_sync` and SingleController's setup copy it on import. Newer setups import
    it inside a function, so that binding is optional.
    """
    names = (GRPO, "nemo_rl.algorithms.grpo_sync", SC_SETUP)
    modules = [module(GRPO), *(loaded(name) for name in names[1:])]
    return [(m, FACTORY) for m in modules if m is not None and hasattr(m, FACTORY)]


FACTORY = "_create_advantage_estimator"


def actor_bindings() -> list[tuple[ModuleType, str]]:
    """Every module that names the NemoGym actor class.

    main's spinup reads it from `environments.nemo_gym` (later versions, too, under the name
    `build_nemo_gym_actors`); v0.7.0 also from `grpo`. The second goes with v0.7.0.
    """
    modules = [module(GYM), module(GRPO)]
    return [(m, "NemoGym") for m in modules if hasattr(m, "NemoGym")]


def advantage_result(advantages: Any, metrics: Mapping[str, float]) -> Any:
    """A bare tensor, or the `AdvantageResult` of NeMo RL PR #3512 where it exists."""
    estimators = loaded("nemo_rl.algorithms.advantage_estimator")
    result = getattr(estimators, "AdvantageResult", None)
    if result is None:
        return advantages
    return result(advantages=advantages, returns=None, metrics=dict(metrics))


def advantages_of(result: Any) -> Any:
    """The tensor of either return type (see `advantage_result`)."""
    return getattr(result, "advantages", result)


def data_plane_enabled(master_config: Any) -> bool:
    """Whether message logs are replaced by NeMo RL's data plane. v0.7.0 may lack the section."""
    return bool(read(read(master_config, "data_plane") or {}, "enabled", False))


def advantage_workers(master_config: Any) -> int:
    """`async_rl.num_advantage_workers` of later SingleControllers, which shard batches; 0 elsewhere."""
    return int(read(read(master_config, "async_rl") or {}, "num_advantage_workers", 0) or 0)


def is_single_controller(master_config: Any) -> bool:
    """SingleController's MasterConfig is the one with an `async_rl` section; v0.7.0 has none."""
    return read(master_config, "async_rl") is not None


def master_config_class(fields: Mapping[str, Any]) -> Any:
    """The MasterConfig a recipe is for: SingleController has its own, with `async_rl`."""
    name = (
        "nemo_rl.algorithms.single_controller_utils.config"
        if is_single_controller(fields)
        else GRPO
    )
    return module(name).MasterConfig


def gym_predicate() -> Callable[[Any], bool]:
    """`should_use_nemo_gym`: public in `environments.nemo_gym` on main, private in `grpo` in v0.7.0."""
    public = getattr(module(GYM), "should_use_nemo_gym", None)
    return public or module(GRPO)._should_use_nemo_gym


def rollout_function() -> str:
    """What `grpo` calls for a Gym rollout batch: main's name exists where the other became a generator.

    Goes with v0.7.0.
    """
    main = "run_nemo_gym_rollout_sync"
    return main if hasattr(module(ROLLOUTS), main) else "run_async_nemo_gym_rollout"


def validation_percentiles() -> dict[str, tuple[str, ...]]:
    """Summarised rollout metrics of main that also have percentiles; v0.7.0 has neither, nor `pass_k`.

    Goes with v0.7.0.
    """
    if rollout_function() != "run_nemo_gym_rollout_sync":
        return {}
    return {"turns_per_sample": ("p95", "p99"), "max_gen_tokens_per_turn": ("p95",)}


def numbers_for_mlflow(original: Callable[..., None]) -> Callable[..., None]:
    """`MLflowLogger.log_metrics` on what MLflow takes: numbers, in mappings and lists too.

    NeMo RL hands every backend the histograms and tables it makes of Gym rollouts, and MLflow raises a
    TypeError (v0.7.0 and main). Goes when both supported versions log histograms apart from numbers
    (NVIDIA-NeMo/RL PR #3748).
    """

    @functools.wraps(original)
    def log_metrics(self: Any, metrics: Mapping[str, Any], *args: Any, **kwargs: Any) -> None:
        return original(self, _numbers(metrics), *args, **kwargs)

    return log_metrics


def _numbers(metrics: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: _number(value) for key, value in metrics.items()}
    return {key: value for key, value in found.items() if value is not None}


def _number(value: Any) -> Any:
    """A float for a scalar or an array of one element; lists stay (NeMo RL summarises them); else None."""
    if isinstance(value, Mapping):
        return _numbers(value)
    if isinstance(value, list):
        return value
    if getattr(value, "size", None) == 1 or getattr(value, "numel", lambda: 0)() == 1:
        value = value.item()
    return float(value) if isinstance(value, int | float) else None
