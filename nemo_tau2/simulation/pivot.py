"""Pivot mode (K29-K33): one turn with a tool withheld, the bridge message, one recovery turn.

    R = G(a_k) * f_match(held tool, recovery turn)          (Koa eq. 9)

G is 1 iff the constrained turn a_k makes no state-changing call; reads pass. Beyond the paper, a call
of an absent tool (the withheld one, say) makes G 0 too. The recovery turn serves the reward only: it
is announced as `reward_only`, so that its token ids are stripped, and has no turn reward.
"""

from typing import Any

from nemo_tau2.agentscript.graph import Node, Tool
from nemo_tau2.episodes import Item, Observation, message_item, output_text
from nemo_tau2.errors import UserError
from nemo_tau2.outcomes import StopReason
from nemo_tau2.rewards.pivot import ConstrainedCall, gate, recovery_match
from nemo_tau2.simulation.episode import SpecEpisode, _parse, as_function, opening_of
from nemo_tau2.simulation.session import CallRefusedError, Refusal

BRIDGE = "I have updated some more functions you can choose from. What about now?"


class PivotEpisode(SpecEpisode):
    """Two generations: constrained, then recovery."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.restored = False
        self.recovery: list[Item] = []
        self.said = False
        if self.row.withheld_tool not in self._flat():
            raise UserError(
                f"{self.row.task_id}: withheld_tool {self.row.withheld_tool!r} is no tool of the row"
            )

    def tools(self) -> list[Item]:
        """The row's tools; the withheld one only after the bridge."""
        return [
            as_function(tool, name)
            for name, (_, tool) in self._flat().items()
            if self.restored or name != self.row.withheld_tool
        ]

    def resolve(self, name: str) -> tuple[Node, Tool]:
        if name == self.row.withheld_tool and not self.restored:
            raise CallRefusedError(Refusal.UNKNOWN, f"unknown tool {name!r}")
        return super().resolve(name)

    async def step(self, output: list[Item]) -> Observation:
        if not self.restored:
            observation = await super().step(output)
            if self.failure or self.stop_reason is StopReason.DEADLINE:
                return observation
            self.stop_reason, self.restored = None, True
            items = [*observation.items, message_item("user", BRIDGE)]
            return Observation(items, self.tools(), reward_only=True)
        if self.stop_reason:
            raise ValueError(f"the episode is over ({self.stop_reason}); seed a new one")
        self.recovery = output
        self.stop_reason = StopReason.USER_STOP
        return Observation([], self.tools(), *self._ended())

    async def verify(self, stop_reason: str | None = None) -> dict[str, Any]:
        judge, self.judge = self.judge, _no_verdicts
        result = await super().verify(stop_reason)
        self.judge = judge
        gate, match = self.gate(), self.match()
        info = {"kind": "pivot", "gate": gate, "match": match, "turn": self.depth}
        reward = 0.0 if result["mask_sample"] else gate * match
        info = result["reward_info"] | info
        return result | {"reward": reward, "turn_rewards": [reward][: self._n], "reward_info": info}

    @property
    def depth(self) -> str:
        """Where the tool was missing: at turn 0 or in mid-conversation."""
        return "mid" if self.row.prefix else "turn_0"

    @property
    def _n(self) -> int:
        return len(self.turns)

    def gate(self) -> float:
        """G of the constrained turn; a refused write was still attempted."""
        if not self.turns:
            return 0.0
        absent = (Refusal.UNKNOWN, Refusal.INVALID)
        calls = [
            ConstrainedCall(c.is_write or self._would_write(c.name), c.refusal in absent)
            for c in self.session.calls
            if c.turn >= 0
        ]
        return gate(calls, self.said, self.options.pivot_scores_constrained_turn)

    def match(self) -> float:
        """f_match of the recovery turn."""
        calls = [item for item in self.recovery if item.get("type") == "function_call"]
        _, tool = self._flat()[self.row.withheld_tool]
        made = [(str(c.get("name")), _arguments(c)) for c in calls]
        return recovery_match(made, self.row.withheld_tool, self.expected(), tool.schema)

    def expected(self) -> dict[str, Any]:
        """Arguments of the held call: the question's, else what the customer knows."""
        _, tool = self._flat()[self.row.withheld_tool]
        for question in self.row.questions:
            if question.action == tool.target and question.arguments:
                names = {p.name for p in tool.inputs}
                return {k: v for k, v in question.arguments.items() if k in names}
        facts = self.session.facts
        return {p.name: facts[p.name] for p in tool.inputs if p.name in facts}

    async def _advance(self, output: list[Item]) -> list[Item]:
        text = output_text(output)
        self.said = bool(text.strip())
        calls = [item for item in output if item.get("type") == "function_call"]
        return [await self._one_call(call, i) for i, call in enumerate(calls)]

    async def _open(self) -> list[Item]:
        text = opening_of(self.row)
        self.session.hear(text)
        self.transcript.append(("customer", text))
        facts = ", ".join(f"{k}: {v}" for k, v in self.row.customer.facts.items())
        return [message_item("user", f"{text} {facts}".strip())]

    def _would_write(self, name: str) -> bool:
        from nemo_tau2.simulation.records import writes

        node, tool = self._flat().get(name, (None, None))
        action = node.actions.get(tool.target) if tool else None
        return action is not None and writes(action)


def _arguments(item: Item) -> dict[str, Any] | None:
    try:
        return _parse(item, 0)
    except CallRefusedError:
        return None


async def _no_verdicts(questions: Any, transcript: Any) -> dict[int, bool | None]:
    return {}
