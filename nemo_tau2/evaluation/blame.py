"""Who a failed rollout is owed to, by deterministic rules; the policy where no rule speaks for another."""

import re
from typing import Any

from nemo_tau2.evaluation.patterns import patterns
from nemo_tau2.evaluation.transcript import Finding, text_of

INFRASTRUCTURE = {
    "user_simulator_failed": "user_simulator",
    "tool_emulator_failed": "tool_emulator",
    "judge_failed": "judge",
    "policy_endpoint_failed": "harness",
    "world_failed": "harness",
}
LEFT_UNDONE = ("skipped_tool_call", "missed_communication", "stall", "budget")
"""What a policy can be kept from doing by its user; any other pattern is a mistake of its own."""
_STOP = "###STOP###"
_AGREES = re.compile(
    r"^\W*(yes|yeah|sure|correct|confirm|go ahead|please proceed)\b", re.IGNORECASE
)


def blame(row: dict[str, Any], found: list[Finding] | None = None) -> Finding | None:
    """The party and the evidence; None for a success. `found` are the row's patterns, if known."""
    party = INFRASTRUCTURE.get(row["stop_reason"])
    if row["mask_sample"]:
        message = (row.get("failure") or {}).get("message") or row["stop_reason"]
        return Finding(party or "harness", row["stop_reason"], str(message)[:400])
    if row["reward"] >= 1.0 - 1e-6:
        return None
    found = patterns(row) if found is None else found
    mistaken = any(finding.kind not in LEFT_UNDONE for finding in found)
    if not mistaken:
        for rule in (_gold_error, _stopped_before_the_write, _repeated_opening, _empty):
            if verdict := rule(row, found):
                return verdict
    first = found[0] if found else Finding("", "", "no rule speaks for another party")
    return Finding("policy", first.kind, first.evidence)


def _gold_error(row: dict[str, Any], found: list[Finding]) -> Finding | None:
    """A failing gold action is to blame only where nothing the policy did explains the failure."""
    if found:
        return None
    gold = (row.get("task") or {}).get("gold_actions") or []
    broken = [action["name"] for action in gold if action["errored"]]
    return (
        Finding("task", "gold_error", f"gold action {broken[0]} itself fails") if broken else None
    )


def _stopped_before_the_write(row: dict[str, Any], found: list[Finding]) -> Finding | None:
    """The user's last words agree and stop, the policy had asked, and nothing is wrong but skipped writes."""
    items = (row.get("response") or {}).get("output") or []
    if len(items) < 2 or items[-1].get("role") != "user" or items[-2].get("role") != "assistant":
        return None
    last, asked = text_of(items[-1]), text_of(items[-2])
    agreed = _STOP in last and _AGREES.match(last) and "?" in asked
    only_skipped = found and all(f.kind == "skipped_tool_call" for f in found)
    if agreed and only_skipped:
        return Finding("user_simulator", "stopped_before_the_write", f"user: {last[:300]!r}")
    return None


def _repeated_opening(row: dict[str, Any], found: list[Finding]) -> Finding | None:
    said = [text_of(item).strip() for item in _user_items(row)]
    if len(said) >= 3 and said[0] and said[0] == said[1] == said[2]:
        return Finding("user_simulator", "repeated_opening", f"user, 3 times: {said[0][:200]!r}")
    return None


def _empty(row: dict[str, Any], found: list[Finding]) -> Finding | None:
    if any(not text_of(item).strip() for item in _user_items(row)):
        return Finding("user_simulator", "empty", "the user said nothing")
    return None


def _user_items(row: dict[str, Any]) -> list[dict[str, Any]]:
    items = (row.get("response") or {}).get("output") or []
    return [item for item in items if item.get("role") == "user"]
