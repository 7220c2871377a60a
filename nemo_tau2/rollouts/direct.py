"""The direct backend: episodes in this process, without servers.

Same episodes, same rows as through NeMo Gym, except that there are no token ids. The policy is the
scripted one or any chat completion.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from typing import Any, Protocol

from nemo_tau2.chat import ChatFailed, Complete, ContextOverflow
from nemo_tau2.chat_items import chat_messages, chat_tools, output_items
from nemo_tau2.episodes import Episode, Item, ToolChanges
from nemo_tau2.outcomes import StopReason


class EpisodeFactory(Protocol):
    """Makes the episode of a row."""

    def __call__(self, row: dict[str, Any]) -> Episode: ...


class PolicyFactory(Protocol):
    """Makes the policy of a row: a chat completion."""

    def __call__(self, row: dict[str, Any]) -> Complete: ...


async def run_direct(
    rows: Iterable[dict[str, Any]],
    new_episode: EpisodeFactory,
    new_policy: PolicyFactory,
    concurrency: int,
    max_turns: int | None = None,
) -> AsyncIterator[dict[str, Any]]:
    """Yields finished rows in the order in which they end; at most `concurrency` are resident."""
    source = iter(rows)
    running: set[asyncio.Task] = set()
    try:
        while True:
            while len(running) < concurrency and (row := next(source, None)) is not None:
                play = play_episode(row, new_episode(row), new_policy(row), max_turns)
                running.add(asyncio.create_task(play))
            if not running:
                return
            ended, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                yield task.result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def play_episode(
    row: dict[str, Any], episode: Episode, policy: Complete, max_turns: int | None = None
) -> dict[str, Any]:
    """Plays one episode to its end and returns its row.

    A policy that cannot be reached ends it masked as `policy_endpoint_failed`; a prompt that has
    outgrown the model ends it scored as `context_overflow`.
    """
    params = row["responses_create_params"]
    turn_ends: list[int] = []
    usage: Counter[str] = Counter()
    imposed = failure = None
    seen = await episode.seed()
    output: list[Item] = list(seen.items)
    changes = ToolChanges()
    changes.note(0, seen.tools)
    tools = seen.tools if seen.tools is not None else params.get("tools")
    history = [*params["input"], *seen.items]
    while not seen.done:
        if max_turns is not None and len(turn_ends) >= max_turns:
            imposed = StopReason.MAX_TURNS
            break
        try:
            answer = await policy(chat_messages(history), chat_tools(tools))
        except ContextOverflow as error:
            imposed, failure = StopReason.CONTEXT_OVERFLOW, str(error)
            break
        except ChatFailed as error:
            imposed, failure = StopReason.POLICY_ENDPOINT_FAILED, str(error)
            break
        usage.update(answer.get("usage") or {})
        items = output_items(answer)
        output += items
        if not getattr(seen, "reward_only", False):
            turn_ends.append(len(output) - 1)
        seen = await episode.step(items)
        changes.note(len(turn_ends), seen.tools)
        tools = seen.tools if seen.tools is not None else tools
        output += seen.items
        history += items + seen.items
    verdict = await episode.verify(imposed and imposed.value)
    if failure and not verdict.get("failure"):
        verdict["failure"] = {"kind": imposed.value, "message": failure}
    response = {"output": output} | ({"usage": dict(usage)} if usage else {})
    played = {"turn_output_indices": turn_ends, "response": response}
    return row | verdict | changes.as_field() | played
