"""Binary state equivalence (K11): R = 1 iff the state reached equals the reference state, else 0.

Any JSON-able state. Rules name fields by their last key or by a dotted path (`orders.7.note`):
ignored, compared with case, or lists compared in any order. Text is compared without case by
default, as NeMo Gym's workplace_assistant does.
"""

import math
from typing import Any

from pydantic import BaseModel, ConfigDict


class FieldRules(BaseModel):
    """How fields are compared."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ignore: frozenset[str] = frozenset()
    """Fields left out on both sides."""
    case_sensitive: frozenset[str] = frozenset()
    """Text fields compared with case; others without."""
    unordered: frozenset[str] = frozenset()
    """List fields compared as multisets."""
    tolerance: float = 1e-9
    """Absolute and relative tolerance of numbers."""


def differences(actual: Any, expected: Any, rules: FieldRules | None = None) -> list[str]:
    """Dotted paths at which two states differ, sorted; empty when they are equal."""
    return sorted(_differ(actual, expected, "", "", rules or FieldRules()))


def state_reward(actual: Any, expected: Any, rules: FieldRules | None = None) -> float:
    """1.0 when nothing differs, else 0.0."""
    return float(not differences(actual, expected, rules))


def _differ(a: Any, b: Any, path: str, key: str, rules: FieldRules) -> list[str]:
    if path and _named(path, key, rules.ignore):
        return []
    if isinstance(a, dict) and isinstance(b, dict):
        found = []
        for k in a.keys() | b.keys():
            where = f"{path}.{k}" if path else str(k)
            if k in a and k in b:
                found += _differ(a[k], b[k], where, str(k), rules)
            elif not _named(where, str(k), rules.ignore):
                found.append(where)
        return found
    if isinstance(a, list) and isinstance(b, list):
        return _lists(a, b, path, key, rules)
    return [] if _same(a, b, path, key, rules) else [path or "."]


def _lists(a: list, b: list, path: str, key: str, rules: FieldRules) -> list[str]:
    if len(a) != len(b):
        return [path or "."]
    if not _named(path, key, rules.unordered):
        return [
            d
            for i, (x, y) in enumerate(zip(a, b, strict=True))
            for d in _differ(x, y, f"{path}.{i}" if path else str(i), key, rules)
        ]
    left = list(b)
    for item in a:
        match = next((y for y in left if not _differ(item, y, path + ".*", "*", rules)), _NOTHING)
        if match is _NOTHING:
            return [path or "."]
        left.remove(match)
    return []


_NOTHING = object()


def _same(a: Any, b: Any, path: str, key: str, rules: FieldRules) -> bool:
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=rules.tolerance, abs_tol=rules.tolerance)
    if isinstance(a, str) and isinstance(b, str) and not _named(path, key, rules.case_sensitive):
        return a.casefold() == b.casefold()
    return type(a) is type(b) and a == b


def _named(path: str, key: str, names: frozenset[str]) -> bool:
    return path in names or key in names
