"""Failures owed to the task: a gold action that fails, a task solved by inaction, an issue known upstream.

Each rule looks at one failed row and its patterns, and says nothing unless the row itself shows it.
"""

from nemo_tau2.evaluation.known_issues import (
    ISSUES,
    LAST_VARIANT,
    LAST_VARIANT_WHERE,
    PACKAGED,
    Issue,
    digest,
)
from nemo_tau2.evaluation.patterns import attempts_broken_gold, is_write
from nemo_tau2.evaluation.transcript import Finding, PolicyCall, Row, policy_calls

TASK = "task"


def known_issue(row: Row, found: list[Finding]) -> Finding | None:
    """The policy did what the task asks for, or its correction, and gold does not have it."""
    if "gold_actions" not in (row.get("task") or {}):
        return None
    calls = policy_calls(row)
    issue = issue_of(row)
    if issue is not None and _did_right(row, issue, calls, found):
        return Finding(TASK, "known_issue", f"{issue.what} ({issue.where})")
    if row.get("domain") == "retail" and _reversed_pairs(row, calls, found):
        evidence = (
            f"{LAST_VARIANT} with gold's pairs in another order; the tool prices every item by the "
            f"last ({LAST_VARIANT_WHERE})"
        )
        return Finding(TASK, "known_issue", evidence, LAST_VARIANT)
    return None


def gold_error(row: Row, found: list[Finding]) -> Finding | None:
    """A failing gold action is to blame only where nothing the policy did explains the failure."""
    if found:
        return None
    task = row.get("task") or {}
    broken = [g for g in task.get("gold_actions") or [] if g["errored"]]
    if not broken:
        return None
    made = [c for c in policy_calls(row) if is_write(c, task) and attempts_broken_gold(c, task)]
    name = made[0].name if made else broken[0]["name"]
    evidence = f"gold action {name} itself fails"
    if made:
        evidence += "; the policy made it work, which gold's end state does not have"
    return Finding(TASK, "gold_error", evidence, name)


def null_solvable(row: Row, found: list[Finding]) -> Finding | None:
    """Doing nothing would have passed and the policy did nothing wrong: what failed it is the task."""
    if found or (row.get("task") or {}).get("null_solvable") is not True:
        return None
    return Finding(TASK, "null_solvable", "a policy that does nothing gets reward 1 here")


def unearned(row: Row) -> Finding | None:
    """Of a success: the task's, where doing nothing is rewarded and the policy changed nothing."""
    task = row.get("task") or {}
    if task.get("null_solvable") is not True or "gold_actions" not in task:
        return None
    if any(is_write(call, task) for call in policy_calls(row)):
        return None
    evidence = "a policy that does nothing gets reward 1 here, and this one changed nothing"
    return Finding(TASK, "null_solvable", evidence)


def issue_of(row: Row) -> Issue | None:
    """The known issue of the row's task, where its task file is the packaged one."""
    domain = row.get("domain")
    stored = row.get("verifier_metadata") or {}
    sha = stored.get("tasks_file_sha256") or (row.get("provenance") or {}).get("tasks_file_sha256")
    if sha is None or PACKAGED.get(domain) != sha:
        return None
    return ISSUES.get((domain, str(row.get("task_id"))))


def _did_right(row: Row, issue: Issue, calls: list[PolicyCall], found: list[Finding]) -> bool:
    task = row["task"]
    writes = [c for c in calls if c.tier == "gold_exact" or is_write(c, task)]
    writing = {g["name"] for g in task["gold_actions"] if g["writes"]}
    writes = [c for c in writes if c.tier == "state_change" or c.name in writing]
    if issue.corrected:
        return digest((c.name, c.arguments) for c in writes) == issue.corrected
    if issue.missing:
        return bool(found) and all(
            f.kind == "over_action" and f.tool == issue.missing for f in found
        )
    return False


def _reversed_pairs(row: Row, calls: list[PolicyCall], found: list[Finding]) -> bool:
    """Whether all that is wrong is the order of the item pairs of one modification."""
    named = {f"{LAST_VARIANT}.item_ids", f"{LAST_VARIANT}.new_item_ids"}
    if not found or not all(f.kind == "wrong_parameter" and f.about in named for f in found):
        return False
    wanted = [_pairs(g["arguments"]) for g in row["task"]["gold_actions"]
              if g["name"] == LAST_VARIANT]  # fmt: skip
    numbers = {number for f in found for number in f.calls}
    given = [_pairs(c.arguments or {}) for c in calls if c.number in numbers]
    return bool(given) and all(pairs is not None and pairs in wanted for pairs in given)


def _pairs(arguments: Row) -> list[tuple[str, str]] | None:
    left, right = arguments.get("item_ids"), arguments.get("new_item_ids")
    if not isinstance(left, list) or not isinstance(right, list) or len(left) != len(right):
        return None
    return sorted((str(one), str(other)) for one, other in zip(left, right, strict=True))
