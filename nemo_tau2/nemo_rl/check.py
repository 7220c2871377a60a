"""`nemo-tau2 train --check`: everything about a recipe that can be checked without a GPU, in seconds.

NeMo RL's own parts do the validating where they can (its loader, MasterConfig, loss, estimator
factory); the rest is arithmetic and files. Every failure is a `UserError` with the key and the fix.
"""

import json
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nemo_tau2.errors import UserError
from nemo_tau2.gym_compat import GYM_ROOT
from nemo_tau2.nemo_rl import compat
from nemo_tau2.nemo_rl.config import estimator_of, read
from nemo_tau2.nemo_rl.launch import locate, nemo_rl_config, prepare
from nemo_tau2.nemo_rl.validation import check_metric

TRAINING_MODEL = "responses_api_models/vllm_model/configs/vllm_model_for_training.yaml"


@dataclass(frozen=True)
class Plan:
    """A recipe that passed: what would run."""

    lines: dict[str, str]
    """Label → value, in reading order."""
    notes: tuple[str, ...]
    """What could not be checked here, and why."""


def check(recipe: Path, overrides: list[str], nemo_rl_dir: Path | None = None) -> Plan:
    """Validates a recipe; raises `UserError` at the first thing that would fail in training."""
    root = locate(nemo_rl_dir)
    prepare()
    fields = nemo_rl_config(load(recipe, overrides))
    config = _master_config(fields)
    _factories(config)
    facts = _arithmetic(config)
    agents, gym_notes = _gym(fields)
    files, validated = _data(fields, agents)
    metric_note = _metric(config, validated, agents)
    model_note = _model(config)
    lines = {"recipe": str(recipe), "NeMo RL": f"{_version()} at {root}"} | facts
    lines["agents"] = ", ".join(sorted(agents)) or "none"
    return Plan(lines | files, tuple(filter(None, [*gym_notes, metric_note, model_note])))


def load(recipe: Path, overrides: list[str]) -> dict[str, Any]:
    """The recipe with its bases and overrides, resolved, by NeMo RL's own loader."""
    import yaml
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    loader = compat.module("nemo_rl.utils.config")
    loader.register_omegaconf_resolvers()
    if not recipe.is_file():
        raise UserError(
            f"--config {recipe}: no such file (nemo-tau2 recipes list shows what ships)"
        )
    try:
        config = loader.load_config(recipe)
        if overrides:
            config = loader.parse_hydra_overrides(config, overrides)
        return OmegaConf.to_container(config, resolve=True)
    except FileNotFoundError as error:
        raise UserError(
            f"{recipe}: its defaults name {error.filename}, which does not exist"
        ) from error
    except loader.OverridesError as error:
        line = " ".join(str(error).split())
        raise UserError(f"override: {line} (a new key needs ++key=value)") from error
    except (OmegaConfBaseException, yaml.YAMLError, AssertionError) as error:
        raise UserError(f"{recipe}: {' '.join(str(error).split())}") from error


def _version() -> str:
    info = compat.module("nemo_rl.package_info")
    return str(info.__version__)


def _master_config(fields: dict[str, Any]) -> Any:
    from pydantic import ValidationError

    from nemo_tau2.nemo_rl import hooks

    hooks.refuse(fields)  # before NeMo RL asks for the rest of a section that is refused anyway
    try:
        return compat.master_config_class(fields)(**fields)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        fix = f"set ++{key}=VALUE" if first["type"] == "missing" else "correct it"
        raise UserError(f"{key}: {first['msg']} ({error.error_count()} in all); {fix}") from None


def _factories(config: Any) -> None:
    """Builds what NeMo RL builds from the recipe, as its entry point does."""
    from nemo_tau2.nemo_rl import hooks

    gym = compat.module(compat.GYM)
    if not (read(config, "env") or {}).get("should_use_nemo_gym"):
        raise UserError("env.should_use_nemo_gym is not true: τ² runs in NeMo Gym; set it to true")
    hooks.warn_of_weak_clip(config.grpo)
    try:
        gym.setup_nemo_gym_config(config, None)
        compat.gym_predicate()(config)
        compat.module("nemo_rl.algorithms.loss").ClippedPGLossFn(config.loss_fn)
        if not estimator_of(config).ours:
            compat.module(compat.GRPO)._create_advantage_estimator(config)
    except (AssertionError, ValueError, NotImplementedError, KeyError) as error:
        raise UserError(" ".join(str(error).split())) from error


