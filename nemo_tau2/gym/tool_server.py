"""`tool_server`: any NeMo Gym tool server behind `dialogue_agent`, such as its `workplace_assistant`.

NeMo Gym's own tool environments are resources servers with a route per tool, a session cookie and a
`verify` that gives one number. This server stands between one of them and the agent: it opens the
session there, posts each call to its route and lets it score the episode. Nothing of theirs is copied.

There is no gold path to give turns a value, so the outcome stands on the last policy turn and every
other turn has 0. Not for tools that need a customer: the first turn without a call ends the episode.
"""

import json
import time
from typing import Any

from nemo_gym.config_types import ResourcesServerRef
from pydantic import ConfigDict, PositiveFloat

from nemo_tau2.episodes import Item, Observation, Opening, tool_output_item
from nemo_tau2.errors import UserError
from nemo_tau2.gym.http import CallFailed, Peer
from nemo_tau2.gym.resources import EpisodeServer, EpisodeServerConfig
from nemo_tau2.outcomes import InfrastructureFailure, StopReason

MAX_ARGUMENTS = 64 * 1024
"""Characters of JSON arguments one call may have."""
RESPONSE = {
    "id": "resp_tool_server",
    "created_at": 0,
    "model": "policy",
    "object": "response",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
}
"""What a Responses-API response needs beside its output."""


class ToolServerConfig(EpisodeServerConfig):
    """Configuration of a `tool_server` instance."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    tool_server: ResourcesServerRef
    """The resources server whose tools are called and whose `verify` scores."""
    call_timeout_s: PositiveFloat = 120.0
    """Seconds one call to it may take; longer is `world_failed`, masked."""
    error_prefix: str = "Error"
    """How a result that is an error begins; it is counted, and its turn has the tier `error`."""


class ToolServer(EpisodeServer):
    """Makes an episode of each row of the tool server's dataset."""

    config: ToolServerConfig

    async def new_episode(self, row: dict[str, Any]) -> "ToolServerEpisode":
        if not isinstance(row.get("responses_create_params"), dict):
            raise UserError("the row has no responses_create_params")
        return ToolServerEpisode(row, self.peer(self.config.tool_server.name), self.config)


