"""`nemo-tau2 bench spec`: Agent Script environments in process and through NeMo Gym.

No public environment has a router and subagents, so there is no peer to divide by: the figures are our
own, next to what NeMo Gym's way of serving takes of the same turns. Rows are `spec rows`', the policy
plays them with full knowledge, helpers are scripted.
"""

import asyncio
import gc
import json as jsonlib
import os
import tracemalloc
from itertools import cycle, islice
from time import perf_counter
from typing import Any, Literal

from nemo_tau2.errors import UserError

SCENARIOS = 24
"""Scenarios of which the rows are made; they are cycled through."""


def spec(
    *,
    script: str = "bank_cards",
    mode: Literal["flat", "routed", "sandbox", "pivot"] = "routed",
    json: bool = False,
    episodes: int = 400,
    gym_episodes: int = 256,
    concurrency: int = 64,
) -> None:
    """Measure an Agent Script environment: episodes/s and memory in process, CPU per turn through Gym.

    Parameters
    ----------
    script
        A built-in script's name, or an `.agent` file.
    mode
        The environment.
    json
        Print one JSON object instead of tables.
    episodes
        Episodes in process, and live at once for the memory figure.
    gym_episodes
        Episodes through NeMo Gym servers after a warm-up of a quarter as many; 0 leaves that out.
    concurrency
        Episodes in flight through NeMo Gym.
    """
    if min(episodes, concurrency) < 1 or gym_episodes < 0:
        raise UserError(
            "--episodes and --concurrency must be at least 1, --gym-episodes at least 0"
        )
    rows = spec_rows(script, mode)
    result = {"script": script, "mode": mode, **in_process(rows, episodes)}
    if gym_episodes:
        from nemo_tau2.bench.gym import through_gym
        from nemo_tau2.gym.launch import Scripted
        from nemo_tau2.rollouts.spec_plan import ENVIRONMENTS, SCRIPT

        environment = ENVIRONMENTS[rows[0]["agent_ref"]["name"]]
        policy = Scripted(script=SCRIPT, tokens="messages")
        played = list(islice(cycle(rows), gym_episodes))
        measured = through_gym(environment, played, concurrency, policy)
        result |= {("gym_eps" if name == "eps" else name): v for name, v in measured.items()}
        result |= {"concurrency": concurrency, "cores": len(os.sched_getaffinity(0))}
    if json:
        print(jsonlib.dumps(result))
    else:
        _print(result)


def spec_rows(script: str, mode: str) -> list[dict[str, Any]]:
    """Rows with the turns of a policy that has full knowledge."""
    from nemo_tau2.simulation.recorded import record, tell
    from nemo_tau2.simulation.rows import Source
    from nemo_tau2.simulation.scenario import Mode
    from nemo_tau2.simulation.scripts import load_script

    source = Source(script, load_script(script), Mode(mode), 0)
    rows = asyncio.run(_rows(source))
    if not rows:
        raise UserError(
            f"{script}: no {mode} row can be made of it; take another --script or --mode"
        )
    return [tell(row, record(row, 0, 0.0)) for row in rows]


async def _rows(source: Any) -> list[dict[str, Any]]:
    from nemo_tau2.simulation.personas import built_in_personas
    from nemo_tau2.simulation.pivot_rows import pivot_rows, pivot_scenarios
    from nemo_tau2.simulation.rows import rows_of, solvable
    from nemo_tau2.simulation.scenario import Mode

    persona = built_in_personas()[:1]
    if source.mode is Mode.PIVOT:
        pairs = list(pivot_scenarios(source, SCENARIOS))
        return [row for s, c in pairs for row in await pivot_rows(source, s, c, persona, [0])]
    made = await solvable(source, SCENARIOS)
    return [row for s in made for row in await rows_of(source, s, persona, [0])]


def in_process(rows: list[dict[str, Any]], episodes: int) -> dict[str, Any]:
    """Episodes/s of seed, every step and verify on one core; KiB of a live episode at its end."""
    for row in rows:  # scripts and schemas are loaded once
        asyncio.run(_play(row))
    chosen = list(islice(cycle(rows), episodes))
    started = perf_counter()
    rewards = [asyncio.run(_play(row))[1]["reward"] for row in chosen]
    seconds = perf_counter() - started
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    live = [asyncio.run(_play(row, to_the_end=False))[0] for row in chosen]
    gc.collect()
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return {
        "eps": episodes / seconds,
        "kib_per_live_episode": held / 1024 / len(live),
        "reward_mean_in_process": sum(rewards) / episodes,
    }


async def _play(row: dict[str, Any], to_the_end: bool = True) -> tuple[Any, dict[str, Any]]:
    from nemo_tau2.chat_items import output_items
    from nemo_tau2.simulation.factory import new_episode

    body = jsonlib.loads(row["responses_create_params"]["metadata"]["extra_body"])
    episode = new_episode(row)
    seen = await episode.seed()
    for turn in body["nemo_tau2"]["turns"]:
        if seen.done:
            break
        seen = await episode.step(output_items(turn))
    return episode, await episode.verify() if to_the_end else {}


def _print(result: dict[str, Any]) -> None:
    from rich.console import Console

    from nemo_tau2.bench.gym import print_owners

    console = Console()
    console.print(
        f"{result['script']}, {result['mode']}: {result['eps']:.0f} episodes/s in process, "
        f"{result['kib_per_live_episode']:.1f} KiB per live episode",
        highlight=False,
    )
    if "gym_eps" in result:
        console.print(
            f"{result['gym_eps']:.1f} episodes/s through NeMo Gym at concurrency "
            f"{result['concurrency']}; our CPU {result['cpu_ms_per_turn']:.2f} ms per policy turn",
            highlight=False,
        )
        print_owners(result, console)
