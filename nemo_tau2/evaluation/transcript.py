"""A stored row as evaluation reads it: its items, what was said, what was called, and findings about it.

Reading only. What the findings mean is decided in `patterns` and `blame`.
"""

import json
from dataclasses import dataclass
from typing import Any

from nemo_tau2.outcomes import SUCCESS

Row = dict[str, Any]

RULE, DEFAULT, JUDGE, OWN = "rule", "default", "judge", "row"
"""Who made a finding: a rule, nobody (counted as the policy's), a judge model, the environment itself."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A pattern (or a party to blame), the tool or argument it is about, and the line that shows it.

    `tool` is empty where no tool is meant; `calls` are the policy's calls it speaks of, by number.
    """

    kind: str
    about: str
    evidence: str
    tool: str = ""
    calls: tuple[int, ...] = ()
    by: str = RULE


@dataclass(frozen=True, slots=True)
class PolicyCall:
    """One call of the policy. `arguments` is None where they are no JSON object."""

    name: str
    arguments: dict[str, Any] | None
    tier: str
    number: int = 0
    """Which of the policy's calls it is, from 0."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the dialogue: `who` is user, assistant, call or result."""

    who: str
    text: str


def succeeded(row: Row) -> bool:
    """Whether the row is a graded success."""
    return not row["mask_sample"] and row["reward"] >= SUCCESS


def output_of(row: Row) -> list[Row]:
    """The trajectory's items. Raises ValueError where they are no list of objects."""
    response = row.get("response") or {}
    items = response.get("output") if isinstance(response, dict) else response
    if items is None:
        return []
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ValueError("response.output is not a list of items")
    return items


def own_start(items: list[Row], ends: list[int] | None) -> int:
    """Where the policy's first generation begins, given `turn_output_indices`.

    What stands before it is not the policy's doing: a welcome, and the prefix that a row began with.
    """
    if ends is None:
        return 0
    if not ends:
        return len(items)
    start = min(ends[0], len(items))
    while start > 0 and _is_generated(items[start - 1]):
        start -= 1
    return start


def _own(row: Row) -> list[Row]:
    items = output_of(row)
    return items[own_start(items, row.get("turn_output_indices")) :]


def _is_generated(item: Row) -> bool:
    return item.get("type") in ("function_call", "reasoning") or is_message(item, "assistant")


def policy_calls(row: Row) -> list[PolicyCall]:
    """The policy's calls in order, each with the tier the environment gave it."""
    tiers = iter([tier for turn in row.get("call_tiers") or [] for tier in turn])
    made = [item for item in _own(row) if item.get("type") == "function_call"]
    return [
        PolicyCall(str(item.get("name")), _arguments(item.get("arguments")), next(tiers, ""), n)
        for n, item in enumerate(made)
    ]


def texts(row: Row, role: str) -> list[str]:
    """What this role said, in order; of the assistant only what the policy itself said."""
    items = _own(row) if role == "assistant" else output_of(row)
    return [text_of(item) for item in items if is_message(item, role)]


def is_message(item: Row, role: str) -> bool:
    """Whether an item is a message of this role."""
    return item.get("type", "message") == "message" and item.get("role") == role


def text_of(item: Row) -> str:
    """A message item's text."""
    content = item.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text") or "" for part in content)


def lines(row: Row) -> list[Line]:
    """The dialogue in order: messages, the policy's calls and their results."""
    shown = []
    for item in output_of(row):
        kind = item.get("type", "message")
        if kind == "function_call":
            shown.append(Line("call", f"{item.get('name')}({_text(item.get('arguments'))})"))
        elif kind == "function_call_output":
            shown.append(Line("result", _text(item.get("output"))))
        elif kind == "message" and item.get("role") in ("user", "assistant"):
            shown.append(Line(item["role"], text_of(item)))
    return shown


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _arguments(raw: Any) -> dict[str, Any] | None:
    try:
        value = json.loads(raw or "{}") if isinstance(raw, str | None) else raw
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
