"""Why a rollout failed, by deterministic rules over its stored row. Each finding has its evidence.

Rules that need the gold actions read them from the row's `task` note (docs/evaluation.md); without
the note only the rules about form (malformed, hallucinated, loop, stall, budget, missed communication) apply.
"""

import json
from collections import Counter

from nemo_tau2.evaluation.transcript import (
    SUCCESS,
    Finding,
    PolicyCall,
    Row,
    output_of,
    policy_calls,
    text_of,
    texts,
)

BUDGETS = ("max_turns", "max_errors", "context_overflow", "deadline")
REPEATS = 3
"""The same call or the same words so often are a loop."""
TRANSFER = "transfer_to_human_agents"
SUCCEEDED = ("soft_match", "duplicate")
"""Tiers of calls that ran; whether they wrote depends on the tool."""
KINDS = (
    "skipped_tool_call",
    "wrong_parameter",
    "over_action",
    "wrong_order",
    "missed_communication",
    "premature_transfer",
    "stall",
    "loop",
    "budget",
    "malformed_call",
    "hallucinated_tool",
    "reward_by_inaction",
)


def patterns(row: Row) -> list[Finding]:
    """Findings of a graded row: of a failure its causes, of a success only reward by inaction."""
    task = row.get("task") or {}
    if row["reward"] >= SUCCESS:
        null = task.get("null_solvable") is True
        evidence = "a policy that does nothing gets reward 1 here"
        return [Finding("reward_by_inaction", "", evidence)] if null else []
    calls = policy_calls(row)
    found = [*_form(row, calls), *_communication(row)]
    if "gold_actions" in task:
        found += _against_gold(row, task, calls)
    return list({(f.kind, f.about, f.evidence): f for f in found}.values())


def _form(row: Row, calls: list[PolicyCall]) -> list[Finding]:
    names = _tool_names(row)
    found = []
    for call in calls:
        name, at = call.name, (call.number,)
        if call.arguments is None:
            evidence = f"{name}: arguments are no JSON object"
            found.append(Finding("malformed_call", name, evidence, name, at))
        elif names and name not in names:
            found.append(
                Finding("hallucinated_tool", name, f"there is no tool {name}"[:400], name, at)
            )
    found += _loops(row, calls)
    if row["stop_reason"] in BUDGETS:
        found.append(Finding("budget", row["stop_reason"], f"ended by {row['stop_reason']}"))
    if row["stop_reason"] == "agent_stop" and _said_nothing(row):
        found.append(
            Finding("stall", "empty_turn", "the policy's last turn said and called nothing")
        )
    return found


def _tool_names(row: Row) -> set[str]:
    """The tools the policy ever saw."""
    tools = list((row.get("responses_create_params") or {}).get("tools") or [])
    for change in row.get("tool_changes") or []:
        tools += change.get("tools") or []
    return {tool.get("name") for tool in tools}


def _loops(row: Row, calls: list[PolicyCall]) -> list[Finding]:
    """Repeated calls and repeated words; a call that gold itself repeats may be made as often."""
    wanted = Counter(
        _act(gold["name"], gold["arguments"])
        for gold in (row.get("task") or {}).get("gold_actions") or []
        if gold["actor"] == "assistant"
    )
    made: dict[str, list[PolicyCall]] = {}
    for call in calls:
        made.setdefault(_act(call.name, call.arguments), []).append(call)
    found = []
    for act, same in made.items():
        if len(same) >= max(REPEATS, wanted[act] + 1):
            at = tuple(call.number for call in same)
            name = same[0].name
            evidence = f"{len(same)} times {act[:200]}"
            found.append(Finding("loop", name[:40], evidence, name, at))
    said = Counter(text[:200] for text in texts(row, "assistant") if text.strip())
    for text, times in said.items():
        if times >= REPEATS:
            found.append(Finding("loop", "words", f"{times} times says {text!r}"))
    return found


def _act(name: str, arguments: dict | None) -> str:
    return f"{name}({json.dumps(arguments, sort_keys=True)})"


def _said_nothing(row: Row) -> bool:
    """Whether the trajectory ends with an empty message of the policy."""
    items = output_of(row)
    return bool(items) and items[-1].get("role") == "assistant" and not text_of(items[-1]).strip()


def _communication(row: Row) -> list[Finding]:
    checks = (row.get("reward_info") or {}).get("communicate") or []
    return [
        Finding("missed_communication", str(check["info"]), f"never said {check['info']!r}")
        for check in checks
        if not check["met"]
    ]


