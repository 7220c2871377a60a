"""Executes what a graph says around the model: hooks, focus messages, tool effects.

A turn in a node is: `enter` (before_reasoning, once) → loop of `focus` (instructions, rendered
anew on every model call) and `visible_tools`, then `complete` for each finished tool call →
`leave` (after_reasoning, once, when the model has answered). Every step returns an `Outcome` that
says where control goes. State is a plain dict that the caller owns; nothing is kept in here.

The interpreter never calls the outside world: `run @actions.X` goes to the `Invoke` callback. It
is bounded: at most `max_steps` statements and calls per procedure.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from nemo_tau2.agentscript import collect
from nemo_tau2.agentscript.evaluate import EvaluationError, Scope, evaluate, is_true, render
from nemo_tau2.agentscript.expressions import Ellipsis, Expr
from nemo_tau2.agentscript.graph import Node, StateUpdate, Tool, ToolKind, WorkflowGraph
from nemo_tau2.agentscript.syntax import (
    Collect,
    If,
    Run,
    Set,
    Statement,
    TemplateLine,
    To,
    Transition,
    With,
)
from nemo_tau2.agentscript.tools import action_name, node_name, variable_name

Json = dict[str, Any]
Invoke = Callable[[str, str, Json], Json]
"""Runs an action: (node, action, arguments) → outputs. Raises `CallFailedError` when it fails."""


class CallFailedError(Exception):
    """Raised by an `Invoke` callback: the call failed, so its `set`s must not run."""


class StepLimitError(Exception):
    """A procedure executed more statements than its limit allows."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call the environment made by itself (`run`), which the model did not ask for."""

    action: str
    arguments: Json
    outputs: Json | None
    error: str | None = None


@dataclass(slots=True)
class Outcome:
    """What a procedure did: where control goes (None: it stays), calls, and what went wrong.

    `problems` lists statements skipped because an expression had no value.
    """

    goto: str | None = None
    calls: list[Call] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Interpreter:
    """Runs the procedures of one graph.

    Attributes:
        graph: the compiled script.
        invoke: runs actions for `run` statements; without it such a call fails.
        max_steps: bound on statements per procedure.
        system: values of `@system_variables`.
    """

    graph: WorkflowGraph
    invoke: Invoke | None = None
    max_steps: int = 200
    system: Json = field(default_factory=dict)

    def scope(self, state: Json, outputs: Json | None = None) -> Scope:
        """What expressions see on a state."""
        spaces: dict[str, Json] = {"knowledge": dict(self.graph.knowledge)}
        for variable in self.graph.variables.values():
            if variable.linked and variable.source and "." in variable.source:
                space, _, name = variable.source.partition(".")
                spaces.setdefault(space, {})[name] = state.get(variable.name)
        return Scope(state, outputs, self.system, spaces)

    def enter(self, node: str, state: Json) -> Outcome:
        """Runs `before_reasoning`. Changes `state`."""
        return self._procedure(self.graph.nodes[node], self.graph.nodes[node].before, state)

    def leave(self, node: str, state: Json) -> Outcome:
        """Runs `after_reasoning`. Changes `state`; an open `collect` keeps control in the node."""
        place = self.graph.nodes[node]
        outcome = self._procedure(place, place.after, state)
        if outcome.goto is None and place.collect:
            open_step = is_true(collect.is_incomplete(place.collect), self.scope(state))
            outcome.goto = node if open_step else None
        return outcome

    def focus(self, node: str, state: Json) -> tuple[str, Outcome]:
        """Renders the focus message of a node, executing its instructions. Changes `state`.

        When the outcome goes elsewhere the message is to be thrown away.
        """
        place = self.graph.nodes[node]
        outcome = self._procedure(place, place.instructions, state)
        if place.collect and outcome.goto is None:
            scope = self.scope(state)
            if is_true(collect.is_incomplete(place.collect), scope):
                outcome.text.append(collect.cancel_prompt(node))
            elif not collect.has_closing_words(place.instructions):
                outcome.text.append(collect.DONE)
        return "\n".join(text for text in outcome.text if text), outcome

    def identity(self, node: str, state: Json) -> str:
        """Renders the system message that applies in a node."""
        template = self.graph.identity_of(node)
        if template is None:
            return ""
        return render(template, self.scope(state), self.names_in(self.graph.nodes[node]))

    def message(self, kind: Literal["welcome", "error"], state: Json) -> str:
        """Renders a fixed message of the agent; empty where the script has none."""
        template = getattr(self.graph.messages, kind)
        return render(template, self.scope(state)) if template is not None else ""

    def visible_tools(self, node: str, state: Json) -> list[Tool]:
        """The tools whose guard holds; a guard without a value counts as false."""
        scope = self.scope(state)
        return [t for t in self.graph.nodes[node].tools.values() if is_true(t.guard, scope)]

    def arguments(self, tool: Tool, given: Json, state: Json) -> Json:
        """All arguments of a call: the model's, and the bound ones evaluated on `state`.

        Raises:
            EvaluationError: a bound argument has no value.
        """
        scope = self.scope(state)
        return {**given, **{name: evaluate(e, scope) for name, e in tool.bound.items()}}

    def complete(self, node: str, tool: Tool, outputs: Json, state: Json) -> Outcome:
        """Applies a successful tool call: its updates, then its callbacks. Changes `state`.

        For `set_variables` the outputs are the model's arguments. Never call this for a call that
        failed or was refused: effects of a failed call would open guards.
        """
        outcome = Outcome()
        self._apply(tool.updates, outputs, state, outcome)
        if tool.kind in (
            ToolKind.TRANSITION, ToolKind.DELEGATE, ToolKind.ESCALATE, ToolKind.END_SESSION,
        ):  # fmt: skip
            outcome.goto = tool.target
        elif tool.kind is ToolKind.CANCEL:
            outcome.goto = self.graph.entry
        run = _Run(self, self.graph.nodes[node], state, outcome, outputs)
        run.execute(tool.callbacks)
        return outcome

    def names_in(self, node: Node) -> Callable[[str], str]:
        """Turns X of `{!@actions.X}` into the name of the tool the model sees in `node`."""

        def name_of(reference: str) -> str:
            tool = node.tool(reference)
            if tool is None:
                tools = node.tools.values()
                tool = next((t for t in tools if t.target == reference), None)
            return tool.name if tool else reference

        return name_of

    def _procedure(self, node: Node, statements: Sequence[Statement], state: Json) -> Outcome:
        outcome = Outcome()
        _Run(self, node, state, outcome).execute(statements)
        return outcome

    def _apply(
        self, updates: Sequence[StateUpdate], outputs: Json, state: Json, outcome: Outcome
    ) -> None:
        for update in updates:
            scope = self.scope(state, outputs)
            self._write(update.variable, update.value, scope, state, outcome)

    def _write(
        self, name: str | None, value: Expr, scope: Scope, state: Json, outcome: Outcome
    ) -> None:
        variable = self.graph.variables.get(name or "")
        if variable is None or variable.linked:
            outcome.problems.append(f"cannot set `{name}`: not a mutable variable")
            return
        try:
            state[variable.name] = evaluate(value, scope)
        except EvaluationError as error:
            outcome.problems.append(f"set {name}: {error}")


