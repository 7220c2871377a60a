"""What an episode asks of a user simulator."""

from typing import Protocol

from nemo_tau2.tau2.engine import (
    OUT_OF_SCOPE,
    STOP,
    TRANSFER,
    AssistantMessage,
    ToolMessage,
    UserMessage,
)


class User(Protocol):
    """One user in one episode; keeps its own view of the conversation."""

    async def reply(self, incoming: AssistantMessage | list[ToolMessage]) -> UserMessage:
        """The user's next message, text or tool calls, to the agent's text or its own tool results.

        Raises InfrastructureFailure with `user_simulator_failed` when there is none.
        """


def says_stop(message: UserMessage) -> bool:
    """τ²'s rule (`UserSimulator.is_stop`): a text message with one of three tokens."""
    text = message.content or ""
    return not message.is_tool_call() and any(
        token in text for token in (STOP, TRANSFER, OUT_OF_SCOPE)
    )


def says_transfer(message: UserMessage) -> bool:
    """Whether the user was handed to a human."""
    return not message.is_tool_call() and TRANSFER in (message.content or "")
