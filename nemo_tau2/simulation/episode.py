"""The episode of every spec-driven environment: seed, step, verify on a session.

`SpecEpisode` is the flat mode and the base of the others: every advertised tool is callable wherever
it is defined. Subclasses say what is in scope and what happens around a customer message.
"""

import json
import time
from collections.abc import Sequence
from copy import copy
from typing import Any, Self

from nemo_tau2.agentscript.evaluate import is_true
from nemo_tau2.agentscript.graph import Node, Tool, ToolKind, WorkflowGraph
from nemo_tau2.episodes import (
    Item,
    Observation,
    Opening,
    message_item,
    output_text,
    tool_output_item,
)
from nemo_tau2.outcomes import InfrastructureFailure, StopReason
from nemo_tau2.rewards.coverage import Evidence
from nemo_tau2.rewards.spec_tiers import SpecTierRewards
from nemo_tau2.simulation.customer import (
    STOP,
    CustomerRole,
    ScriptedCustomer,
    check_message,
    check_need,
    opening_of,
)
from nemo_tau2.simulation.emulator import Emulator, ScriptedEmulator
from nemo_tau2.simulation.helpers import PROMPT_VERSIONS, within
from nemo_tau2.simulation.judge import Judge, Line, RuleJudge, judged
from nemo_tau2.simulation.options import SpecOptions, budget_of
from nemo_tau2.simulation.prefixes import hydrate
from nemo_tau2.simulation.scenario import SpecRow
from nemo_tau2.simulation.score import Switch, score
from nemo_tau2.simulation.session import CallRefusedError, Done, Refusal, Session, facts_of
from nemo_tau2.simulation.untrusted import read_json

MAX_ARGUMENTS = 64 * 1024
"""Characters of JSON arguments one call may have."""
MAX_CALLS = 32
"""Calls one policy turn may make; further ones are refused."""


def as_function(tool: Tool, name: str | None = None) -> Item:
    """A tool as a Responses-API function."""
    return {
        "type": "function",
        "name": name or tool.name,
        "description": tool.description or "",
        "parameters": tool.schema,
        "strict": None,
    }


