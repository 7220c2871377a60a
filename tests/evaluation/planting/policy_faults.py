"""One mistake of the policy in an otherwise gold episode. What it is called is known from how it was made."""

import json

from nemo_tau2.tau2.engine import STOP, UserMessage
from nemo_tau2.tau2.scripted_policy import GOODBYE, HANDOVER
from tests.evaluation.planting.play import Passive, Planted, Speaker

TRANSFER = "transfer_to_human_agents"


def skipped_tool_call(case, rng):
    """One write is left out."""
    if not case.writes:
        return None
    name, arguments = rng.choice(case.writes)
    turns = case.turns
    del turns[case.place(name, arguments)]
    return Planted("", case.play(turns), "skipped_tool_call", name)


CLOSINGS = {
    "I have done it for you. Is there anything else I can help you with?": "Yes, all good. {0}",
    "It has been processed successfully. Is that okay?": "Yes, thank you! {0}",
    "All of it is completed now. Would you like to know anything else?": "Okay, that works. {0}",
    "Could you confirm that everything works now?": "Yes, it works. Thanks! {0}",
    "Your request has been submitted. Does that answer your question?": "Perfect. {0}",
    "You will get an email soon. Can I help you with something else?": "Sure, bye. {0}",
}


def skipped_and_said_done(case, rng):
    """A write is left out, the policy says that it is done, and the user believes it."""
    if not case.writes:
        return None
    name, arguments = rng.choice(case.writes)
    closing = rng.choice(sorted(CLOSINGS))

    class Believing(Speaker):
        async def reply(self, incoming):
            if getattr(incoming, "content", "") == closing:
                return UserMessage(role="user", content=CLOSINGS[closing].format(STOP))
            return await super().reply(incoming)

    turns = [turn for turn in case.turns if turn != [(name, json.dumps(arguments))]]
    row = case.play([*turns[:-1], closing], Believing(case.task))
    return Planted("", row, "skipped_tool_call", name)


def skipped_instruction(case, rng):
    """The user is never told the last steps on their phone."""
    steps = [g for g in case.note["gold_actions"] if g["actor"] == "user"]
    turns = case.turns
    places = [
        n for n, turn in enumerate(turns) if isinstance(turn, str) and "on your phone" in turn
    ]
    if not steps or not places or not any(g["writes"] for g in steps):
        return None
    tools = [g["name"] for g in steps if g["name"] in turns[places[-1]]]
    del turns[places[-1]]
    return Planted("", case.play(turns), "skipped_tool_call", tools[-1])


def wrong_parameter(case, rng):
    """One argument of a write has another value."""
    if not case.writes:
        return None
    name, arguments = rng.choice(case.writes)
    key = rng.choice(sorted(arguments))
    turns = case.turns
    spoiled = arguments | {key: _another(arguments[key], rng)}
    turns[case.place(name, arguments)] = [(name, json.dumps(spoiled))]
    return Planted("", case.play(turns), "wrong_parameter", f"{name}.{key}")


def _another(value, rng):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + rng.randint(1, 3)
    if isinstance(value, list):
        return value[:-1] if len(value) > 1 or not isinstance(value[0], str) else ["1234567890"]
    return value[:-1] + ("7" if value[-1:] != "7" else "8")


def over_action(case, rng):
    """A write that nobody asked for."""
    name, arguments = _unasked(case, rng)
    turns = case.turns
    places = [n for n, turn in enumerate(turns) if isinstance(turn, str)]
    turns.insert(places[-1], [(name, json.dumps(arguments))])
    return Planted("", case.play(turns), "over_action", name)


def _unasked(case, rng):
    database = case.domain.bases["agent"]
    if case.domain.name == "airline":
        user = rng.choice(sorted(database.users))
        return "send_certificate", {"user_id": user, "amount": rng.choice([25, 75, 135])}
    if case.domain.name == "retail":
        places = ("address1", "address2", "city", "state", "country", "zip")
        user = rng.choice(sorted(database.users))
        return "modify_user_address", {"user_id": user} | dict.fromkeys(places, "Nowhere")
    owner = next(c for c in database.customers if c.phone_number == case_phone(case))
    line = next(line for line in database.lines if line.phone_number == case_phone(case))
    given = {"customer_id": owner.customer_id, "line_id": line.line_id}
    more = {
        "refuel_data": {"gb_amount": 1.0},
        "disable_roaming": {},
        "suspend_line": {"reason": "x"},
    }
    name = rng.choice(sorted(more))
    return name, given | more[name]


