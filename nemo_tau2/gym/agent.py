"""`dialogue_agent`: the one agent harness of every environment here.

seed -> (policy generation -> step)* -> verify. What an environment is lies behind those three verbs
of its resources server; this loop only moves items between it and the policy's model server. It
keeps rollouts trainable: the history is append-only, the policy's items pass through as the bytes
they came in (token ids and logprobs included), there is one token chain per rollout, and no
assistant message is added after the first policy turn. It never raises out of `/run`: whatever
breaks becomes a row that says so, masked where the policy is not to blame.

It is not NeMo Gym's `simple_agent`: that one calls tools by route, has no user in the loop, no
deadline, and lets one failed call abort a whole collection.
"""

import asyncio
import logging
import time
import uuid
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import aiohttp
import orjson
from fastapi import FastAPI, HTTPException, Request, Response
from nemo_gym.base_responses_api_agent import BaseResponsesAPIAgentConfig, SimpleResponsesAPIAgent
from nemo_gym.config_types import ModelServerRef, ResourcesServerRef
from nemo_gym.global_config import get_first_server_config_dict
from pydantic import ConfigDict, PositiveFloat, PositiveInt, PrivateAttr

from nemo_tau2 import gym_compat
from nemo_tau2.episodes import Item, ToolChanges
from nemo_tau2.gym.cpu_profile import profile_into
from nemo_tau2.gym.http import CallFailed, Peer, new_session
from nemo_tau2.gym.rows import align_turns, as_items, failure_row
from nemo_tau2.outcomes import InfrastructureFailure, StopReason

log = logging.getLogger(__name__)


