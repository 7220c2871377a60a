"""Asking a frozen model in a role: prompts with version hashes, three semantic attempts, typed failure.

Transport retries are the chat's own; a semantic retry asks again because an answer was unusable.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from nemo_tau2.chat import ChatFailed, Complete
from nemo_tau2.outcomes import InfrastructureFailure, StopReason

ATTEMPTS = 3
"""Semantic attempts of one helper answer."""
MAX_ANSWER = 64 * 1024
"""Characters one helper answer may have."""

PROMPTS = {
    role: Path(__file__).with_name(f"{role}.txt").read_text("utf-8")
    for role in ("customer", "emulator", "judge")
}
PROMPT_VERSIONS = {
    role: hashlib.sha256(text.encode()).hexdigest()[:12] for role, text in PROMPTS.items()
}
"""Version of each helper prompt, for dataset rows and results."""


async def within[T](seconds: float | None, work: Awaitable[T], reason: StopReason) -> T:
    """The result of a helper's work; too late is that helper's failure, with `reason`.

    None: however long it takes (a copy of an episode that looks ahead waits for nothing).
    """
    if seconds is None:
        return await work
    timeout = asyncio.timeout(seconds)
    try:
        async with timeout:
            return await work
    except TimeoutError:
        if not timeout.expired():
            raise
        raise InfrastructureFailure(reason, f"no answer within {seconds:g} s") from None


class Unusable(Exception):
    """An answer that breaks the role's contract; the message says how."""


async def ask[T](
    complete: Complete,
    messages: list[dict[str, Any]],
    read: Callable[[str], T],
    reason: StopReason,
) -> T:
    """The first usable answer, as `read` understands it.

    Raises:
        InfrastructureFailure: with `reason`, after `ATTEMPTS` unusable answers or without any.
    """
    problem = ""
    for _ in range(ATTEMPTS):
        try:
            text = (await complete(messages, None)).get("content") or ""
        except ChatFailed as error:
            raise InfrastructureFailure(reason, str(error)) from None
        try:
            if len(text) > MAX_ANSWER:
                raise Unusable(f"the answer has {len(text)} characters")
            return read(text.rsplit("</think>", 1)[-1].strip())
        except Unusable as error:
            problem = str(error)
    raise InfrastructureFailure(reason, f"{ATTEMPTS} unusable answers; the last: {problem}")
