"""The hooks: which names of NeMo RL are replaced, by what, and how they come back.

    grpo._create_advantage_estimator   (+ its copies in grpo_sync, single_controller_utils.setup)
    environments.nemo_gym.NemoGym      (+ grpo.NemoGym in v0.7.0)
    grpo.dynamic_sampling              whole groups by their variance, never row by row
    grpo._log_mixed_rewards_and_advantages_information   logs last_metrics in the sync loop; async does
    grpo.run_nemo_gym_rollout_sync     (v0.7.0: run_async_nemo_gym_rollout) means over graded rollouts
    utils.logger.MLflowLogger.log_metrics   numbers only; MLflow takes nothing else
    single_controller.AdvantageConfig, replay_buffer.record_to_train_batch   see columns.py

Each is replaced by name, which is how NeMo RL's own tests patch them, and only after asserting that
the attribute is still NeMo RL's.
"""

import functools
import inspect
import warnings
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from nemo_tau2.errors import UserError
from nemo_tau2.nemo_rl import actor, compat, validation
from nemo_tau2.nemo_rl.config import estimator_of, read, section_of


@dataclass
class Hooks:
    """One installation in this process."""

    replaced: list[tuple[ModuleType | type, str, Any, Any]] = field(default_factory=list)
    """(module or class, name, original, replacement), in order."""
    estimator: Any = None
    """The estimator the loop created last; the sync loop's metrics are read from it."""

    def replace(
        self, module: ModuleType | type, name: str, original: Any, replacement: Any
    ) -> None:
        """Sets `module.name`, which must be `original`."""
        if getattr(module, name) is not original:
            raise UserError(
                f"{module.__name__}.{name} is not NeMo RL's own any more (found "
                f"{getattr(module, name)!r}): another plugin replaced it; install only one of them"
            )
        setattr(module, name, replacement)
        self.replaced.append((module, name, original, replacement))

    def restore(self) -> None:
        """Puts back every original, the last replaced first, also where a module copied ours on import."""
        while self.replaced:
            module, name, original, replacement = self.replaced.pop()
            if getattr(module, name) is original:
                continue  # put back with another module that held the same name
            if getattr(module, name) is not replacement:
                warnings.warn(
                    f"{module.__name__}.{name} was replaced again; left as it is", stacklevel=3
                )
                continue
            for holder in [module, *compat.nemo_rl_modules()]:
                if vars(holder).get(name) is replacement:
                    setattr(holder, name, original)


_installed: Hooks | None = None


def install() -> Hooks:
    """Installs every hook once; raises `UserError` and leaves nothing replaced where one does not fit."""
    global _installed
    if _installed is not None:
        _catch_up(_installed)
        return _installed
    hooks = Hooks()
    try:
        _replace_factory(hooks)
        _replace_actor(hooks)
        _replace_in_grpo(hooks, "dynamic_sampling", filter_by_group)
        _replace_in_grpo(
            hooks, "_log_mixed_rewards_and_advantages_information", hooks_logging(hooks)
        )
        _replace_rollout(hooks)
        _replace_mlflow(hooks)
        _ship_by_value()
    except BaseException:
        hooks.restore()
        raise
    _installed = hooks
    return hooks


def uninstall() -> None:
    """Undoes `install`."""
    global _installed
    if _installed is None:
        return
    _installed.restore()
    _installed = None
    _ship_by_value(undo=True)


def install_columns() -> None:
    """Adds the data-plane columns of columns.py to this process's installation, once."""
    from nemo_tau2.nemo_rl import columns

    hooks = install()
    done = {(module, name) for module, name, *_ in hooks.replaced}
    for module, name, original, replacement in columns.replacements():
        if (module, name) not in done:
            hooks.replace(module, name, original, replacement)


