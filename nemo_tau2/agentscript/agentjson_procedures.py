"""Procedures as AgentJSON actions: state updates, calls and hand-offs, each with its gate.

AgentJSON has no control flow. An `if` becomes a state update that stores its condition in a slot
variable, and a gate on every action of its body; a transition becomes a state update of
`next_topic` and a hand-off gated on it.
"""

from dataclasses import dataclass, field
from typing import Any

from nemo_tau2.agentscript import collect
from nemo_tau2.agentscript.agentjson_text import Dialect, template_text, text_of
from nemo_tau2.agentscript.expressions import Ellipsis, Expr
from nemo_tau2.agentscript.graph import Action, CollectStep
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
from nemo_tau2.agentscript.tools import action_name, fill, node_name, variable_name

Json = dict[str, Any]

STATE_UPDATE = "__state_update_action__"
NEXT = "AgentScriptInternal_next_topic"
NOWHERE = '"__EMPTY__"'
STAYS = f'state.{NEXT}=="__EMPTY__"'
INSTRUCTIONS = "AgentScriptInternal_agent_instructions"
APPEND = f"template::{{{{state.{INSTRUCTIONS}}}}}\n"
CONDITION = "AgentScriptInternal_condition_"


def state_update(updates: list[Json], enabled: str | None = None) -> Json:
    """An action that only writes state."""
    action: Json = {"type": "action", "target": STATE_UPDATE, "state_updates": updates}
    return action if enabled is None else {**action, "enabled": enabled}


def handoff(target: str, enabled: str | None = None) -> Json:
    """Leaves for `target` when `next_topic` names it."""
    return {
        "type": "handoff",
        "target": target,
        "enabled": enabled or f'state.{NEXT}=="{target}"',
        "state_updates": [{NEXT: NOWHERE}],
    }


def append_instructions(text: str, enabled: str | None = None) -> Json:
    """Adds a line to the focus message."""
    return state_update([{INSTRUCTIONS: APPEND + text}], enabled)


@dataclass(slots=True)
class Slots:
    """How many condition slots the agent needs; shared by all its procedures."""

    used: int = 0

    def name(self, index: int) -> str:
        """The variable of a slot, counted from 1."""
        self.used = max(self.used, index)
        return f"{CONDITION}{index}"


@dataclass(slots=True)
class ProcedureWriter:
    """Writes one procedure.

    Attributes:
        gated: every action waits for `next_topic` to be empty (hooks, not instructions).
        gates: the conditions of the branches around the statement being written.
    """

    dialect: Dialect
    slots: Slots
    gated: bool
    node: str = ""
    steps: tuple[CollectStep, ...] = ()
    in_instructions: bool = False
    gates: list[str] = field(default_factory=list)

    def write(self, statements: tuple[Statement, ...] | list[Statement]) -> list[Json]:
        """Returns the actions of the statements, in order."""
        actions: list[Json] = []
        for statement in statements:
            match statement:
                case Run():
                    actions += self._run(statement)
                case Set(target, value):
                    name = variable_name(target)
                    if name:
                        update = [{name: self._text(value)}]
                        actions.append(state_update(update, self._enabled()))
                case Transition(clauses):
                    for clause in clauses:
                        name = node_name(clause.target) if isinstance(clause, To) else None
                        if name:
                            move = [{NEXT: f'"{name}"'}]
                            actions += [state_update(move, self._enabled()), handoff(name)]
                case If():
                    actions += self._if(statement)
                case TemplateLine(template):
                    text = template_text(template, self.dialect)
                    if text:
                        actions.append(append_instructions(text, self._enabled()))
                case Collect():
                    actions += self._collect(statement)
        return actions

    def _text(self, expression: Expr) -> str:
        return text_of(expression, self.dialect)

    def _enabled(self) -> str | None:
        stack = None
        if self.gates:
            one = len(self.gates) == 1
            stack = self.gates[0] if one else " and ".join(f"({gate})" for gate in self.gates)
        parts = [part for part in (STAYS if self.gated else None, stack) if part]
        if len(parts) < 2:
            return parts[0] if parts else None
        return " and ".join(f"({part})" for part in parts)

    def _run(self, statement: Run) -> list[Json]:
        target = action_name(statement.target)
        if not target:
            return []
        bound, updates = {}, []
        for inner in statement.body:
            if isinstance(inner, With):
                bound.update({a.name: self._text(a.value) for a in inner.arguments})
            elif isinstance(inner, Set) and (name := variable_name(inner.target)):
                updates.append({name: self._text(inner.value)})
        action = {
            "type": "action",
            "target": target,
            "bound_inputs": bound,
            "llm_inputs": [],
            "state_updates": updates,
        }
        enabled = self._enabled()
        return [{**action, "enabled": enabled} if enabled else action]

    def _if(self, statement: If) -> list[Json]:
        """Each condition gets a slot; a branch waits for its own and against the earlier ones."""
        actions: list[Json] = []
        earlier: list[str] = []
        for branch in statement.branches:
            if branch.condition is None:
                gates = [f"not ({slot})" for slot in earlier]
            else:
                name = self.slots.name(len(earlier) + 1)
                enabled = self._enabled() or ("True" if self.in_instructions else None)
                actions.append(state_update([{name: self._text(branch.condition)}], enabled))
                slot = f"state.{name}"
                gates = [*(f"not ({other})" for other in earlier), slot]
                earlier.append(slot)
            self.gates += gates
            actions += self.write(branch.body)
            del self.gates[len(self.gates) - len(gates) :]
        return actions

    def _collect(self, statement: Collect) -> list[Json]:
        name = collect.target_of(statement)
        if not name:
            return []
        prior = collect.prior_conditions(self.steps).get(name, [])
        gate = self._text(collect.right_join([*prior, collect.is_unset(name)], "and"))
        base = self._enabled()
        return [
            append_instructions(
                collect.prompt(self.node, name, collect.message_of(statement)),
                f"({base}) and ({gate})" if base else gate,
            )
        ]


