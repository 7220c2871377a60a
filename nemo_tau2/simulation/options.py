"""Settings of the spec-driven environments: budgets, routing, focus messages, reward, helper bounds.

Where the paper leaves two reasonable answers open, the choice is a field here and its docstring says
what the default is.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from nemo_tau2.agentscript.graph import WorkflowGraph
from nemo_tau2.errors import refuse_unknown
from nemo_tau2.rewards.state_equivalence import FieldRules


class DuplicatePolicy(BaseModel):
    """When a repeated call counts as a consecutive duplicate (K17)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    user_turn_resets: bool = True
    """A customer message between two equal calls makes the second one new."""
    state_change_resets: bool = True
    """So does a change of state between them that the first call did not make itself."""
    transient_retries: int = Field(1, ge=0)
    """Equal calls allowed after an error marked transient."""


class SpecOptions(BaseModel):
    """What an environment can be told about episodes; None takes the script's or sidecar's value."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_turns: int | None = Field(None, ge=1)
    """Policy generations per episode; the sidecar's, else 40."""
    max_steps_per_turn: int | None = Field(None, ge=1)
    """Policy generations between two customer messages; the sidecar's, else 12."""
    max_errors: int | None = Field(None, ge=0)
    """Failed or refused calls per episode; the sidecar's, else 8."""
    reset_to_initial_node: bool | None = None
    """Whether each customer message starts at the entry node; the script's, whose default is yes."""
    delegates_return: bool | None = None
    """Whether control comes back after a delegate has answered; the sidecar's, else yes."""
    focus: Literal["switch", "change"] = "switch"
    """When a focus message is added: on each switch of node (the paper), or whenever its text changed."""
    focus_role: Literal["system", "developer", "user"] = "system"
    """Role of focus messages; some chat templates refuse a system message after the first."""
    name_the_right_subagent: bool = False
    """Whether the wrong-subagent error names the nodes that have the tool."""
    flat_guards: bool = False
    """Whether guards hold in flat and sandbox mode, where the paper makes every tool callable. Rows are
    solved without them and offer few tools, so with them on some rows cannot be solved."""
    reward: Literal[
        "coverage",
        "task_with_penalties",
        "structural_credit",
        "two_step_coverage",
        "floored_gate",
    ] = "coverage"
    """Reward of customer episodes: the paper's, or one of its rejected options."""
    duplicates: DuplicatePolicy = DuplicatePolicy()
    """What a consecutive duplicate is."""
    state: FieldRules = FieldRules()
    """Sandbox: how fields of the state are compared; a row's `state_rules` replace single rules."""
    transient_error_rate: float = Field(0.0, ge=0.0, lt=1.0)
    """Share of calls that the scripted emulator fails once, marked transient."""
    pivot_scores_constrained_turn: bool = False
    """Pivot: the constrained turn must also say something to the customer (defer, ask, explain)."""
    helper_timeout_s: float = Field(300.0, gt=0)
    """Seconds one helper answer may take, retries included."""
    deadline_s: float = Field(1800.0, gt=0)
    """Seconds from seed to the last turn."""

    @model_validator(mode="before")
    @classmethod
    def _only_known_keys(cls, data: Any) -> Any:
        return refuse_unknown(data, cls.model_fields)


class Budget(BaseModel):
    """The options of one graph with every None filled."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_turns: int
    max_steps_per_turn: int
    max_errors: int
    reset_to_initial_node: bool
    delegates_return: bool


def budget_of(graph: WorkflowGraph, options: SpecOptions) -> Budget:
    """Options over sidecar and script over defaults."""
    defaults = {"max_turns": 40, "max_steps_per_turn": 12, "max_errors": 8}
    filled = {}
    for name in Budget.model_fields:
        for value in (getattr(options, name), getattr(graph.loop, name), defaults.get(name)):
            if value is not None:
                filled[name] = value
                break
    return Budget(**filled)