def _against_gold(row: Row, task: Row, calls: list[PolicyCall]) -> list[Finding]:
    basis = (row.get("reward_info") or {}).get("reward_basis") or []
    gold = [
        g for g in task["gold_actions"]
        if g["actor"] == "assistant" and not g["errored"] and (g["writes"] or "ACTION" in basis)
    ]  # fmt: skip
    broken = [(g["name"], g["arguments"]) for g in task["gold_actions"] if g["errored"]]
    sound = [c for c in calls if (c.name, c.arguments) not in broken]
    left, spare, order = _match(gold, sound)
    tried = _pair(left, spare)
    spare = [call for call in spare if not any(call is attempt for attempt in tried.values())]
    found = []
    for index, wanted in enumerate(left):
        name = wanted["name"]
        if index not in tried:
            found.append(Finding("skipped_tool_call", name, f"{name} was never called", name))
        else:
            found += _wrong_parameters(wanted, tried[index])
    found += _left_to_the_user(row, task)
    extra = [c for c in spare if is_write(c, task) and not attempts_broken_gold(c, task)]
    found += [
        Finding("over_action", c.name, f"{c.name} is in no gold action", c.name, (c.number,))
        for c in extra
    ]
    if gold and not left and not extra and order != sorted(order):
        late = next(i for i, n in enumerate(order) if n != sorted(order)[i])
        evidence = f"gold actions were made in the order {order}"
        found.append(Finding("wrong_order", "", evidence, gold[order[late]]["name"]))
    found += _premature_transfer(task, calls, len(left))
    if not calls and not row.get("user_calls"):
        found.append(Finding("stall", "", f"no call in {row.get('num_turns')} turns"))
    return found


def is_write(call: PolicyCall, task: Row) -> bool:
    """Whether the call ran and wrote, as far as its tier and the gold actions tell."""
    writing = {g["name"] for g in task["gold_actions"] if g["writes"]}
    return call.tier == "state_change" or (call.tier in SUCCEEDED and call.name in writing)


def attempts_broken_gold(call: PolicyCall, task: Row) -> bool:
    """Whether the call is about the same thing as a gold write that fails on the gold path."""
    return any(
        g["errored"]
        and g["writes"]
        and g["name"] == call.name
        and any(isinstance(v, str) and (call.arguments or {}).get(k) == v
                for k, v in g["arguments"].items())
        for g in task["gold_actions"]
    )  # fmt: skip


def _left_to_the_user(row: Row, task: Row) -> list[Finding]:
    """Gold steps on the user's own device that were never made: nobody led the user to them."""
    done = Counter(
        _act(str(call.get("name")), call.get("arguments")) for call in row.get("user_calls") or []
    )
    found = []
    for gold in task["gold_actions"]:
        if gold["actor"] != "user" or gold["errored"] or not gold["writes"]:
            continue
        act = _act(gold["name"], gold["arguments"])
        if done[act]:
            done[act] -= 1
            continue
        name = gold["name"]
        evidence = f"the user was never led to {name}"
        found.append(Finding("skipped_tool_call", name, evidence, name))
    return found


def _premature_transfer(task: Row, calls: list[PolicyCall], left: int) -> list[Finding]:
    wanted = any(g["name"] == TRANSFER for g in task["gold_actions"])
    made = tuple(c.number for c in calls if c.name == TRANSFER and c.tier != "error")
    if wanted or not made:
        return []
    evidence = f"transferred with {left} writes left"
    return [Finding("premature_transfer", TRANSFER, evidence, TRANSFER, made)]


def _pair(left: list[Row], spare: list[PolicyCall]) -> dict[int, PolicyCall]:
    """{index in `left`: the unmatched call it was meant by}: pairs with most equal arguments first."""
    pairs = [
        (-_alike(wanted, call), i, j)
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


def _alike(wanted: Row, call: PolicyCall) -> int:
    given = call.arguments or {}
    return sum(given.get(key) == value for key, value in wanted["arguments"].items())


def _wrong_parameters(wanted: Row, attempt: PolicyCall) -> list[Finding]:
    name, given = attempt.name, attempt.arguments or {}
    found = []
    for key in sorted(wanted["arguments"].keys() | given.keys()):
        gave, want = given.get(key), wanted["arguments"].get(key)
        if gave != want:
            evidence = f"{name}: {key} was {gave!r}, gold has {want!r}"[:400]
            at = (attempt.number,)
            found.append(Finding("wrong_parameter", f"{name}.{key}"[:200], evidence, name, at))
    return found


def _match(
    gold: list[Row], calls: list[PolicyCall]
) -> tuple[list[Row], list[PolicyCall], list[int]]:
    """Each gold action once: (unmatched gold, unmatched calls, gold indices in the order of the calls).

    A call that failed takes a gold action only where no call that ran has it.
    """
    free, hits = dict(enumerate(gold)), {}
    for call in sorted(calls, key=lambda c: c.tier == "error"):
        same = [i for i, g in free.items() if g["name"] == call.name]
        hit = next((i for i in same if free[i]["arguments"] == call.arguments), None)
        if hit is None and call.tier == "gold_exact" and same:  # equal but for notation
            hit = max(same, key=lambda i: _alike(free[i], call))
        if hit is not None:
            hits[call.number] = hit
            del free[hit]
    spare = [call for call in calls if call.number not in hits]
    return list(free.values()), spare, [hits[number] for number in sorted(hits)]