@dataclass(slots=True)
class _Run:
    """One execution of a procedure."""

    interpreter: Interpreter
    node: Node
    state: Json
    outcome: Outcome
    outputs: Json | None = None
    steps: int = 0

    def execute(self, statements: Sequence[Statement]) -> bool:
        """Executes statements; True if a transition ended them early."""
        for statement in statements:
            self.steps += 1
            if self.steps > self.interpreter.max_steps:
                raise StepLimitError(
                    f"{self.node.name}: more than {self.interpreter.max_steps} statements"
                )
            if self._one(statement):
                return True
        return False

    def _one(self, statement: Statement) -> bool:
        """Executes one statement; True if control leaves the procedure."""
        scope = self.interpreter.scope(self.state, self.outputs)
        match statement:
            case TemplateLine(template):
                names = self.interpreter.names_in(self.node)
                self.outcome.text.append(render(template, scope, names))
            case Set(target, value):
                name = variable_name(target)
                self.interpreter._write(name, value, scope, self.state, self.outcome)
            case Run():
                return self._call(statement, scope)
            case Transition(clauses):
                targets = [node_name(c.target) for c in clauses if isinstance(c, To)]
                target = next((t for t in targets if t), None)
                self.outcome.goto = target or self.outcome.goto
                return target is not None
            case Collect():
                self._ask(statement, scope)
            case If(branches):
                for branch in branches:
                    if is_true(branch.condition, scope):
                        return self.execute(branch.body)
        return False

    def _call(self, statement: Run, scope: Scope) -> bool:
        """Runs an action for `run`; its `set`s follow only on success."""
        name = action_name(statement.target)
        arguments: Json = {}
        try:
            for line in statement.body:
                if isinstance(line, With):
                    for argument in line.arguments:
                        if not isinstance(argument.value, Ellipsis):
                            arguments[argument.name] = evaluate(argument.value, scope)
        except EvaluationError as error:
            self.outcome.problems.append(f"run {name}: {error}")
            return False
        try:
            if self.interpreter.invoke is None or name is None:
                raise CallFailedError("nothing runs actions here")
            outputs = self.interpreter.invoke(self.node.name, name, arguments)
        except CallFailedError as error:
            self.outcome.calls.append(Call(name or "", arguments, None, str(error)))
            return False
        self.outcome.calls.append(Call(name, arguments, outputs))
        inner = _Run(self.interpreter, self.node, self.state, self.outcome, outputs, self.steps)
        left = inner.execute([line for line in statement.body if not isinstance(line, With)])
        self.steps = inner.steps
        return left

    def _ask(self, statement: Collect, scope: Scope) -> None:
        """Asks for a variable when the steps before it are done and it is unset."""
        name = collect.target_of(statement)
        prior = collect.prior_conditions(self.node.collect).get(name or "")
        if name is None or prior is None:
            return
        if all(is_true(c, scope) for c in [*prior, collect.is_unset(name)]):
            message = collect.message_of(statement)
            self.outcome.text.append(collect.prompt(self.node.name, name, message))
