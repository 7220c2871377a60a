"""Rows to a running agent's /run, so many at a time, results as they come; nothing aborts the rest.

NeMo Gym's own collection creates a task per row and stops at the first failed one (0.4.0
nemo_gym/rollout_collection.py:687-701); here at most `concurrency` rows are resident, and a failed
call is a row.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

from nemo_tau2.gym.http import CallFailed, Peer, new_session
from nemo_tau2.gym.rows import failure_row
from nemo_tau2.outcomes import StopReason

DAY_S = 86_400.0
"""A rollout has deadlines of its own; this only bounds an agent that has stopped answering."""


async def run_rows(
    rows: Iterable[tuple[int, dict[str, Any]]],
    agent_urls: dict[str, str],
    concurrency: int,
    timeout_s: float = DAY_S,
) -> AsyncIterator[tuple[int, dict[str, Any]]]:
    """Yields (row index, result row) in the order in which episodes end.

    `rows` are pulled when there is room for one more, so it may be a generator. Closing the
    iterator early cancels what is in flight.
    """
    source = iter(rows)
    running: set[asyncio.Task] = set()
    async with new_session() as session:
        try:
            while True:
                while len(running) < concurrency and (entry := next(source, None)) is not None:
                    running.add(
                        asyncio.create_task(_run_row(entry, agent_urls, session, timeout_s))
                    )
                if not running:
                    return
                ended, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    yield task.result()
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)


async def _run_row(
    entry: tuple[int, dict[str, Any]], agent_urls: dict[str, str], session: Any, timeout_s: float
) -> tuple[int, dict[str, Any]]:
    index, row = entry
    name = (row.get("agent_ref") or {}).get("name") or row.get("task_source")
    if name not in agent_urls:
        known = ", ".join(sorted(agent_urls))
        return index, failure_row(
            row, StopReason.WORLD_FAILED, f"no agent {name!r} is running, only {known}"
        )
    try:
        return index, await Peer(name, agent_urls[name], session, {}).post("/run", row, timeout_s)
    except CallFailed as error:
        return index, failure_row(row, StopReason.WORLD_FAILED, str(error))
