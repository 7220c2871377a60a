"""Hostile helpers: typed, retried three times, blamed, masked; the policy never pays for them."""

import asyncio
import json

import pytest

from nemo_tau2.simulation.customer import LLMCustomer
from nemo_tau2.simulation.emulator import LLMEmulator
from nemo_tau2.simulation.factory import new_episode, plain_row
from nemo_tau2.simulation.judge import LLMJudge, read
from nemo_tau2.simulation.policies import Oracle, bluffer, play
from nemo_tau2.simulation.scenario import parse_row


class Says:
    """A model that gives the same answer each time, counting how often it was asked."""

    def __init__(self, *answers):
        self.answers, self.asked = answers, 0

    async def __call__(self, messages, tools):
        self.asked += 1
        return {"content": self.answers[min(self.asked, len(self.answers)) - 1]}


ROW = plain_row("retail_support", "routed", 1)


def run(policy, **roles):
    return asyncio.run(play(new_episode(ROW, **roles), policy))


@pytest.mark.parametrize("answer", ["All good!", '{"verdicts": [{"number": 1, "res', "[]", ""])
def test_a_judge_that_cannot_be_read(answer):
    model = Says(answer)
    row = run(bluffer, judge=LLMJudge(model))
    assert (row["stop_reason"], row["blame"]) == ("judge_failed", "judge")
    assert row["mask_sample"] and row["reward"] == 0.0 and model.asked == 3


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([{"number": 1, "resolved": True}], {1: True, 2: None}),
        ([{"number": n, "resolved": True} for n in (1, 2, 3)], {1: True, 2: True}),
        ([{"number": 1, "resolved": "yes"}, 7], {1: None, 2: None}),
        (
            [{"number": 1, "resolved": True}, {"number": 1, "resolved": False}],
            {1: None, 2: None},
        ),
    ],
)
def test_missing_unknown_and_malformed_verdicts(entries, expected):
    assert read(json.dumps({"verdicts": entries}), {1, 2}) == expected


def test_a_judge_who_believes_a_bluff_is_overruled_and_noted():
    row = run(bluffer, judge=LLMJudge(Says('{"verdicts": [{"number": 1, "resolved": true}]}')))
    assert row["reward"] == 0.0 and row["reward_info"]["disagreements"] == [1]


@pytest.mark.parametrize("answer", ["no", '{"invented": 1}', "x" * 1_000_000])
def test_an_emulator_that_breaks_its_schema(answer):
    model = Says(answer)
    row = run(Oracle(), emulator=LLMEmulator(model))
    assert (row["stop_reason"], row["blame"]) == ("tool_emulator_failed", "emulator")
    assert row["mask_sample"] and model.asked == 3


@pytest.mark.parametrize(
    "answers",
    [("",), ("###STOP###",), ("Hello", "Hello"), ("y" * 100_000,)],
    ids=lambda a: a[0][:8],
)
def test_a_customer_out_of_role(answers):
    spec = parse_row(ROW["verifier_metadata"])
    row = run(bluffer, customer=LLMCustomer(spec, {}, Says(*answers)))
    assert (row["stop_reason"], row["blame"]) == ("user_simulator_failed", "customer")
    assert row["mask_sample"]
