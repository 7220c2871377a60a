"""Where NeMo Gym 0.4.0 and NeMo Gym >= 0.5 differ: one function per difference, nothing else.

0.4.0 is what NeMo RL v0.7.0 pins; 0.7.0 is the newest release tested. Each function names the
upstream file and says when it can go.
"""

from importlib import metadata
from pathlib import Path
from typing import Any

GYM_ROOT = Path(__file__).resolve().parent / "gym_root"
"""The plugin folder: resources_servers/, responses_api_agents/ and environments/ of this package."""


def gym_version() -> tuple[int, ...]:
    """The installed NeMo Gym as numbers, (0, 4, 0); raises PackageNotFoundError where there is none."""
    return tuple(
        int(part) for part in metadata.version("nemo-gym").split(".")[:3] if part.isdigit()
    )


def has_extra_roots() -> bool:
    """True where NEMO_GYM_EXTRA_ROOTS is read (nemo_gym/__init__.py, Gym PR 2061, first in 0.5.0).

    Goes when 0.4.0 is no longer supported; then nothing needs absolute implementation keys either.
    """
    return gym_version() >= (0, 5)


def model_path(agent: Any, path: str, row: dict[str, Any]) -> str:
    """`path` on a model server, prefixed with the rollout id where Gym records model calls.

    0.4.0 has no capture; >= 0.5 asks agents to use `url_path_for_run`
    (nemo_gym/base_responses_api_agent.py). Goes with 0.4.0.
    """
    prefix = getattr(agent, "url_path_for_run", None)
    return prefix(path, row) if prefix else path


def launch_settings() -> dict[str, Any]:
    """Top-level Gym settings that only one line has.

    >= 0.5 waits for model endpoints before it reports ready (nemo_gym/cli/env.py,
    `wait_for_model_endpoints`); a dead endpoint is a typed row here, so the wait is switched off.
    Goes with 0.4.0, where the key is merely unknown.
    """
    return {"model_endpoint_readiness_timeout_seconds": 0} if has_extra_roots() else {}


def generated_servers() -> list[tuple[str, str]]:
    """(server type, implementation) of servers that Gym starts without being told.

    0.7.0 puts a relay before every agent without an environment server (nemo_gym/global_config.py,
    `legacy_agent`); declaring one breaks 0.4.0, which starts any block with an entrypoint. Goes with
    0.4.0, when configurations can declare theirs.
    """
    return [("environment_servers", "legacy_agent")] if has_extra_roots() else []