def _require(true: Any, message: str) -> None:
    if not true:
        raise UserError(message)


def _arithmetic(config: Any) -> dict[str, str]:
    """Batch, parallelism, loop and checkpoint arithmetic; returns plan lines."""
    grpo, policy = config.grpo, config.policy
    prompts = int(read(grpo, "num_prompts_per_step"))
    each = int(read(grpo, "num_generations_per_prompt"))
    total, batch = prompts * each, int(policy["train_global_batch_size"])
    estimator = estimator_of(config)
    _require(
        each > 1 or estimator.name in ("opd", "reinforce_plus_plus"),
        f"grpo.num_generations_per_prompt is 1: {estimator.name} compares the rollouts of a prompt; "
        "set at least 2",
    )
    _require(
        batch <= total and total % batch == 0,
        f"policy.train_global_batch_size {batch} must divide num_prompts_per_step × "
        f"num_generations_per_prompt = {prompts} × {each} = {total}",
    )
    _require(
        read(grpo, "max_val_samples") is None,
        "grpo.max_val_samples must be null: with NeMo Gym the validation file is used whole",
    )
    loop = _loop(config)
    sizes = _parallel(config, batch)
    _checkpoints(config)
    optimizer = (policy.get("megatron_cfg") or {}).get("optimizer") or {}
    loss = config.loss_fn
    return {
        "estimator": estimator.describe(),
        "loop": loop,
        "batch": f"{prompts} prompts × {each} rollouts = {total}, {total // batch} update(s) of {batch}",
        "steps": f"{read(grpo, 'max_num_steps')}, validation every {read(grpo, 'val_period')}",
        "model": f"{policy['model_name']}, {policy['max_total_sequence_length']} tokens",
        "optimizer": f"lr {optimizer.get('lr')}, KL {read(loss, 'reference_policy_kl_penalty')}",
        "parallelism": sizes,
    }


def _loop(config: Any) -> str:
    grpo = config.grpo
    asynchronous = bool(read(read(grpo, "async_grpo") or {}, "enabled", False))
    colocated = bool(config.policy["generation"]["colocated"]["enabled"])
    if compat.is_single_controller(config):
        return "SingleController (experimental column route)"
    if not asynchronous:
        return f"sync, {'colocated' if colocated else 'separate'} generation"
    _require(
        not colocated or config.policy["generation"]["backend"] == "megatron",
        "grpo.async_grpo.enabled needs policy.generation.colocated.enabled: false with vLLM",
    )
    _require(
        not read(grpo, "use_dynamic_sampling"),
        "grpo.use_dynamic_sampling works in the sync loop only: disable it or grpo.async_grpo",
    )
    for key in ("reward_scaling", "reward_shaping"):
        enabled = read(read(grpo, key) or {}, "enabled", False)
        _require(not enabled, f"grpo.{key}.enabled works in the sync loop only: disable it")
    return "async"


