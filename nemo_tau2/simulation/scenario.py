"""What a dataset row says about one episode: the script, what the customer wants, who they are.

`SpecRow` is the `verifier_metadata` of a row. The models forbid unknown keys, so a misspelt persona or
scenario is an error with a place, never a silent default. Nothing here knows a graph: whether a named
action exists is checked where a row meets its script (`session`).
"""

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from nemo_tau2.episodes import Item
from nemo_tau2.errors import UserError, refuse_unknown
from nemo_tau2.rewards.state_equivalence import FieldRules


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _only_known_keys(cls, data: Any) -> Any:
        return refuse_unknown(data, cls.model_fields)


class Mode(StrEnum):
    """How the graph becomes an environment."""

    FLAT = "flat"
    """One agent, every advertised tool callable, a customer."""
    ROUTED = "routed"
    """Router and subagents: only the active node's tools are visible."""
    SANDBOX = "sandbox"
    """Tools and state, no customer; scored by the final state."""
    PIVOT = "pivot"
    """One constrained turn with a tool withheld, then a recovery turn."""


class Question(_Strict):
    """One numbered sub-question of a task, with the evidence that can ground its answer."""

    number: int = Field(ge=1)
    """Its number in the task intent, from 1."""
    text: str
    """The question as the customer and the judge read it."""
    action: str | None = None
    """The action whose successful call grounds an answer; None for a generic question."""
    fields: tuple[str, ...] = ()
    """Output fields of that action that hold the answer; empty: a successful call is enough."""
    arguments: dict[str, Any] | None = None
    """Arguments the call must have (a subset is enough); None: any."""


class Persona(_Strict):
    """Who the customer is, constant for a conversation."""

    name: str = "Customer"
    """How the customer is called."""
    style: str = "plain"
    """How they write, in a few words."""
    patience: int = Field(8, ge=1, le=100)
    """Agent messages without progress before they leave."""


class Customer(_Strict):
    """What the customer says first and what they can be asked for."""

    opening: str = ""
    """The first message; empty: the scripted customer reads out its questions."""
    facts: dict[str, Any] = Field(default_factory=dict)
    """Values the customer knows, by parameter or variable name."""


class Scenario(_Strict):
    """One customer's need on one script, before personas and prefixes multiply it into rows."""

    scenario_id: str
    """Unique within the script; train and validation are split by it."""
    questions: tuple[Question, ...] = ()
    """The task intent."""
    customer: Customer = Customer()
    """The customer's opening and facts."""
    expected_state: dict[str, Any] | None = None
    """The state the reference actions lead to (`sandbox`); None where none is scored."""
    state_rules: FieldRules | None = None
    """`sandbox`: rules of comparison that replace those of the options, one by one."""
    transfer: bool | None = None
    """Whether the case belongs with a person; None: not scored."""


class SpecRow(_Strict):
    """`verifier_metadata` of a row."""

    mode: Mode
    """The environment's mode."""
    script: str
    """A built-in script's name or a path to an `.agent` file."""
    scenario_id: str
    """The scenario."""
    task_id: str
    """`<script>/<mode>/<scenario_id>[/variant]`: unique among the rows of a file or a mixture."""
    domain: str
    """The script's name."""
    group_id: str
    """Rollouts that are compared with each other share it: the original prefix of the dataset."""
    trial: int = 0
    """Which of a group's rollouts."""
    split: str = "train"
    """train or validation."""
    questions: tuple[Question, ...] = ()
    """The task intent."""
    persona: Persona = Persona()
    """The customer's persona."""
    customer: Customer = Customer()
    """The customer's opening and facts."""
    expected_state: dict[str, Any] | None = None
    """`sandbox`: the reference state."""
    state_rules: FieldRules | None = None
    """`sandbox`: rules of comparison that replace those of the options, one by one."""
    transfer: bool | None = None
    """Whether the case belongs with a person."""
    seed: int = 0
    """Seed of the emulated records."""
    prefix: tuple[Item, ...] = ()
    """Items between the opening and the policy's first turn: a generated prefix."""
    withheld_tool: str | None = None
    """`pivot`: the tool taken away at the constrained turn."""
    prompt_versions: dict[str, str] = Field(default_factory=dict)
    """Hashes of the helper prompts the row was made with."""


def parse_row(metadata: Any, where: str = "verifier_metadata") -> SpecRow:
    """Validates the metadata of a row.

    Raises:
        UserError: an unknown key, a missing or wrong value, or question numbers other than 1..n.
    """
    row = _validated(SpecRow, metadata, where)
    if [q.number for q in row.questions] != list(range(1, len(row.questions) + 1)):
        raise UserError(f"{where}: questions: number them 1 to {len(row.questions)}, in order")
    return row


def parse_persona(data: Any, where: str) -> Persona:
    """Validates one persona. Raises UserError for an unknown key or a wrong value."""
    return _validated(Persona, data, where)


def parse_scenario(data: Any, where: str) -> Scenario:
    """Validates one scenario. Raises UserError for an unknown key or a wrong value."""
    return _validated(Scenario, data, where)


def require_one_row(groups: dict[str, Any], metadata: dict[str, Any], where: str) -> None:
    """Rows of one group must be the same row: their rollouts are compared with each other.

    Args:
        groups: {group id: metadata of its first row} so far; the row's is added.
        metadata: `verifier_metadata` of a row.
        where: the row's place, for the message.

    Raises:
        UserError: another row with the same `group_id` differs in more than its trial.
    """
    own = {key: value for key, value in metadata.items() if key != "trial"}
    group = str(metadata.get("group_id"))
    if groups.setdefault(group, own) != own:
        raise UserError(
            f"{where}: group_id {group!r} is also another row's; their rollouts would be compared with "
            "each other. Do not mix rows made with different seeds from one script"
        )


def _validated[M: BaseModel](model: type[M], data: Any, where: str) -> M:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = "".join(f"{part}." for part in first["loc"])[:-1]
        message = first["msg"].removeprefix("Value error, ")
        raise UserError(": ".join(filter(None, (where, place, message)))) from None
