"""Turn rewards: how much each tier pays and how the calls of one turn add up.

A reward file is a small YAML (`calibrated.yaml`, `naive.yaml` beside this module, or the user's own,
as `nemo-tau2 calibrate --write` writes it).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nemo_tau2.errors import UserError
from nemo_tau2.rewards.tiers import CallTier, Tier

BUILT_IN = ("calibrated", "naive")


class TierRewards(BaseModel):
    """Reward per call of each tier."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    gold_exact: float = 1.0
    """An unconsumed gold action, exactly."""
    soft_match: float | Literal["graded"] = "graded"
    """A partly matching gold action: a number, or `graded` for 0.5 + 0.5 x share (at most 0.99)."""
    read_only: float = 0.0
    """Another call that reads."""
    state_change: float = -0.1
    """Another call that writes."""
    message: float = 0.0
    """A turn without a call."""
    error: float = -0.1
    """A call that failed."""
    duplicate: float = -0.2
    """A call that repeats an earlier successful one."""


class RewardTable(BaseModel):
    """The content of a reward file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tiers: TierRewards = Field(default_factory=TierRewards)
    """Reward per tier."""
    combine: Literal["sum", "mean", "min"] = "sum"
    """How the calls of one turn make the turn's reward."""

    @classmethod
    def load(cls, name_or_path: str | Path) -> "RewardTable":
        """Reads a built-in table by name or a YAML file.

        Raises UserError naming the file and the key when it cannot be read.
        """
        path = Path(name_or_path)
        if str(name_or_path) in BUILT_IN:
            path = Path(__file__).with_name(f"{name_or_path}.yaml")
        try:
            content = yaml.safe_load(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise UserError(
                f"reward file {path}: {error.strerror}; give a path or one of {', '.join(BUILT_IN)}"
            ) from None
        except yaml.YAMLError as error:
            raise UserError(
                f"reward file {path} is not YAML: {str(error).splitlines()[0]}"
            ) from None
        try:
            return cls.model_validate(content or {})
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise UserError(
                f"reward file {path}: {where}: {first['msg']}; known tiers are {', '.join(Tier)}"
            ) from None

    def call_reward(self, call: CallTier) -> float:
        """Reward of one classified call; reproducing a gold action that itself fails earns nothing."""
        if call.unpaid:
            return 0.0
        if call.tier is Tier.SOFT_MATCH and self.tiers.soft_match == "graded":
            return min(0.99, 0.5 + 0.5 * call.share)
        return float(getattr(self.tiers, call.tier.value))

    def turn_reward(self, calls: Sequence[CallTier]) -> float:
        """Reward of one turn from its calls, in order."""
        if not calls:
            return self.tiers.message
        rewards = [self.call_reward(call) for call in calls]
        if self.combine == "min":
            return min(rewards)
        total = sum(rewards)
        return total / len(rewards) if self.combine == "mean" else total
