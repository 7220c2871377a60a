"""Real episodes with one planted fault each: named right at least 95 times of 100, kind by kind.

What a row should be called is known from how it was made (`planting`), never from the rules under test.
"""

import random
from collections import Counter

import pytest

from nemo_tau2.evaluation.blame import PARTIES, findings
from nemo_tau2.evaluation.patterns import KINDS
from tests.evaluation.planting.build import planted_set

WANTED = 0.95


@pytest.fixture(scope="module")
def judged():
    """[(planted, its patterns, its blame)]."""
    return [(planted, *findings(planted.row)) for planted in planted_set()]


def named(planted, found):
    """Whether the planted pattern is among those found, with its tool or parameter."""
    return any(
        f.kind == planted.pattern and (not planted.tool or planted.tool in (f.tool, f.about))
        for f in found
    )


def owed(planted, blamed):
    """Whether the party is right, and the rule where one is planted."""
    right = blamed is not None and blamed.kind == planted.party
    return right and planted.rule in ("", blamed.about)


def rates(pairs):
    """{fault: share that is right} of (fault, right)."""
    seen, right = Counter(), Counter()
    for fault, good in pairs:
        seen[fault] += 1
        right[fault] += good
    return {fault: right[fault] / seen[fault] for fault in seen}


def test_the_set_is_large_and_covers_every_kind(judged):
    assert len(judged) >= 400
    assert {p.pattern for p, _, _ in judged} >= set(KINDS)
    assert {p.party for p, _, _ in judged} == set(PARTIES)
    assert {p.row["domain"] for p, _, _ in judged} >= {"airline", "retail", "telecom"}
    rules = {p.rule for p, _, _ in judged if p.party in ("user_simulator", "task")}
    assert rules == {
        "stopped_before_the_write", "repeated_opening", "empty", "fabricated_facts",
        "contradicted_instructions", "user_simulator_failed", "gold_error", "null_solvable",
        "known_issue",
    }  # fmt: skip


def test_every_planted_pattern_is_named(judged):
    found = rates((p.fault, named(p, kinds)) for p, kinds, _ in judged if p.pattern)
    assert {fault: rate for fault, rate in found.items() if rate < WANTED} == {}


def test_every_planted_fault_is_owed_to_its_party(judged):
    found = rates((p.fault, owed(p, blamed)) for p, _, blamed in judged)
    assert {fault: rate for fault, rate in found.items() if rate < WANTED} == {}


def test_each_party_is_found_in_each_domain(judged):
    found = rates(((p.party, p.row["domain"]), owed(p, blamed)) for p, _, blamed in judged)
    assert {key: rate for key, rate in found.items() if rate < WANTED} == {}


def test_no_failure_of_the_policy_is_blamed_on_anybody_else(judged):
    wrong = [(p.fault, b) for p, _, b in judged if p.party == "policy" and b.kind != "policy"]
    assert wrong == []


def test_no_true_word_of_the_user_takes_the_policys_blame(judged):
    """The user adds to every message what it was told, or what it has just heard, word for word."""
    rng = random.Random(0)
    planted = [p.row for p, _, _ in judged if p.party == "policy"]
    assert {findings(chatty(row, rng))[1].kind for row in planted} == {"policy"}


def chatty(row, rng):
    """The row with true words added to all but the last of the user's messages."""
    told, heard, output = " ".join(row["task"]["scenario"].values()), "", []
    for item in row["response"]["output"]:
        if item.get("role") == "user" and "###" not in item["content"]:
            source = heard if heard and rng.random() < 0.7 else told
            start = rng.randrange(max(1, len(source) - 300))
            words = " ".join(source[start : start + 400].split(" ")[1:-1])
            item = item | {"content": f"{item['content']} By the way: {words}."}
        else:
            heard += f" {item.get('output') or ''}"
        output.append(item)
    return row | {"response": {"output": output}}


def test_every_verdict_has_its_evidence(judged):
    assert all(blamed.evidence and blamed.by for _, _, blamed in judged)
    assert all(f.evidence for _, found, _ in judged for f in found)


def test_an_old_row_of_the_packaged_tasks_is_judged_like_a_new_one(judged):
    """Rows of older runs have no note, or one without the scenario: the task file has it."""
    for planted, found, blamed in judged[:: len(judged) // 40]:
        if planted.row["domain"] in ("airline", "retail"):
            assert findings({k: v for k, v in planted.row.items() if k != "task"}) == (
                found,
                blamed,
            )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
def test_other_draws_of_the_set_do_as_well(seed):
    drawn = [(p, *findings(p.row)) for p in planted_set(seed, 40)]
    patterns = rates((p.fault, named(p, found)) for p, found, _ in drawn if p.pattern)
    blames = rates((p.fault, owed(p, blamed)) for p, _, blamed in drawn)
    assert min(patterns.values()) >= WANTED and min(blames.values()) >= WANTED
    assert not [p.fault for p, _, b in drawn if p.party == "policy" and b.kind == "user_simulator"]
