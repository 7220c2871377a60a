"""Binary state equivalence (K11): R = 1 iff the state reached equals the reference state, else 0.

Any JSON-able state. Rules name fields by their last key or by a dotted path (`orders.7.note`):
ignored, compared with case, or lists compared in any order. Text is compared without case by
default, as NeMo Gym's workplace_assistant does.
"""

import math
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from nemo_tau2.errors import refuse_unknown


class FieldRules(BaseModel):
    """How fields are compared."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ignore: tuple[str, ...] = ()
    """Fields left out on both sides."""
    case_sensitive: tuple[str, ...] = ()
    """Text fields compared with case; others without."""
    unordered: tuple[str, ...] = ()
    """List fields compared as multisets."""
    tolerance: float = Field(1e-9, ge=0, allow_inf_nan=False)
    """Absolute and relative tolerance of numbers."""

    @model_validator(mode="before")
    @classmethod
    def _only_known_keys(cls, data: Any) -> Any:
        return refuse_unknown(data, cls.model_fields)

    def overridden(self, other: "FieldRules | None") -> "FieldRules":
        """These rules, each of them replaced where the other sets it."""
        return self.model_copy(update=other.model_dump(exclude_unset=True) if other else None)


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
        places = (i for i, y in enumerate(left) if not _differ(item, y, path + ".*", "*", rules))
        match = next(places, None)
        if match is None:
            return [path or "."]
        del left[match]  # by place: `remove` takes True for 1
    return []


def _same(a: Any, b: Any, path: str, key: str, rules: FieldRules) -> bool:
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int) and isinstance(b, int) and max(abs(a), abs(b)) >= 2**53:
        return a == b  # a float cannot hold them apart, or at all
    if isinstance(a, int | float) and isinstance(b, int | float):
        try:
            return math.isclose(a, b, rel_tol=rules.tolerance, abs_tol=rules.tolerance)
        except OverflowError:
            return False
    if isinstance(a, str) and isinstance(b, str) and not _named(path, key, rules.case_sensitive):
        return a.casefold() == b.casefold()
    return type(a) is type(b) and a == b


def _named(path: str, key: str, names: tuple[str, ...]) -> bool:
    return path in names or key in names
