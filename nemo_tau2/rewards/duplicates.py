"""The duplicate-call gate (K17): which calls repeat the one immediately before them.

Two calls are equal when name and arguments are, arguments compared as canonical JSON (key order and
whitespace are notation; 1 and 1.0 are equal, 1 and true are not). Refused calls count like others:
the same call in the wrong node twice is a duplicate. Agent text between two calls changes nothing,
and the calls of one message follow each other.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Made:
    """One call as the gate sees it.

    Attributes:
        name: the tool's name.
        arguments: what the policy sent.
        user_turn: number of customer messages before it.
        version: number of state changes before it that were not made by the call just before.
        transient: it failed with an error marked transient.
    """

    name: str
    arguments: Any
    user_turn: int = 0
    version: int = 0
    transient: bool = False


def canonical(value: Any) -> str:
    """Canonical JSON: sorted keys, whole floats as integers."""
    return json.dumps(_numbers(value), sort_keys=True, ensure_ascii=False, default=repr)


def duplicates(
    calls: Sequence[Made],
    user_turn_resets: bool = True,
    state_change_resets: bool = True,
    transient_retries: int = 1,
) -> list[int]:
    """Indices of the calls that repeat the one before them.

    After an error marked transient the same call may be made again, `transient_retries` times.
    """
    found = []
    retries = 0
    for index in range(1, len(calls)):
        before, call = calls[index - 1], calls[index]
        equal = before.name == call.name and canonical(before.arguments) == canonical(
            call.arguments
        )
        moved = user_turn_resets and before.user_turn != call.user_turn
        changed = state_change_resets and before.version != call.version
        if not equal or moved or changed:
            retries = 0
        elif before.transient and retries < transient_retries:
            retries += 1
        else:
            found.append(index)
    return found


def _numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {str(key): _numbers(item) for key, item in value.items()}
    return [_numbers(item) for item in value] if isinstance(value, list) else value
