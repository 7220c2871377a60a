"""`WorkflowGraph`: what a script means, typed.

Nodes hold tools, action definitions and procedures; edges say how control moves; variables are the
state. The graph is built once (`lowering`) and never changes: a session's state lives elsewhere.
Expressions stay trees (`expressions`), to be evaluated on state (`evaluate`) or printed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from nemo_tau2.agentscript.diagnostics import NOWHERE, Diagnostic, Span
from nemo_tau2.agentscript.expressions import Expr
from nemo_tau2.agentscript.syntax import Statement
from nemo_tau2.agentscript.templates import Template
from nemo_tau2.agentscript.type_refs import TypeRef

HUMAN = "HUMAN"
"""The node a session ends in when it goes to a person."""
END = "END"
"""The node a session ends in when it is over."""
TERMINAL = frozenset({HUMAN, END})


class NodeKind(StrEnum):
    """What a node is."""

    ROUTER = "router"
    """The entry, or a node whose model only routes."""
    SUBAGENT = "subagent"
    """A node with its own instructions and tools."""
    CONNECTED = "connected"
    """Another agent, opaque to this script."""
    EXTERNAL = "external"
    """A node run by someone else's code (`schema: "node://..."`), opaque to this script."""
    TERMINAL = "terminal"
    """HUMAN or END."""


class ToolKind(StrEnum):
    """What calling a tool does."""

    ACTION = "action"
    """Runs an action definition of the node."""
    TRANSITION = "transition"
    """Moves to another node for good."""
    DELEGATE = "delegate"
    """Hands over to another node, which is meant to return."""
    SET_VARIABLES = "set_variables"
    """Writes variables from the model's arguments."""
    CANCEL = "cancel"
    """Gives up a `collect`; the next turn starts at the entry."""
    ESCALATE = "escalate"
    """Goes to a person."""
    END_SESSION = "end_session"
    """Ends the session."""


class Trigger(StrEnum):
    """Who decides that an edge is taken."""

    MODEL = "model"
    DETERMINISTIC = "deterministic"


class Phase(StrEnum):
    """When within a turn of the source node an edge is taken."""

    BEFORE = "before_reasoning"
    INSTRUCTIONS = "instructions"
    TOOL = "tool_call"
    POST_TOOL = "post_tool"
    AFTER = "after_reasoning"


class Effect(StrEnum):
    """What an action does to the world outside the session."""

    READ = "read"
    WRITE = "write"
    UNKNOWN = "unknown"
    """Not decided by any evidence; treat as a write."""


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable of the session.

    A mutable variable starts at `default` (None without one); a linked one is read-only and filled
    from `source` by whoever opens the session.
    """

    name: str
    type: TypeRef
    linked: bool = False
    modifier: str | None = None
    default: Any = None
    default_expression: Expr | None = None
    label: str | None = None
    description: str | None = None
    source: str | None = None
    visibility: str | None = None
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Parameter:
    """One input or output of an action.

    `constant` is a value fixed in the script, `bound` an expression (external and connected nodes
    bind inputs where they declare them), `visible` whether the model may see an output.
    """

    name: str
    type: TypeRef
    label: str | None = None
    description: str | None = None
    required: bool | None = None
    default: Expr | None = None
    constant: Any = None
    bound: Expr | None = None
    visible: bool = True
    displayable: bool = False
    is_user_input: bool = False
    complex_type: str | None = None
    schema_uri: str | None = None
    span: Span = NOWHERE

    @property
    def schema(self) -> dict[str, Any]:
        """Its JSON Schema, with the description."""
        text = self.description or self.label
        return {**self.type.schema, **({"description": text} if text else {})}


@dataclass(frozen=True, slots=True)
class EffectEvidence:
    """Whether an action reads or writes, and how we know."""

    effect: Effect
    reason: str


@dataclass(frozen=True, slots=True)
class Action:
    """An action definition of a node: what can be called in the outside world."""

    name: str
    inputs: tuple[Parameter, ...] = ()
    outputs: tuple[Parameter, ...] = ()
    target: str | None = None
    label: str | None = None
    description: str | None = None
    source: str | None = None
    requires_confirmation: bool = False
    shows_progress: bool = False
    progress_message: str | None = None
    effect: EffectEvidence = EffectEvidence(Effect.UNKNOWN, "nothing says")
    span: Span = NOWHERE

    @property
    def scheme(self) -> str:
        """The scheme of its target: `flow`, `apex`, ...; empty without one."""
        return self.target.partition("://")[0] if self.target and "://" in self.target else ""

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of all inputs."""
        return object_schema(self.inputs, [p.name for p in self.inputs if p.required])

    @property
    def output_schema(self) -> dict[str, Any]:
        """JSON Schema of all outputs."""
        return object_schema(self.outputs, [p.name for p in self.outputs])

    def observation(self, outputs: dict[str, Any]) -> dict[str, Any]:
        """What the model may see of a result: outputs kept from the planner are taken out."""
        hidden = {p.name for p in self.outputs if not p.visible}
        return {name: value for name, value in outputs.items() if name not in hidden}


