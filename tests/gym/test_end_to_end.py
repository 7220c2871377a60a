"""Real NeMo Gym servers, started and ended by us: `pytest -m gym`, on each NeMo Gym line."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from aiohttp import web

from nemo_tau2 import gym_compat
from nemo_tau2.gym import launch as launching
from nemo_tau2.gym.byte_tokens import ByteTokens
from nemo_tau2.gym.launch import Gym, LaunchConfig, LaunchError, Scripted, Served, launch
from nemo_tau2.gym.processes import end_all, marked
from nemo_tau2.gym.rollouts import run_rows
from nemo_tau2.gym.scripted_endpoint import Endpoint
from tests.conftest import REPO
from tests.gym import gold, toy
from tests.gym.conftest import aiohttp_server, free_port

pytestmark = pytest.mark.gym

TOY = Path(toy.__file__).parent / "toy_root" / "resources_servers" / "toy"


def agent(model: str, **settings: Any) -> dict[str, Any]:
    body = {
        "entrypoint": "app.py",
        "resources_server": {"type": "resources_servers", "name": "toy"},
        "model_server": {"type": "responses_api_models", "name": model},
        **settings,
    }
    return {"responses_api_agents": {"dialogue_agent": body}}


def write_toy(folder: Path, **instances: Any) -> str:
    config = {
        "toy": {"resources_servers": {str(TOY): {"entrypoint": "app.py", "domain": "agent"}}},
        "toy_agent": agent("policy_model", policy_call_timeout_s=6.0, episode_deadline_s=20.0),
        **instances,
    }
    path = folder / "toy.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return str(path)


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    """Servers import the toy and, in an uninstalled checkout, the package."""
    paths = [str(REPO), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))


def collect(
    gym: Gym, rows: list[dict[str, Any]], concurrency: int = 8, during=None
) -> dict[int, dict[str, Any]]:
    async def run():
        results = {}
        async for index, result in run_rows(enumerate(rows), gym.agent_urls, concurrency):
            results[index] = result
            if during is not None:
                during(len(results))
        return results

    return asyncio.run(run())


def assert_one_chain(result: dict[str, Any]) -> int:
    """NeMo RL's own assertion; returns the number of trainable turns."""
    seen: list[int] = []
    turns = []
    for index, item in enumerate(result["response"]["output"]):
        if item.get("generation_token_ids"):
            assert seen == item["prompt_token_ids"][: len(seen)]
            assert len(item["generation_token_ids"]) == len(item["generation_log_probs"])
            seen = item["prompt_token_ids"] + item["generation_token_ids"]
            turns.append(index)
    assert turns == result["turn_output_indices"]
    assert len(turns) == len(result["turn_rewards"]) == len(result["turn_tiers"])
    return len(turns)


def assert_ended(gym: Gym) -> None:
    assert marked(gym.launch_id) == []


def test_all_domains_with_exact_tokens(tmp_path):
    rows = [
        gold.row(domain, task_id)
        for domain in ("airline", "retail", "telecom")
        for task_id in list(gold.load_tasks(domain).tasks)[:3]
    ]
    policy = Scripted(script="tests.gym.gold:script")
    with launch(LaunchConfig(environment="tau2_all", policy=policy, run_dir=tmp_path)) as gym:
        assert set(gym.agent_urls) == {
            "tau2_airline_agent",
            "tau2_retail_agent",
            "tau2_telecom_agent",
        }
        results = collect(gym, rows)
    assert_ended(gym)
    assert len(results) == 9
    for index, result in results.items():
        metadata = rows[index]["verifier_metadata"]
        assert (
            result["failure"] is None
            and not result["mask_sample"]
            and result["stop_reason"] == "user_stop"
        )
        assert {key: result[key] for key in ("domain", "task_id")} == metadata
        assert result["group_id"] == f"{metadata['domain']}/{metadata['task_id']}"
        assert assert_one_chain(result) == result["num_turns"] > 0
        assert set(result["turn_tiers"]) <= {"gold_exact", "message", "error"}
    assert {result["reward"] for result in results.values()} == {0.0, 1.0}


