"""Faults of the task, the judge, the tool emulator and the harness."""

import asyncio
import json

from nemo_tau2.chat import ChatFailed
from nemo_tau2.outcomes import InfrastructureFailure, StopReason
from nemo_tau2.simulation.factory import new_episode, plain_row
from nemo_tau2.simulation.policies import Oracle, play
from nemo_tau2.tau2.engine import RewardType
from nemo_tau2.tau2.nl_judge import NLJudge
from nemo_tau2.tau2.scripted_policy import GOODBYE
from tests.evaluation.planting.play import Planted

CORRECTIONS = {
    ("airline", "7"): {'"cabin": "economy", "flights": [{"flight_number": "HAT005"':
                       '"cabin": "business", "flights": [{"flight_number": "HAT005"'},
    ("airline", "33"): {'"nonfree_baggages": 2': '"nonfree_baggages": 0'},
    ("airline", "35"): {"1985-04-04": "1981-05-26"},
    ("retail", "18"): {'"new_item_ids": ["8069050545"]': '"new_item_ids": ["1071497737"]'},
    ("retail", "91"): {'"new_item_ids": ["9494281769"]': '"new_item_ids": ["7609274509"]'},
    ("retail", "107"): {'"new_item_ids": ["1615379700"]': '"new_item_ids": ["8106223139"]'},
}  # fmt: skip
"""What τ²-bench v1.0.0 changed in the gold writes of these tasks, as text in their arguments."""


def corrected_gold(case, rng):
    """The policy makes the writes of the corrected task."""
    changes = CORRECTIONS.get((case.domain.name, case.task.id))
    if not changes:
        return None
    turns = []
    for turn in case.turns:
        if not isinstance(turn, str):
            turn = [(name, _changed(text, changes)) for name, text in turn]
        turns.append(turn)
    return _task(case.play(turns), "known_issue")


def _changed(text, changes):
    for old, new in changes.items():
        text = text.replace(old, new)
    return text


def last_variant(case, rng):
    """The right pairs of items in another order (sierra-research/tau2-bench#317)."""
    name = "modify_pending_order_items"
    for tool, arguments in case.writes:
        if tool == name and len(arguments["item_ids"]) > 1:
            turned = arguments | {k: arguments[k][::-1] for k in ("item_ids", "new_item_ids")}
            turns = case.turns
            turns[case.place(tool, arguments)] = [(tool, json.dumps(turned))]
            return _task(case.play(turns), "known_issue")
    return None


def omitted_returns(case, rng):
    """Retail 10 with the returns its user asks for (sierra-research/tau2-bench#316)."""
    if (case.domain.name, case.task.id) != ("retail", "10"):
        return None
    orders = case.domain.bases["agent"].orders
    wanted = [g["arguments"]["order_id"] for g in case.note["gold_actions"]
              if g["name"] == "get_order_details"]  # fmt: skip
    calls = [
        [("return_delivered_order_items", json.dumps({
            "order_id": order, "item_ids": [item.item_id for item in orders[order].items],
            "payment_method_id": orders[order].payment_history[0].payment_method_id}))]
        for order in wanted
    ]  # fmt: skip
    turns = case.turns
    place = next(n for n, t in enumerate(turns) if t[0][0].startswith("transfer"))
    return _task(case.play(turns[:place] + calls + turns[place:]), "known_issue")


def gold_error(case, rng):
    """The policy makes a gold write work that fails on the gold path: with a payment that can pay."""
    broken = [g for g in case.note["gold_actions"] if g["errored"] and g["writes"]]
    if not broken:
        return None
    database, [wanted] = case.domain.bases["agent"], broken
    order = database.orders[wanted["arguments"]["order_id"]]
    original = order.payment_history[0].payment_method_id
    methods = sorted(database.users[order.user_id].payment_methods)
    able = original if wanted["name"].startswith("return") else rng.choice(methods)
    mended = wanted["arguments"] | {"payment_method_id": able}
    turns = case.turns
    place = turns.index([(wanted["name"], json.dumps(wanted["arguments"]))])
    turns[place] = [(wanted["name"], json.dumps(mended))]
    row = case.play(turns)
    worked = any(
        item.get("type") == "function_call_output" and "requested" in item["output"]
        for item in row["response"]["output"]
    )
    return _task(row, "gold_error") if worked else None


def judge_failed(case, rng):
    """The judge of natural-language assertions cannot be reached."""

    async def down(messages, tools):
        raise ChatFailed("j at http://127.0.0.1:1/v1: connection refused")

    criteria = case.task.evaluation_criteria.model_copy(
        update={
            "reward_basis": [RewardType.DB, RewardType.NL_ASSERTION],
            "nl_assertions": ["The agent is polite."],
        }
    )
    task = case.task.model_copy(update={"evaluation_criteria": criteria})
    row = case.play(case.turns, judge=NLJudge(down), task=task)
    return Planted("", row, party="judge", rule="judge_failed")


def endpoint_failed(case, rng):
    """The policy's endpoint goes away in the middle."""
    turns = case.turns
    row = case.play(turns, breaks_at=rng.randrange(len(turns)))
    return Planted("", row, party="harness", rule="policy_endpoint_failed")


def world_failed(case, rng):
    """What a NeMo Gym server that dies leaves behind: no verdict, a masked row."""
    row = case.play([GOODBYE])
    stop = "world_failed"
    row |= {"mask_sample": True, "reward": 0.0, "stop_reason": stop}
    row["failure"] = {"kind": stop, "message": "/verify answered 500"}
    return Planted("", row, party="harness", rule=stop)


def emulator_failed(number, script, mode):
    """An environment made from a specification whose tool emulator gives nothing."""

    class Down:
        async def __call__(self, action, arguments, records):
            raise InfrastructureFailure(StopReason.TOOL_EMULATOR_FAILED, "3 unusable answers")

    planned = plain_row(script, mode, number)
    verdict = asyncio.run(play(new_episode(planned, emulator=Down()), Oracle()))
    row = json.loads(json.dumps(planned | verdict))
    return Planted("", row, party="tool_emulator", rule="tool_emulator_failed")


def _task(row, rule):
    return Planted("", row, party="task", rule=rule)


OTHER_FAULTS = (
    corrected_gold, last_variant, omitted_returns, gold_error, judge_failed, endpoint_failed,
    world_failed,
)  # fmt: skip
