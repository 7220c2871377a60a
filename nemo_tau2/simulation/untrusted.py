"""JSON that a model wrote: read within bounds, so that nothing after it has to fear depth or text.

Python's reader takes NaN, infinities, whole numbers of any length, lone surrogates and nesting up to its
stack, all of which break whoever writes, walks or computes with the value later. A schema is the caller's
to check.
"""

import json
import math
from typing import Any

MAX_DEPTH = 64
"""Levels of nesting a value may have."""


def read_json(text: str) -> Any:
    """The value of a JSON text. Raises ValueError, whose message says what is wrong with it."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(f"more than {MAX_DEPTH} levels deep") from None
    except ValueError as error:
        raise ValueError(f"not JSON: {str(error)[:200]}") from None
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        if not level:
            return value
        level = [child for part in level for child in _children(part)]
    raise ValueError(f"more than {MAX_DEPTH} levels deep")


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, list):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("not JSON: a number that is not finite")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("not JSON: a whole number beyond 64 bits")
    if isinstance(value, str) and not _is_unicode(value):
        raise ValueError("not JSON: text with half a character (a lone surrogate)")
    return []


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