class DialogueAgentConfig(BaseResponsesAPIAgentConfig):
    """Configuration of a `dialogue_agent` instance."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    resources_server: ResourcesServerRef
    """The environment: a resources server with /seed_session, /step and /verify."""
    model_server: ModelServerRef
    """The policy: a responses_api_models instance; the trainable one, with token ids, in training."""
    max_turns: PositiveInt | None = None
    """Policy turns per episode; None leaves the budget to the environment."""
    episode_deadline_s: PositiveFloat = 3600.0
    """Seconds from seed to the last step; an episode that takes longer ends as `deadline`, scored."""
    policy_call_timeout_s: PositiveFloat = 900.0
    """Seconds for one policy generation; a longer one ends the episode as `policy_endpoint_failed`."""
    environment_call_timeout_s: PositiveFloat = 900.0
    """Seconds for one seed, step (user simulator included) or verify; longer is `world_failed`."""
    cpu_profile_path: str | None = None
    """Where to write a CPU profile of this server (JSON); None: no profile. For `bench gym`."""


@dataclass
class Rollout:
    """One episode in flight: the row, both peers, and what has been said so far."""

    row: dict[str, Any]
    params: dict[str, Any]
    world: Peer
    policy: Peer
    history: list[orjson.Fragment]
    output: list[Item] = field(default_factory=list)
    turn_output_indices: list[int] = field(default_factory=list)
    tool_changes: ToolChanges = field(default_factory=ToolChanges)
    response: dict[str, Any] | None = None
    usage: dict[str, int] | None = None
    stop_reason: str | None = None
    imposed: StopReason | None = None
    failure: dict[str, str] | None = None

    def extend(self, items: list[Item]) -> None:
        """Appends items to the history, each serialised once in its life."""
        self.output += items
        self.history += [orjson.Fragment(orjson.dumps(item)) for item in items]

    def fail(self, reason: StopReason, message: str) -> None:
        self.imposed = reason
        self.failure = {"kind": str(reason), "message": message}


class DialogueAgent(SimpleResponsesAPIAgent):
    """The NeMo Gym server around the loop."""

    config: DialogueAgentConfig
    # ClassVar, not a field: 0.4.0 refuses a plain attribute, >= 0.5 reads the ClassVar.
    ray_enabled: ClassVar[bool] = False
    _session: aiohttp.ClientSession | None = PrivateAttr(default=None)

    def setup_webserver(self) -> FastAPI:
        app = super().setup_webserver()
        inner = app.router.lifespan_context

        @asynccontextmanager
        async def lifespan(app: FastAPI):
            with profile_into(self.config.cpu_profile_path):
                async with inner(app) as state:
                    yield state
            if self._session is not None:
                await self._session.close()

        app.router.lifespan_context = lifespan
        return app

    async def responses(self, request: Request) -> Response:
        """Refused: a dialogue needs its environment, so a rollout is one POST to /run."""
        raise HTTPException(
            501, "dialogue_agent plays whole episodes: POST the dataset row to /run"
        )

    async def run(self, request: Request) -> Response:
        """Plays the episode of one dataset row and returns the row with its outcome."""
        try:
            row = orjson.loads(await request.body())
        except orjson.JSONDecodeError as error:
            raise HTTPException(422, f"the request body is not JSON: {error}") from None
        return Response(orjson.dumps(await self.play(row)), media_type="application/json")

    async def play(self, row: Any) -> dict[str, Any]:
        """`run` without HTTP. Never raises: an unforeseen error is a masked `world_failed` row."""
        try:
            rollout = self._new_rollout(row)
        except ValueError as error:
            return failure_row(row, StopReason.WORLD_FAILED, f"bad row: {error}")
        try:
            await self._converse_until_deadline(rollout)
            return await self._verify(rollout)
        except Exception as error:  # the boundary: one broken episode must not abort a collection
            log.exception("episode failed")
            rollout.fail(StopReason.WORLD_FAILED, f"{type(error).__name__}: {error}")
            return self._finish(
                rollout, failure_row(row, StopReason.WORLD_FAILED, rollout.failure["message"])
            )

    async def aggregate_metrics(self, request: Request) -> Response:
        """Passed on to the resources server, which owns the metrics."""
        peer = self._peer(self.config.resources_server.name)
        body = orjson.Fragment(await request.body())
        answer = await peer.post("/aggregate_metrics", body, self.config.environment_call_timeout_s)
        return Response(orjson.dumps(answer), media_type="application/json")

    def _peer(self, name: str) -> Peer:
        if self._session is None or self._session.closed:
            self._session = new_session()
        config = get_first_server_config_dict(self.server_client.global_config_dict, name)
        return Peer(name, f"http://{config['host']}:{config['port']}", self._session, cookies={})

    def _new_rollout(self, row: Any) -> Rollout:
        params = row.get("responses_create_params") if isinstance(row, dict) else None
        if not isinstance(params, dict):
            raise ValueError("no responses_create_params object")
        history = [orjson.Fragment(orjson.dumps(item)) for item in as_items(params.get("input"))]
        return Rollout(
            row=row,
            params=params,
            world=self._peer(self.config.resources_server.name),
            policy=self._peer(self.config.model_server.name),
            history=history,
        )

    async def _converse_until_deadline(self, rollout: Rollout) -> None:
        deadline = asyncio.timeout(self.config.episode_deadline_s)
        try:
            async with deadline:
                await self._converse(rollout)
        except InfrastructureFailure as failure:
            rollout.fail(failure.reason, str(failure))
        except TimeoutError:
            if not deadline.expired():
                raise
            rollout.imposed = StopReason.DEADLINE

    async def _converse(self, rollout: Rollout) -> None:
        """Seed, then policy turns until the environment or a budget ends the episode."""
        seen = await self._ask_world(rollout, "/seed_session", rollout.row)
        path = gym_compat.model_path(self, "/v1/responses", rollout.row)
        body = rollout.params | {"input": rollout.history}
        while True:
            rollout.extend(seen["items"])
            rollout.tool_changes.note(len(rollout.turn_output_indices), seen.get("tools"))
            if seen.get("tools") is not None:
                body["tools"] = seen["tools"]
            if seen["done"]:
                rollout.stop_reason = seen["stop_reason"]
                return
            if (
                self.config.max_turns is not None
                and len(rollout.turn_output_indices) >= self.config.max_turns
            ):
                rollout.imposed = StopReason.MAX_TURNS
                return
            generated = await self._generate(rollout, path, body)
            if generated is None:
                rollout.imposed = StopReason.CONTEXT_OVERFLOW
                return
            if seen.get("reward_only"):
                rollout.extend([without_token_ids(item) for item in generated])
                rollout.response = without_token_ids(rollout.response)
            else:
                rollout.extend(generated)
                rollout.turn_output_indices.append(len(rollout.output) - 1)
            seen = await self._ask_world(rollout, "/step", {"output": generated})

    async def _generate(
        self, rollout: Rollout, path: str, body: dict[str, Any]
    ) -> list[Item] | None:
        """One policy generation, or None where the history no longer fits its context."""
        try:
            response = await rollout.policy.post(path, body, self.config.policy_call_timeout_s)
        except CallFailed as error:
            raise InfrastructureFailure(StopReason.POLICY_ENDPOINT_FAILED, str(error)) from None
        output = response.get("output")
        if (
            not isinstance(output, list)
            or not output
            or not all(isinstance(item, dict) for item in output)
        ):
            raise InfrastructureFailure(
                StopReason.POLICY_ENDPOINT_FAILED, "the policy answered no output items"
            )
        if overflowed(response):
            return None
        rollout.response = response
        rollout.usage = add_usage(rollout.usage, response.get("usage"))
        return output

    async def _ask_world(self, rollout: Rollout, path: str, body: Any) -> dict[str, Any]:
        try:
            answer = await rollout.world.post(path, body, self.config.environment_call_timeout_s)
        except CallFailed as error:
            raise InfrastructureFailure(StopReason.WORLD_FAILED, str(error)) from None
        if not isinstance(answer.get("items"), list) or "done" not in answer:
            message = f"{rollout.world.name}{path} answered no items and done"
            raise InfrastructureFailure(StopReason.WORLD_FAILED, message)
        return answer

    async def _verify(self, rollout: Rollout) -> dict[str, Any]:
        if rollout.imposed == StopReason.WORLD_FAILED:
            return self._finish(
                rollout, failure_row(rollout.row, rollout.imposed, rollout.failure["message"])
            )
        body = rollout.row | {"response": self._response(rollout), "stop_reason": rollout.imposed}
        try:
            verdict = await rollout.world.post(
                "/verify", body, self.config.environment_call_timeout_s
            )
        except CallFailed as error:
            return self._finish(
                rollout, failure_row(rollout.row, StopReason.WORLD_FAILED, str(error))
            )
        if rollout.failure and not verdict.get("failure"):
            verdict["failure"] = rollout.failure
        return self._finish(rollout, rollout.row | verdict)

    def _finish(self, rollout: Rollout, result: dict[str, Any]) -> dict[str, Any]:
        result["responses_create_params"] = rollout.params
        result["response"] = self._response(rollout)
        result["turn_output_indices"] = rollout.turn_output_indices
        result |= rollout.tool_changes.as_field()
        return align_turns(result)

    def _response(self, rollout: Rollout) -> dict[str, Any]:
        """The last model response with the whole trajectory as its output and the summed usage."""
        last = rollout.response or {
            "id": f"resp_{uuid.uuid4().hex}",
            "created_at": int(time.time()),
            "model": self.config.model_server.name,
            "object": "response",
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }
        first = len(rollout.history) - len(rollout.output)
        return last | {"output": rollout.history[first:], "usage": rollout.usage}


TOKEN_FIELDS = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")
"""What a training model server adds to an item; without it nothing of the item is trained on."""


def without_token_ids(item: Item) -> Item:
    """An item, or a response, of a generation that serves the reward alone (`reward_only`)."""
    kept = {key: value for key, value in item.items() if key not in TOKEN_FIELDS}
    if isinstance(kept.get("content"), list):
        kept["content"] = [
            {key: value for key, value in part.items() if key != "logprobs"}
            if isinstance(part, dict)
            else part
            for part in kept["content"]
        ]
    return kept


def overflowed(response: dict[str, Any]) -> bool:
    """True where a model server says that the history no longer fits: cut for length, and empty.

    NeMo Gym's vllm_model answers a context-length error with such an empty message (0.4.0
    vllm_model/app.py:457-472). A generation that was cut after some tokens is a policy turn.
    """
    if not response.get("incomplete_details"):
        return False
    for item in response["output"]:
        if item.get("type") != "message" or item.get("generation_token_ids"):
            return False
        content = item.get("content") or []
        if content if isinstance(content, str) else any(part.get("text") for part in content):
            return False
    return True


def add_usage(total: dict[str, Any] | None, usage: dict[str, Any] | None) -> dict[str, Any] | None:
    """Token counts of all generations; the details of the first are kept, as upstream does."""
    if not usage:
        return total
    if not total:
        return dict(usage)
    counts = ("input_tokens", "output_tokens", "total_tokens")
    return total | {name: total.get(name, 0) + usage.get(name, 0) for name in counts}
