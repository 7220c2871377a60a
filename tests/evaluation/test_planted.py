"""Planted failures and faults, one of each kind: named right, and never blamed on the wrong party."""

import json

import pytest

from nemo_tau2.evaluation.blame import blame
from nemo_tau2.evaluation.patterns import patterns

TOOLS = ("read", "book", "cancel", "transfer_to_human_agents")
ASK, YES = "Shall I book it?", "Yes, go ahead."


def gold(name, arguments, errored=False):
    writes = name in ("book", "cancel")
    return {
        "actor": "assistant",
        "name": name,
        "arguments": arguments,
        "errored": errored,
        "writes": writes,
    }


BOOK, CANCEL = {"id": "A", "seat": "1C"}, {"id": "B"}
WANTED = [gold("read", {"id": "A"}), gold("book", BOOK), gold("cancel", CANCEL)]


def call(name, arguments, tier="state_change"):
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"type": "function_call", "call_id": "c", "name": name, "arguments": text, "tier": tier}


def said(role, text):
    return {"type": "message", "role": role, "content": text}


def row(
    *items,
    wanted=WANTED,
    reward=0.0,
    stop="user_stop",
    masked=False,
    null=False,
    communicate=(),
    basis=("DB",),
):
    calls = [item for item in items if item["type"] == "function_call"]
    return {
        "domain": "d", "task_id": "t", "trial": 0, "reward": reward, "stop_reason": stop,
        "mask_sample": masked, "failure": {"kind": stop, "message": "broken"} if masked else None,
        "call_tiers": [[c["tier"]] for c in calls], "num_turns": 3,
        "reward_info": {"reward_basis": list(basis), "communicate": list(communicate)},
        "responses_create_params": {"tools": [{"name": name} for name in TOOLS]},
        "response": {"output": [said("user", "Hello."), *items]},
        "task": {"gold_actions": wanted, "null_solvable": null},
    }  # fmt: skip


READ = call("read", {"id": "A"}, "gold_exact")
DID = (call("book", BOOK, "gold_exact"), call("cancel", CANCEL, "gold_exact"))

PATTERNS = {
    "skipped_tool_call": row(READ, DID[0]),
    "wrong_parameter": row(READ, call("book", {"id": "A", "seat": "9Z"}, "soft_match"), DID[1]),
    "over_action": row(READ, *DID, call("cancel", {"id": "Z"})),
    "wrong_order": row(READ, *DID[::-1]),
    "missed_communication": row(READ, *DID, communicate=[{"info": "42", "met": False}]),
    "premature_transfer": row(
        READ, call("transfer_to_human_agents", {"summary": "s"}, "read_only")
    ),
    "stall": row(said("assistant", "Hm.")),
    "loop": row(*[call("read", {"id": "Q"}, "duplicate")] * 6),
    "budget": row(READ, stop="max_turns"),
    "malformed_call": row(READ, call("book", "{oops", "error")),
    "hallucinated_tool": row(READ, call("bookk", BOOK, "error")),
    "reward_by_inaction": row(said("assistant", "Bye."), reward=1.0, null=True),
}


@pytest.mark.parametrize("kind", PATTERNS)
def test_a_planted_pattern_is_named(kind):
    found = {finding.kind: finding for finding in patterns(PATTERNS[kind])}
    assert kind in found and found[kind].evidence


@pytest.mark.parametrize("kind", [kind for kind in PATTERNS if kind != "reward_by_inaction"])
def test_a_policys_failure_is_the_policys(kind):
    assert blame(PATTERNS[kind]).kind == "policy"


def test_the_wrong_parameter_is_named_with_both_values():
    [finding] = [f for f in patterns(PATTERNS["wrong_parameter"]) if f.kind == "wrong_parameter"]
    assert (
        finding.about == "book.seat" and "'9Z'" in finding.evidence and "'1C'" in finding.evidence
    )


def test_a_wrong_call_is_paired_with_the_gold_action_it_is_nearest_to():
    wanted = [gold("book", {"id": "A", "seat": "1C"}), gold("book", {"id": "B", "seat": "2D"})]
    found = patterns(row(call("book", {"id": "B", "seat": "9Z"}), wanted=wanted))
    assert [(f.kind, f.about) for f in found] == [
        ("skipped_tool_call", "book"),
        ("wrong_parameter", "book.seat"),
    ]
    assert "gold has '2D'" in found[1].evidence


