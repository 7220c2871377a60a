"""The LLM user: τ²'s guidelines, prompt and role flipping around any chat completion.

Differences from `tau2/user/user_simulator.py`, which is synchronous and imports litellm: `<think>` text
is stripped, an empty answer is asked for once more, and a failure is typed instead of ending as the
policy's.
"""

import json
import re
from typing import Any

from nemo_tau2.chat import ChatFailed, Complete
from nemo_tau2.outcomes import InfrastructureFailure, StopReason
from nemo_tau2.tau2.domains import Domain, user_guidelines
from nemo_tau2.tau2.engine import (
    AssistantMessage,
    Task,
    ToolCall,
    ToolMessage,
    UserMessage,
    UserState,
)

MAX_CALLS = 16
"""Tool calls one user message may hold; more is a broken simulator."""

_THINK = re.compile(r"<think>.*?(</think>|\Z)", re.DOTALL)


class LLMUser:
    """Args:
    domain: where the user's tools come from (telecom has them).
    task: whose scenario the user plays.
    complete: the chat completion to ask.
    """

    def __init__(self, domain: Domain, task: Task, complete: Complete):
        side = domain.sides.get("user")
        self.tools = list(side.schemas) if side else None
        self.system_prompt = (
            f"{user_guidelines(with_tools=self.tools is not None)}\n\n"
            f"<scenario>\n{task.user_scenario}\n</scenario>"
        )
        self.complete = complete
        self.state = UserState(system_messages=[], messages=[])

    async def reply(self, incoming: AssistantMessage | list[ToolMessage]) -> UserMessage:
        self.state.messages.extend(incoming if isinstance(incoming, list) else [incoming])
        messages = [{"role": "system", "content": self.system_prompt}]
        messages += [_chat_message(message) for message in self.state.flip_roles()]
        for _ in range(2):  # an empty completion is asked again once (tau2-bench#470)
            message = _user_message(await self._ask(messages))
            if message is not None:
                self.state.messages.append(message)
                return message
        raise InfrastructureFailure(
            StopReason.USER_SIMULATOR_FAILED, "the user simulator answered nothing, twice"
        )

    async def _ask(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        try:
            return await self.complete(messages, self.tools)
        except ChatFailed as error:
            raise InfrastructureFailure(StopReason.USER_SIMULATOR_FAILED, str(error)) from None


def strip_thinking(text: str) -> str:
    """The text without `<think>` blocks, also an unclosed one or one whose opening tag is missing."""
    text = _THINK.sub("", text)
    return text.rsplit("</think>", 1)[-1].strip()


def _chat_message(message) -> dict[str, Any]:
    """One flipped τ² message in OpenAI's chat format (τ²'s `to_litellm_messages`)."""
    if isinstance(message, ToolMessage):
        return {"role": "tool", "tool_call_id": message.id, "content": message.content}
    if isinstance(message, AssistantMessage) and message.is_tool_call():
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
            }
            for call in message.tool_calls
        ]
        return {"role": "assistant", "content": message.content, "tool_calls": calls}
    return {"role": message.role, "content": message.content}


def _user_message(answer: dict[str, Any]) -> UserMessage | None:
    """The user's message, None where the answer is empty."""
    calls = [_tool_call(call, index) for index, call in enumerate(answer.get("tool_calls") or [])]
    if len(calls) > MAX_CALLS:
        raise InfrastructureFailure(
            StopReason.USER_SIMULATOR_FAILED, f"the user simulator made {len(calls)} calls at once"
        )
    text = strip_thinking(answer.get("content") or "")
    if not calls and not text:
        return None
    return UserMessage(role="user", content=text or None, tool_calls=calls or None)


def _tool_call(call: dict[str, Any], index: int) -> ToolCall:
    function = call.get("function") or {}
    try:
        arguments = json.loads(function.get("arguments") or "{}")
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        raise InfrastructureFailure(
            StopReason.USER_SIMULATOR_FAILED,
            f"the user simulator called {function.get('name')!r} with arguments that are no JSON object",
        )
    return ToolCall(
        id=call.get("id") or f"user_{index}",
        name=str(function.get("name")),
        arguments=arguments,
        requestor="user",
    )