def _parallel(config: Any, batch: int) -> str:
    """Checks GPUs against parallel sizes; returns a plan line."""
    policy, cluster = config.policy, config.cluster
    gpus = int(cluster["gpus_per_node"]) * int(cluster["num_nodes"])
    colocated = policy["generation"]["colocated"]
    train = gpus
    if not colocated["enabled"]:
        resources = colocated["resources"]
        nodes = resources.get("num_nodes") or 1
        per_node = resources.get("gpus_per_node") or int(cluster["gpus_per_node"])
        train = gpus - nodes * per_node
        _require(train > 0, "policy.generation.colocated.resources leave no GPU for training")
    megatron = policy.get("megatron_cfg") or {}
    if not megatron.get("enabled"):
        return f"{gpus} GPUs, DTensor"
    sizes = [
        int(megatron[f"{kind}_parallel_size"])
        for kind in ("tensor_model", "context", "pipeline_model")
    ]
    tensor, context, pipeline = sizes
    product = tensor * context * pipeline
    _require(
        train % product == 0,
        f"policy.megatron_cfg: tensor × context × pipeline = {product} must divide the {train} training GPUs",
    )
    data = train // product
    _require(
        batch % (data * int(policy["train_micro_batch_size"])) == 0,
        f"policy.train_global_batch_size {batch} must be a multiple of {data} data-parallel ranks × "
        f"train_micro_batch_size {policy['train_micro_batch_size']}",
    )
    multiple = (tensor if megatron.get("sequence_parallel") else 1) * (
        2 * context if context > 1 else 1
    )
    given = int(policy["make_sequence_length_divisible_by"])
    _require(
        given % multiple == 0,
        f"policy.make_sequence_length_divisible_by is {given}: with tensor {tensor} and context {context} "
        f"it must be a multiple of {multiple}",
    )
    _require(
        context == 1 or (policy.get("sequence_packing") or {}).get("enabled"),
        "policy.megatron_cfg.context_parallel_size > 1 needs policy.sequence_packing.enabled: true",
    )
    vllm = int((policy["generation"].get("vllm_cfg") or {}).get("tensor_parallel_size", 1))
    _require(
        (gpus if colocated["enabled"] else gpus - train) % vllm == 0,
        f"policy.generation.vllm_cfg.tensor_parallel_size {vllm} must divide the generation GPUs",
    )
    training = f"tensor {tensor} context {context} pipeline {pipeline} data {data}"
    return f"{gpus} GPUs; training {training}; vLLM tensor {vllm}"


def _checkpoints(config: Any) -> None:
    checkpointing = config.checkpointing
    if not checkpointing["enabled"]:
        return
    metric = checkpointing.get("metric_name")
    _require(
        metric is None or metric.startswith(("val:", "train:")),
        f"checkpointing.metric_name {metric!r} must start with val: or train:",
    )
    period, save = int(read(config.grpo, "val_period")), int(checkpointing["save_period"])
    _require(
        metric is None or metric.startswith("train:") or (period > 0 and save % period == 0),
        f"checkpointing.save_period {save} must be a multiple of grpo.val_period {period}: a checkpoint "
        f"is ranked by {metric}, which only validation steps have",
    )


def _metric(config: Any, validated: set[str], agents: dict[str, bool]) -> str | None:
    """Checks the name of the metric that ranks checkpoints; returns a note."""
    metric = config.checkpointing.get("metric_name")
    if not config.checkpointing["enabled"] or metric is None:
        return None
    generations = int(read(config.grpo, "val_num_generations_per_prompt", 1))
    return check_metric(metric, {name: agents[name] for name in validated}, generations)


def _gym(fields: dict[str, Any]) -> tuple[dict[str, bool], list[str]]:
    """The agent instances and whether they are ours, and notes.

    Resolves every server reference of the merged Gym configuration.
    """
    from omegaconf import OmegaConf

    gym = dict(fields["env"].get("nemo_gym") or {})
    config, notes, unread = OmegaConf.create({}), [], []
    for path in gym.pop("config_paths", []):
        found = _gym_file(str(path))
        if found is None:
            unread.append(str(path))
        else:
            config = OmegaConf.merge(config, OmegaConf.load(found))
    merged = OmegaConf.to_container(OmegaConf.merge(config, gym), resolve=False)
    _require(
        "policy_model" in merged or TRAINING_MODEL in unread,
        f"env.nemo_gym.config_paths: the policy's model server is missing; add {TRAINING_MODEL}",
    )
    if unread:
        notes.append(
            f"NeMo Gym is not in this checkout, so these were not read: {', '.join(unread)}"
        )
    known = {"policy_model"} | set(merged)
    for name, instance in merged.items():
        for kind, target in _references(instance):
            present = target in known and (
                target == "policy_model" or kind in (merged[target] or {})
            )
            _require(
                present or (unread and target not in merged and kind != "responses_api_models"),
                f"env.nemo_gym.{name}: refers to {kind} {target!r}, which no configuration defines; "
                f"define env.nemo_gym.{target} or correct the name",
            )
    agents = {
        name: all(Path(kind).is_relative_to(GYM_ROOT) for kind in instance["responses_api_agents"])
        for name, instance in merged.items()
        if isinstance(instance, dict) and "responses_api_agents" in instance
    }
    return agents, notes


