"""Policies that need no model, to hold environments to their promises: oracle, silent, spammer …

Each is called with the episode and what the policy sees, and answers output items.
"""

import json
import random
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from nemo_tau2.agentscript.graph import ToolKind
from nemo_tau2.episodes import Item
from nemo_tau2.rewards.coverage import Evidence, grounds
from nemo_tau2.rewards.duplicates import canonical
from nemo_tau2.simulation.episode import SpecEpisode
from nemo_tau2.simulation.judge import need_of
from nemo_tau2.simulation.records import sample

Policy = Callable[[SpecEpisode, list[Item]], list[Item]]
"""(episode, visible tools) → the items of one generation."""


def message(text: str) -> list[Item]:
    """A generation that says something."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return [{"type": "message", "role": "assistant", "content": content}]


def call(name: str, arguments: dict[str, Any]) -> list[Item]:
    """A generation that calls one tool."""
    return [
        {
            "type": "function_call",
            "call_id": f"call_{name}"[:40],
            "name": name,
            "arguments": json.dumps(arguments),
        }
    ]


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
    properties = tool["parameters"]["properties"]
    shown = {k: v for r in episode.session.records.fields.values() for k, v in r.items()}
    known = {**shown, **episode.session.facts}
    return {
        name: known[name]
        if name in known and _fits(known[name], schema)
        else sample(schema, name, "policy")
        for name, schema in properties.items()
    }


class Oracle:
    """Plays with full knowledge: grounds every question, opening guards on the way, then answers.

    A search without look-ahead: the wanted call, else an untried call that may open something, else
    the route to a wanted node that it has used least. It never makes the same call twice in a row.
    """

    def __init__(self, budget: int = 30):
        self.budget = budget
        self._tried: Counter[str] = Counter()
        self._answered: set[int] = set()
        self._last = ""

    def __call__(self, episode: SpecEpisode, tools: list[Item]) -> list[Item]:
        pending = self._pending(episode)
        self.budget -= 1
        if not self._tried:  # what a prefix has called counts as called
            for done in episode.session.calls:
                self._last = f"{done.node}/{done.name}/{canonical(done.given)}"
                self._tried[self._last] += 1
        if not pending or self.budget < 0:
            return message(self._answer(episode))
        if episode.has_customer and episode.steps_in_turn + 2 >= episode.budget.max_steps_per_turn:
            return message(self._answer(episode, "One moment, please."))
        chosen = self._choose(episode, tools, pending)
        return chosen or message(self._answer(episode))

    def _pending(self, episode: SpecEpisode) -> set[str]:
        calls = [what for kind, what in episode.transcript if kind == "tool"]
        return {
            q.action
            for q in episode.row.questions
            if q.action and not any(grounds(need_of(q), c) for c in calls)
        }

    def _choose(
        self, episode: SpecEpisode, tools: list[Item], pending: set[str]
    ) -> list[Item] | None:
        node = episode.graph.nodes[episode.session.node]
        flat = episode._flat()
        ranked = []
        for order, item in enumerate(tools):
            name = item["name"]
            tool = node.tool(name) if episode.tools is not None else None
            tool = tool or (flat[name][1] if name in flat else None)
            arguments = self._arguments(episode, item, tool)
            key = f"{node.name}/{name}/{canonical(arguments)}"
            if tool is None or key == self._last or tool.connected:
                continue
            if tool.kind in (ToolKind.ESCALATE, ToolKind.END_SESSION, ToolKind.CANCEL):
                continue
            if tool.kind in (ToolKind.TRANSITION, ToolKind.DELEGATE):
                distance = self._distance(episode, tool.target, pending)
                rank = (2, self._tried[key], distance)
            elif tool.target in pending and tool.kind is ToolKind.ACTION:
                rank = (0 if self._tried[key] < 2 else 3, self._tried[key], 0)
            else:
                rank = (1 if not self._tried[key] else 4, self._tried[key], 0)
            ranked.append((rank, order, key, name, arguments))
        if not ranked:
            return None
        _, _, key, name, arguments = min(ranked)
        self._tried[key] += 1
        self._last = key
        return call(name, arguments)

    def _arguments(self, episode: SpecEpisode, item: Item, tool: Any) -> dict[str, Any]:
        arguments = filled(episode, item)
        for question in episode.row.questions:
            if tool is not None and question.action == tool.target and question.arguments:
                own = {k: v for k, v in question.arguments.items() if k in arguments}
                arguments |= own
        return arguments

    def _distance(self, episode: SpecEpisode, start: str, pending: set[str]) -> int:
        graph = episode.graph
        queue, seen = deque([(start, 0)]), {start}
        while queue:
            name, steps = queue.popleft()
            node = graph.nodes.get(name)
            if node and pending & {t.target for t in node.tools.values()}:
                return steps
            for edge in graph.edges_from(name):
                if edge.target not in seen:
                    seen.add(edge.target)
                    queue.append((edge.target, steps + 1))
        return 99

    def _answer(self, episode: SpecEpisode, closing: str = "Goodbye!") -> str:
        calls: list[Evidence] = [what for kind, what in episode.transcript if kind == "tool"]
        wanted = {q.action for q in episode.row.questions}
        parts = [json.dumps(c.outputs, default=str) for c in calls if c.action in wanted]
        return "Here is what I found: " + " ".join([*parts, closing])


def _fits(value: Any, schema: dict[str, Any]) -> bool:
    kinds = {
        "string": str,
        "boolean": bool,
        "integer": int,
        "number": int | float,
        "array": list,
        "object": dict,
    }
    kind = kinds.get(schema.get("type"), object)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