class SpecEpisode:
    """Args:
    graph: the compiled script.
    row: what the episode is about.
    options: settings.
    rewards: what each tier pays.
    emulator, customer, judge: the helper roles; scripted where None.
    tool_names: names advertised (flat and sandbox); None: all.
    """

    has_customer = True
    _looks_ahead = False

    def __init__(
        self,
        graph: WorkflowGraph,
        row: SpecRow,
        options: SpecOptions | None = None,
        rewards: SpecTierRewards | None = None,
        emulator: Emulator | None = None,
        customer: CustomerRole | None = None,
        judge: Judge | None = None,
        tool_names: Sequence[str] | None = None,
    ):
        self.graph, self.row = graph, row
        self.options, self.rewards = options or SpecOptions(), rewards or SpecTierRewards()
        self.budget = budget_of(graph, self.options)
        facts = facts_of(graph, row.seed, row.customer.facts)
        self.session = Session(
            graph,
            emulator or ScriptedEmulator(),
            row.seed,
            facts,
            self.options.transient_error_rate,
            self.options.helper_timeout_s,
        )
        self.customer = customer or ScriptedCustomer(row, facts, self._is_served)
        self.judge = judge or RuleJudge()
        self.transcript: list[Line] = []
        self.turns: list[list[Done]] = []
        self.stop_reason: StopReason | None = None
        self.failure: str | None = None
        self.errors = self.steps_in_turn = 0
        self.switches: list[Switch] = []
        self.dead_ends = 0
        self._names = set(tool_names) if tool_names else None
        self._started, self.seconds = time.monotonic(), 0.0

    async def seed(self) -> Opening:
        """System message, welcome, the prefix of the row and the customer's first words."""
        self._started = time.monotonic()
        items: list[Item] = []
        try:
            items += await self._begin()
            prefix = self.row.prefix
            items += await (hydrate(self, prefix) if prefix else self._open())
        except InfrastructureFailure as failure:
            self._fail(failure)
        return Opening(items, self.tools(), *self._ended())

    async def step(self, output: list[Item]) -> Observation:
        """Runs the calls of one generation in order, or passes its text to the customer."""
        items = await self.take(output)
        return Observation(items, self.tools(), *self._ended())

    async def take(self, output: list[Item]) -> list[Item]:
        """`step` without the observation: the items that follow."""
        if self.stop_reason:
            raise ValueError(f"the episode is over ({self.stop_reason}); seed a new one")
        self.turns.append([])
        self.steps_in_turn += 1
        items: list[Item] = []
        try:
            if time.monotonic() - self._started > self.options.deadline_s:
                self.stop_reason = StopReason.DEADLINE
            else:
                items = await self._advance(output)
        except InfrastructureFailure as failure:
            self._fail(failure)
        self._check_budget()
        return items

    async def verify(self, stop_reason: str | None = None) -> dict[str, Any]:
        """Scores the episode; fields as in docs/rollouts.md plus routes, verdicts and blame."""
        if self.stop_reason is None:
            self.stop_reason = StopReason(stop_reason) if stop_reason else StopReason.AGENT_STOP
        verdicts: dict[int, bool | None] = {}
        if not self.stop_reason.infrastructure and self.row.questions and self.has_customer:
            try:
                asked = self._judge()(self.row.questions, self.transcript)
                limit = self.options.helper_timeout_s
                verdicts = await within(limit, asked, StopReason.JUDGE_FAILED)
            except InfrastructureFailure as failure:
                self._fail(failure)
        return score(self, verdicts) | {"prompt_versions": dict(PROMPT_VERSIONS)}

    def tools(self) -> list[Item]:
        """Every advertised tool of every node; tools that only move between nodes are left out."""
        return [as_function(tool, name) for name, (_, tool) in self._flat().items()]

    def resolve(self, name: str) -> tuple[Node, Tool]:
        """The tool a name means here. Raises CallRefusedError."""
        found = self._flat().get(name)
        if found is None:
            raise CallRefusedError(Refusal.UNKNOWN, f"unknown tool {name[:80]!r}")
        if self.options.flat_guards:
            self._check_guard(found[1])
        return found

    def callable_tools(self) -> list[tuple[str, Tool]]:
        """The tools that can be called now, by the name they have here."""
        scope = self.session.interpreter.scope(self.session.state)
        return [
            (name, tool)
            for name, (_, tool) in self._flat().items()
            if not self.options.flat_guards or is_true(tool.guard, scope)
        ]

    moves_on_talk = False
    """Whether a message to the customer can move control between nodes."""

    @property
    def place(self) -> tuple[Any, ...]:
        """Where control is."""
        return (self.session.node,)

    @property
    def is_short_of_steps(self) -> bool:
        """Whether half of what the policy may do before it speaks to the customer is done."""
        return self.has_customer and 2 * self.steps_in_turn >= self.budget.max_steps_per_turn

    def copy(self) -> Self:
        """An episode that goes its own way from here on, with scripted helpers, to look ahead."""
        twin = copy(self)
        twin.session = self.session.copy(ScriptedEmulator())
        twin.customer = ScriptedCustomer(self.row, self.session.facts, twin._is_served)
        twin.customer.idle = getattr(self.customer, "idle", 0)
        twin.judge = RuleJudge()
        twin.transcript, twin.turns = [*self.transcript], [*self.turns]
        twin.switches, twin._looks_ahead = [*self.switches], True
        return twin

    async def _begin(self) -> list[Item]:
        identity = self.session.interpreter.identity(self.graph.entry, self.session.state)
        welcome = self.session.interpreter.message("welcome", self.session.state)
        items = [message_item("system", identity)] if identity else []
        if welcome and self.has_customer:
            items.append(message_item("assistant", welcome))
        return items

    async def _open(self) -> list[Item]:
        return await self.hear_customer(None)

    async def _advance(self, output: list[Item]) -> list[Item]:
        return await self.advance(output)

    async def advance(self, output: list[Item]) -> list[Item]:
        """What one generation leads to, in a mode's ordinary dialogue."""
        requests = [item for item in output if item.get("type") == "function_call"]
        text = output_text(output)
        if requests:
            items = [await self._one_call(r, i) for i, r in enumerate(requests)]
            return items + (await self._after_calls() if not self.stop_reason else [])
        if not text.strip():
            self.stop_reason = StopReason.AGENT_STOP
            return []
        self.transcript.append(("agent", text))
        if len(self.turns) >= self.budget.max_turns:  # a customer's answer would find no policy
            self.stop_reason = StopReason.MAX_TURNS
            return []
        return await self._answered(text)

    async def _answered(self, text: str) -> list[Item]:
        """The policy has spoken: the customer answers."""
        return await self.hear_customer(text)

    async def _after_calls(self) -> list[Item]:
        """What follows tool results before the next generation."""
        self._check_terminal()
        return []

    async def _after_customer(self) -> list[Item]:
        """What follows a customer message before the next generation."""
        return []

    async def hear_customer(self, said: str | None) -> list[Item]:
        """The customer speaks; `said` is what the policy said, None at the opening."""
        limit = None if self._looks_ahead else self.options.helper_timeout_s
        reply = self.customer.reply(said)
        text = await within(limit, reply, StopReason.USER_SIMULATOR_FAILED)
        check_message(text, said is None)
        self.steps_in_turn = 0
        if STOP in text:
            self.stop_reason = StopReason.USER_STOP
        spoken = text.replace(STOP, "").strip() or "Goodbye."
        self.session.hear(spoken)
        self.transcript.append(("customer", spoken))
        items = [message_item("user", spoken)]
        if self.stop_reason:
            return items
        check_need(self.row.questions, self.transcript)
        return items + await self._after_customer()

    async def _one_call(self, request: Item, index: int) -> Item:
        session, name = self.session, str(request.get("name"))
        done = Done(len(self.turns) - 1, session.node, name, request.get("arguments"))
        done.user_turn, done.version = session.user_turns, session.version
        try:
            if self.stop_reason:
                raise CallRefusedError(Refusal.UNAVAILABLE, "the session is over")
            given = _parse(request, index)
            done.given = given
            node, tool = self.resolve(name)
            await self._execute(done, tool, node, given)
            output = json.dumps(done.outputs, ensure_ascii=False, default=str)
            if done.action:
                evidence = Evidence(done.action.name, done.arguments, done.outputs)
                self.transcript.append(("tool", evidence))
        except CallRefusedError as error:
            done.refusal = error.kind
            self.errors += 1
            self.transcript.append(("error", f"{name}: {error}"))
            output = json.dumps({"error": error.kind.value, "message": str(error)})
        finally:
            session.calls.append(done)
            self.turns[-1].append(done)
        return tool_output_item(str(request.get("call_id")), output)

    async def _execute(self, done: Done, tool: Tool, node: Node, given: dict[str, Any]) -> None:
        version = self.session.version
        await self.session.call(done, tool, node, given)
        self.session.version = version  # A call's own change does not make its repetition new.
        if tool.kind in (ToolKind.ESCALATE, ToolKind.END_SESSION):
            self.session.node = tool.target

    def _flat(self) -> dict[str, tuple[Node, Tool]]:
        if not hasattr(self, "_flat_tools"):
            self._flat_tools = {
                name: found
                for name, found in flat_tools(self.graph).items()
                if self._names is None or name in self._names
            }
        return self._flat_tools

    def _check_guard(self, tool: Tool) -> None:
        session = self.session
        if not is_true(tool.guard, session.interpreter.scope(session.state)):
            raise CallRefusedError(Refusal.UNAVAILABLE, f"{tool.name} is not available now")

    def _check_terminal(self) -> None:
        self.stop_reason = self.stop_reason or self.session.stop_reason

    def _check_budget(self) -> None:
        if self.stop_reason:
            return
        if self.errors > self.budget.max_errors:
            self.stop_reason = StopReason.MAX_ERRORS
        elif len(self.turns) >= self.budget.max_turns or (
            self.has_customer and self.steps_in_turn >= self.budget.max_steps_per_turn
        ):
            self.stop_reason = StopReason.MAX_TURNS

    def _judge(self) -> Judge:
        """The judge; where the row's `transfer` settles the reward, no model is asked."""
        transferred = self.stop_reason is StopReason.TRANSFER
        settled = self.row.transfer or (self.row.transfer is False and transferred)
        return RuleJudge() if settled else self.judge

    def _is_served(self) -> bool:
        verdicts = judged(self.row.questions, self.transcript)
        return bool(verdicts) and all(verdicts.values())

    def _fail(self, failure: InfrastructureFailure) -> None:
        self.failure, self.stop_reason = str(failure), failure.reason

    def _ended(self) -> tuple[bool, str | None]:
        self.seconds = time.monotonic() - self._started
        return self.stop_reason is not None, self.stop_reason and self.stop_reason.value


