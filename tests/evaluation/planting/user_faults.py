"""One fault of the user simulator; the policy does what it is told and makes no mistake of its own."""

import json
import re

from nemo_tau2.outcomes import InfrastructureFailure, StopReason
from nemo_tau2.tau2.engine import STOP, UserMessage
from nemo_tau2.tau2.scripted_policy import GOODBYE, HANDOVER
from tests.evaluation.planting.play import Passive, Planted, Speaker, first_person

USER = "user_simulator"
ASKS = (
    "I will make this change now: {name}. Shall I go ahead?",
    "Would you like me to proceed with this ({name})?",
    "Here is what I would do: {name}. Do you confirm (yes/no)?",
    "Before I continue with {name}: can I go ahead? Please say yes to confirm.",
    "Do you want me to do this for you ({name})? It cannot be undone.",
    "I have found it. These are the details: {name}. Please confirm by replying yes.",
    "To summarise: {name}. Would you like to proceed?",
    "Your identity has been verified. For {name} I need your approval. Is this correct?",
)
AGREES = (
    "Yes, please go ahead. ###STOP###",
    "Yes. ###STOP###",
    "Sure, that works for me. ###STOP###",
    "Okay, go ahead and do it, thank you! ###STOP###",
    "I confirm. ###STOP###",
    "Yes, I confirm. Thanks for your help.\n###STOP###",
    "Perfect, please proceed. ###STOP###",
    "Yes, please go ahead. I don't need anything else. ###STOP###",
    "That's correct. Thank you! ###STOP###",
    "Thank you, yes, do that. ###STOP###",
    "I'd like to proceed with that. ###STOP###",
    "Alright, let's do it.###STOP###",
)
MONTHS = "January February March April May June July August September October November December"


def stopped_before_the_write(case, rng):
    """Asked for the go-ahead of a write, the user agrees and stops in one message."""
    if not case.writes:
        return None
    name, arguments = rng.choice(case.writes)
    turns = case.turns
    ask = rng.choice(ASKS).format(name=name.replace("_", " "))
    turns.insert(case.place(name, arguments), ask)
    agree = rng.choice(AGREES)

    class Agreeing(Speaker):
        async def reply(self, incoming):
            if getattr(incoming, "content", "") == ask:
                return UserMessage(role="user", content=agree)
            return await super().reply(incoming)

    return _planted(case.play(turns, Agreeing(case.task)), "stopped_before_the_write")


def invented_id(case, rng):
    """The user gives an id out of nowhere; the policy looks it up, finds nothing and gives up."""
    number = rng.randint(3000, 9999)
    words, call = {
        "airline": (
            "My reservation is {0}.",
            ("get_reservation_details", "reservation_id", _code(rng)),
        ),
        "retail": ("It is order {0}.", ("get_order_details", "order_id", f"#W{number}000")),
        "telecom": ("My customer id is {0}.", ("get_customer_by_id", "customer_id", f"C{number}")),
    }[case.domain.name]
    tool, key, value = call
    turns = [[(tool, json.dumps({key: value}))], "I cannot find it, I am sorry.", GOODBYE]
    if rng.random() < 0.3:
        summary = json.dumps({"summary": "I could not find what the user named."})
        turns[1:1] = [[("transfer_to_human_agents", summary)], HANDOVER]
    told = case.note["scenario"]
    user = Passive(f"{first_person(told['reason_for_call'])} {words.format(value)}")
    unknown = told.get("unknown_info", "")
    forgot = key in ("reservation_id", "order_id") and ("id" in unknown or "order" in unknown)
    forgot = forgot and not re.fullmatch(r"[^.]*(email|DOB|cabin|flight number)[^.]*\.?", unknown)
    rule = "contradicted_instructions" if forgot else "fabricated_facts"
    return _planted(case.play(turns, user), rule)


def repeated_opening(case, rng):
    """The user says its first words again whatever it is asked."""

    class Parrot(Passive):
        async def reply(self, incoming):
            reply = await super().reply(incoming)
            done = STOP in reply.content or "###TRANSFER###" in reply.content
            return reply if done else reply.model_copy(update={"content": self.opening})

    questions = [f"Could you answer question {n}, please?" for n in range(rng.randint(2, 5))]
    reads = [turn for turn in case.turns if not isinstance(turn, str)][:1]
    if not case.writes or (reads and reads[0][0][0] == case.writes[0][0]):
        reads = []
    return _planted(case.play([*reads, *questions], Parrot(case.told)), "repeated_opening")


def answers_nothing_new(case, rng):
    """The user has nothing but its first words, and the policy keeps asking in the same words."""
    question = rng.choice(["Could you tell me more?", "Which one do you mean?", GOODBYE])

    class Parrot(Passive):
        async def reply(self, incoming):
            return (await super().reply(incoming)).model_copy(update={"content": self.opening})

    row = case.play([question] * 20, Parrot(case.told), rng.randint(4, 8))
    return _planted(row, "repeated_opening")


def empty(case, rng):
    """The user's answers are empty."""
    words = rng.choice(["", " ", "\n"])

    def say(n, text, heard):
        return text if n == 0 or "goodbye" in heard.lower() else words

    turns = [
        *[t for t in case.turns if not isinstance(t, str)][:1],
        "Which one do you mean?",
        GOODBYE,
    ]
    if case.writes and not isinstance(turns[0], str) and turns[0][0][0] == case.writes[0][0]:
        del turns[0]
    user = Passive(case.told)
    return _planted(case.play(turns, _Said(user, say)), "empty")