def merge_appends(actions: list[Json]) -> list[Json]:
    """Joins neighbouring additions to the instructions that share a gate."""
    merged: list[Json] = []
    for action in actions:
        text = _appended(action)
        last = merged[-1] if merged else None
        if (
            text is not None
            and last is not None
            and _appended(last) is not None
            and last.get("enabled") == action.get("enabled")
        ):
            joined = last["state_updates"][0][INSTRUCTIONS] + "\n" + text
            merged[-1] = {**last, "state_updates": [{INSTRUCTIONS: joined}]}
        else:
            merged.append(action)
    return merged


def _appended(action: Json) -> str | None:
    updates = action.get("state_updates", [])
    if action["target"] != STATE_UPDATE or len(updates) != 1:
        return None
    value = updates[0].get(INSTRUCTIONS)
    return value.removeprefix(APPEND) if value and value.startswith(APPEND) else None


def post_tool(
    statements: tuple[Statement, ...], dialect: Dialect, slots: Slots, actions: dict[str, Action]
) -> tuple[list[Json], list[Json]]:
    """The callbacks of a tool: its post-tool actions and the hand-offs they may cause."""
    done: list[Json] = []
    handoffs: list[Json] = []
    for statement in statements:
        if isinstance(statement, Run):
            done += _post_run(statement, dialect, actions)
        elif isinstance(statement, If):
            inner, leaving = _post_if(statement, dialect, slots, actions)
            done += inner
            handoffs += leaving
    return done, handoffs


def _post_run(statement: Run, dialect: Dialect, actions: dict[str, Action]) -> list[Json]:
    target = action_name(statement.target)
    if not target:
        return []
    arguments = [a for s in statement.body if isinstance(s, With) for a in s.arguments]
    action = actions.get(target)
    filled, _ = fill(arguments, {p.name: p for p in action.inputs} if action else {})
    bound = {
        a.name: text_of(a.value, dialect) for a in arguments if not isinstance(a.value, Ellipsis)
    }
    updates = [
        {name: text_of(s.value, dialect)}
        for s in statement.body
        if isinstance(s, Set) and (name := variable_name(s.target))
    ]
    return [
        {
            "type": "action",
            "target": target,
            "bound_inputs": bound,
            "llm_inputs": filled,
            "state_updates": updates,
        }
    ]


def _post_if(
    statement: If, dialect: Dialect, slots: Slots, actions: dict[str, Action]
) -> tuple[list[Json], list[Json]]:
    done: list[Json] = []
    handoffs: list[Json] = []
    earlier: list[str] = []
    is_chain = sum(branch.condition is not None for branch in statement.branches) > 1
    for branch in statement.branches:
        if branch.condition is None:
            negated = [f"not ({slot})" for slot in earlier]
            gate = " and ".join(negated) if is_chain else f"not {earlier[0]}"
        else:
            name = slots.name(len(earlier) + 1)
            done.append(state_update([{name: text_of(branch.condition, dialect)}], "True"))
            parts = [*(f"not ({slot})" for slot in earlier), f"state.{name}"]
            gate = " and ".join(f"({part})" for part in parts) if is_chain else parts[0]
            earlier.append(f"state.{name}")
        inner, leaving = _post_body(branch.body, gate, dialect, slots, actions)
        done += inner
        handoffs += leaving
    return done, handoffs


def _post_body(
    body: list[Statement], gate: str, dialect: Dialect, slots: Slots, actions: dict[str, Action]
) -> tuple[list[Json], list[Json]]:
    done: list[Json] = []
    handoffs: list[Json] = []
    for statement in body:
        match statement:
            case Transition(clauses):
                names = [node_name(c.target) for c in clauses if isinstance(c, To)]
                name = next((n for n in names if n), None)
                if name:
                    done.append(state_update([{NEXT: f'"{name}"'}], gate))
                    handoffs.append(handoff(name))
            case Set(target, value) if name := variable_name(target):
                done.append(state_update([{name: text_of(value, dialect)}], gate))
            case Run():
                done += [{**a, "enabled": gate} for a in _post_run(statement, dialect, actions)]
            case If():
                inner, leaving = _post_if(statement, dialect, slots, actions)
                done += [
                    {**a, "enabled": f"({gate}) and ({a['enabled']})" if "enabled" in a else gate}
                    for a in inner
                ]
                handoffs += leaving
    return done, handoffs
