"""A whole environment in a few lines: the user asks `turns` times for a number, then says goodbye."""

from typing import Any

from nemo_tau2.episodes import Item, Observation, Opening, message_item, tool_output_item
from nemo_tau2.errors import UserError
from nemo_tau2.gym.resources import EpisodeServer
from nemo_tau2.outcomes import StopReason


class ToyEpisode:
    """Calls of `add` return a number; a message is answered by the user until `turns` are spent."""

    def __init__(self, row: dict[str, Any]):
        self.metadata = row["verifier_metadata"]
        self.left = self.metadata["turns"]
        self.calls: list[int] = []
        self.verified: str | None = None

    async def seed(self) -> Opening:
        return Opening([message_item("assistant", "Hi."), message_item("user", "Add one.")])

    async def step(self, output: list[Item]) -> Observation:
        calls = [item for item in output if item["type"] == "function_call"]
        self.calls.append(len(calls))
        if calls:
            return Observation([tool_output_item(call["call_id"], "2") for call in calls])
        self.left -= 1
        if self.left <= 0:
            return Observation(
                [message_item("user", "Bye.")], done=True, stop_reason=StopReason.USER_STOP
            )
        return Observation([message_item("user", "Again.")])

    async def verify(self, stop_reason: str | None = None) -> dict[str, Any]:
        stop = StopReason(stop_reason or StopReason.USER_STOP)
        return {
            "task_id": self.metadata["task_id"],
            "domain": self.metadata["domain"],
            "group_id": "toy/1",
            "trial": 0,
            "reward": 0.0 if stop_reason else 1.0,
            "turn_rewards": [float(n) for n in self.calls],
            "turn_tiers": ["gold_exact" if n else "message" for n in self.calls],
            "call_tiers": [["gold_exact"] * n for n in self.calls],
            "stop_reason": str(stop),
            "mask_sample": stop.infrastructure,
            "instance_config": {"mask_sample": stop.infrastructure},
            "reward_info": {},
            "num_turns": len(self.calls),
            "num_tool_calls": sum(self.calls),
            "num_tool_errors": 0,
            "num_user_messages": 1,
            "failure": None,
        }


class ToyServer(EpisodeServer):
    """The toy over HTTP."""

    async def new_episode(self, row: dict[str, Any]) -> ToyEpisode:
        if "turns" not in row.get("verifier_metadata", {}):
            raise UserError("verifier_metadata.turns is missing")
        return ToyEpisode(row)


def script(spec: dict[str, Any], messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Calls `add` after each user message, then says the result."""
    if messages[-1]["role"] == "tool":
        return {"content": f"It is {messages[-1]['content']}, é.", "tool_calls": []}
    call = {"name": "add", "arguments": '{"n": 1'}  # malformed on purpose: it must survive as it is
    return {"content": None, "tool_calls": [{"id": f"call_{len(messages)}", "function": call}]}


def row(turns: int = 2, **more: Any) -> dict[str, Any]:
    tool = {
        "type": "function",
        "name": "add",
        "description": "Adds.",
        "parameters": {"type": "object"},
        "strict": None,
    }
    return {
        "responses_create_params": {
            "input": [message_item("system", "Be brief.")],
            "tools": [tool],
            "metadata": {"extra_body": '{"nemo_tau2": {"task_id": "1"}}'},
        },
        "agent_ref": {"type": "responses_api_agents", "name": "toy_agent"},
        "verifier_metadata": {"domain": "toy", "task_id": "1", "turns": turns},
        **more,
    }