@dataclass(frozen=True, slots=True)
class StateUpdate:
    """`set @variables.variable = value`, done when its call succeeds."""

    variable: str
    value: Expr
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Tool:
    """Something the model can call in a node.

    Attributes:
        name: what the model calls; `go_to_<node>` for transitions (see `aliases`).
        key: the name in the script; unique in its node.
        target: the action, node or terminal it leads to; empty for `set_variables`.
        inputs: the model-filled arguments, in the order the model sees them.
        bound: arguments the environment fills, by expression.
        updates: state written when the call succeeds, in order.
        guard: the tool is hidden while this is not true.
        callbacks: `run` and `if` statements executed after the updates.
        connected: a delegate to another agent (`@connected_subagent.X`).
    """

    name: str
    key: str
    kind: ToolKind
    target: str
    description: str | None = None
    explicit_description: str | None = None
    label: str | None = None
    aliases: tuple[str, ...] = ()
    inputs: tuple[Parameter, ...] = ()
    bound: dict[str, Expr] = field(default_factory=dict)
    updates: tuple[StateUpdate, ...] = ()
    guard: Expr | None = None
    requires_confirmation: bool = False
    callbacks: tuple[Statement, ...] = ()
    has_arguments: bool = False
    connected: bool = False
    span: Span = NOWHERE

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of the model-filled arguments."""
        required = [p.name for p in self.inputs if p.required is not False]
        return object_schema(self.inputs, required)

    def as_function(self) -> dict[str, Any]:
        """The tool as an OpenAI function definition."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description or "",
                "parameters": self.schema,
            },
        }


@dataclass(frozen=True, slots=True)
class Edge:
    """Control may move from `source` to `target`.

    `condition` is the guard of the tool, or the conjunction of the `if`s around the transition
    (earlier branches negated). `tool` names the tool of a model-triggered or post-tool edge.
    `official` is False where the official compiler drops the transition.
    """

    source: str
    target: str
    trigger: Trigger
    phase: Phase
    condition: Expr | None = None
    tool: str | None = None
    delegate: bool = False
    official: bool = True
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class CollectStep:
    """One step of a `collect`: done when any of its variables is set (siblings are branches)."""

    variables: tuple[str, ...]
    branch: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the graph.

    `instructions` is the procedure that renders the focus message, `before` and `after` the hooks
    around a turn. `identity` is the node's own system message, None where the agent's applies.
    """

    name: str
    kind: NodeKind
    is_entry: bool = False
    keyword: str = "subagent"
    label: str | None = None
    description: str = ""
    identity: Template | None = None
    instructions: tuple[Statement, ...] = ()
    has_instructions: bool = False
    before: tuple[Statement, ...] = ()
    after: tuple[Statement, ...] = ()
    tools: dict[str, Tool] = field(default_factory=dict)
    actions: dict[str, Action] = field(default_factory=dict)
    collect: tuple[CollectStep, ...] = ()
    routes_only: bool = False
    model: dict[str, Any] | None = None
    target: str | None = None
    inputs: tuple[Parameter, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    span: Span = NOWHERE

    def tool(self, name: str) -> Tool | None:
        """Finds a tool by the name the model uses, by its key, or by an alias."""
        if name in self.tools:
            return self.tools[name]
        return next((t for t in self.tools.values() if name == t.key or name in t.aliases), None)


@dataclass(frozen=True, slots=True)
class Messages:
    """Fixed messages of the agent."""

    welcome: Template | None = None
    error: Template | None = None


@dataclass(frozen=True, slots=True)
class LoopConfig:
    """How long turns and sessions last. Agent Script only says `reset_to_initial_node`.

    The budgets come from the sidecar; None means that the environment decides.
    """

    reset_to_initial_node: bool = True
    max_turns: int | None = None
    max_steps_per_turn: int | None = None
    max_errors: int | None = None
    delegates_return: bool = True


@dataclass(frozen=True, slots=True)
class WorkflowGraph:
    """A compiled script."""

    name: str
    entry: str
    nodes: dict[str, Node]
    edges: tuple[Edge, ...] = ()
    variables: dict[str, Variable] = field(default_factory=dict)
    label: str | None = None
    description: str | None = None
    company: str | None = None
    role: str | None = None
    agent_type: str | None = None
    identity: Template | None = None
    messages: Messages = Messages()
    loop: LoopConfig = LoopConfig()
    knowledge: dict[str, str | bool] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()

    def identity_of(self, node: str) -> Template | None:
        """The system message that applies in a node: its own, or the agent's."""
        return self.nodes[node].identity or self.identity

    def edges_from(self, node: str) -> Iterator[Edge]:
        """The edges that leave a node, in source order."""
        return (edge for edge in self.edges if edge.source == node)

    def initial_state(self, linked: dict[str, Any] | None = None) -> dict[str, Any]:
        """Variables at the start of a session: defaults, and the linked values given."""
        state = {name: _copy(v.default) for name, v in self.variables.items()}
        state.update({k: v for k, v in (linked or {}).items() if k in self.variables})
        return state

    def nodes_with_tool(self, name: str) -> list[str]:
        """The nodes that have a tool of this name; more than one may."""
        return [n.name for n in self.nodes.values() if n.tool(name)]


def object_schema(parameters: tuple[Parameter, ...], required: list[str]) -> dict[str, Any]:
    """A JSON Schema object of parameters that allows no others."""
    return {
        "type": "object",
        "properties": {p.name: p.schema for p in parameters},
        "required": required,
        "additionalProperties": False,
    }


def _copy(value: Any) -> Any:
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return {key: _copy(item) for key, item in value.items()} if isinstance(value, dict) else value
