"""What a recipe tells this package: its `grpo.adv_estimator` block and its `nemo_tau2` section.

NeMo RL knows neither our estimator names nor (in newer versions, where `name` is a Literal) accepts
them. So `stash` moves the block to the top-level section `nemo_tau2.adv_estimator`, which every
MasterConfig carries as an extra key, and leaves `name: grpo` behind for NeMo RL's own validation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from nemo_tau2.credit import check_options
from nemo_tau2.credit.options import NAMES
from nemo_tau2.errors import UserError

UPSTREAM_NAMES = ("gdpo", "opd", "reinforce_plus_plus")
UPSTREAM_KEYS = (
    "normalize_rewards",
    "use_leave_one_out_baseline",
    "minus_baseline",
    "reward_weights",
)
"""Keys of NeMo RL's own block. A recipe inherits them from its base; only `grpo` reads the first two."""


class Section(BaseModel):
    """The `nemo_tau2` section of a recipe."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    single_controller: Literal["refuse", "experimental"] = "refuse"
    """`experimental` opens the column route into NeMo RL's SingleController (docs/nemo_rl.md)."""
    adv_estimator: dict[str, Any] | None = None
    """Written by `stash`; a recipe configures its estimator under `grpo.adv_estimator`."""


@dataclass(frozen=True)
class Estimator:
    """A checked `grpo.adv_estimator` block."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of `nemo_tau2.credit.turn_advantages`; empty for NeMo RL's other estimators."""
    leave_one_out: bool = True
    """`grpo` only: NeMo RL's `use_leave_one_out_baseline`."""
    normalise: bool = True
    """`grpo` only: NeMo RL's `normalize_rewards`."""

    @property
    def ours(self) -> bool:
        """Whether this package computes it; otherwise NeMo RL's own class does, on filtered rows."""
        return self.name in NAMES

    @property
    def uses_turn_rewards(self) -> bool:
        """Whether rollouts must carry turn rewards."""
        return self.name in ("mt_grpo", "gtpo", "gtpo_hybrid", "turn_rloo")

    @property
    def group_local(self) -> bool:
        """Whether an advantage depends on its own group only, so that groups may be computed apart."""
        return self.ours or self.name == "opd"

    def describe(self) -> str:
        """One line for the printed plan."""
        if not self.ours:
            return f"{self.name} (NeMo RL's own, grouped and filtered by nemo-tau2)"
        options = {"lambda" if k == "lam" else k: v for k, v in self.options.items()}
        if self.name == "grpo":
            options = {k: options[k] for k in ("ddof", "eps", "clip")}
            options |= {"leave_one_out": self.leave_one_out, "normalize": self.normalise}
        return f"{self.name} ({', '.join(f'{k}={v}' for k, v in options.items())})"


def parse_estimator(block: Mapping[str, Any]) -> Estimator:
    """Checks an `adv_estimator` block.

    Raises `UserError` for a name neither this package nor NeMo RL has, for an unknown key (naming
    the known ones) and for a value out of range.
    """
    options = {str(key): value for key, value in block.items() if key != "name"}
    name = block.get("name", "grpo")
    if name in UPSTREAM_NAMES:
        return Estimator(name)
    if name not in NAMES:
        known = ", ".join((*NAMES, *UPSTREAM_NAMES))
        raise UserError(f"grpo.adv_estimator.name is {name!r}: choose one of {known}")
    inherited = {key: options.pop(key) for key in UPSTREAM_KEYS if key in options}
    try:
        checked = check_options(name, options)
    except UserError as error:
        raise UserError(f"grpo.adv_estimator: {error}") from None
    flags = [inherited.get("use_leave_one_out_baseline"), inherited.get("normalize_rewards")]
    return Estimator(name, checked, *(flag is None or bool(flag) for flag in flags))


def parse_section(raw: Any) -> Section:
    """Checks a `nemo_tau2` section (a mapping or None); raises `UserError` naming the key."""
    try:
        return Section.model_validate(raw or {})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(["nemo_tau2", *map(str, first["loc"])])
        known = ", ".join(name for name in Section.model_fields if name != "adv_estimator")
        raise UserError(f"{key}: {first['msg']}; the section knows {known}") from None


def stash(config: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a resolved recipe that NeMo RL's MasterConfig accepts; the input is left alone.

    Of a block that is ours only `name: grpo` and NeMo RL's own keys stay behind. A block of NeMo RL's
    other estimators stays where it is. Raises `UserError` as `parse_estimator` and `parse_section` do.
    """
    section = parse_section(config.get("nemo_tau2"))
    if section.adv_estimator is not None:
        raise UserError("nemo_tau2.adv_estimator: configure the estimator under grpo.adv_estimator")
    grpo = dict(config.get("grpo") or {})
    block = grpo.get("adv_estimator")
    if block is None or not parse_estimator(block).ours:
        return dict(config)
    grpo["adv_estimator"] = {"name": "grpo"} | {k: block[k] for k in UPSTREAM_KEYS if k in block}
    ours = section.model_dump() | {"adv_estimator": dict(block)}
    return dict(config) | {"grpo": grpo, "nemo_tau2": ours}


def read(node: Any, key: str, default: Any = None) -> Any:
    """`node[key]` or `node.key`: NeMo RL v0.7.0 has dicts where main has pydantic models."""
    if isinstance(node, Mapping):
        return node.get(key, default)
    return getattr(node, key, default)


def as_mapping(node: Any) -> dict[str, Any]:
    """A config node as a dict; keys that the recipe does not set are left out."""
    if node is None:
        return {}
    if isinstance(node, Mapping):
        return dict(node)
    if isinstance(node, BaseModel):
        return node.model_dump(exclude_unset=True)
    return dict(vars(node))


def section_of(master_config: Any) -> Section:
    """The `nemo_tau2` section of a MasterConfig."""
    return parse_section(as_mapping(read(master_config, "nemo_tau2")))


def estimator_of(master_config: Any) -> Estimator:
    """The estimator of a MasterConfig: the stashed block, or else `grpo.adv_estimator` itself."""
    stashed = section_of(master_config).adv_estimator
    return parse_estimator(
        stashed or as_mapping(read(read(master_config, "grpo"), "adv_estimator"))
    )
