"""Policies that need no model, to hold environments to their promises: oracle, silent, spammer …

Each is called with the episode and what the policy sees, and answers output items.
"""

import json
import random
from collections.abc import Callable
from typing import Any

from nemo_tau2.agentscript.graph import ToolKind
from nemo_tau2.episodes import Item
from nemo_tau2.rewards.coverage import Evidence
from nemo_tau2.simulation.abstraction import facts
from nemo_tau2.simulation.episode import SpecEpisode
from nemo_tau2.simulation.generations import call, message
from nemo_tau2.simulation.planning import WAIT, Move, filled_in, knowledge
from nemo_tau2.simulation.plans import Step, plan
from nemo_tau2.simulation.records import is_identifier
from nemo_tau2.simulation.score import repeated_calls

Policy = Callable[[SpecEpisode, list[Item]], list[Item]]
"""(episode, visible tools) → the items of one generation."""


async def play(episode: SpecEpisode, policy: Policy, max_turns: int = 200) -> dict[str, Any]:
    """Plays an episode to its end and returns the verdict."""
    seen = await episode.seed()
    tools = seen.tools or []
    for _ in range(max_turns):
        if seen.done:
            break
        seen = await episode.step(policy(episode, tools))
        tools = seen.tools if seen.tools is not None else tools
    return await episode.verify()


def silent(episode: SpecEpisode, tools: list[Item]) -> list[Item]:
    """Says nothing."""
    return message("")


def bluffer(episode: SpecEpisode, tools: list[Item]) -> list[Item]:
    """Answers without a call."""
    return message("All of that is taken care of, and everything is confirmed. Goodbye!")


class Spammer:
    """Makes its first call again and again, then claims success."""

    def __init__(self):
        self._first: list[Item] | None = None

    def __call__(self, episode: SpecEpisode, tools: list[Item]) -> list[Item]:
        if self._first is None and tools:
            self._first = call(tools[0]["name"], filled(episode, tools[0]))
        if self._first is None:
            self._first = call("search", {})
        return self._first


class RandomWalk:
    """Calls random tools with made-up or known arguments, and sometimes talks."""

    def __init__(self, seed: int):
        self._random = random.Random(seed)

    def __call__(self, episode: SpecEpisode, tools: list[Item]) -> list[Item]:
        draw = self._random.random()
        if draw < 0.2 or not tools:
            return message(self._random.choice(["Can you tell me more?", "Done.", "Goodbye!"]))
        if draw < 0.25:
            return call("no_such_tool", {"x": draw})
        tool = self._random.choice(tools)
        arguments = filled(episode, tool)
        if self._random.random() < 0.3:
            arguments = {k: f"made-up-{draw:.6f}" for k in arguments}
        return call(tool["name"], arguments)


def filled(episode: SpecEpisode, tool: Item) -> dict[str, Any]:
    """Arguments from what the customer knows, records shown, else a sample."""
    return filled_in(knowledge(episode), tool["parameters"]["properties"])


class Oracle:
    """Plays with full knowledge: looks ahead on copies, grounds every question, then answers.

    It follows a plan (`plans`) as long as the episode does what its copy did, and plans again where it
    does not. In a sandbox it makes the state that is expected; what belongs with a person goes to one.
    """

    def __init__(self, budget: int = 60):
        self.budget = budget
        self._plan: list[Step] = []

    def __call__(self, episode: SpecEpisode, tools: list[Item]) -> list[Item]:
        self.budget -= 1
        move = self._next(episode) if self.budget > 0 else None
        if move is None:
            return message(self._answer(episode))
        return move.items if move.name else message(self._answer(episode, WAIT))

    def _next(self, episode: SpecEpisode) -> Move | None:
        here = facts(episode)
        if not self._plan or self._plan[0].before != here:
            self._plan = plan(episode)
        step = self._plan[0]
        if step.move is not None:
            self._plan.pop(0)
        return step.move

    def _answer(self, episode: SpecEpisode, closing: str = "Goodbye!") -> str:
        calls: list[Evidence] = [what for kind, what in episode.transcript if kind == "tool"]
        wanted = {q.action for q in episode.row.questions}
        parts = [json.dumps(c.outputs, default=str) for c in calls if c.action in wanted]
        return "Here is what I found: " + " ".join([*parts, closing])


class Stutterer(Oracle):
    """The oracle, but before its last words it repeats its last call until that is a duplicate."""

    def __init__(self, budget: int = 60):
        super().__init__(budget)
        self._left = 3

    def _next(self, episode: SpecEpisode) -> Move | None:
        move, calls = super()._next(episode), episode.session.calls
        if move or not calls or not self._left or repeated_calls(calls, episode.options):
            return move
        self._left -= 1
        return Move(calls[-1].name, calls[-1].given)


class Guesser:
    """Calls random tools; whatever points at a record or a person it makes up."""

    def __init__(self, seed: int):
        self._random = random.Random(seed)

    def __call__(self, episode: SpecEpisode, tools: list[Item]) -> list[Item]:
        if not tools or self._random.random() < 0.15:
            return message("One moment, please.")
        tool = self._random.choice(tools)
        number = self._random.randrange(10**9)
        arguments = {
            name: f"{name[:1].upper()}{number}" if is_identifier(name) else value
            for name, value in filled(episode, tool).items()
        }
        return call(tool["name"], arguments)


def escalator(episode: SpecEpisode, tools: list[Item]) -> list[Item]:
    """Hands over to a person at once, where a tool for it can be seen."""
    known = dict(episode.callable_tools())
    for tool in tools:
        if tool["name"] in known and known[tool["name"]].kind is ToolKind.ESCALATE:
            return call(tool["name"], filled(episode, tool))
    return message("Goodbye!")