@contextmanager
def served(app: web.Application):
    """The application on loopback in a thread of its own; yields its base URL."""
    port, ready, loop = free_port(), threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()

    async def run():
        async with aiohttp_server(app, port):
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    ready.wait()
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


def test_an_llm_user_through_a_model_server(tmp_path):
    """The user's model is reached by NeMo Gym's model server and leaves no token ids in the row."""
    asked = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(await request.json())
        hears_goodbye = any("Goodbye" in str(m["content"]) for m in asked[-1]["messages"][1:])
        text = "<think>Enough.</think>Thanks. ###STOP###" if hears_goodbye else "Please help me."
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        body = {"id": "c", "object": "chat.completion", "created": 1, "model": "u"}
        return web.json_response(body | {"choices": [choice]})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    server = {
        "user": "llm",
        "user_model_server": {"type": "responses_api_models", "name": "user_model"},
        "user_sampling": {"temperature": 0.5},
    }
    with served(app) as url:
        config = LaunchConfig(
            environment="tau2_airline",
            policy=Scripted(script="tests.gym.gold:script"),
            user=Served(url=url, model="u", api_key="sk-user"),
            run_dir=tmp_path,
            overrides={"tau2_airline": {"resources_servers": {"tau2_bench": server}}},
        )
        with launch(config) as gym:
            (result,) = collect(gym, [gold.row("airline", "0")]).values()
            assert "gcs_server" in {
                Path(f"/proc/{pid}/comm").read_text().strip() for pid in marked(gym.launch_id)
            }
    assert result["stop_reason"] == "user_stop", result["failure"]
    assert assert_one_chain(result) == result["num_turns"]
    said = [item["content"] for item in result["response"]["output"] if item.get("role") == "user"]
    assert said == ["Please help me.", "Thanks. ###STOP###"]
    assert {request["temperature"] for request in asked} == {0.5} and asked[0]["model"] == "u"
    logs = "".join(path.read_text(encoding="utf-8") for path in gym.logs.glob("*.log"))
    assert "sk-user" not in logs


def faulty_endpoint():
    """The toy's endpoint, which does what `fault` in a request's nemo_tau2 field says."""
    endpoint = Endpoint(toy.script, ByteTokens())

    @web.middleware
    async def fault(request: web.Request, handler):
        body = await request.json() if request.path.endswith("completions") else {}
        messages = body.get("messages", [])
        match (body.get("nemo_tau2") or {}).get("fault") if len(messages) > 4 else None:
            case "500":
                return web.Response(status=500, text="out of memory")
            case "wedged":
                await asyncio.sleep(60)
            case "slow":
                await asyncio.sleep(4)
            case "empty choice":
                return web.json_response(endpoint.complete(body) | {"choices": []})
            case "no logprobs":
                return web.json_response(endpoint.complete(body | {"logprobs": False}))
            case "not json":
                return web.Response(text="<html>")
            case "overflow":
                message = "This model's maximum context length is 8 tokens."
                return web.json_response({"object": "error", "message": message}, status=400)
            case "hang up":
                request.transport.close()
        return await handler(request)

    app = endpoint.app()
    app.middlewares.append(fault)
    return served(app)


def faulty_row(fault: str, **more: Any) -> dict[str, Any]:
    row = toy.row(turns=30, **more)
    row["responses_create_params"]["metadata"]["extra_body"] = (
        f'{{"nemo_tau2": {{"fault": "{fault}"}}}}'
    )
    return row


