"""A helper that hangs costs one `helper_timeout_s`, is named, and never costs the policy anything."""

import asyncio
import time

import pytest

from nemo_tau2.chat import ChatFailed
from nemo_tau2.outcomes import StopReason
from nemo_tau2.simulation.customer import LLMCustomer
from nemo_tau2.simulation.emulator import LLMEmulator
from nemo_tau2.simulation.judge import LLMJudge
from nemo_tau2.simulation.options import SpecOptions
from nemo_tau2.simulation.score import blame
from tests.simulation.desk import FIND, Patient, Says, episode, row, step, verdict

LIMIT = SpecOptions(helper_timeout_s=0.1)


async def hangs(messages, tools):
    await asyncio.sleep(60)


async def is_down(messages, tools):
    raise ChatFailed("helper_model is unreachable")


class SaysThenHangs(Says):
    async def __call__(self, messages, tools):
        if self.asked:
            await asyncio.sleep(60)
        return await super().__call__(messages, tools)


def masked(made, reason, who, words):
    found = verdict(made)
    assert (found["stop_reason"], found["blame"]) == (reason, who)
    assert found["mask_sample"] and found["reward"] == 0.0
    assert found["failure"]["kind"] == reason and words in found["failure"]["message"]


FAULTS = [(hangs, "no answer within 0.1 s"), (is_down, "unreachable")]


@pytest.mark.parametrize(("model", "words"), FAULTS, ids=["hangs", "down"])
@pytest.mark.parametrize("mode", ["flat", "routed"])
class TestEachRole:
    def test_the_customer_at_the_opening(self, mode, model, words):
        began = time.monotonic()
        made = episode(mode, options=LIMIT, customer=LLMCustomer(row(), {}, model))
        assert time.monotonic() - began < 2 and made.stop_reason == "user_simulator_failed"
        masked(made, "user_simulator_failed", "customer", words)

    def test_the_emulator(self, mode, model, words):
        made = episode(mode, options=LIMIT, customer=Patient(), emulator=LLMEmulator(model))
        if mode == "routed":
            step(made, "go_to_parcels")
        began = time.monotonic()
        assert step(made, FIND).done and time.monotonic() - began < 2
        masked(made, "tool_emulator_failed", "emulator", words)

    def test_the_judge(self, mode, model, words):
        made = episode(mode, options=LIMIT, customer=Patient(), judge=LLMJudge(model))
        step(made, "One moment, please.")
        began = time.monotonic()
        masked(made, "judge_failed", "judge", words)
        assert time.monotonic() - began < 2


def test_the_customer_later_on():
    customer = LLMCustomer(row(), {}, SaysThenHangs("Hello."))
    made = episode("routed", options=LIMIT, customer=customer)
    assert step(made, "How can I help?").done
    masked(made, "user_simulator_failed", "customer", "no answer within 0.1 s")


def test_a_sandbox_that_hangs():
    made = episode("sandbox", options=LIMIT, emulator=LLMEmulator(hangs))
    assert step(made, FIND).done
    masked(made, "tool_emulator_failed", "emulator", "no answer within 0.1 s")


def test_a_call_that_fails_in_the_emulator_keeps_its_turn():
    made = episode("flat", options=LIMIT, customer=Patient(), emulator=LLMEmulator(hangs))
    step(made, FIND)
    found = verdict(made)
    assert found["num_turns"] == 1 == len(found["turn_rewards"])
    assert found["turn_tiers"] == ["error"]


@pytest.mark.parametrize("reason", list(StopReason))
def test_blame_of_every_stop_reason(reason):
    expected = {
        "user_simulator_failed": "customer",
        "tool_emulator_failed": "emulator",
        "judge_failed": "judge",
        "policy_endpoint_failed": "harness",
        "world_failed": "harness",
    }.get(reason, "policy")
    assert blame(reason) == expected
    found = verdict(episode("flat", customer=Patient()), reason)
    assert (found["blame"], found["mask_sample"]) == (expected, expected != "policy")
