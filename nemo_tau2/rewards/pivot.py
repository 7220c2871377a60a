"""The pivot reward (K32): a gate on the constrained turn times a match of the recovery turn.

    R_pivot = G(a_k) * f_match(held tool, recovery turn)          (Koa eq. 9)

a_k is the one generation made while a tool is withheld; the recovery turn follows once the tool is
back. Pure: what a call does to the world and which tools were visible is the caller's to say. Where
the paper is silent (docs/koa.md, 5.1-9 and 5.1-10) the choice stands beside the rule.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_ABSENT = object()


@dataclass(frozen=True, slots=True)
class ConstrainedCall:
    """One call of the constrained turn.

    Attributes:
        writes: it names a tool that changes state, whether or not the world refused it.
        absent: it names no visible tool (the withheld one, say), or its arguments break the schema.
    """

    writes: bool = False
    absent: bool = False


def gate(calls: Sequence[ConstrainedCall], said: bool = True, must_speak: bool = False) -> float:
    """G(a_k): 1 iff no call writes and none is absent; reads pass.

    The paper's G looks at writes alone, so that a made-up call of the missing tool passes when that
    tool reads. Here it never does. `must_speak` also asks a_k to say something to the customer
    (defer, ask, explain): without it any turn that does not write earns the recovery's reward.
    """
    if any(call.writes or call.absent for call in calls):
        return 0.0
    return float(said or not must_speak)


def recovery_match(
    calls: Sequence[tuple[str, Mapping[str, Any] | None]],
    held: str,
    expected: Mapping[str, Any],
    schema: Mapping[str, Any] | None = None,
) -> float:
    """f_match of a recovery turn in [0, 1]: its first call names the held tool, times `f_match`.

    Args:
        calls: (name, arguments) in order; arguments None where they are no JSON object.
        held: the tool that was withheld.
        expected: the arguments it should get.
        schema: JSON Schema of its arguments.

    Only the first call counts, so that several guesses in one turn cannot be tried.
    """
    if not calls or calls[0][0] != held or calls[0][1] is None:
        return 0.0
    return f_match(calls[0][1], expected, schema)


def f_match(
    given: Mapping[str, Any], expected: Mapping[str, Any], schema: Mapping[str, Any] | None = None
) -> float:
    """Sum of argument likeness over the argument names of either side; 1 where neither has any.

    An argument too many costs as much as one too few. With a `schema`, an argument whose value does
    not have the declared type is worth 0, and text is compared as its format says.
    """
    names = given.keys() | expected.keys()
    if not names:
        return 1.0
    properties = (schema or {}).get("properties", {})
    parts = [
        alike(given.get(n, _ABSENT), expected.get(n, _ABSENT), properties.get(n)) for n in names
    ]
    return sum(parts) / len(names)


def alike(given: Any, expected: Any, schema: Mapping[str, Any] | None = None) -> float:
    """Type-aware likeness of two values in [0, 1].

    Numbers by value (relative 1e-6), booleans only as booleans, lists place by place, objects key by
    key. Text without case and outer spaces: equal or not for identifiers (one word), enumerations and
    dates; else F1 of the sets of words.
    """
    schema = schema or {}
    if given is _ABSENT or expected is _ABSENT or not _has_type(given, schema.get("type")):
        return 0.0
    if isinstance(given, bool) or isinstance(expected, bool):
        return float(given is expected)
    if isinstance(given, int | float) and isinstance(expected, int | float):
        return float(abs(given - expected) <= 1e-6 * max(1.0, abs(given), abs(expected)))
    if isinstance(given, str) and isinstance(expected, str):
        return _text(given, expected, exact="enum" in schema or "format" in schema)
    if isinstance(given, list) and isinstance(expected, list):
        longer = max(len(given), len(expected))
        pairs = zip(given, expected, strict=False)
        return sum(alike(a, b, schema.get("items")) for a, b in pairs) / longer if longer else 1.0
    if isinstance(given, Mapping) and isinstance(expected, Mapping):
        return f_match(given, expected, schema)
    return float(given is None and expected is None)


def _text(given: str, expected: str, exact: bool) -> float:
    left, right = given.casefold().split(), expected.casefold().split()
    if exact or min(len(left), len(right)) < 2:
        return float(left == right)
    shared = len(set(left) & set(right))
    return 2 * shared / (len(set(left)) + len(set(right)))


_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "boolean": bool,
    "integer": (int, float),
    "number": (int, float),
    "array": list,
    "object": Mapping,
    "null": type(None),
}


def _has_type(value: Any, declared: Any) -> bool:
    if isinstance(declared, list):
        return any(_has_type(value, one) for one in declared)
    if declared not in _TYPES:
        return True
    if isinstance(value, bool) and declared != "boolean":
        return False
    if declared == "integer" and isinstance(value, float) and not value.is_integer():
        return False
    return isinstance(value, _TYPES[declared])
