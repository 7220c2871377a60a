"""Real τ² episodes of a scripted policy and a scripted user, played by the direct backend.

A plan is the policy's turns: a text, or a list of (tool, JSON arguments). After the plan it says goodbye.
"""

import asyncio
import json
from dataclasses import dataclass

from nemo_tau2.rollouts.direct import play_episode
from nemo_tau2.rollouts.notes import task_note
from nemo_tau2.tau2.dataset import dataset_rows
from nemo_tau2.tau2.domains import load_domain
from nemo_tau2.tau2.engine import STOP, UserMessage
from nemo_tau2.tau2.episode import Tau2Episode
from nemo_tau2.tau2.scripted_policy import GOODBYE, ScriptedPolicy
from nemo_tau2.tau2.tasks import load_tasks
from nemo_tau2.tau2.users.scripted import ScriptedUser

DOMAINS = ("airline", "retail", "telecom")


@dataclass
class Planted:
    """A row with what was planted in it. An empty name is one that this fault leaves open."""

    fault: str
    row: dict
    pattern: str = ""
    tool: str = ""
    party: str = "policy"
    rule: str = ""


class Case:
    """One task to plant faults in."""

    def __init__(self, domain_name, task):
        self.domain, self.task = load_domain(domain_name), task
        self.note = task_note(domain_name, task.id, None)

    @property
    def turns(self):
        """The gold plan, fresh."""
        plan = ScriptedPolicy(self.domain, self.task, fault_rate=0, parallel_rate=0).plan
        return [turn.text if turn.text is not None else list(turn.calls) for turn in plan]

    @property
    def writes(self):
        """(tool, arguments) of the policy's gold writes that work."""
        return [
            (g["name"], g["arguments"])
            for g in self.note["gold_actions"]
            if g["actor"] == "assistant" and g["writes"] and not g["errored"]
        ]

    @property
    def told(self):
        """What the scripted user says of itself and its wishes."""
        told = self.note["scenario"]
        return first_person(f"{told.get('reason_for_call', '')} {told.get('known_info', '')}")

    def place(self, name, arguments):
        """The turn of the gold plan that makes this call."""
        turns = self.turns
        return turns.index([(name, json.dumps(arguments))])

    def play(self, turns, user=None, max_turns=None, judge=None, task=None, breaks_at=None):
        """The stored row of one episode; `breaks_at` is the turn at which the endpoint is gone."""
        from nemo_tau2.chat import ChatFailed

        task = task or self.task
        tasks = load_tasks(self.domain.name)
        [row] = dataset_rows(self.domain.name, "base", tasks, [self.task])
        episode = Tau2Episode(
            self.domain, task, user or Speaker(task), judge=judge, labels={"trial": 0}
        )
        count = iter(range(1000))

        async def policy(messages, tools):
            number = next(count)
            if number == breaks_at:
                raise ChatFailed("p at http://127.0.0.1:1/v1: connection refused")
            turn = turns[number] if number < len(turns) else GOODBYE
            if isinstance(turn, str):
                return {"content": turn, "tool_calls": None}
            calls = [
                {"id": f"c{number}_{n}", "function": {"name": name, "arguments": arguments}}
                for n, (name, arguments) in enumerate(turn)
            ]
            return {"content": None, "tool_calls": calls}

        played = asyncio.run(play_episode(row, episode, policy, max_turns))
        return json.loads(json.dumps(played | {"task": self.note}))


class Speaker:
    """The scripted user in the first person, as a model would speak; `words` are swapped in its texts."""

    def __init__(self, task, words=None):
        self.user, self.words = ScriptedUser(task), words or {}

    async def reply(self, incoming):
        message = await self.user.reply(incoming)
        if message.is_tool_call():
            return message
        text = first_person(message.content)
        for old, new in self.words.items():
            text = text.replace(old, new)
        return UserMessage(role="user", content=text)


def first_person(text):
    """“You are Ann” as “I am Ann”."""
    for old, new in (("You are", "I am"), ("You're", "I'm"), ("Your", "My"), ("your", "my"),
                     ("You", "I"), (" you ", " I ")):  # fmt: skip
        text = text.replace(old, new)
    return text


class Passive:
    """A user that says what it wants, then does nothing unasked and waits for a goodbye."""

    def __init__(self, opening):
        self.opening, self.count = opening, 0

    async def reply(self, incoming):
        self.count += 1
        heard = ("" if isinstance(incoming, list) else incoming.content or "").lower()
        if self.count == 1:
            text = self.opening
        elif "goodbye" in heard:
            text = f"Alright, bye. {STOP}"
        elif "transferred to a human" in heard:
            text = "###TRANSFER###"
        else:
            text = f"I am waiting ({self.count})."
        return UserMessage(role="user", content=text)


def cases(domain_name, rng):
    """The domain's base tasks in a seeded order."""
    tasks = load_tasks(domain_name).split("base")
    rng.shuffle(tasks)
    return [Case(domain_name, task) for task in tasks]
