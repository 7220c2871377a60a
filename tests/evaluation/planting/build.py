"""The planted set: every fault in every domain that admits it, seeded, played, and failed as planned."""

import random
from functools import cache

from tests.evaluation.planting.other_faults import OTHER_FAULTS, emulator_failed
from tests.evaluation.planting.play import DOMAINS, cases
from tests.evaluation.planting.policy_faults import POLICY_FAULTS
from tests.evaluation.planting.user_faults import USER_FAULTS

PER_DOMAIN = 12
SCRIPTS = ("bank_cards",)


@cache
def planted_set(seed=0, per_domain=PER_DOMAIN):
    """All planted rows. A fault that did no harm (reward 1) is no failure and is left out."""
    found = []
    for fault in (*POLICY_FAULTS, *USER_FAULTS, *OTHER_FAULTS):
        for domain in DOMAINS:
            found += _planted(fault, domain, seed, per_domain)
    for number in range(per_domain):
        planted = emulator_failed(number, SCRIPTS[0], ("flat", "routed")[number % 2])
        planted.fault = "emulator_failed"
        found.append(planted)
    return found


def _planted(fault, domain, seed, wanted):
    rng = random.Random(f"{seed}/{domain}/{fault.__name__}")
    found = []
    for case in cases(domain, rng):
        planted = fault(case, rng)
        if planted is None or not _as_planned(planted):
            continue
        planted.fault = fault.__name__
        found.append(planted)
        if len(found) == wanted:
            break
    return found


def _as_planned(planted):
    if planted.row["mask_sample"]:
        return planted.rule.endswith("_failed")
    return (planted.row["reward"] >= 1.0) == (planted.pattern == "reward_by_inaction")
