"""`nemo-tau2 bench world`: episodes per second and memory against τ²'s own `AgentGymEnv`.

The same scripted policy (no faults) and scripted user play the same tasks on both sides, one process,
one after the other in one run.
"""

import asyncio
import gc
import json as json_module
import os
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

STOCK_EPISODES = {"airline": 10, "retail": 12, "telecom": 5}
"""Episodes the peer plays by default: about half a minute, it is slow."""


def world(
    *,
    domain: Literal["airline", "retail", "telecom"] = "airline",
    episodes: int = 300,
    stock_episodes: int | None = None,
    live: int = 1000,
    json: bool = False,
) -> None:
    """Compare with stock AgentGymEnv: same scripted policy and user, one process, one run.

    Parameters
    ----------
    domain
        Whose tasks.
    episodes
        Episodes on our side.
    stock_episodes
        Episodes on the stock side; it plays about one a second.
    live
        Worlds kept alive at once for the memory figure.
    json
        Print one JSON object.
    """
    result = measure(domain, episodes, stock_episodes or STOCK_EPISODES[domain], live)
    if json:
        print(json_module.dumps(result))
        return
    print(
        f"{domain}: {result['ours_eps']:.0f} episodes/s against {result['stock_eps']:.2f} stock,",
        end=" ",
    )
    print(f"{result['ratio']:.0f} times; {result['kib_per_world']:.0f} KiB per live world", end=" ")
    print(f"({result['live_worlds']} worlds, {result['live_mib']:.0f} MiB above the base)")


def measure(domain: str, episodes: int, stock_episodes: int, live: int) -> dict[str, Any]:
    """The figures: `ours_eps`, `stock_eps`, `ratio`, `kib_per_world`."""
    from nemo_tau2.bench.episodes import gold_policy, play
    from nemo_tau2.tau2.domains import load_domain
    from nemo_tau2.tau2.tasks import load_tasks
    from nemo_tau2.tau2.users.scripted import ScriptedUser

    shared, tasks = load_domain(domain), load_tasks(domain).split("base")
    for task in tasks:  # schemas, gold paths and policies are loaded once; both sides start warm
        asyncio.run(play(shared, task))
    kib, mib = _memory(shared, tasks, live)
    started = perf_counter()
    for task in islice(cycle(tasks), episodes):
        assert asyncio.run(play(shared, task)) == 1.0, f"{domain} {task.id} must score 1"
    ours = episodes / (perf_counter() - started)

    from nemo_tau2.bench.stock import play_stock

    chosen = list(islice(cycle(tasks[:: max(1, len(tasks) // stock_episodes)]), stock_episodes))
    play_stock(domain, chosen[0], gold_policy(shared, chosen[0]), ScriptedUser(chosen[0]))
    started = perf_counter()
    for task in chosen:
        reward = play_stock(domain, task, gold_policy(shared, task), ScriptedUser(task))
        assert reward == 1.0, f"stock {domain} {task.id} must score 1"
    stock = stock_episodes / (perf_counter() - started)
    return {
        "domain": domain,
        "ours_eps": ours,
        "stock_eps": stock,
        "ratio": ours / stock,
        "kib_per_world": kib,
        "live_worlds": live,
        "live_mib": mib,
        "episodes": episodes,
        "stock_episodes": stock_episodes,
    }


def _memory(shared: Any, tasks: list[Any], live: int) -> tuple[float, float]:
    """(KiB per world, MiB in all) of `live` episodes that have made all their calls."""
    from nemo_tau2.bench.episodes import play_calls

    gc.collect()
    before = _resident()
    worlds = [asyncio.run(play_calls(shared, task)) for task in islice(cycle(tasks), live)]
    gc.collect()
    extra = _resident() - before
    assert len(worlds) == live
    return extra / live / 1024, extra / 2**20


def _resident() -> int:
    """Resident bytes of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
