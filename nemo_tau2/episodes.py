"""The three verbs every environment has: seed, step, verify.

An `Episode` is the real implementation of an environment; a NeMo Gym resources server only carries
it over HTTP, and the tests, the bench and the direct backend call it in process. Items are plain
dicts in the shape of the OpenAI Responses API, because that is what policy model servers take and
give, token ids included: nothing here re-serialises a policy's item.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol

Item = dict[str, Any]


@dataclass
class Opening:
    """What the policy sees before its first turn.

    `items` follow the row's own input (the system prompt); `tools` are the visible function tools,
    None meaning those of the row. `done` with a `stop_reason` where the episode ended before it began.
    """

    items: list[Item]
    tools: list[Item] | None = None
    done: bool = False
    stop_reason: str | None = None


@dataclass
class Observation:
    """What one policy turn led to: tool outputs in call order, then any user or system message.

    `reward_only`: the next generation serves the reward alone. It is no policy turn, and its token ids
    are stripped so that no trainer can learn from it.
    """

    items: list[Item] = field(default_factory=list)
    tools: list[Item] | None = None
    done: bool = False
    stop_reason: str | None = None
    reward_only: bool = False


@dataclass
class ToolChanges:
    """The visible tools of a rollout, kept where they change: what a policy turn could call."""

    found: list[dict[str, Any]] = field(default_factory=list)

    def note(self, turn: int, tools: list[Item] | None) -> None:
        """From policy turn `turn` on (from 0) these are visible; None: as before."""
        if tools is not None and (not self.found or self.found[-1]["tools"] != tools):
            self.found.append({"turn": turn, "tools": tools})

    def as_field(self) -> dict[str, Any]:
        """`tool_changes` of a rollout row; nothing where the tools are the dataset row's."""
        return {"tool_changes": self.found} if self.found else {}


class Episode(Protocol):
    """One conversation in one world. Not shared between rollouts, not safe for concurrent calls."""

    async def seed(self) -> Opening:
        """Starts the episode."""

    async def step(self, output: list[Item]) -> Observation:
        """Takes the output items of one policy generation and returns what they led to."""

    async def verify(self, stop_reason: str | None = None) -> dict[str, Any]:
        """Scores the episode; `stop_reason` is imposed from outside (deadline, overflow, failure)."""


def message_item(role: str, text: str) -> Item:
    """A Responses-API message item. NeMo Gym >= 0.7 refuses items without a type."""
    return {"type": "message", "role": role, "content": text}


def tool_output_item(call_id: str, output: str) -> Item:
    """A Responses-API tool result."""
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def output_text(output: list[Item]) -> str:
    """The text a policy generation says aloud: its message items, reasoning left out."""
    parts = []
    for item in output:
        if item.get("type") != "message":
            continue
        content = item.get("content")
        if isinstance(content, str):
            parts.append(content)
        elif isinstance(content, list):
            parts += [
                p["text"] for p in content if isinstance(p, dict) and p.get("type") == "output_text"
            ]
    return "\n".join(part for part in parts if part)