class ToolServerEpisode:
    """Args:
    row: a row of the tool server's dataset; its tools are those of `responses_create_params`.
    peer: the tool server, with a cookie jar of this episode's own.
    config: time limits and what an error looks like.
    """

    def __init__(self, row: dict[str, Any], peer: Peer, config: ToolServerConfig):
        self.row, self._peer, self._config = row, peer, config
        tools = row["responses_create_params"].get("tools") or []
        self._names = {tool.get("name") for tool in tools}
        self.output: list[Item] = []
        self.tiers: list[list[str]] = []
        self.stop_reason: StopReason | None = None
        self.failure: str | None = None
        self._started = time.monotonic()

    async def seed(self) -> Opening:
        """Opens the session there. The row's own input and tools are what the policy sees."""
        self._started = time.monotonic()
        try:
            await self._post("/seed_session", self.row)
        except InfrastructureFailure as failure:
            self._fail(failure)
        return Opening([], None, *self._ended())

    async def step(self, output: list[Item]) -> Observation:
        """Makes the calls of one generation in order; a generation without one ends the episode."""
        calls = [item for item in output if item.get("type") == "function_call"]
        self.output += output
        self.tiers.append([])
        items: list[Item] = []
        try:
            for call in calls:
                items.append(await self._call(call))
        except InfrastructureFailure as failure:
            self._fail(failure)
        self.output += items
        if not calls:
            self.stop_reason = StopReason.AGENT_STOP
        return Observation(items, None, *self._ended())

    async def verify(self, stop_reason: str | None = None) -> dict[str, Any]:
        """What the tool server says the episode is worth; an infrastructure failure is masked."""
        if self.stop_reason is None:
            self.stop_reason = StopReason(stop_reason) if stop_reason else StopReason.AGENT_STOP
        reward, info = 0.0, {}
        if not self.stop_reason.infrastructure:
            try:
                info = await self._scored()
                reward = float(info["reward"])
            except InfrastructureFailure as failure:
                self._fail(failure)
        return self._verdict(reward, info)

    def _verdict(self, reward: float, info: dict[str, Any]) -> dict[str, Any]:
        masked = self.stop_reason.infrastructure
        turns = [best(tiers) for tiers in self.tiers]
        task = f"{self.row.get('environment_name') or self._peer.name}/{self.row.get('id')}"
        metadata = self.row.get("verifier_metadata") or {}
        failure = {"kind": self.stop_reason.value, "message": self.failure}
        return {
            "task_id": task,
            "domain": self._peer.name,
            "group_id": metadata.get("group_id") or task,
            "trial": metadata.get("trial", 0),
            "reward": 0.0 if masked else reward,
            "turn_rewards": [0.0] * (len(turns) - 1) + [0.0 if masked else reward][: len(turns)],
            "turn_tiers": turns,
            "call_tiers": self.tiers,
            "stop_reason": self.stop_reason.value,
            "mask_sample": masked,
            "instance_config": {"mask_sample": masked},
            "blame": "harness" if masked else "policy",
            "reward_info": {"kind": "tool_server", "category": self.row.get("category")} | info,
            "num_turns": len(turns),
            "num_tool_calls": sum(map(len, self.tiers)),
            "num_tool_errors": sum(tiers.count("error") for tiers in self.tiers),
            "num_user_messages": 0,
            "seconds": round(time.monotonic() - self._started, 3),
            "failure": failure if masked else None,
        }

    async def _scored(self) -> dict[str, Any]:
        response = RESPONSE | {
            "output": [item for item in map(_plain, self.output) if item],
            "tools": self.row["responses_create_params"].get("tools") or [],
        }
        answer = await self._post("/verify", self.row | {"response": response})
        reward = answer.get("reward")
        if isinstance(reward, bool) or not isinstance(reward, int | float):
            reason = f"{self._peer.name}/verify gave no reward"
            raise InfrastructureFailure(StopReason.WORLD_FAILED, reason)
        return {"reward": reward}

    async def _call(self, call: Item) -> Item:
        name, given = call.get("name"), call.get("arguments")
        if name not in self._names:
            result = f"Error: no tool {str(name)[:100]!r}"
        elif (arguments := _arguments(given)) is None:
            result = "Error: the arguments are no JSON object"
        else:
            answer = await self._post(f"/{name}", arguments)
            result = answer.get("output", answer)
        text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
        failed = text.startswith(("Error:", self._config.error_prefix))
        self.tiers[-1].append("error" if failed else "tool_call")
        return tool_output_item(str(call.get("call_id")), text)

    async def _post(self, path: str, body: Any) -> dict[str, Any]:
        try:
            return await self._peer.post(path, body, self._config.call_timeout_s)
        except CallFailed as error:
            raise InfrastructureFailure(StopReason.WORLD_FAILED, str(error)) from None

    def _fail(self, failure: InfrastructureFailure) -> None:
        self.failure, self.stop_reason = str(failure), failure.reason

    def _ended(self) -> tuple[bool, str | None]:
        return self.stop_reason is not None, self.stop_reason and self.stop_reason.value


def best(tiers: list[str]) -> str:
    """A turn's tier: `tool_call` where a call worked, `error` where none did, `message` without one."""
    return "tool_call" if "tool_call" in tiers else "error" if tiers else "message"


def _arguments(given: Any) -> dict[str, Any] | None:
    if isinstance(given, str):
        if len(given) > MAX_ARGUMENTS:
            return None
        try:
            given = json.loads(given or "{}")
        except (ValueError, RecursionError):
            return None
    return given if isinstance(given, dict) else None


def _plain(item: Item) -> Item | None:
    """The item without token ids, as the tool server's request model takes it; reasoning is left out."""
    kept = {
        "message": ("id", "role", "status", "type"),
        "function_call": ("id", "call_id", "name", "arguments", "status", "type"),
        "function_call_output": ("call_id", "output", "type"),
    }.get(item.get("type", ""))
    if kept is None:
        return None
    plain = {name: item[name] for name in kept if item.get(name) is not None}
    if plain["type"] == "message":
        plain |= {"id": plain.get("id", "msg"), "status": "completed"}
        content = item.get("content")
        parts = [{"text": content}] if isinstance(content, str) else content or []
        plain["content"] = [
            {"type": "output_text", "text": part.get("text", ""), "annotations": []}
            for part in parts
        ]
    return plain
