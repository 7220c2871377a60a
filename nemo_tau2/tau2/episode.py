"""One τ² conversation: the orchestrator's semantics without its threads.

Follows `tau2/orchestrator/orchestrator.py`: greeting, hops counted towards `max_steps` (every message
that an agent, a user or the environment sends is one), 10 tool errors, the user's stop tokens. What it
does differently, on purpose:

- the actor of a call is whoever sent the message, never what its JSON says, so an agent's call to a
  user tool is "tool not found";
- only the user ends the dialogue, unless `agent_may_stop`;
- a stop on the last permitted hop is a stop (upstream overwrites it with `max_steps`);
- arguments that are no JSON object of sane size are an error the policy sees, and nothing runs;
- a failing user simulator ends the episode masked, not as the policy's failure.
"""

import asyncio
import json
import time
from typing import Any

from pydantic import BaseModel, ConfigDict

from nemo_tau2.episodes import (
    Item,
    Observation,
    Opening,
    message_item,
    output_text,
    tool_output_item,
)
from nemo_tau2.outcomes import InfrastructureFailure, StopReason
from nemo_tau2.rewards.table import RewardTable
from nemo_tau2.rewards.tiers import Call, classify, same_arguments, turn_tier
from nemo_tau2.tau2.domains import GREETING, Domain
from nemo_tau2.tau2.engine import (
    STOP,
    AssistantMessage,
    Message,
    Task,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from nemo_tau2.tau2.gold import gold_path
from nemo_tau2.tau2.matching import matched_arguments
from nemo_tau2.tau2.nl_judge import NLJudge
from nemo_tau2.tau2.reward import Reward, outcome_reward, unscored
from nemo_tau2.tau2.users.base import User, says_stop, says_transfer
from nemo_tau2.tau2.worlds import Delta

MAX_ARGUMENTS = 64 * 1024
"""Characters of JSON arguments one call may have."""
MAX_CALLS = 32
"""Calls one policy turn may make; further ones are refused."""

SCORED_STOPS = (StopReason.USER_STOP, StopReason.TRANSFER, StopReason.AGENT_STOP)


class Limits(BaseModel):
    """Budgets of one episode."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_steps: int = 200
    """Hops, counted as τ² counts them."""
    max_errors: int = 10
    """Tool errors of agent and user together."""
    deadline_s: float = 1800.0
    """Seconds from seed to the last turn."""
    user_timeout_s: float = 300.0
    """Seconds one user simulator reply may take, retries included."""
    agent_may_stop: bool = False
    """Whether `###STOP###` in the policy's text ends the dialogue and is scored, as in τ²'s gym."""


class Tau2Episode:
    """Args:
    domain: the domain, shared.
    task: the task to play.
    user: this episode's user simulator.
    rewards: what each tier pays.
    limits: budgets.
    judge: judges natural-language assertions, where the task's basis asks for them.
    labels: fields copied into the verify result (`group_id`, `trial` …).
    """

    def __init__(
        self,
        domain: Domain,
        task: Task,
        user: User,
        rewards: RewardTable | None = None,
        limits: Limits | None = None,
        judge: NLJudge | None = None,
        labels: dict[str, Any] | None = None,
    ):
        self.domain, self.task, self.user, self.judge = domain, task, user, judge
        self.rewards, self.limits = rewards or RewardTable(), limits or Limits()
        self.labels = {"group_id": f"{domain.name}/{task.id}", "trial": 0} | (labels or {})
        self.gold = gold_path(domain, task)
        self.world = domain.new_world()
        self.trajectory: list[Message] = []
        self.stop_reason: StopReason | None = None
        self.failure: str | None = None
        self.hops = self.errors = 0
        self._calls: list[Call] = []
        self._user_calls: list[dict[str, Any]] = []
        self._turns: list[list[int]] = []  # per policy turn, indices into _calls
        self._before: Delta | None = None
        self._started = time.monotonic()
        self._seconds = 0.0

    async def seed(self) -> Opening:
        """Initialises the world, greets the user and returns the greeting and the user's first words."""
        self._started = time.monotonic()
        self.world.initialise(self.task)
        self.world.environment.sync_tools()
        greeting = AssistantMessage(role="assistant", content=GREETING)
        self.trajectory.append(greeting)
        items = await self._user_speaks(greeting)
        return Opening([message_item("assistant", GREETING), *items], None, *self._ended())

    async def step(self, output: list[Item]) -> Observation:
        """Takes one policy generation; runs its calls in order, or passes its text to the user."""
        if self.stop_reason:
            raise ValueError(f"the episode is over ({self.stop_reason}); seed a new one")
        turn: list[int] = []
        self._turns.append(turn)
        if time.monotonic() - self._started > self.limits.deadline_s:
            return self._finish(StopReason.DEADLINE)
        self.hops += 1
        text = output_text(output)
        requests = [item for item in output if item.get("type") == "function_call"]
        if requests:
            return Observation(self._run_calls(turn, text, requests), None, *self._ended())
        if not text.strip():
            return self._finish(StopReason.AGENT_STOP)
        message = AssistantMessage(role="assistant", content=text)
        self.trajectory.append(message)
        if self.limits.agent_may_stop and STOP in text:
            return self._finish(StopReason.AGENT_STOP)
        self._check_budget()
        items = [] if self.stop_reason else await self._user_speaks(message)
        return Observation(items, None, *self._ended())

    async def verify(self, stop_reason: str | None = None) -> dict[str, Any]:
        """Scores the episode: outcome reward, turn rewards and tiers, counts (see docs/rollouts.md).

        `stop_reason` is imposed from outside and overrides nothing that the episode knows itself.
        """
        if self.stop_reason is None:
            self.stop_reason = StopReason(stop_reason) if stop_reason else StopReason.AGENT_STOP
        reward = await self._outcome()
        verdicts = classify(self._calls, self.gold.actions)
        per_turn = [[verdicts[index] for index in turn] for turn in self._turns]
        masked = self.stop_reason.infrastructure
        return {
            "task_id": self.task.id,
            "domain": self.domain.name,
            **self.labels,
            "reward": 0.0 if masked else reward.value,
            "turn_rewards": [self.rewards.turn_reward(calls) for calls in per_turn],
            "turn_tiers": [turn_tier(calls).value for calls in per_turn],
            "call_tiers": [[call.tier.value for call in calls] for calls in per_turn],
            "stop_reason": self.stop_reason.value,
            "mask_sample": masked,
            "instance_config": {"mask_sample": masked},
            "reward_info": reward.as_row(),
            "user_calls": [
                call | {"tier": verdicts[call["index"]].tier.value} for call in self._user_calls
            ],
            "num_turns": len(self._turns),
            "num_tool_calls": sum(len(turn) for turn in self._turns),
            "num_tool_errors": self.errors,
            "num_user_messages": sum(isinstance(m, UserMessage) for m in self.trajectory),
            "seconds": round(self._seconds, 3),
            "failure": {"kind": self.stop_reason.value, "message": self.failure}
            if self.failure
            else None,
        }

    def _ended(self) -> tuple[bool, str | None]:
        self._seconds = time.monotonic() - self._started
        return self.stop_reason is not None, self.stop_reason and self.stop_reason.value

    def _finish(self, reason: StopReason) -> Observation:
        self.stop_reason = reason
        return Observation([], None, *self._ended())

    def _check_budget(self) -> None:
        """Upstream's order: too many errors overrules too many hops."""
        if self.errors >= self.limits.max_errors:
            self.stop_reason = StopReason.MAX_ERRORS
        elif self.hops >= self.limits.max_steps:
            self.stop_reason = StopReason.MAX_TURNS

    def _run_calls(self, turn: list[int], text: str, requests: list[Item]) -> list[Item]:
        """Runs the calls of one policy turn. Refused ones are not part of the τ² trajectory."""
        parsed = [_parse_request(request, index) for index, request in enumerate(requests)]
        accepted = [call for call, _ in parsed if call is not None]
        if accepted:
            self.trajectory.append(
                AssistantMessage(role="assistant", content=text or None, tool_calls=accepted)
            )
        items = []
        for request, (call, refusal) in zip(requests, parsed, strict=True):
            name = str(request.get("name"))
            if call is None:
                result = ToolMessage(id="", role="tool", content=refusal, error=True)
                arguments: dict[str, Any] = {"": request.get("arguments")}
            else:
                result, arguments = self._execute("assistant", call), call.arguments
            self.errors += result.error
            turn.append(self._record("assistant", name, arguments, result))
            items.append(tool_output_item(str(request.get("call_id")), result.content or ""))
        self.hops += 1
        self.world.environment.sync_tools()
        self._check_budget()
        return items

    def _execute(self, actor: str, call: ToolCall) -> ToolMessage:
        self._before = self._state_if_needed(actor, call)
        result = self.world.execute(actor, call.name, call.arguments, call.id)
        self.trajectory.append(result)
        return result

    def _state_if_needed(self, actor: str, call: ToolCall) -> Delta | None:
        """The world's delta before a write that matches gold only after notation is forgiven."""
        if not self.domain.writes(actor, call.name):
            return None
        matched = matched_arguments(self.domain, actor, call.name, call.arguments)
        probe = Call(actor, call.name, call.arguments, matched, True, False)
        alike = [g for g in self.gold.actions if g.name == call.name and same_arguments(probe, g)]
        exact = any(g.arguments == call.arguments for g in alike)
        return self.world.delta() if alike and not exact else None

    def _record(self, actor: str, name: str, arguments: dict[str, Any], result: ToolMessage) -> int:
        before, self._before = self._before, None
        self._calls.append(
            Call(
                actor=actor,
                name=name,
                arguments=arguments,
                matched=matched_arguments(self.domain, actor, name, arguments),
                writes=self.domain.writes(actor, name),
                errored=result.error or (result.content or "").startswith("Error"),
                landed=None if before is None else self.gold.landed(before, self.world.delta()),
            )
        )
        return len(self._calls) - 1

    async def _user_speaks(self, incoming: AssistantMessage) -> list[Item]:
        """Lets the user act until it has said something; returns what the policy hears of it."""
        message: AssistantMessage | list[ToolMessage] = incoming
        while True:
            try:
                async with asyncio.timeout(self.limits.user_timeout_s):
                    reply = await self.user.reply(message)
            except TimeoutError:
                self.failure = f"no user reply within {self.limits.user_timeout_s:g} s"
                self.stop_reason = StopReason.USER_SIMULATOR_FAILED
                return []
            except InfrastructureFailure as failure:
                self.failure, self.stop_reason = str(failure), failure.reason
                return []
            self.hops += 1
            self.trajectory.append(reply)
            if not reply.is_tool_call():
                return self._hear(reply)
            message = self._run_user_calls(reply)
            if self.stop_reason:
                return []

    def _hear(self, reply: UserMessage) -> list[Item]:
        if says_stop(reply):
            self.stop_reason = StopReason.TRANSFER if says_transfer(reply) else StopReason.USER_STOP
        else:
            self._check_budget()
        return [message_item("user", reply.content or "")]

    def _run_user_calls(self, reply: UserMessage) -> list[ToolMessage]:
        results = []
        for call in reply.tool_calls:
            result = self._execute("user", call)
            self.errors += result.error
            results.append(result)
            self._user_calls.append(
                {
                    "index": self._record("user", call.name, call.arguments, result),
                    "turn": len(self._turns),
                    "name": call.name,
                    "arguments": call.arguments,
                    "output": (result.content or "")[:2000],
                    "error": result.error,
                }
            )
        self.hops += 1
        self.world.environment.sync_tools()
        self._check_budget()
        return results

    async def _outcome(self) -> Reward:
        if self.stop_reason not in SCORED_STOPS or not self._ended_properly():
            return unscored(self.task, self.stop_reason.value)
        verdicts = None
        if self.judge and self.judge.needed(self.task):
            try:
                verdicts = await self.judge(self.task, self.trajectory)
            except InfrastructureFailure as failure:
                self.failure, self.stop_reason = str(failure), failure.reason
                return unscored(self.task, failure.reason.value)
        return outcome_reward(self.world, self.task, self.gold, self.trajectory, verdicts)

    def _ended_properly(self) -> bool:
        """An agent's stop counts only where the agent may stop, and an empty turn never does."""
        if self.stop_reason is not StopReason.AGENT_STOP:
            return True
        last = self.trajectory[-1] if self.trajectory else None
        said = last.content if isinstance(last, AssistantMessage) else ""
        return self.limits.agent_may_stop and STOP in (said or "")


def _parse_request(request: Item, index: int) -> tuple[ToolCall | None, str]:
    """A policy's function call, or None with the error the policy is shown."""
    name, arguments = request.get("name"), request.get("arguments")
    if index >= MAX_CALLS:
        return None, f"Error: at most {MAX_CALLS} tool calls in one turn"
    if not isinstance(name, str) or not name:
        return None, "Error: the tool call has no name"
    if isinstance(arguments, str):
        if len(arguments) > MAX_ARGUMENTS:
            return None, f"Error: arguments are longer than {MAX_ARGUMENTS} characters"
        try:
            arguments = json.loads(arguments or "{}", parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            return None, f"Error: arguments are not valid JSON: {str(error)[:200]}"
    if not isinstance(arguments, dict):
        return None, "Error: arguments must be a JSON object"
    if _depth_exceeds(arguments, 32):
        return None, "Error: arguments are nested too deeply"
    call_id = str(request.get("call_id") or f"call_{index}")
    return ToolCall(id=call_id, name=name, arguments=arguments, requestor="assistant"), ""


def _refuse_constant(name: str):
    raise ValueError(f"{name} is not JSON")


def _depth_exceeds(value: Any, limit: int) -> bool:
    if limit == 0:
        return True
    if isinstance(value, dict):
        return any(_depth_exceeds(item, limit - 1) for item in value.values())
    return isinstance(value, list) and any(_depth_exceeds(item, limit - 1) for item in value)
