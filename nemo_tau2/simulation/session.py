"""One session on a graph: variables, active node, records, and every call with what became of it.

It runs the script around the model (hooks, focus, effects) and answers calls through an emulator. It
knows no customer, no reward and no mode: those are `episode` and its siblings.

A call with a made-up value is refused before any emulator sees it: identifying arguments must be
values that the customer knows, said, or that a tool has shown. So guessing opens no guard.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator

from nemo_tau2.agentscript import CallFailedError, EvaluationError, Interpreter, StepLimitError
from nemo_tau2.agentscript.graph import (
    HUMAN,
    TERMINAL,
    Action,
    Node,
    NodeKind,
    Tool,
    ToolKind,
    WorkflowGraph,
)
from nemo_tau2.agentscript.interpreter import Outcome
from nemo_tau2.outcomes import InfrastructureFailure, StopReason
from nemo_tau2.simulation.by_identity import ById
from nemo_tau2.simulation.emulator import Emulator
from nemo_tau2.simulation.helpers import within
from nemo_tau2.simulation.records import Records, choices_of, is_identifier, normal, sample, writes

MAX_HOPS = 20
"""Transitions the script may make by itself before the policy speaks again."""
LEAVING = (ToolKind.TRANSITION, ToolKind.DELEGATE, ToolKind.ESCALATE, ToolKind.END_SESSION)


class Refusal(StrEnum):
    """Why a call did not succeed."""

    WRONG_SUBAGENT = "wrong_subagent"
    UNAVAILABLE = "unavailable_now"
    UNKNOWN = "unknown_tool"
    INVALID = "invalid_arguments"
    NO_RECORD = "no_record"
    TRANSIENT = "temporarily_unavailable"


class CallRefusedError(Exception):
    """A call that fails in the world; the policy sees the message."""

    def __init__(self, kind: Refusal, message: str):
        super().__init__(message)
        self.kind = kind


@dataclass(slots=True)
class Done:
    """One call of the policy.

    Attributes:
        turn: index of the policy turn.
        node: the active node when it was made.
        name: the name the policy used.
        given: the arguments it sent.
        tool: the tool, None where there is none in scope.
        action: the action it ran, if any.
        arguments: all arguments, bound ones included.
        outputs: what the policy saw, None for a refused call.
        refusal: why it failed, None where it did not.
        user_turn: customer messages before it.
        version: state changes before it, those of the call just before left out.
        opened: session variables it changed.
        goto: the node it led to.
        routes: nodes that the tools visible before it led to (routed mode).
    """

    turn: int
    node: str
    name: str
    given: Any
    tool: Tool | None = None
    action: Action | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, Any] | None = None
    refusal: Refusal | None = None
    user_turn: int = 0
    version: int = 0
    opened: tuple[str, ...] = ()
    goto: str | None = None
    routes: tuple[str, ...] = ()

    @property
    def is_write(self) -> bool:
        """Whether it may have changed the world."""
        return self.action is not None and writes(self.action)


class _Pending(Exception):
    """A `run` statement needs a result that only an `await` can give."""


@lru_cache(maxsize=64)
def _choices(graph: ById) -> dict[str, tuple[Any, ...]]:
    return choices_of(graph.value)


@lru_cache(maxsize=64)
def _fact_schemas(graph: ById) -> tuple[tuple[str, dict[str, Any]], ...]:
    found = {
        p.name: p.type.schema
        for n in graph.value.nodes.values()
        for t in n.tools.values()
        for p in t.inputs
        if is_identifier(p.name)
    }
    return tuple(found.items())


def facts_of(graph: WorkflowGraph, seed: int, given: dict[str, Any]) -> dict[str, Any]:
    """What the customer knows: the row's facts, and a value for each identifying argument without."""
    made = {
        name: sample(schema, name, f"{seed}/facts") for name, schema in _fact_schemas(ById(graph))
    }
    return made | given


