"""What the page shows of one stored row: its line in the table, its rollout view, its prompt.

Rows are other people's text. Nothing here is escaped: the page only ever sets it as text.
"""

import json
from collections import defaultdict
from typing import Any

from nemo_tau2.evaluation.transcript import Finding, text_of
from nemo_tau2.outcomes import SUCCESS
from nemo_tau2.rollouts.store import part_of

Record = dict[str, Any]


def outcome_of(row: Record) -> str:
    """`passed`, `failed`, or `masked` for an infrastructure failure."""
    if row["mask_sample"]:
        return "masked"
    return "passed" if row["reward"] >= SUCCESS else "failed"


def table_line(row: Record, found: list[Finding], blamed: Finding | None) -> Record:
    """What the table sorts and filters by."""
    gold = (row.get("task") or {}).get("gold_actions")
    return {
        "domain": part_of(row),
        "task": str(row["task_id"]),
        "trial": row.get("trial"),
        "reward": row["reward"],
        "outcome": outcome_of(row),
        "stop": row["stop_reason"],
        "turns": row.get("num_turns"),
        "calls": row.get("num_tool_calls"),
        "errors": row.get("num_tool_errors"),
        "seconds": row.get("seconds"),
        "gold": None if gold is None else len(gold),
        "patterns": sorted({f.kind for f in found}),
        "blame": blamed.kind if blamed and outcome_of(row) != "passed" else None,
    }


def rollout_view(row: Record, found: list[Finding], blamed: Finding | None) -> Record:
    """What is unpacked when the rollout is opened."""
    given = (row.get("responses_create_params") or {}).get("input")
    opening = [item for item in _items(given) if item.get("role") not in ("system", "developer")]
    return {
        "dialogue": dialogue(opening, {}) + dialogue(_items(_output(row)), row),
        "reward_info": row.get("reward_info") or {},
        "questions": _questions(row),
        "user_calls": row.get("user_calls") or [],
        "gold_actions": (row.get("task") or {}).get("gold_actions"),
        "failure": row.get("failure"),
        "tool_changes": tool_changes(row),
        "findings": [_finding(f) for f in found],
        "blame": _finding(blamed) if blamed else None,
    }


def tool_changes(row: Record) -> list[Record]:
    """Where the environment changed the visible tools: from which turn, which were added, which are gone."""
    before, shown = [], []
    for change in row.get("tool_changes") or []:
        names = [str(tool.get("name")) for tool in change.get("tools") or []]
        added = [name for name in names if name not in before]
        gone = [name for name in before if name not in names]
        shown.append(
            {"turn": change.get("turn"), "added": added, "gone": gone, "visible": len(names)}
        )
        before = names
    return shown


def context(row: Record) -> Record:
    """The prompt and the tools, which many rollouts share."""
    params = row.get("responses_create_params") or {}
    system = [i for i in _items(params.get("input")) if i.get("role") in ("system", "developer")]
    return {
        "prompt": "\n\n".join(map(text_of, system)),
        "tools": [
            {"name": str(t.get("name")), "description": str(t.get("description") or "")}
            for t in params.get("tools") or []
        ],
    }


def dialogue(items: list[Record], row: Record) -> list[Record]:
    """Messages, reasoning and calls in order, each call with its result.

    Items of the policy carry `turn`: the number of the generation they belong to. Those of a prefix
    are nobody's and carry none.
    """
    turns = _turns(items, row.get("turn_output_indices") or [])
    tiers = {n: iter(calls) for n, calls in enumerate(row.get("call_tiers") or [])}
    waiting: dict[str, list[Record]] = defaultdict(list)
    shown: list[Record] = []
    for place, item in enumerate(items):
        kind = item.get("type", "message")
        turn = turns.get(place)
        if kind == "function_call":
            entry = {
                "kind": "call",
                "turn": turn,
                "name": str(item.get("name")),
                "arguments": _text(item.get("arguments")),
                "tier": next(tiers.get(turn, iter(())), None),
                "result": None,
            }
            waiting[str(item.get("call_id"))].append(entry)
        elif kind == "function_call_output":
            asked = waiting[str(item.get("call_id"))]
            if asked:
                asked.pop(0)["result"] = _text(item.get("output"))
                continue
            entry = {"kind": "result", "result": _text(item.get("output"))}
        elif kind == "reasoning":
            parts = (item.get("summary") or []) + (item.get("content") or [])
            text = "\n".join(str(part.get("text") or "") for part in parts)
            entry = {"kind": "reasoning", "turn": turn, "text": text}
        else:
            role = str(item.get("role") or kind)
            entry = {"kind": "message", "role": role, "text": text_of(item)}
            entry |= {"turn": turn} if role == "assistant" else {}
        shown.append(entry)
    return shown


def _turns(items: list[Record], ends: list[int]) -> dict[int, int]:
    """Place of each item of the policy to its turn: the unbroken run of its items up to the turn's end.

    What stands before that (a greeting, what the user said, results) is the environment's.
    """
    turns, begin = {}, 0
    for turn, end in enumerate(ends):
        place = min(end, len(items) - 1)
        while place >= begin and _of_policy(items[place]):
            turns[place] = turn
            place -= 1
        begin = end + 1
    return turns


def _of_policy(item: Record) -> bool:
    kind = item.get("type", "message")
    return kind in ("function_call", "reasoning") or item.get("role") == "assistant"


def _questions(row: Record) -> list[Record]:
    """The customer's numbered questions (Agent Script environments) and what the judge found."""
    asked = (row.get("verifier_metadata") or {}).get("questions") or []
    info = row.get("reward_info") or {}
    verdicts, resolved = info.get("verdicts") or {}, info.get("resolved") or []
    return [
        {
            "number": question.get("number"),
            "text": str(question.get("text")),
            "judged": verdicts.get(str(question.get("number"))),
            "resolved": question.get("number") in resolved,
        }
        for question in asked
        if verdicts
    ]


def _output(row: Record) -> Any:
    return (row.get("response") or {}).get("output")


def _items(value: Any) -> list[Record]:
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    return [item for item in value or [] if isinstance(item, dict)]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _finding(finding: Finding) -> Record:
    keys = ("kind", "about", "evidence", "by")
    return {key: getattr(finding, key) for key in keys}