def test_two_wrong_calls_of_one_tool_are_two_findings():
    wanted = [gold("book", {"id": "A", "seat": "1C"}), gold("book", {"id": "B", "seat": "2D"})]
    tries = (call("book", {"id": "B", "seat": "9Z"}), call("book", {"id": "A", "seat": "8Y"}))
    assert len([f for f in patterns(row(*tries, wanted=wanted)) if f.about == "book.seat"]) == 2


@pytest.mark.parametrize("tier", ["soft_match", "duplicate", "state_change"])
def test_a_spare_write_is_an_over_action_whatever_its_tier(tier):
    spare = call("cancel", {"id": "Z"}, tier)
    assert "over_action" in {f.kind for f in patterns(row(READ, *DID, spare))}


def test_a_failed_transfer_and_a_spare_read_are_no_patterns():
    failed = call("transfer_to_human_agents", {}, "error")
    found = {
        f.kind for f in patterns(row(READ, *DID, failed, call("read", {"id": "Q"}, "read_only")))
    }
    assert not found & {"premature_transfer", "over_action"}


BLAMED = {
    ("user_simulator", "stopped_before_the_write"): row(
        READ, DID[0], said("assistant", ASK), said("user", f"{YES} ###STOP###")
    ),
    ("user_simulator", "repeated_opening"): row(
        said("assistant", "Hi."),
        said("user", "Hello."),
        said("assistant", "Yes?"),
        said("user", "Hello."),
    ),
    ("user_simulator", "empty"): row(READ, said("assistant", "Which one?"), said("user", " ")),
    ("user_simulator", "user_simulator_failed"): row(masked=True, stop="user_simulator_failed"),
    ("tool_emulator", "tool_emulator_failed"): row(masked=True, stop="tool_emulator_failed"),
    ("judge", "judge_failed"): row(masked=True, stop="judge_failed"),
    ("harness", "policy_endpoint_failed"): row(masked=True, stop="policy_endpoint_failed"),
    ("harness", "world_failed"): row(masked=True, stop="world_failed"),
    ("task", "gold_error"): row(
        READ, *DID, wanted=[*WANTED, gold("book", {"id": "?"}, errored=True)]
    ),
}


@pytest.mark.parametrize("party, about", BLAMED)
def test_a_planted_fault_is_blamed_on_its_party(party, about):
    verdict = blame(BLAMED[party, about])
    assert (verdict.kind, verdict.about) == (party, about) and verdict.evidence


def test_a_policy_that_did_nothing_is_not_excused_by_a_failing_gold_action():
    wanted = [*WANTED, gold("book", {"id": "?"}, errored=True)]
    assert blame(row(said("assistant", "Hm."), wanted=wanted)).kind == "policy"


def test_a_user_that_stops_before_the_policy_asked_is_not_to_blame():
    early = row(READ, DID[0], said("assistant", "Done."), said("user", "Thanks. ###STOP###"))
    assert blame(early).kind == "policy"


QUIRKS = {
    "empty": (said("assistant", "Which?"), said("user", " ")),
    "repeated_opening": (said("user", "Hello."), said("user", "Hello.")),
    "agreed and stopped": (said("assistant", ASK), said("user", f"{YES} ###STOP###")),
}
MISTAKES = (
    "wrong_parameter",
    "over_action",
    "wrong_order",
    "premature_transfer",
    "loop",
    "malformed_call",
    "hallucinated_tool",
)


@pytest.mark.parametrize("quirk", QUIRKS)
@pytest.mark.parametrize("kind", MISTAKES)
def test_a_policys_mistake_stays_the_policys_whatever_the_user_did(kind, quirk):
    planted = PATTERNS[kind]
    output = [*planted["response"]["output"], *QUIRKS[quirk]]
    assert blame(planted | {"response": {"output": output}}).kind == "policy"


def test_a_success_has_nobody_to_blame():
    assert blame(row(READ, *DID, reward=1.0)) is None