class _Said:
    """Any user with other words."""

    def __init__(self, user, say):
        self.user, self.say, self.count = user, say, 0

    async def reply(self, incoming):
        message = await self.user.reply(incoming)
        heard = "" if isinstance(incoming, list) else incoming.content or ""
        text = self.say(self.count, message.content, heard)
        self.count += 1
        return message.model_copy(update={"content": text})


def fabricated_facts(case, rng):
    """The user names an order, a reservation, a date, an address … that the task does not have."""
    found = _told_values(case)
    if not found:
        return None
    said, given, new_said, new_given = rng.choice(found)(rng)
    return _misled(case, {said: new_said}, {given: new_given}, "fabricated_facts")


def _told_values(case):
    """Makers of (words, argument, other words, other argument) for values that the user states."""
    told, makers = case.told, []
    turns = json.dumps(case.turns)
    for value in dict.fromkeys(re.findall(r"#W\d{7}", told)):
        if value in turns:
            makers.append(lambda r, v=value: (v, v, n := f"#W{r.randint(10**6, 10**7 - 1)}", n))
    for value in dict.fromkeys(re.findall(r"\b(?!HAT)[A-Z0-9]{6}\b", told)):
        if value in turns and re.search(r"\d", value) and re.search(r"[A-Z]", value):
            makers.append(lambda r, v=value: (v, v, n := _code(r), n))
    for month, day in re.findall(r"2024-(\d\d)-(\d\d)", turns):
        words = f"{MONTHS.split()[int(month) - 1]} {int(day)}"
        if re.search(rf"\b{words}\b", told) and case.domain.name == "airline":
            makers.append(lambda r, w=words, m=month, d=day: _date(r, w, m, d))
    for value in dict.fromkeys(
        re.findall(r"\b\d{1,4} [A-Z][a-z]+ (?:Street|Avenue|Drive|Lane|Road)\b", told)
    ):
        if value in turns:
            makers.append(
                lambda r, v=value: (v, v, n := f"{r.randint(2000, 9999)} {v.split(' ', 1)[1]}", n)
            )
    return makers


def _code(rng):
    letters = "ABCDEFGHJKLMNPQRSTUVWXYZ"
    return (
        "".join(rng.choice(letters) for _ in range(3))
        + str(rng.randint(1, 9))
        + "".join(rng.choice(letters + "123456789") for _ in range(2))
    )


def _date(rng, words, month, day):
    later = rng.choice([m for m in range(8, 13) if m != int(month)])
    number = rng.randint(1, 28)
    new = f"{MONTHS.split()[later - 1]} {number}"
    return words, f"2024-{month}-{day}", new, f"2024-{later:02d}-{number:02d}"


def contradicted_instructions(case, rng):
    """The user gives another id, name, email, zip or phone number of its own than the task says."""
    told = case.told
    if case.domain.name == "telecom":
        return _wrong_phone(case, rng)
    database, swaps = case.domain.bases["agent"], []
    turns = json.dumps(case.turns)
    for user_id in re.findall(r"\b[a-z]+_[a-z]+_\d{4}\b", told):
        others = [user for user in sorted(database.users) if user != user_id]
        if user_id in turns:
            swaps.append((user_id, rng.choice(others)))
    for email in re.findall(r"[\w.]+@example\.com", told):
        if email in turns:
            swaps.append((email, f"someone{rng.randint(1000, 9999)}@example.com"))
    for code in re.findall(r"zip ?code (\d{5})", told):
        if f'"{code}' in turns.replace("\\", ""):
            swaps.append((code, str(rng.randint(10000, 99999))))
    for first, last in re.findall(r"(?:I am|My name is) ([A-Z][a-z]+) ([A-Z][a-z]+)", told):
        if f'"first_name": "{first}", "last_name": "{last}"' in turns.replace("\\", ""):
            swaps.append((first, rng.choice(["Greta", "Quentin", "Zelda"])))
    if not swaps:
        return None
    old, new = rng.choice(swaps)
    return _misled(case, {old: new}, {old: new}, "contradicted_instructions")


def _wrong_phone(case, rng):
    phone = re.search(r"\d{3}-\d{3}-\d{4}", case.told)[0]
    other = f"555-{rng.randint(200, 999)}-{rng.randint(1000, 9999)}"
    lookup = [("get_customer_by_phone", json.dumps({"phone_number": other}))]
    turns = [lookup, "There is no customer with this number.", GOODBYE]
    user = Passive(case.told.replace(phone, other))
    return _planted(case.play(turns, user), "contradicted_instructions")


def _misled(case, words, arguments, rule):
    """The user says other words; the policy uses what it was told and gives up where that fails."""
    turns = []
    for turn in case.turns:
        if not isinstance(turn, str):
            turn = [(name, _replaced(text, arguments)) for name, text in turn]
        turns.append(turn)
    if turns == case.turns:
        return None

    return _planted(case.play(turns, Speaker(case.task, words)), rule)


def _replaced(text, swaps):
    for old, new in swaps.items():
        text = text.replace(old, new)
    return text


def simulator_failed(case, rng):
    """The simulator's endpoint gives nothing."""
    limit = rng.randint(0, 1)

    class Broken(Passive):
        async def reply(self, incoming):
            if self.count >= limit:
                reason = StopReason.USER_SIMULATOR_FAILED
                raise InfrastructureFailure(reason, "the user simulator answered nothing, twice")
            return await super().reply(incoming)

    row = case.play(["How can I help?", GOODBYE], Broken(case.told))
    return Planted("", row, party=USER, rule="user_simulator_failed")


def _planted(row, rule):
    return Planted("", row, party=USER, rule=rule)


USER_FAULTS = (
    stopped_before_the_write, repeated_opening, answers_nothing_new, empty, fabricated_facts, invented_id,
    contradicted_instructions, simulator_failed,
)  # fmt: skip