class Session:
    """Args:
    graph: the compiled script.
    emulator: who answers calls.
    seed: seed of the records.
    facts: what the customer knows.
    transient_rate: share of calls that fail once, marked transient.
    timeout_s: seconds one answer of the emulator may take.
    """

    def __init__(
        self,
        graph: WorkflowGraph,
        emulator: Emulator,
        seed: int,
        facts: dict[str, Any],
        transient_rate: float = 0.0,
        timeout_s: float | None = 300.0,
    ):
        self.graph, self.emulator, self.facts = graph, emulator, facts
        self.records = Records(seed, _choices(ById(graph)))
        linked = {v.name: facts.get(v.name) for v in graph.variables.values() if v.linked}
        for variable in graph.variables.values():
            if variable.linked and linked[variable.name] is None:
                name, choices = variable.name, self.records.choices.get(variable.name, ())
                linked[name] = sample(variable.type.schema, name, f"{seed}/linked", choices)
        self.state = graph.initial_state(linked)
        self.interpreter = Interpreter(graph, system={"user_input": ""})
        self.node = graph.entry
        self.calls: list[Done] = []
        self.problems: list[str] = []
        self.heard = ""
        self.user_turns = 0
        self.version = 0
        self._shown: set[str] = set()
        self.transient_rate, self._failed = transient_rate, set()
        self._timeout_s = timeout_s
        self._show([facts, self.state])

    def copy(self, emulator: Emulator) -> "Session":
        """A session that goes its own way from here on."""
        twin = copy(self)
        twin.emulator, twin.records, twin._timeout_s = emulator, self.records.copy(), None
        twin.state, twin.calls, twin.problems = dict(self.state), [*self.calls], [*self.problems]
        twin.interpreter = Interpreter(self.graph, system=dict(self.interpreter.system))
        twin._shown, twin._failed = set(self._shown), set(self._failed)
        return twin

    @property
    def faults(self) -> int:
        """How many calls have failed with an error marked transient."""
        return len(self._failed)

    def hear(self, text: str) -> None:
        """Takes note of a customer message: what it says is known."""
        self.user_turns += 1
        self.heard += " " + normal(text[:4000])
        self.interpreter.system["user_input"] = text[:4000]

    async def enter(self, node: str) -> str:
        """Runs `before_reasoning` of a node and instructions until control stays; returns the focus.

        `self.node` is where control came to rest, a terminal node included (focus is empty then).
        """
        self.node = node
        for _ in range(MAX_HOPS):
            if self._is_over():
                return ""
            here = self.node
            outcome = await self._run(lambda state, here=here: self.interpreter.enter(here, state))
            if outcome.goto is None or outcome.goto == here:
                break
            self.node = outcome.goto
        return await self.focus()

    async def focus(self) -> str:
        """Renders the focus message, following transitions that instructions make."""
        for _ in range(MAX_HOPS):
            if self._is_over():
                return ""
            here, rendered = self.node, ""

            def render(state: dict[str, Any], here: str = here) -> Outcome:
                nonlocal rendered
                rendered, outcome = self.interpreter.focus(here, state)
                return outcome

            outcome = await self._run(render)
            if outcome.goto is None or outcome.goto == here:
                return rendered
            self.node = outcome.goto
        raise InfrastructureFailure(
            StopReason.WORLD_FAILED, f"the script moves between nodes without end at {self.node}"
        )

    async def leave(self) -> str | None:
        """Runs `after_reasoning`; the node it leads to."""
        here = self.node
        if self._is_over():
            return None
        return (await self._run(lambda state: self.interpreter.leave(here, state))).goto

    def visible(self) -> list[Tool]:
        """Tools of the active node whose guard holds."""
        return [] if self._is_over() else self.interpreter.visible_tools(self.node, self.state)

    async def call(self, done: Done, tool: Tool, node: Node, given: dict[str, Any]) -> None:
        """Executes a call that is in scope; fills `done`. Effects follow success only."""
        done.tool, done.action = tool, node.actions.get(tool.target)
        before = dict(self.state)
        try:
            done.arguments = self._arguments(tool, given)
            self._refuse_made_up(given)
            outputs = await self._answer(tool, done.action, done.arguments)
        except CallRefusedError as error:
            done.refusal, done.outputs = error.kind, None
            self.problems.append(str(error))
            raise
        outcome = await self._run(
            lambda state: self.interpreter.complete(node.name, tool, outputs, state)
        )
        self._show([outputs])
        done.goto = outcome.goto
        done.outputs = done.action.observation(outputs) if done.action else {"ok": True}
        done.opened = tuple(k for k, v in self.state.items() if before.get(k) != v)

    def made_up(self, arguments: dict[str, Any]) -> list[str]:
        """Identifying arguments whose value nobody knows."""
        return [
            name
            for name, value in arguments.items()
            if is_identifier(name) and not self._is_known(name, value)
        ]

    def _arguments(self, tool: Tool, given: dict[str, Any]) -> dict[str, Any]:
        problem = next(_validator(tool).iter_errors(given), None)
        if problem is not None:
            raise CallRefusedError(Refusal.INVALID, f"invalid arguments: {problem.message[:300]}")
        try:
            return self.interpreter.arguments(tool, given, self.state)
        except EvaluationError as error:
            raise CallRefusedError(Refusal.UNAVAILABLE, f"not available now: {error}") from None

    async def _answer(
        self, tool: Tool, action: Action | None, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        if action is not None and tool.kind is ToolKind.ACTION:
            return await self._emulate(action, arguments)
        return arguments if tool.kind is ToolKind.SET_VARIABLES else {}

    async def _emulate(self, action: Action, arguments: dict[str, Any]) -> dict[str, Any]:
        named = {n: v for n, v in arguments.items() if is_identifier(n)}
        empty = {n for n, v in named.items() if v in (None, "")}
        if empty and (
            len(empty) == len(named) or any(p.required for p in action.inputs if p.name in empty)
        ):
            # The script binds variables that nothing has filled yet: there is no such record.
            raise CallRefusedError(Refusal.NO_RECORD, f"{action.name}: no record is chosen yet")
        if self.transient_rate:
            key = f"{self.records.seed}/{action.name}/{self.records.key(action, arguments)}"
            chance = sample({"type": "integer"}, "fault", key) - 10
            if chance < 990 * self.transient_rate and key not in self._failed:
                self._failed.add(key)
                raise CallRefusedError(Refusal.TRANSIENT, "temporarily unavailable; try again")
        answer = self.emulator(action, arguments, self.records)
        outputs = await within(self._timeout_s, answer, StopReason.TOOL_EMULATOR_FAILED)
        self.records.remember(action, arguments, outputs)
        return outputs

    def _refuse_made_up(self, arguments: dict[str, Any]) -> None:
        unknown = self.made_up(arguments)
        if unknown:
            values = ", ".join(f"{n}={str(arguments[n])[:80]!r}" for n in unknown)
            raise CallRefusedError(Refusal.NO_RECORD, f"no record matches {values}")

    def _is_known(self, name: str, value: Any) -> bool:
        if isinstance(value, list):
            return bool(value) and all(self._is_known(name, item) for item in value)
        text = normal(value)
        if value in (None, "") or not text:
            return False
        return text in self._shown or (len(text) >= 3 and text in self.heard)

    def _show(self, value: Any, depth: int = 0) -> None:
        """Takes note of every scalar; booleans and empty values identify nothing."""
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, list):
            if depth < 8:
                for item in value:
                    self._show(item, depth + 1)
        elif value not in (None, "") and not isinstance(value, bool):
            self._shown.add(normal(value)[:200])

    def _is_over(self) -> bool:
        return self.node in TERMINAL or self.graph.nodes[self.node].kind in (
            NodeKind.CONNECTED,
            NodeKind.EXTERNAL,
        )

    @property
    def stop_reason(self) -> StopReason | None:
        """How the graph itself ended the session; a hand-over to another agent is a transfer."""
        if not self._is_over():
            return None
        if self.node == HUMAN or self.node not in TERMINAL:
            return StopReason.TRANSFER
        return StopReason.AGENT_STOP

    async def _run(self, procedure: Callable[[dict[str, Any]], Outcome]) -> Outcome:
        """Runs a procedure on a copy of the state and keeps the copy.

        A `run` inside it needs an emulator that may be remote: the procedure is started again with
        the results so far, on a fresh copy, until none is missing.
        """
        results: list[dict[str, Any] | str] = []
        while True:
            state, queue = dict(self.state), iter(results)
            wanted: list[tuple[str, str, dict[str, Any]]] = []

            def invoke(node: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
                result = next(queue, None)  # noqa: B023
                if result is None:
                    wanted.append((node, name, arguments))  # noqa: B023
                    raise _Pending
                if isinstance(result, str):
                    raise CallFailedError(result)
                return result

            self.interpreter.invoke = invoke
            try:
                outcome = procedure(state)
            except _Pending:
                results.append(await self._run_action(*wanted[0]))
                continue
            except StepLimitError as error:
                raise InfrastructureFailure(StopReason.WORLD_FAILED, str(error)) from None
            finally:
                self.interpreter.invoke = None
            if state != self.state:
                self._show([v for k, v in state.items() if self.state.get(k) != v])
                self.state, self.version = state, self.version + 1
            self.problems += outcome.problems
            return outcome

    async def _run_action(
        self, node: str, name: str, arguments: dict[str, Any]
    ) -> dict[str, Any] | str:
        action = self.graph.nodes[node].actions.get(name)
        if action is None:
            return f"no action {name}"
        try:
            return await self._emulate(action, arguments)
        except CallRefusedError as error:
            return str(error)


@lru_cache(maxsize=4096)
def _compiled(tool: ById) -> Draft202012Validator:
    return Draft202012Validator(tool.value.schema)


def _validator(tool: Tool) -> Draft202012Validator:
    return _compiled(ById(tool))