def _gym_file(path: str) -> Path | None:
    """A config path as NeMo Gym resolves it inside NeMo RL: absolute, the working directory, Gym's checkout."""
    root = compat.nemo_rl_root()
    for base in (Path(), root / "3rdparty/Gym-workspace/Gym"):
        if (base / path).is_file():
            return base / path
    if Path(path).is_absolute():
        raise UserError(f"env.nemo_gym.config_paths: no file {path}")
    return None


def _references(node: Any) -> list[tuple[str, str]]:
    """Every {type: <server type>, name: <instance>} below a node."""
    if isinstance(node, list):
        return [pair for value in node for pair in _references(value)]
    if not isinstance(node, dict):
        return []
    kinds = ("resources_servers", "responses_api_agents", "responses_api_models")
    here = [(node["type"], node["name"])] if node.get("type") in kinds and "name" in node else []
    return here + [pair for value in node.values() for pair in _references(value)]


def _data(fields: dict[str, Any], agents: Collection[str]) -> tuple[dict[str, str], set[str]]:
    """Reads every row of both files; returns plan lines and the agents of the validation rows."""
    lines, named = {}, Counter()
    for split in ("train", "validation"):
        block = fields["data"].get(split)
        if not block:
            _require(split != "train", "data.train.data_path is missing")
            continue
        key, path = f"data.{split}.data_path", Path(block["data_path"])
        _require(
            path.is_file(),
            f"{key}: no file {path}; {_maker(path)} or set {key}=FILE",
        )
        named = _rows(path, key, agents)
        lines[f"{split} data"] = f"{named.total()} rows of {path}"
    return lines, set(named) if "validation data" in lines else set()


def _maker(path: Path) -> str:
    """The command that makes a missing file, where its name has the form of our recipes' τ² files."""
    domain, _, split = path.stem.partition("_")
    if domain in ("airline", "retail", "telecom", "all") and split in ("train", "test", "base"):
        return (
            f"make it with `nemo-tau2 data tau2 --domain {domain} --split {split} --output {path}`"
        )
    return "make rows with `nemo-tau2 data tau2`, `spec rows` or `data mix`,"


def _rows(path: Path, key: str, agents: Collection[str]) -> Counter[str]:
    """The number of rows per agent; raises `UserError` at the first that NeMo RL could not run."""
    count: Counter[str] = Counter()
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            where = f"{key} {path}, line {number}"
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise UserError(
                    f"{where}: not JSON ({error.msg}); write one row per line"
                ) from None
            _require(isinstance(row, dict), f"{where}: a row must be a JSON object")
            _require(
                isinstance(row.get("responses_create_params"), dict),
                f"{where}: no responses_create_params; make rows with `nemo-tau2 data tau2`",
            )
            name = (row.get("agent_ref") or {}).get("name")
            _require(
                name in agents,
                f"{where}: its agent_ref names {name!r}, but the recipe runs {', '.join(sorted(agents))}; "
                "add that environment to env.nemo_gym.config_paths",
            )
            count[name] += 1
    _require(count, f"{key}: {path} has no rows")
    return count


def _model(config: Any) -> str | None:
    name = str(config.policy["model_name"])
    if name.startswith(("/", ".", "~")):
        folder = Path(name).expanduser()
        _require(
            (folder / "config.json").is_file(),
            f"policy.model_name: {name} holds no config.json; give a model folder or a Hugging Face id",
        )
        return None
    return f"{name} is a Hugging Face id; whether it can be downloaded was not checked"
