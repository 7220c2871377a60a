"""A tokenizer for tests of the token path: a chat as bytes, or as one token per message.

It is not meant for training. What matters is that its chat template keeps the chain contiguous: the
prompt of turn k+1 begins with the prompt of turn k followed by the generation of turn k, the
property that NeMo RL asserts on every rollout.
"""

import json
import zlib
from functools import lru_cache
from typing import Any, Protocol

Message = dict[str, Any]

END = 256
"""Ends a message; also the EOS of a generation."""
ROLES = {"system": 257, "developer": 258, "user": 259, "assistant": 260, "tool": 261}
TOOLS = 262
"""Opens the list of tools."""
BLOCK = 8
"""Bytes of fixed text per token."""
FIRST_BLOCK, BLOCKS = 1000, 100_000
"""Ids of hashed text."""


class ChatTokens(Protocol):
    """How a chat becomes token ids."""

    def prompt(self, messages: list[Message], tools: list[Any] | None) -> list[int]:
        """Ids up to and including the token after which the assistant speaks."""

    def generation(self, message: Message) -> list[int]:
        """Ids of one assistant message, EOS included."""


def canonical(message: Message) -> str:
    """An assistant message as text: content, then each call. Equal before and after NeMo Gym's converters."""
    text = content_text(message.get("content"))
    for call in message.get("tool_calls") or []:
        function = call["function"]
        text += json.dumps(
            [call["id"], function["name"], function["arguments"]], ensure_ascii=False
        )
    return text


def content_text(content: Any) -> str:
    """The text of a chat message's content, given as a string, as parts or not at all."""
    if content is None:
        return ""
    return (
        content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    )


class ByteTokens:
    """One token per UTF-8 byte of the dialogue, and special tokens for roles and ends of messages.

    Tools and system prompt, tens of kilobytes that never change, are one token per `BLOCK` bytes, so
    that prompts are about as long as a real tokenizer makes them.
    """

    def prompt(self, messages: list[Message], tools: list[Any] | None) -> list[int]:
        ids = [TOOLS, *_blocks(json.dumps(tools, sort_keys=True)), END] if tools else []
        for message in messages:
            ids.append(ROLES[message["role"]])
            if message["role"] == "system":
                ids += [*_blocks(content_text(message.get("content"))), END]
            else:
                ids += self.generation(message)
        return [*ids, ROLES["assistant"]]

    def generation(self, message: Message) -> list[int]:
        return [*canonical(message).encode(), END]


@lru_cache(maxsize=64)
def _blocks(text: str) -> tuple[int, ...]:
    data = text.encode()
    return tuple(
        FIRST_BLOCK + zlib.crc32(data[start : start + BLOCK]) % BLOCKS
        for start in range(0, len(data), BLOCK)
    )


class MessageTokens:
    """One token per message, a hash of its text: for benchmarks of servers, not of byte counts."""

    def prompt(self, messages: list[Message], tools: list[Any] | None) -> list[int]:
        ids = [TOOLS] if tools else []
        for message in messages:
            ids.append(ROLES[message["role"]])
            ids += self.generation(message)
        return [*ids, ROLES["assistant"]]

    def generation(self, message: Message) -> list[int]:
        return [FIRST_BLOCK + zlib.crc32(canonical(message).encode()) % BLOCKS, END]
