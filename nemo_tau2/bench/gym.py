"""`nemo-tau2 bench gym`: episodes through real NeMo Gym servers against stock τ² in threads.

Both sides play the same tasks with the same scripted agent and user at the same concurrency, one after
the other on the same machine. The policy is the scripted endpoint with one token per message behind
NeMo Gym's own `vllm_model`: the bench measures servers, not models and not byte counts. Our CPU per
policy turn comes from a sampling profile of agent and resources server; the table shows whose the rest
is.
"""

import asyncio
import json as jsonlib
import os
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Literal

from nemo_tau2.errors import UserError
from nemo_tau2.gym.cpu_profile import OTHER_THREADS

HTTP_STACK = frozenset(
    {
        "nemo_gym",
        "uvicorn",
        "uvloop",
        "httptools",
        "h11",
        "starlette",
        "fastapi",
        "anyio",
        "aiohttp",
    }
    | {"multidict", "yarl", "frozenlist", "propcache", "itsdangerous", "ray", "python", "attr"}
    | {OTHER_THREADS}
)
"""Packages whose CPU is NeMo Gym's way of serving and calling; all others are ours or work for us."""


def gym(
    *,
    domain: Literal["airline", "retail", "telecom"] = "airline",
    json: bool = False,
    episodes: int = 192,
    stock_episodes: int = 64,
    concurrency: int = 64,
    script: str | None = None,
) -> None:
    """Compare episodes per second through NeMo Gym servers with stock τ² in threads.

    Parameters
    ----------
    domain
        The τ² domain to play.
    json
        Print one JSON object instead of tables.
    episodes
        Episodes through NeMo Gym, after a warm-up of a quarter as many.
    stock_episodes
        Episodes of the stock orchestrator.
    concurrency
        Episodes in flight, on both sides.
    script
        `module:attribute` of the policy's script, the scripted policy where not given.
    """
    from nemo_tau2.gym.launch import Scripted

    policy = (
        Scripted(tokens="messages")
        if script is None
        else Scripted(script=script, tokens="messages")
    )
    if min(episodes, stock_episodes, concurrency) < 1:
        raise UserError("--episodes, --stock-episodes and --concurrency must be at least 1")
    ours = through_gym(f"tau2_{domain}", _rows(domain, episodes), concurrency, policy)
    stock_eps, stock_reward = _stock(domain, stock_episodes, concurrency, policy.script)
    result = {
        "domain": domain,
        "eps": ours["eps"],
        "stock_threads_eps": stock_eps,
        "ratio": ours["eps"] / stock_eps,
        "stock_reward_mean": stock_reward,
        **{name: value for name, value in ours.items() if name != "eps"},
        "concurrency": concurrency,
        "cores": len(os.sched_getaffinity(0)),
    }
    if json:
        print(jsonlib.dumps(result))
    else:
        _print(result)


def _rows(domain: str, count: int) -> list[dict[str, Any]]:
    """`count` rows cycling through the domain's base split, for the scripted policy without faults."""
    from nemo_tau2.tau2.dataset import dataset_rows, select_tasks, tell_scripted_policy

    tasks, chosen = select_tasks(domain, "base")
    rows = list(dataset_rows(domain, "base", tasks, chosen))
    return [tell_scripted_policy(rows[n % len(rows)], seed=0, fault_rate=0.0) for n in range(count)]


