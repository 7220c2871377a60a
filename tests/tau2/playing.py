"""Helpers: episodes played by hand."""

import asyncio
import json

from nemo_tau2.bench.episodes import gold_policy
from nemo_tau2.chat_items import output_items
from nemo_tau2.tau2.domains import load_domain
from nemo_tau2.tau2.engine import STOP, UserMessage
from nemo_tau2.tau2.episode import Tau2Episode
from nemo_tau2.tau2.tasks import load_tasks
from nemo_tau2.tau2.users.scripted import ScriptedUser


class QueueUser:
    """Says the given messages in order (strings, UserMessages or exceptions), then stops."""

    def __init__(self, *messages):
        self.messages = list(messages)

    async def reply(self, incoming):
        message = self.messages.pop(0) if self.messages else STOP
        if isinstance(message, Exception):
            raise message
        return UserMessage(role="user", content=message) if isinstance(message, str) else message


def call(name, arguments, call_id="c"):
    """One function_call item; `arguments` a dict or raw text."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": text}


def say(text):
    return {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text}],
    }


def play(domain, task_id, turns, user=None, finish=True, **options):
    """Plays the turns (each a list of items) and returns (episode, observations, verdict)."""

    async def run():
        task = load_tasks(domain).get(task_id)
        episode = Tau2Episode(load_domain(domain), task, user or QueueUser("Hello."), **options)
        seen = [await episode.seed()]
        for turn in turns:
            if seen[-1].done:
                break
            seen.append(await episode.step(turn))
        return episode, seen, await episode.verify() if finish else None

    return asyncio.run(run())


def play_gold(domain, task, packed=False):
    """Plays a task's gold actions; the verdict."""

    async def run():
        shared = load_domain(domain)
        episode, policy = Tau2Episode(shared, task, ScriptedUser(task)), gold_policy(shared, task)
        seen, position = await episode.seed(), 0
        while not seen.done:
            items = output_items(policy.turn(position))
            position += 1
            while packed and items[0]["type"] == "function_call":
                following = output_items(policy.turn(position))
                if following[0]["type"] != "function_call":
                    break
                items += following
                position += 1
            seen = await episode.step(items)
        return await episode.verify()

    return asyncio.run(run())
