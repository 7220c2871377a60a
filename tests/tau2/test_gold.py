"""Every gold replay scores 1, every gold call is gold_exact: the reference's counts, by domain."""

from collections import Counter

import pytest

from nemo_tau2.tau2.dataset import null_solvable
from nemo_tau2.tau2.domains import load_domain
from nemo_tau2.tau2.gold import gold_path
from nemo_tau2.tau2.tasks import load_tasks
from tests.tau2.playing import call, play, play_gold, say

COUNTS = {"airline": (50, 148), "retail": (114, 553), "telecom": (114, 516)}
NULL_SOLVABLE = {
    "airline": {*map(str, (0, 1, 4, 5, 6, 10, 13, 26, 28, 31, 34, 36, 41, 43, *range(45, 50)))},
    "retail": {*map(str, (10, 12, 25, 50, 57, 65, 105))},
    "telecom": set(),
}
GOLD_ERRORS = {*map(str, (2, 3, 4, 12, 13, 21, 35, 37, 38, 39, 46, 47, 54, 55, 64, 67, 68, 105))}


@pytest.mark.parametrize("packed", [False, True], ids=["one call a turn", "parallel calls"])
@pytest.mark.parametrize("domain", COUNTS)
def test_every_gold_replay_scores_one_and_every_call_is_exact(domain, packed):
    tasks = load_tasks(domain).split("base")
    verdicts = [play_gold(domain, task, packed) for task in tasks]
    assert [v["reward"] for v in verdicts] == [1.0] * COUNTS[domain][0]
    tiers = Counter(tier for v in verdicts for turn in v["call_tiers"] for tier in turn)
    tiers += Counter(call["tier"] for v in verdicts for call in v["user_calls"])
    assert tiers == {"gold_exact": COUNTS[domain][1]}


@pytest.mark.parametrize("domain", NULL_SOLVABLE)
def test_null_solvable_tasks_are_those_that_reward_doing_nothing(domain):
    shared = load_domain(domain)
    tasks = load_tasks(domain).split("base")
    found = [task.id for task in tasks if null_solvable(shared, task)]
    assert set(found) == NULL_SOLVABLE[domain]


def test_gold_actions_that_fail_are_known_and_earn_nothing():
    shared, tasks = load_domain("retail"), load_tasks("retail")
    failing = [
        t.id for t in tasks.split("base") if any(a.errored for a in gold_path(shared, t).actions)
    ]
    assert set(failing) == GOLD_ERRORS
    verdict = play_gold("retail", tasks.get("2"))
    paid = [
        r for r, tiers in zip(verdict["turn_rewards"], verdict["call_tiers"], strict=True) if tiers
    ]
    assert 0.0 in paid and set(paid) == {0.0, 1.0}


def test_gold_replay_after_a_dirty_run_still_scores_one():
    """One shared database for all episodes must never be reached by one of them."""
    tasks = load_tasks("airline")
    task = next(t for t in tasks.split("base") if t.id == "7")
    user = {"user_id": "daiki_muller_1116"}
    dirty = [
        [call("send_certificate", {**user, "amount": 500})],
        [call("cancel_reservation", {"reservation_id": "XEWRD9"})],
        [call("update_reservation_baggages", {"reservation_id": "XEHM4B"})],
        [say("Goodbye.")],
    ]
    for _ in range(2):
        play("airline", "7", dirty)
    assert play_gold("airline", task)["reward"] == 1.0


def test_telecom_gold_state_is_synchronised_only_with_the_fix():
    """71 of 114 gold replays miss upstream's telecom DB check, none misses ours."""
    import asyncio

    from nemo_tau2.bench.episodes import play_calls
    from nemo_tau2.tau2.fixes import Fixes

    tasks = load_tasks("telecom").split("base")
    for fixes, expected in ((Fixes(), 0), (Fixes(gold_sync=False), 71)):
        shared = load_domain("telecom", fixes)
        missed = 0
        for task in tasks:
            episode = asyncio.run(play_calls(shared, task))
            missed += episode.world.delta() != gold_path(shared, task).end
        assert missed == expected