def _own(module: ModuleType, name: str) -> Any:
    """The function `module.name`, which must have been defined in `module`."""
    function = getattr(module, name)
    if getattr(function, "__module__", None) != module.__name__ or function.__name__ != name:
        raise UserError(
            f"{module.__name__}.{name} is not NeMo RL's own (found {function!r}): another plugin "
            "replaced it; install only one of them"
        )
    return function


def _replace_factory(hooks: Hooks) -> None:
    original = _own(compat.module(compat.GRPO), compat.FACTORY)

    @functools.wraps(original)
    def create(master_config: Any) -> Any:
        hooks.estimator = create_estimator(original, master_config)
        return hooks.estimator

    for module, name in compat.factory_bindings():
        hooks.replace(module, name, original, create)


def _catch_up(hooks: Hooks) -> None:
    """A module imported since `install` copied our factory, not the original: nothing to do but assert."""
    factory = hooks.replaced[0][3]
    for module, name in compat.factory_bindings():
        if getattr(module, name) is not factory:
            raise UserError(
                f"{module.__name__}.{name} escaped the hooks: uninstall() and install() again"
            )


def _replace_actor(hooks: Hooks) -> None:
    bindings = compat.actor_bindings()
    original = getattr(*bindings[0])
    metadata = getattr(original, "__ray_metadata__", None)
    if metadata is None or metadata.modified_class.__module__ != compat.GYM:
        raise UserError(
            f"{compat.GYM}.NemoGym is not NeMo RL's own actor (found {original!r}): another plugin "
            "replaced it; install only one of them"
        )
    replacement = actor.subclass(original)
    for module, name in bindings:
        hooks.replace(module, name, original, replacement)


def _replace_in_grpo(hooks: Hooks, name: str, wrap: Any) -> None:
    grpo = compat.module(compat.GRPO)
    original = _own(grpo, name)
    hooks.replace(grpo, name, original, functools.wraps(original)(wrap(original)))


def _replace_rollout(hooks: Hooks) -> None:
    name = compat.rollout_function()
    original = _own(compat.module(compat.ROLLOUTS), name)
    hooks.replace(
        compat.module(compat.GRPO), name, original, validation.adding_graded_metrics(original)
    )


def _replace_mlflow(hooks: Hooks) -> None:
    logger = compat.module(compat.LOGGER).MLflowLogger
    original = logger.log_metrics
    if original.__module__ != compat.LOGGER or original.__qualname__ != "MLflowLogger.log_metrics":
        raise UserError(
            f"MLflowLogger.log_metrics is not NeMo RL's own (found {original!r}): another plugin "
            "replaced it; install only one of them"
        )
    hooks.replace(logger, "log_metrics", original, compat.numbers_for_mlflow(original))


def _ship_by_value(undo: bool = False) -> None:
    """Sends this package's functions to Ray actors inside the pickle.

    The actor's virtual environment does not have the package. launch.py puts it on PYTHONPATH too,
    which serves the Gym servers; either alone suffices for the actor.
    """
    import ray

    import nemo_tau2

    change = (
        ray.cloudpickle.unregister_pickle_by_value
        if undo
        else ray.cloudpickle.register_pickle_by_value
    )
    change(nemo_tau2)


def create_estimator(original: Any, master_config: Any) -> Any:
    """The estimator of a recipe, wrapped; refuses the loops it cannot serve.

    Raises `UserError` where `refuse` does or the estimator block is wrong.
    """
    from nemo_tau2.nemo_rl.estimators import Filtered, TurnCredit

    refuse(master_config)
    estimator = estimator_of(master_config)
    warn_of_weak_clip(read(master_config, "grpo"))
    print(f"  ✓ Using {estimator.describe()}")
    if estimator.ours:
        columns = compat.is_single_controller(master_config)
        if columns:
            install_columns()
        return TurnCredit(estimator, columns)
    return Filtered(original(master_config), estimator)


