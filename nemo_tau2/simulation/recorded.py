"""Policies of `policies.py` played ahead, so that a chat endpoint without state can say their turns.

A policy that plays with full knowledge needs the episode in its process; an endpoint behind NeMo Gym has
the messages alone. With scripted helpers an episode is a function of its row and the policy's turns, so
the turns are played once here, written into the row and said again one by one. No baseline: it knows the
answers.
"""

import asyncio
import json
import random
from typing import Any

from nemo_tau2.chat_items import chat_messages
from nemo_tau2.episodes import Item, output_text
from nemo_tau2.simulation.episode import SpecEpisode
from nemo_tau2.simulation.factory import new_episode
from nemo_tau2.simulation.pivot import PivotEpisode
from nemo_tau2.simulation.policies import Oracle, Policy, RandomWalk, call, message

MAX_TURNS = 200
"""Turns played ahead at most; every environment's own budget is below."""
GOODBYE = {"content": "Goodbye!", "tool_calls": []}

ChatTurn = dict[str, Any]
"""One generation as a chat message: {"content", "tool_calls"}."""


class Faulty:
    """A policy that does something random instead of its next move, with a seeded rate."""

    def __init__(self, policy: Policy, seed: int, fault_rate: float):
        self._policy, self._rate = policy, fault_rate
        self._random, self._walk = random.Random(seed), RandomWalk(seed)

    def __call__(self, episode: SpecEpisode, tools: list[Item]) -> list[Item]:
        chosen = self._walk if self._random.random() < self._rate else self._policy
        return chosen(episode, tools)


def pivot_oracle(episode: PivotEpisode, tools: list[Item]) -> list[Item]:
    """Defers while the tool is withheld, then makes the call that was meant."""
    if not episode.restored:
        return message("I cannot do that with the functions I have at the moment.")
    return call(episode.row.withheld_tool, episode.expected())


def record(row: dict[str, Any], seed: int, fault_rate: float, **settings: Any) -> dict[str, Any]:
    """What the endpoint is told of a row: `turns` to say, and the `opening`'s assistant messages.

    Args:
        row: a row of `nemo-tau2 spec rows`.
        seed: seeds the faults, together with task and trial.
        fault_rate: share of turns that do something random.
        settings: options and rewards of the episode.

    Raises:
        UserError: the row cannot be played.
    """
    episode = new_episode(row, **settings)
    where = f"{seed}/{episode.row.task_id}/{row['verifier_metadata'].get('trial', 0)}"
    oracle = pivot_oracle if isinstance(episode, PivotEpisode) else Oracle()
    faults = random.Random(where).getrandbits(32)
    return asyncio.run(_record(row, episode, Faulty(oracle, faults, fault_rate)))


async def _record(row: dict[str, Any], episode: SpecEpisode, policy: Policy) -> dict[str, Any]:
    seen = await episode.seed()
    said = chat_messages([*row["responses_create_params"]["input"], *seen.items])
    turns: list[ChatTurn] = []
    tools = seen.tools or []
    while not seen.done and len(turns) < MAX_TURNS:
        output = policy(episode, tools)
        turns.append(_chat_turn(output, len(turns)))
        seen = await episode.step(output)
        tools = seen.tools if seen.tools is not None else tools
    return {"turns": turns, "opening": sum(m["role"] == "assistant" for m in said)}


def _chat_turn(output: list[Item], turn: int) -> ChatTurn:
    calls = [item for item in output if item.get("type") == "function_call"]
    return {
        "content": output_text(output) or None,
        "tool_calls": [
            {
                "id": f"call_{turn}_{index}",
                "type": "function",
                "function": {"name": item["name"], "arguments": item["arguments"]},
            }
            for index, item in enumerate(calls)
        ],
    }


def tell(row: dict[str, Any], note: dict[str, Any]) -> dict[str, Any]:
    """The row with what the scripted endpoint is told; real policies never get it."""
    body = json.dumps({"nemo_tau2": note})
    params = row["responses_create_params"] | {"metadata": {"extra_body": body}}
    return row | {"responses_create_params": params}


def script(note: dict[str, Any], messages: list[dict[str, Any]]) -> ChatTurn:
    """The `scripted_endpoint` script: the recorded turn whose time it is, after the last a goodbye."""
    spoken = sum(message["role"] == "assistant" for message in messages) - note["opening"]
    return note["turns"][spoken] if 0 <= spoken < len(note["turns"]) else dict(GOODBYE)