def case_phone(case):
    """The phone number a telecom task tells its user."""
    words = case.note["scenario"]["known_info"].replace(",", " ").replace(". ", " ").split()
    return next(word.strip(".") for word in words if word.count("-") == 2)


def wrong_order(case, rng):
    """Two neighbouring writes are swapped, and the first then spoils the second."""
    if len(case.writes) < 2:
        return None
    place = rng.randrange(len(case.writes) - 1)
    first, second = (case.place(*case.writes[place + n]) for n in (0, 1))
    turns = case.turns
    turns[first], turns[second] = turns[second], turns[first]
    return Planted("", case.play(turns), "wrong_order", "")


def missed_communication(case, rng):
    """What the user must be told is not said."""
    facts = case.task.evaluation_criteria.communicate_info
    if not facts:
        return None
    return Planted("", case.play([*case.turns[:-1], GOODBYE]), "missed_communication", "")


def premature_transfer(case, rng):
    """The user is handed over in place of the first write."""
    asks = any(g["name"] == TRANSFER for g in case.note["gold_actions"])
    if asks or not case.writes:
        return None
    place = case.place(*case.writes[0])
    call = [(TRANSFER, json.dumps({"summary": "The user wants something I cannot do."}))]
    turns = [*case.turns[:place], call, HANDOVER]
    return Planted("", case.play(turns), "premature_transfer", TRANSFER)


def stall(case, rng):
    """Words, no call, goodbye."""
    words = ["Let me look into that.", "One moment please.", "I am still checking."]
    said = [*words[: rng.randint(1, 3)], GOODBYE]
    return Planted("", case.play(said, Passive(case.told)), "stall", "")


def loop(case, rng):
    """The first call is made again and again, the last write never."""
    turns = case.turns
    first = next((turn for turn in turns if not isinstance(turn, str)), None)
    if first is None or not case.writes:
        return None
    place = case.place(*case.writes[-1])
    turns[place : place + 1] = [first] * rng.randint(4, 6)
    return Planted("", case.play(turns), "loop", first[0][0])


def loop_of_words(case, rng):
    """The same words are said again and again."""
    words = rng.choice(["Could you rephrase that?", "I am not sure what you mean."])
    said = [words] * rng.randint(3, 5) + [GOODBYE]
    return Planted("", case.play(said, Passive(case.told)), "loop", "")


def budget(case, rng):
    """The turns run out before the last write."""
    if not case.writes:
        return None
    place = case.place(*case.writes[-1])
    turns = case.turns
    turns[place:place] = [f"A question first, number {n}?" for n in range(3)]
    return Planted("", case.play(turns, Passive(case.told), place + 2), "budget", "")


def malformed_call(case, rng):
    """The arguments of a write are cut off."""
    if not case.writes:
        return None
    name, arguments = rng.choice(case.writes)
    turns = case.turns
    text = json.dumps(arguments)
    turns[case.place(name, arguments)] = [(name, text[: rng.randint(1, len(text) - 1)])]
    return Planted("", case.play(turns), "malformed_call", name)


def hallucinated_tool(case, rng):
    """A write under a name that is no tool."""
    if not case.writes:
        return None
    name, arguments = rng.choice(case.writes)
    made_up = rng.choice([f"{name}_v2", f"do_{name}", "execute_action"])
    turns = case.turns
    turns[case.place(name, arguments)] = [(made_up, json.dumps(arguments))]
    return Planted("", case.play(turns), "hallucinated_tool", made_up)


def reward_by_inaction(case, rng):
    """A policy that does nothing, on a task that rewards it: the only planted successes."""
    row = case.play([GOODBYE], Passive(case.told))
    if row["reward"] < 1.0:
        return None
    return Planted("", row, "reward_by_inaction", "", "task", "null_solvable")


POLICY_FAULTS = (
    skipped_tool_call, skipped_and_said_done, skipped_instruction, wrong_parameter, over_action, wrong_order,
    missed_communication, premature_transfer, stall, loop, loop_of_words, budget, malformed_call,
    hallucinated_tool, reward_by_inaction,
)  # fmt: skip