class SandboxEpisode(SpecEpisode):
    """Tools and state without a customer: the first text ends it, the final state is scored (K11)."""

    has_customer = False

    async def _open(self) -> list[Item]:
        text = opening_of(self.row)
        self.session.hear(text)
        self.session.hear(json.dumps(self.row.customer.facts, default=str))
        self.transcript.append(("customer", text))
        facts = "\n".join(f"{k}: {v}" for k, v in self.session.facts.items())
        return [message_item("user", f"{text}\n\n{facts}".strip())]

    async def _answered(self, text: str) -> list[Item]:
        self.stop_reason = StopReason.AGENT_STOP
        return []


def world_state(session: Session) -> dict[str, Any]:
    """The state a sandbox is scored on: session variables, and the records that writes changed."""
    return {"variables": dict(session.state), "written": session.records.written}


def flat_tools(graph: WorkflowGraph) -> dict[str, tuple[Node, Tool]]:
    """Actions, variable setters and endings of all nodes; a taken name gets its node in front."""
    found: dict[str, tuple[Node, Tool]] = {}
    for node in graph.nodes.values():
        for tool in node.tools.values():
            if tool.kind in (ToolKind.TRANSITION, ToolKind.DELEGATE, ToolKind.CANCEL):
                continue
            other = found.get(tool.name)
            if other and (other[1].target, other[1].schema) == (tool.target, tool.schema):
                continue
            found[tool.name if other is None else f"{node.name}__{tool.name}"[:64]] = (node, tool)
    return found


def _parse(request: Item, index: int) -> dict[str, Any]:
    arguments = request.get("arguments")
    if index >= MAX_CALLS:
        raise CallRefusedError(Refusal.INVALID, f"at most {MAX_CALLS} calls in one turn")
    if isinstance(arguments, str):
        if len(arguments) > MAX_ARGUMENTS:
            raise CallRefusedError(Refusal.INVALID, f"more than {MAX_ARGUMENTS} characters")
        try:
            arguments = read_json(arguments or "{}")
        except ValueError as error:
            raise CallRefusedError(Refusal.INVALID, str(error)) from None
    if not isinstance(arguments, dict):
        raise CallRefusedError(Refusal.INVALID, "the arguments are no JSON object")
    return arguments