def refuse(master_config: Any) -> None:
    """Raises `UserError` for loops in which no message log reaches the estimator."""
    experimental = section_of(master_config).single_controller == "experimental"
    single_controller = compat.is_single_controller(master_config)
    if single_controller and not experimental:
        raise UserError(
            "SingleController gives estimators no message logs: train with the sync or async GRPO loop, "
            "or set nemo_tau2.single_controller: experimental"
        )
    if single_controller and not estimator_of(master_config).ours:
        raise UserError(
            "SingleController: only nemo-tau2's own estimators work on data-plane columns"
        )
    if compat.data_plane_enabled(master_config) and not single_controller:
        raise UserError(
            "data_plane.enabled: true gives estimators no message logs, so turns cannot be told apart: "
            "set data_plane.enabled: false"
        )
    if compat.advantage_workers(master_config) and not estimator_of(master_config).group_local:
        raise UserError(
            f"{estimator_of(master_config).name} needs the whole batch at once: "
            "set async_rl.num_advantage_workers: 0"
        )


def warn_of_weak_clip(grpo: Any) -> None:
    """Warns where NeMo RL's clip, which runs after its message penalties, would weaken a penalty."""
    low = read(grpo, "advantage_clip_low")
    for key in ("invalid_tool_call_advantage", "malformed_thinking_advantage"):
        penalty = read(grpo, key)
        if low is not None and penalty is not None and penalty < low:
            warnings.warn(
                f"grpo.advantage_clip_low {low} raises grpo.{key} {penalty} to {low}, because NeMo RL "
                "clips after it penalises: lower the clip, or clip with grpo.adv_estimator.clip instead",
                stacklevel=2,
            )


def filter_by_group(original: Any) -> Any:
    """`dynamic_sampling` on the variance of whole groups.

    NeMo RL keeps the rows whose `std` is not 0. With a leave-one-out std that drops exactly the lone
    success of a group (its tests, PR #3469) and leaves the others with nothing to learn.
    """
    signature = inspect.signature(original)

    def dynamic_sampling(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        grpo = read(bound.arguments["master_config"], "grpo")
        if read(grpo, "use_dynamic_sampling"):
            batch = bound.arguments["repeated_batch"]
            size = int(read(grpo, "num_generations_per_prompt"))
            bound.arguments["std"] = group_std(batch, size).to(bound.arguments["std"])
        return original(*bound.args, **bound.kwargs)

    return dynamic_sampling


def group_std(batch: Any, block: int) -> Any:
    """Sample std of the outcomes of each row's group, over the rollouts that count: tensor [B].

    Equal outcomes give exactly 0. Rows without a group id fall into blocks of `block` rows, which is
    how the sync loop lays out an unfiltered batch.
    """
    import numpy as np
    import torch

    from nemo_tau2.credit import informative
    from nemo_tau2.nemo_rl.rollouts import exclusions, group_ids, to_numpy

    outcomes = to_numpy(batch.get("unshaped_total_reward", batch["total_reward"])).astype(
        np.float64
    )
    groups = group_ids(batch["message_log"], np.arange(len(outcomes)) // block)
    excluded = exclusions(batch)
    kept = informative(outcomes, groups, excluded)
    members: dict[Any, list[float]] = {}
    for i in np.flatnonzero(kept):
        members.setdefault(groups[i], []).append(outcomes[i])
    spread = {group: float(np.std(values, ddof=1)) for group, values in members.items()}
    return torch.tensor([spread.get(group, 0.0) for group in groups], dtype=torch.float64)


def hooks_logging(hooks: Hooks) -> Any:
    """A wrapper that logs the estimator's metrics where NeMo RL's sync loop logs its advantages."""

    def wrap(original: Any) -> Any:
        signature = inspect.signature(original)

        def log(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind(*args, **kwargs).arguments
            found = getattr(hooks.estimator, "last_metrics", None)
            if found:
                given["logger"].log_metrics(dict(found), given["total_steps"] + 1, prefix="train")
            return original(*args, **kwargs)

        return log

    return wrap
