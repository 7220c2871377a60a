"""NeMo Gym configurations of this package: found by name, made absolute, filled in for a launch.

Absolute means that each implementation key is a folder (`/…/gym_root/resources_servers/tau2_bench`)
instead of a name. NeMo Gym joins it to a root with pathlib, so an absolute key wins on every line;
0.4.0 has no other way to run a component from outside its own folder and the working directory.
"""

from pathlib import Path
from typing import Any

import yaml
from omegaconf import OmegaConf

from nemo_tau2.errors import UserError
from nemo_tau2.gym_compat import GYM_ROOT

SERVER_TYPES = (
    "resources_servers",
    "responses_api_agents",
    "responses_api_models",
    "environment_servers",
)
KEY_VARIABLES = {
    "policy_model": "NEMO_TAU2_POLICY_KEY",
    "user_model": "NEMO_TAU2_USER_KEY",
    "judge_model": "NEMO_TAU2_JUDGE_KEY",
    "helper_model": "NEMO_TAU2_HELPER_KEY",
}
"""API keys travel in the environment of the servers: a configuration lands in logs and process lists."""


def environment_names() -> list[str]:
    return sorted(path.parent.name for path in GYM_ROOT.glob("environments/*/config.yaml"))


def find_config(name: str | Path) -> Path:
    """An environment's name, a path, or a path below the root -> the YAML file."""
    for path in (Path(name), GYM_ROOT / name, GYM_ROOT / "environments" / name / "config.yaml"):
        if path.is_file():
            return path.resolve()
    raise UserError(
        f"no configuration {str(name)!r}: give a YAML file or one of {', '.join(environment_names())}"
    )


def absolute_config(path: Path) -> dict[str, Any]:
    """The configuration with absolute implementation keys and data paths, its `config_paths` merged in."""
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(config, dict):
        raise UserError(f"{path} is not a NeMo Gym configuration: it holds no mapping")
    included = [
        absolute_config(_beside(path, entry)) for entry in config.pop("config_paths", None) or []
    ]
    merged = OmegaConf.merge(
        *included, {name: absolute_instance(value) for name, value in config.items()}
    )
    return OmegaConf.to_container(merged, resolve=False)


def _beside(path: Path, entry: str) -> Path:
    near = path.parent / entry
    return near.resolve() if near.is_file() else find_config(entry)


def absolute_instance(instance: Any) -> Any:
    """One top-level entry of a configuration with absolute keys; anything but a server as it is."""
    if not isinstance(instance, dict):
        return instance
    changed = dict(instance)
    for kind in SERVER_TYPES:
        if isinstance(instance.get(kind), dict):
            changed[kind] = {
                _absolute_key(kind, name): _with_data(body) for name, body in instance[kind].items()
            }
    return changed


def _absolute_key(kind: str, name: str) -> str:
    folder = GYM_ROOT / kind / name
    return str(folder) if (folder / "requirements.txt").is_file() else name


def _with_data(body: Any) -> Any:
    if not isinstance(body, dict) or not isinstance(body.get("datasets"), list):
        return body
    datasets = [dict(dataset) for dataset in body["datasets"]]
    for dataset in datasets:
        below = GYM_ROOT / str(dataset.get("jsonl_fpath"))
        if below.is_file():
            dataset["jsonl_fpath"] = str(below)
    return body | {"datasets": datasets}


def model_server(name: str, url: str, model: str, token_ids: bool) -> dict[str, Any]:
    """A `vllm_model` instance for an OpenAI-compatible endpoint.

    `token_ids` asks for token ids and log-probabilities, as NeMo Gym's vllm_model_for_training.yaml
    does: a vLLM server and the scripted endpoint give them. Other endpoints (SGLang, hosted ones)
    do not, and a request that asks for ids fails there; without them rows are for evaluation only.
    """
    body = {
        "entrypoint": "app.py",
        "base_url": url,
        "api_key": f"${{oc.env:{KEY_VARIABLES[name]}}}",
        "model": model,
        "return_token_id_information": token_ids,
        "uses_reasoning_parser": True,
    }
    return {name: {"responses_api_models": {"vllm_model": body}}}


def instances(config: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """{instance name: (server type, implementation)} of the servers in a configuration."""
    found = {}
    for name, instance in config.items():
        if isinstance(instance, dict):
            for kind in SERVER_TYPES:
                if isinstance(instance.get(kind), dict):
                    found[name] = (kind, next(iter(instance[kind])))
    return found
