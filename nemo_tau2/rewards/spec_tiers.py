"""Tiers of calls in spec-driven environments, and what each pays.

There is no gold path here: a call is worth what it does for the task's questions. Precedence:
wrong_subagent and error, duplicate, grounding_call, route, useful_read, state_change, read_only.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from nemo_tau2.errors import refuse_unknown


class SpecTier(StrEnum):
    """Tier of a call, or of a turn (its best call); best first."""

    GROUNDING_CALL = "grounding_call"
    """The first successful call that grounds a question."""
    USEFUL_READ = "useful_read"
    """A successful call that changed session variables: it opens what comes next."""
    STATE_CHANGE = "state_change"
    """Another successful call with an effect."""
    READ_ONLY = "read_only"
    """Another successful read."""
    ROUTE = "route"
    """A successful change of node."""
    MESSAGE = "message"
    """A turn without a call."""
    ERROR = "error"
    """A call that failed or was refused."""
    WRONG_SUBAGENT = "wrong_subagent"
    """A call of another node's tool."""
    DUPLICATE = "duplicate"
    """A call equal to the one before it."""


class SpecTierRewards(BaseModel):
    """Reward per call of each tier; a turn's reward is the sum over its calls."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    grounding_call: float = 1.0
    useful_read: float = 0.3
    state_change: float = -0.1
    read_only: float = 0.0
    route: float = 0.0
    message: float = 0.0
    error: float = -0.1
    wrong_subagent: float = -0.2
    duplicate: float = -0.2

    @model_validator(mode="before")
    @classmethod
    def _only_known_keys(cls, data: Any) -> Any:
        return refuse_unknown(data, cls.model_fields)

    def turn_reward(self, tiers: Sequence[SpecTier]) -> float:
        """Reward of one turn from the tiers of its calls."""
        return sum(getattr(self, t.value) for t in tiers) if tiers else self.message


_RANK = {tier: rank for rank, tier in enumerate(SpecTier)}


def best(tiers: Sequence[SpecTier]) -> SpecTier:
    """The tier of a turn."""
    return min(tiers, key=_RANK.__getitem__, default=SpecTier.MESSAGE)
