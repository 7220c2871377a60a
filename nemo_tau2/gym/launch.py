"""Starts NeMo Gym servers from Python and takes every one of them down again.

    with launch(LaunchConfig(environment="tau2_airline", policy=Scripted(...), run_dir=...)) as gym:
        async for index, result in run_rows(rows, gym.agent_urls, concurrency=64): ...

Servers run in the interpreter that runs this, on loopback, on ports of their own (head server
included), with their logs in `run_dir/logs`. What it does not do: build environments per server, the
default of NeMo Gym, which takes uv, a package index and minutes.
"""

import json
import os
import random
import shlex
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from omegaconf import OmegaConf
from pydantic import BaseModel, ConfigDict, PositiveFloat, PositiveInt

from nemo_tau2 import gym_compat
from nemo_tau2.gym.config import (
    KEY_VARIABLES,
    absolute_config,
    absolute_instance,
    find_config,
    instances,
    model_server,
)
from nemo_tau2.gym.processes import MARKER, end_all

PORTS = range(12_000, 32_000)
"""Below the range from which outgoing connections take theirs (32768 upwards on Linux)."""
PORT_TRIES = 3
LOG_TAIL_LINES = 15


class LaunchError(RuntimeError):
    """The servers did not come up. The message names the server and holds the end of its log."""


class Scripted(BaseModel):
    """The embedded policy: a script behind an OpenAI-compatible endpoint of our own."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    script: str = "nemo_tau2.tau2.scripted_policy:script"
    """`module:attribute` of a function (spec, messages) -> assistant message."""
    tokens: Literal["bytes", "messages"] = "bytes"
    """One token per byte, or per message: short streams, for the bench."""


class Served(BaseModel):
    """A model behind any OpenAI-compatible endpoint."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    url: str
    """Base URL, /v1 included."""
    model: str
    """Name of the model there."""
    api_key: str = "none"
    """Sent as a bearer token; never written to a file."""
    token_ids: bool = False
    """Ask for token ids and log-probabilities: vLLM gives them, most others refuse the request."""


class LaunchConfig(BaseModel):
    """One launch."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    environment: str
    """Name of an environment, or a NeMo Gym YAML."""
    policy: Scripted | Served
    """What answers as `policy_model`."""
    user: Served | None = None
    """What answers as `user_model`, None for a scripted user."""
    judge: Served | None = None
    """What answers as `judge_model`, None where nothing needs judging."""
    helper: Served | None = None
    """What answers as `helper_model`: the frozen model of Agent Script environments."""
    run_dir: Path
    """Where logs and the folder of interpreters go."""
    overrides: dict[str, Any] = {}
    """Merged over the configuration; implementations by name or by absolute key."""
    model_workers: PositiveInt = 1
    """Processes of the policy's model server, the busiest of all; it keeps no state."""
    start_timeout_s: PositiveFloat = 180.0
    """Seconds until every server must answer."""


@dataclass
class Gym:
    """Running servers."""

    launch_id: str
    urls: dict[str, str]
    """{instance: base URL}"""
    agent_urls: dict[str, str]
    """{agent instance: base URL}, where rows are posted."""
    logs: Path


@contextmanager
def launch(
    config: LaunchConfig, report: Callable[[str], None] = lambda line: None
) -> Iterator[Gym]:
    """The servers of `config`, ready; ended, with everything they started, when the block ends.

    `report` is told what happens, for progress. Raises UserError for an unknown environment and
    LaunchError where the servers do not come up in time.
    """
    logs = config.run_dir.resolve() / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    for attempt in range(1, PORT_TRIES + 1):
        launch_id = uuid.uuid4().hex
        try:
            gym, supervisor = _start(config, launch_id, logs, report)
        except _PortTaken:
            if attempt == PORT_TRIES:
                raise
            continue
        break
    try:
        yield gym
    finally:
        _end(supervisor, launch_id)


class _PortTaken(LaunchError):
    """Another program took a port between the choice and the bind."""


def _start(
    config: LaunchConfig, launch_id: str, logs: Path, report: Callable[[str], None]
) -> tuple[Gym, subprocess.Popen]:
    environment = _server_environment(config, launch_id)
    supervisor = None
    try:
        policy_url = None
        if isinstance(config.policy, Scripted):
            policy_url = _start_endpoint(config.policy, environment, logs)
        settings, ports = gym_config(config, policy_url, logs)
        _write_interpreters(settings["uv_venv_dir"], settings)
        report(f"starting {len(ports) - 1} servers; logs in {logs}")
        supervisor, status = _start_supervisor(settings, environment, logs)
        _wait_until_ready(supervisor, status, config.start_timeout_s, logs)
    except BaseException:
        _end(supervisor, launch_id)
        raise
    urls = {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}
    agents = {
        name for name, (kind, _) in instances(settings).items() if kind == "responses_api_agents"
    }
    return Gym(launch_id, urls, {name: urls[name] for name in agents}, logs), supervisor


