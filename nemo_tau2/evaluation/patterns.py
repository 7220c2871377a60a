"""Why a rollout failed, by deterministic rules over its stored row. Each finding has its evidence.

Rules that need the gold actions read them from the row's `task` note (docs/evaluation.md); without
the note only the rules about form (malformed, hallucinated, loop, stall, budget, missed communication) apply.
"""

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

BUDGETS = ("max_turns", "max_errors", "context_overflow", "deadline")
REPEATS = 3
"""The same call or the same words so often are a loop."""
TRANSFER = "transfer_to_human_agents"
SUCCEEDED = ("soft_match", "duplicate")
"""Tiers of calls that ran; whether they wrote depends on the tool."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A pattern (or a party to blame), the tool or argument it is about, and the line that shows it."""

    kind: str
    about: str
    evidence: str


@dataclass(frozen=True, slots=True)
class PolicyCall:
    """One call of the policy. `arguments` is None where they are no JSON object."""

    name: str
    arguments: dict[str, Any] | None
    tier: str


def patterns(row: dict[str, Any]) -> list[Finding]:
    """Findings of a graded row: of a failure its causes, of a success only reward by inaction."""
    task = row.get("task") or {}
    calls = policy_calls(row)
    if row["reward"] >= 1.0 - 1e-6:
        null = task.get("null_solvable") is True
        evidence = "a policy that does nothing gets reward 1 here"
        return [Finding("reward_by_inaction", "", evidence)] if null else []
    found = [*_form(row, calls), *_communication(row)]
    if "gold_actions" in task:
        found += _against_gold(row, task, calls)
    return list({(f.kind, f.about, f.evidence): f for f in found}.values())


def policy_calls(row: dict[str, Any]) -> list[PolicyCall]:
    """The policy's calls in order, each with the tier the environment gave it."""
    tiers = iter([tier for turn in row.get("call_tiers") or [] for tier in turn])
    items = (row.get("response") or {}).get("output") or []
    return [
        PolicyCall(str(item.get("name")), _arguments(item.get("arguments")), next(tiers, ""))
        for item in items
        if item.get("type") == "function_call"
    ]


def texts(row: dict[str, Any], role: str) -> list[str]:
    """What this role said, in order."""
    items = (row.get("response") or {}).get("output") or []
    return [
        text_of(item)
        for item in items
        if item.get("type", "message") == "message" and item.get("role") == role
    ]


def text_of(item: dict[str, Any]) -> str:
    """A message item's text."""
    content = item.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text") or "" for part in content)


def _form(row: dict[str, Any], calls: list[PolicyCall]) -> list[Finding]:
    tools = (row.get("responses_create_params") or {}).get("tools") or []
    names = {tool.get("name") for tool in tools}
    found = []
    for call in calls:
        if call.arguments is None:
            found.append(
                Finding("malformed_call", call.name, f"{call.name}: arguments are no JSON object")
            )
        elif names and call.name not in names:
            found.append(Finding("hallucinated_tool", call.name, f"there is no tool {call.name}"))
    acts = Counter(f"{c.name}({json.dumps(c.arguments, sort_keys=True)})" for c in calls)
    acts.update(f"says {text[:200]!r}" for text in texts(row, "assistant") if text.strip())
    for act, times in acts.items():
        if times >= REPEATS:
            found.append(Finding("loop", act.split("(")[0][:40], f"{times} times {act[:200]}"))
    if row["stop_reason"] in BUDGETS:
        found.append(Finding("budget", row["stop_reason"], f"ended by {row['stop_reason']}"))
    return found


def _communication(row: dict[str, Any]) -> list[Finding]:
    checks = (row.get("reward_info") or {}).get("communicate") or []
    return [
        Finding("missed_communication", str(check["info"]), f"never said {check['info']!r}")
        for check in checks
        if not check["met"]
    ]


def _against_gold(
    row: dict[str, Any], task: dict[str, Any], calls: list[PolicyCall]
) -> list[Finding]:
    basis = (row.get("reward_info") or {}).get("reward_basis") or []
    gold = [
        g for g in task["gold_actions"]
        if g["actor"] == "assistant" and not g["errored"] and (g["writes"] or "ACTION" in basis)
    ]  # fmt: skip
    done, left, spare, order = _match(gold, calls)
    tried = _pair(left, spare)
    spare = [call for call in spare if not any(call is attempt for attempt in tried.values())]
    found = []
    for index, wanted in enumerate(left):
        if index not in tried:
            found.append(
                Finding("skipped_tool_call", wanted["name"], f"{wanted['name']} was never called")
            )
        else:
            found += _wrong_parameters(wanted, tried[index])
    writing = {g["name"] for g in task["gold_actions"] if g["writes"]}
    extra = [
        c for c in spare if c.tier == "state_change" or (c.tier in SUCCEEDED and c.name in writing)
    ]
    found += [Finding("over_action", c.name, f"{c.name} is in no gold action") for c in extra]
    if gold and not left and not extra and order != sorted(order):
        found.append(Finding("wrong_order", "", f"gold actions were made in the order {order}"))
    transfers = any(g["name"] == TRANSFER for g in task["gold_actions"])
    if any(c.name == TRANSFER and c.tier != "error" for c in calls) and not transfers:
        found.append(
            Finding("premature_transfer", TRANSFER, f"transferred with {len(left)} writes left")
        )
    if gold and not calls and not done:
        found.append(Finding("stall", "", f"no call in {row.get('num_turns')} turns"))
    return found


def _pair(left: list[dict[str, Any]], spare: list[PolicyCall]) -> dict[int, PolicyCall]:
    """{index in `left`: the unmatched call it was meant by}: pairs with most equal arguments first."""
    pairs = [
        (-sum(call.arguments.get(k) == v for k, v in wanted["arguments"].items()), i, j)
        for i, wanted in enumerate(left)
        for j, call in enumerate(spare)
        if call.name == wanted["name"] and call.arguments
    ]
    found: dict[int, PolicyCall] = {}
    used: set[int] = set()
    for _, i, j in sorted(pairs):
        if i not in found and j not in used:
            found[i] = spare[j]
            used.add(j)
    return found


def _wrong_parameters(wanted: dict[str, Any], attempt: PolicyCall) -> list[Finding]:
    keys = wanted["arguments"].keys() | attempt.arguments.keys()
    found = []
    for key in sorted(keys):
        gave, want = attempt.arguments.get(key), wanted["arguments"].get(key)
        if gave != want:
            evidence = f"{attempt.name}: {key} was {gave!r}, gold has {want!r}"[:400]
            found.append(Finding("wrong_parameter", f"{attempt.name}.{key}", evidence))
    return found


def _match(gold: list[dict[str, Any]], calls: list[PolicyCall]):
    """Each gold action once: (matches, unmatched gold, unmatched calls, gold indices in call order)."""
    free, spare, order = dict(enumerate(gold)), [], []
    for call in calls:
        hit = next(
            (
                i
                for i, g in free.items()
                if g["name"] == call.name and g["arguments"] == call.arguments
            ),
            None,
        )
        if hit is None and call.tier == "gold_exact":  # equal but for notation
            hit = next((i for i, g in free.items() if g["name"] == call.name), None)
        if hit is None:
            spare.append(call)
        else:
            order.append(hit)
            del free[hit]
    return len(order), list(free.values()), spare, order


def _arguments(raw: Any) -> dict[str, Any] | None:
    try:
        value = json.loads(raw or "{}") if isinstance(raw, str | None) else raw
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
