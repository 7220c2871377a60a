"""The one exception for bad input: what is wrong, where, and how to mend it."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


class UserError(Exception):
    """Bad input. Its message is one line a person can act on; the command line exits with 2."""


def refuse_unknown(data: Any, known: Iterable[str]) -> Any:
    """The data; for a model's validator. Raises ValueError for a key that is not known, with the fix."""
    known = list(known)
    for key in data if isinstance(data, dict) else ():
        if key not in known:
            near = get_close_matches(str(key), known, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ValueError(f"unknown key {str(key)!r}: {hint}the keys are {', '.join(known)}")
    return data