def _job(row: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """(τ² task, what the script is told) of a row."""
    from nemo_tau2.gym.scripted_endpoint import SPEC
    from nemo_tau2.tau2.tasks import load_tasks

    spec = jsonlib.loads(row["responses_create_params"]["metadata"]["extra_body"])[SPEC]
    return load_tasks(spec["domain"]).get(spec["task_id"]), spec


def _stock(domain: str, episodes: int, concurrency: int, script: str) -> tuple[float, float]:
    from nemo_tau2.bench.stock_threads import episodes_per_second
    from nemo_tau2.gym.scripted_endpoint import load_script

    jobs = [_job(row) for row in _rows(domain, episodes)]
    return episodes_per_second(domain, jobs, load_script(script), concurrency)


def through_gym(
    environment: str, rows: list[dict[str, Any]], concurrency: int, policy: Any
) -> dict[str, Any]:
    """Episodes/s of the rows after a warm-up of a quarter as many, and whose CPU a policy turn takes.

    `cpu_ms_per_turn` is agent and resources server without NeMo Gym's own way of serving.
    """
    from nemo_tau2.gym.config import absolute_config, find_config, instances
    from nemo_tau2.gym.launch import LaunchConfig, launch

    warm_up = rows[: max(1, len(rows) // 4)]
    with tempfile.TemporaryDirectory(prefix="nemo_tau2_bench_") as folder:
        profiles = {
            name: Path(folder) / f"{name}.json" for name in (environment, f"{environment}_agent")
        }
        servers = instances(absolute_config(find_config(environment)))
        overrides = {
            name: {kind: {implementation: {"cpu_profile_path": str(profiles[name])}}}
            for name, (kind, implementation) in servers.items()
        }
        config = LaunchConfig(
            environment=environment, policy=policy, run_dir=Path(folder), overrides=overrides
        )
        with launch(config) as servers:
            before = asyncio.run(_collect(servers.agent_urls, warm_up, concurrency))
            cpu = cpu_seconds(servers.launch_id)
            measured = asyncio.run(_collect(servers.agent_urls, rows, concurrency))
            spent = Counter(cpu_seconds(servers.launch_id))
            spent.subtract(cpu)
        read = {
            name: jsonlib.loads(path.read_text(encoding="utf-8")) for name, path in profiles.items()
        }
    profiled_turns = before["turns"] + measured["turns"]
    owners = _owners(read, profiled_turns)
    return {
        "eps": len(rows) / measured["seconds"],
        "cpu_ms_per_turn": sum(ms for name, ms in owners.items() if name not in HTTP_STACK),
        "turns_per_episode": measured["turns"] / len(rows),
        "reward_mean": measured["reward"] / len(rows),
        "masked": measured["masked"],
        "cpu_ms_per_turn_by_package": dict(owners.most_common()),
        "cpu_ms_per_turn_by_process": {
            name: 1000 * seconds / measured["turns"] for name, seconds in spent.most_common()
        },
    }


async def _collect(
    agent_urls: dict[str, str], rows: list[dict], concurrency: int
) -> dict[str, Any]:
    from nemo_tau2.gym.rollouts import run_rows

    totals = {"turns": 0, "reward": 0.0, "masked": 0}
    started = time.perf_counter()
    async for _, result in run_rows(enumerate(rows), agent_urls, concurrency):
        totals["turns"] += result["num_turns"]
        totals["reward"] += result["reward"]
        totals["masked"] += result["mask_sample"]
    return totals | {"seconds": time.perf_counter() - started}


def _owners(profiles: dict[str, dict[str, float]], turns: int) -> Counter[str]:
    """CPU milliseconds per turn by package, agent and resources server together."""
    owners: Counter[str] = Counter()
    for profile in profiles.values():
        for name, seconds in profile.items():
            owners[name] += 1000 * seconds / turns
    return owners


def cpu_seconds(launch_id: str) -> dict[str, float]:
    """CPU seconds so far of each server of a launch, of the scripted endpoint and of this process."""
    from nemo_tau2.gym.processes import marked

    spent: Counter[str] = Counter({"this process": sum(os.times()[:2])})
    for pid in marked(launch_id):
        try:
            spent[_role(pid)] += _process_seconds(pid)
        except OSError:  # ended meanwhile
            continue
    return spent


def _role(pid: int) -> str:
    environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    name = next((e for e in environment if e.startswith(b"NEMO_GYM_CONFIG_PATH=")), None)
    if name is not None:
        return name.split(b"=", 1)[1].decode()
    command = Path(f"/proc/{pid}/cmdline").read_bytes()
    return "scripted endpoint" if b"scripted_endpoint" in command else "Ray and supervisor"


def _process_seconds(pid: int) -> float:
    """utime + stime, fields 14 and 15 of /proc/PID/stat; the name before them may hold spaces."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _print(result: dict[str, Any]) -> None:
    from rich.console import Console

    console = Console()
    console.print(
        f"{result['domain']}: {result['eps']:.2f} episodes/s through NeMo Gym, "
        f"{result['stock_threads_eps']:.2f} stock in threads, ratio {result['ratio']:.1f}; "
        f"our CPU {result['cpu_ms_per_turn']:.2f} ms per turn",
        highlight=False,
    )
    print_owners(result, console)


def print_owners(result: dict[str, Any], console: Any) -> None:
    """The tables of CPU by package and by process."""
    from rich.table import Table

    for title, key in (
        ("package (agent + resources server)", "cpu_ms_per_turn_by_package"),
        ("process", "cpu_ms_per_turn_by_process"),
    ):
        table = Table(title, "ms per turn", box=None)
        for name, ms in result[key].items():
            table.add_row(name, f"{ms:.2f}")
        console.print(table)