def gym_config(
    config: LaunchConfig, policy_url: str | None, logs: Path
) -> tuple[dict[str, Any], dict[str, int]]:
    """(NeMo Gym's global configuration, {instance or head_server: port})."""
    if isinstance(config.policy, Served):
        policy = model_server(
            "policy_model", config.policy.url, config.policy.model, config.policy.token_ids
        )
    else:
        policy = model_server("policy_model", policy_url, "scripted", token_ids=True)
    policy["policy_model"]["responses_api_models"]["vllm_model"]["num_workers"] = (
        config.model_workers
    )
    frozen = [
        model_server(name, served.url, served.model, token_ids=False)
        for name, served in _frozen(config).items()
    ]
    environment = absolute_config(find_config(config.environment))
    overrides = {name: absolute_instance(value) for name, value in config.overrides.items()}
    merged = OmegaConf.merge(environment, policy, *frozen, overrides)
    settings = OmegaConf.to_container(merged, resolve=False)
    servers = instances(settings)
    ports = dict(zip([*servers, "head_server"], free_ports(len(servers) + 1), strict=True))
    for name, (kind, implementation) in servers.items():
        settings[name][kind][implementation] |= {"host": "127.0.0.1", "port": ports[name]}
    settings |= {
        "head_server": {"host": "127.0.0.1", "port": ports["head_server"]},
        "default_host": "127.0.0.1",
        "uv_venv_dir": str(config.run_dir.resolve() / "interpreters"),
        "uv_cache_dir": str(config.run_dir.resolve() / "interpreters" / "cache"),
        "skip_venv_if_present": True,
        "nemo_gym_log_dir": str(logs),
    }
    return settings | gym_compat.launch_settings(), ports


def _frozen(config: LaunchConfig) -> dict[str, Served]:
    """{model server: what answers} of the models that are not trained."""
    given = {
        "user_model": config.user,
        "judge_model": config.judge,
        "helper_model": config.helper,
    }
    return {name: served for name, served in given.items() if served is not None}


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, at random, so that launches side by side rarely meet."""
    found: list[int] = []
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise LaunchError(f"fewer than {count} free ports between {PORTS.start} and {PORTS.stop}")


def _write_interpreters(folder: str, settings: dict[str, Any]) -> None:
    """For each server, what NeMo Gym takes for its finished virtual environment: this interpreter.

    Two scripts, because `skip_venv_if_present` looks for bin/python and bin/activate
    (nemo_gym/cli/setup_command.py, `setup_env_command`). 0.4.0 sources the second and calls `python`,
    >= 0.5 calls the first.
    """
    python = shlex.quote(sys.executable)
    for kind, implementation in [*instances(settings).values(), *gym_compat.generated_servers()]:
        binaries = Path(folder, *Path(kind, implementation).parts[-2:], ".venv", "bin")
        binaries.mkdir(parents=True, exist_ok=True)
        (binaries / "python").write_text(f'#!/bin/sh\nexec {python} "$@"\n', encoding="utf-8")
        (binaries / "python").chmod(0o755)
        (binaries / "activate").write_text(
            f"export PATH={shlex.quote(str(binaries))}:$PATH\n", encoding="utf-8"
        )


def _server_environment(config: LaunchConfig, launch_id: str) -> dict[str, str]:
    keys = {
        KEY_VARIABLES["policy_model"]: config.policy.api_key
        if isinstance(config.policy, Served)
        else "none"
    }
    keys |= {KEY_VARIABLES[name]: served.api_key for name, served in _frozen(config).items()}
    # Servers start elsewhere: relative entries, as of an uninstalled checkout, would be lost.
    paths = [
        os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path
    ]
    python_path = {"PYTHONPATH": os.pathsep.join(paths)} if paths else {}
    return os.environ | keys | python_path | {MARKER: launch_id, "PYTHONUNBUFFERED": "1"}


def _start_endpoint(policy: Scripted, environment: dict[str, str], logs: Path) -> str:
    """Starts the scripted endpoint on a socket bound here, so that its address is known and its own."""
    with socket.socket() as listener, (logs / "scripted_endpoint.log").open("ab") as log:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1024)
        command = [
            sys.executable,
            "-m",
            "nemo_tau2.gym.scripted_endpoint",
            "--socket-fd",
            str(listener.fileno()),
        ]
        command += ["--script", policy.script, "--tokens", policy.tokens]
        subprocess.Popen(
            command,
            env=environment,
            pass_fds=[listener.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        return f"http://127.0.0.1:{listener.getsockname()[1]}/v1"


def _start_supervisor(
    settings: dict[str, Any], environment: dict[str, str], logs: Path
) -> tuple[subprocess.Popen, IO[str]]:
    read, write = os.pipe()
    with (logs / "gym.log").open("ab") as log:
        supervisor = subprocess.Popen(
            [sys.executable, "-m", "nemo_tau2.gym.supervisor", str(write)],
            env=environment,
            cwd=logs.parent,
            pass_fds=[write],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C in a terminal is for us; we then end the servers
            text=True,
        )
    os.close(write)
    supervisor.stdin.write(json.dumps(settings) + "\n")
    supervisor.stdin.flush()
    os.set_blocking(read, False)
    return supervisor, os.fdopen(read)


def _wait_until_ready(
    supervisor: subprocess.Popen, status: IO[str], timeout_s: float, logs: Path
) -> None:
    deadline = time.monotonic() + timeout_s
    with status:
        while time.monotonic() < deadline:
            word = status.readline().strip()
            if word == "READY":
                return
            if word == "FAILED" or supervisor.poll() is not None:
                break
            time.sleep(0.1)
        else:
            raise LaunchError(
                f"the servers were not ready within {timeout_s:g} s\n{log_tails(logs)}"
            )
    tails = log_tails(logs)
    kind = _PortTaken if "address already in use" in tails else LaunchError
    raise kind(f"the servers did not start\n{tails}")


def log_tails(logs: Path) -> str:
    """The end of every log in a folder, each under its name; for error messages."""
    parts = []
    for path in sorted(logs.glob("*.log")):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL_LINES:]
        parts.append(f"--- {path.name}\n" + "\n".join(line[:400] for line in lines))
    return "\n".join(parts)


def _end(supervisor: subprocess.Popen | None, launch_id: str) -> None:
    if supervisor is not None:
        supervisor.stdin.close()  # its sign to end everything
        try:
            supervisor.wait(timeout=10)
        except subprocess.TimeoutExpired:
            supervisor.kill()
            supervisor.wait()
    end_all(launch_id, grace_s=1)
