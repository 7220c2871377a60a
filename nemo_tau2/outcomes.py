"""How an episode ends and who is to blame: one enum for the whole package.

Every episode ends with exactly one `StopReason`. It is not a reward: an episode that ended with
`user_stop` may have failed, and what one that ended with `max_turns` is worth is its environment's to say
(docs/rollouts.md): τ² gives 0, Agent Script environments what was reached by then. Both are trained on.
"""

from enum import StrEnum


class StopReason(StrEnum):
    """Why an episode ended. Members ending in `_failed` are infrastructure: masked, never scored."""

    USER_STOP = "user_stop"
    """The user (simulator) said that the conversation is over."""
    AGENT_STOP = "agent_stop"
    """The policy ended it: a stop token where the environment allows that, or an empty turn."""
    TRANSFER = "transfer"
    """The user was handed to a human agent."""
    MAX_TURNS = "max_turns"
    """The budget of policy turns or of hops was spent."""
    MAX_ERRORS = "max_errors"
    """Too many tool errors."""
    CONTEXT_OVERFLOW = "context_overflow"
    """The history no longer fits the policy's context."""
    DEADLINE = "deadline"
    """The episode took longer than it may."""
    USER_SIMULATOR_FAILED = "user_simulator_failed"
    TOOL_EMULATOR_FAILED = "tool_emulator_failed"
    JUDGE_FAILED = "judge_failed"
    POLICY_ENDPOINT_FAILED = "policy_endpoint_failed"
    WORLD_FAILED = "world_failed"

    @property
    def infrastructure(self) -> bool:
        """True where the policy is not to blame: the row is masked and counted apart."""
        return self.value.endswith("_failed")


SUCCESS = 1.0 - 1e-6
"""A reward from here on is a success."""


class InfrastructureFailure(Exception):
    """Something other than the policy broke; `reason` says what, the message says how."""

    def __init__(self, reason: StopReason, message: str):
        super().__init__(message)
        self.reason = reason