def test_what_can_be_wrong_with_a_policy_endpoint(tmp_path):
    expected = {
        "500": ("policy_endpoint_failed", "HTTP 500"),
        "wedged": ("policy_endpoint_failed", "no answer within 6 s"),
        "slow": ("deadline", None),
        "empty choice": ("policy_endpoint_failed", ""),
        "no logprobs": ("policy_endpoint_failed", "logprobs"),
        "not json": ("policy_endpoint_failed", ""),
        "overflow": ("context_overflow", None),
        "hang up": ("policy_endpoint_failed", ""),
    }
    dead = {
        "responses_api_models": {
            "vllm_model": {
                "entrypoint": "app.py",
                "base_url": f"http://127.0.0.1:{free_port()}/v1",
                "api_key": "none",
                "model": "m",
                "return_token_id_information": True,
                "uses_reasoning_parser": True,
            }
        }
    }
    config = write_toy(tmp_path, dead=dead, dead_agent=agent("dead", policy_call_timeout_s=4.0))
    rows = [faulty_row(fault) for fault in expected]
    rows.append(toy.row(agent_ref={"name": "dead_agent"}))
    rows.append(toy.row(agent_ref={"name": "nobody"}))
    rows.append(toy.row())
    started = time.monotonic()
    with faulty_endpoint() as url:
        policy = Served(url=url, model="m", token_ids=True)
        with launch(LaunchConfig(environment=config, policy=policy, run_dir=tmp_path)) as gym:
            results = collect(gym, rows, concurrency=len(rows))
    assert_ended(gym)
    for index, (fault, (reason, words)) in enumerate(expected.items()):
        result = results[index]
        assert result["stop_reason"] == reason, (fault, result["failure"])
        assert result["mask_sample"] is (words is not None), fault
        assert words is None or words in result["failure"]["message"], (fault, result["failure"])
        assert assert_one_chain(result) >= 1, fault
    dead_row, nobody, healthy = (results[len(expected) + i] for i in range(3))
    assert dead_row["stop_reason"] == "policy_endpoint_failed" and dead_row["turn_rewards"] == []
    assert (
        nobody["stop_reason"] == "world_failed"
        and "no agent 'nobody'" in nobody["failure"]["message"]
    )
    assert healthy["stop_reason"] == "deadline" or healthy["reward"] == 1.0
    assert time.monotonic() - started < 150


@pytest.mark.parametrize("victim", ["toy", "toy_agent", "policy_model"])
def test_a_server_killed_in_the_middle(tmp_path, victim):
    rows = [toy.row(turns=5) for _ in range(30)]
    policy = Scripted(script="tests.gym.toy:script")
    config = LaunchConfig(environment=write_toy(tmp_path), policy=policy, run_dir=tmp_path)
    with launch(config) as gym:
        killed: list[int] = []

        def kill(done: int) -> None:
            if done == 3 and not killed:
                killed.append(process_listening_at(gym.urls[victim], gym))
                os.kill(killed[0], signal.SIGKILL)

        results = collect(gym, rows, concurrency=4, during=kill)
    assert_ended(gym)
    reason = "policy_endpoint_failed" if victim == "policy_model" else "world_failed"
    stops = {result["stop_reason"] for result in results.values()}
    assert len(results) == 30 and stops == {"user_stop", reason}
    assert sum(result["stop_reason"] == "user_stop" for result in results.values()) >= 3
    for result in results.values():
        assert result["mask_sample"] is (result["stop_reason"] == reason)


def process_listening_at(url: str, gym: Gym) -> int:
    port = f":{int(url.rsplit(':', 1)[1]):04X}"
    lines = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    (inode,) = {f[9] for f in map(str.split, lines) if f[1].endswith(port) and f[3] == "0A"}
    for pid in marked(gym.launch_id):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            if descriptor.is_symlink() and os.readlink(descriptor) == f"socket:[{inode}]":
                return pid
    raise AssertionError(f"nobody listens at {url}")


