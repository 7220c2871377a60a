"""Who a failed rollout is owed to: deterministic rules, each with its evidence.

The policy's where no rule speaks for another party, and then the finding says so. Rules about the task
are in `task_faults`, those about the user in `user_faults`; a judge model may speak for what is left
undecided (`judge`), never for what a rule has decided.
"""

from collections.abc import Mapping
from dataclasses import replace

from nemo_tau2.evaluation.known_issues import Issue
from nemo_tau2.evaluation.patterns import patterns
from nemo_tau2.evaluation.task_faults import (
    gold_error,
    issue_of,
    known_issue,
    null_solvable,
    unearned,
)
from nemo_tau2.evaluation.tasks import Scenario, noted
from nemo_tau2.evaluation.transcript import DEFAULT, OWN, SUCCESS, Finding, Row
from nemo_tau2.evaluation.user_faults import (
    LEFT_UNDONE,
    empty,
    false_facts,
    repeated_opening,
    stopped_before_the_write,
    unanswered,
)

RULES_VERSION = "3"
"""Raised with every change of `patterns` or of a rule: stored findings of another version are not used."""
PARTIES = ("policy", "user_simulator", "tool_emulator", "judge", "harness", "task")
POLICY = "policy"
INFRASTRUCTURE = {
    "user_simulator_failed": "user_simulator",
    "tool_emulator_failed": "tool_emulator",
    "judge_failed": "judge",
    "policy_endpoint_failed": "harness",
    "world_failed": "harness",
}
UNDECIDED = "undecided, counted as policy"
_NAMES: Mapping[str, str] = {
    "customer": "user_simulator",
    "emulator": "tool_emulator",
    **{party: party for party in PARTIES},
}
"""Parties as rows name them."""


def findings(row: Row) -> tuple[list[Finding], Finding | None]:
    """The row's failure patterns (none for a masked row) and whom its outcome is owed to."""
    row = noted(row)
    found = [] if row["mask_sample"] else patterns(row)
    return found, blame(row, found)


def blame(row: Row, found: list[Finding] | None = None) -> Finding | None:
    """The party, the rule and the evidence. `found` are the row's patterns, if known.

    A success is owed to nobody, except one that doing nothing would have had: that is the task's.
    """
    if row["mask_sample"]:
        return _infrastructure(row)
    if row["reward"] >= SUCCESS:
        return unearned(row)
    if own := _own_verdict(row):
        return own
    found = patterns(row) if found is None else found
    if verdict := known_issue(row, found) or false_facts(row, found, Scenario.of(row)):
        return verdict
    mistakes = [f for f in found if f.kind not in LEFT_UNDONE and not _asks_in_vain(f, row)]
    if mistakes:
        return replace(mistakes[0], kind=POLICY, about=mistakes[0].kind)
    for rule in (
        gold_error,
        stopped_before_the_write,
        repeated_opening,
        empty,
        null_solvable,
    ):
        if verdict := rule(row, found):
            return verdict
    return _undecided(found, issue_of(row))


def _asks_in_vain(finding: Finding, row: Row) -> bool:
    """Saying the same again to a user that never answers is no mistake."""
    return (finding.kind, finding.about) == ("loop", "words") and unanswered(row)


def _infrastructure(row: Row) -> Finding:
    """A masked row: the broken part, as its stop reason or the environment itself names it."""
    party = INFRASTRUCTURE.get(row["stop_reason"]) or _NAMES.get(_stored(row)) or "harness"
    message = (row.get("failure") or {}).get("message") or row["stop_reason"]
    return Finding(party, row["stop_reason"], str(message)[:400])


def _own_verdict(row: Row) -> Finding | None:
    """What the environment itself says, where it names another party than the policy.

    Environments made from specifications say `policy` of whatever nothing else broke: that is their
    default, and the rules may know better.
    """
    stored = _stored(row)
    party = _NAMES.get(stored)
    if party is None or party == POLICY:
        return None
    return Finding(party, str(row["stop_reason"]), f"the environment names {stored}", by=OWN)


def _stored(row: Row) -> str:
    info = row.get("reward_info") or {}
    stored = info.get("blame") or row.get("blame")
    return stored if isinstance(stored, str) else ""


def _undecided(found: list[Finding], issue: Issue | None) -> Finding:
    """Nothing says whose it is. What the policy left undone, its user may have kept it from."""
    if not found:
        return Finding(POLICY, "", f"{UNDECIDED}: no rule speaks for another party", by=DEFAULT)
    first = found[0]
    evidence = f"{UNDECIDED}: {first.evidence}"
    if issue and issue.dropped and all(f.tool == issue.dropped for f in found):
        evidence += f"; {issue.what} ({issue.where})"
    return replace(first, kind=POLICY, about=first.kind, evidence=evidence, by=DEFAULT)