def test_nothing_is_left_of_a_launch_whose_parent_was_killed(tmp_path):
    program = f"""
import os, signal, sys
from nemo_tau2.gym.launch import LaunchConfig, Scripted, launch
policy = Scripted(script="tests.gym.toy:script")
config = LaunchConfig(environment={write_toy(tmp_path)!r}, policy=policy, run_dir={str(tmp_path)!r})
with launch(config) as gym:
    print(gym.launch_id, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    launch_id = answer.stdout.strip()
    assert answer.returncode == -signal.SIGKILL and len(launch_id) == 32, answer.stderr
    deadline = time.monotonic() + 30
    while marked(launch_id) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert marked(launch_id) == []


def test_a_server_that_cannot_start_is_named_and_nothing_stays(tmp_path, monkeypatch):
    config = write_toy(tmp_path, toy_agent=agent("policy_model", policy_call_timeout_s=-1))
    ended = []
    end = launching._end

    def record(supervisor, launch_id):
        end(supervisor, launch_id)
        ended.append(launch_id)

    monkeypatch.setattr(launching, "_end", record)
    policy = Scripted(script="tests.gym.toy:script")
    with (
        pytest.raises(LaunchError, match=r"toy_agent\.log(.|\n)*policy_call_timeout_s"),
        launch(LaunchConfig(environment=config, policy=policy, run_dir=tmp_path)),
    ):
        raise AssertionError("unreachable")
    assert [marked(launch_id) for launch_id in ended] == [[]]


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The package as a wheel leaves it, away from the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", folder, REPO], check=True, timeout=300)
    (wheel,) = folder.glob("nemo_tau2-*.whl")
    subprocess.run(
        [*pip, "install", "--no-deps", "--target", folder / "site", wheel], check=True, timeout=300
    )
    return folder / "site"


def test_the_wheel_holds_every_component(installed):
    def files(root: Path) -> set[str]:
        return {
            str(path.relative_to(root))
            for path in root.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }

    assert files(installed / "nemo_tau2" / "gym_root") == files(gym_compat.GYM_ROOT)


def test_gym_env_start_finds_an_installed_environment(installed, tmp_path, monkeypatch):
    """The commands of the README, on the line they are for."""
    monkeypatch.setenv("PYTHONPATH", str(installed))
    monkeypatch.chdir(tmp_path)
    roots = run_verb("gym-roots").strip()
    assert Path(roots).is_relative_to(installed)
    if gym_compat.has_extra_roots():
        monkeypatch.setenv("NEMO_GYM_EXTRA_ROOTS", roots)
        choice = ["--environment", "tau2_airline"]
    else:
        run_verb("gym-roots", "--absolute", "tau2_airline", "--output", "airline.yaml")
        choice = ["--config", "airline.yaml"]
    head = free_port()
    for kind, name in [
        ("resources_servers", "tau2_bench"),
        ("responses_api_agents", "dialogue_agent"),
        ("responses_api_models", "vllm_model"),
        ("environment_servers", "legacy_agent"),
    ]:
        folder = tmp_path / "venvs" / kind / name
        folder.mkdir(parents=True)
        (folder / ".venv").symlink_to(sys.prefix)
    command = [str(Path(sys.executable).with_name("gym")), "env", "start", *choice]
    command += [
        "--model-type",
        "vllm_model/vllm_model_for_training",
        "--model",
        "m",
        "--model-api-key",
        "k",
    ]
    command += [
        "--model-url",
        f"http://127.0.0.1:{free_port()}/v1",
        f"++uv_venv_dir={tmp_path / 'venvs'}",
    ]
    command += [
        "++skip_venv_if_present=true",
        "++head_server.host=127.0.0.1",
        f"++head_server.port={head}",
    ]
    command += ["++model_endpoint_readiness_timeout_seconds=0"]
    marker = f"test_{head}"
    environment = os.environ | {"NEMO_TAU2_LAUNCH": marker, "RAY_AUTH_MODE": "disabled"}
    with (tmp_path / "gym.log").open("wb") as log:
        process = subprocess.Popen(
            command, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        instances = asyncio.run(ready_instances(head, process, tmp_path / "gym.log"))
    finally:
        end_all(marker, grace_s=3)
        process.wait()
    folders = {i["process_name"]: i["dir_path"] for i in instances}
    assert folders["tau2_airline"] == f"{roots}/resources_servers/tau2_bench"
    assert folders["tau2_airline_agent"] == f"{roots}/responses_api_agents/dialogue_agent"


def run_verb(*tokens: str) -> str:
    command = [sys.executable, "-m", "nemo_tau2.cli.main", *tokens]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


async def ready_instances(head: int, process: subprocess.Popen, log: Path) -> list[dict[str, Any]]:
    """What the head server lists, once each of the servers answers."""
    async with aiohttp.ClientSession() as http:
        for _ in range(600):
            assert process.poll() is None, log.read_text()
            await asyncio.sleep(0.2)
            try:
                async with http.get(f"http://127.0.0.1:{head}/server_instances") as answer:
                    instances = await answer.json()
                for instance in instances:
                    async with http.get(f"http://{instance['host']}:{instance['port']}/"):
                        pass
            except aiohttp.ClientError:
                continue
            if instances:
                return instances
    raise AssertionError(log.read_text())
