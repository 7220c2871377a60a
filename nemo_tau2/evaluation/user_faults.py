"""Failures owed to the user simulator, by deterministic rules.

Every rule asks two things of a failed row: that the user did it, and that nothing the policy did wrong
is left unexplained by it. Where a rule is not sure it says nothing: the failure stays the policy's.
"""

import json
import re

from nemo_tau2.evaluation.facts import Fact, Known, facts
from nemo_tau2.evaluation.tasks import Scenario
from nemo_tau2.evaluation.transcript import (
    Finding,
    PolicyCall,
    Row,
    is_message,
    output_of,
    policy_calls,
    text_of,
    texts,
)

USER = "user_simulator"
LEFT_UNDONE = ("skipped_tool_call", "missed_communication", "stall", "budget")
"""What a policy can be kept from doing by its user; any other pattern is a mistake of its own."""
OWN = ("user_id", "name", "email", "phone", "zip")
"""Kinds of which a person has their own: the task says which."""
OPENINGS = 3
"""So often the same first words are a broken user."""

_STOP = "###STOP###"
_AGREES = re.compile(
    r"^\W*(thanks?( you)?[,.!]* )?(yes|yeah|yep|sure|ok|okay|alright|fine|correct|exactly|confirm(ed)?"
    r"|i (confirm|agree|do)|i('d| would) like (to|you to) |absolutely|definitely|of course|perfect|great"
    r"|sounds good|that works|that('s| is) (correct|right|fine|ok|okay|great)|let's do (it|that)|do it"
    r"|(please )?(go ahead|proceed|do))\b",
    re.IGNORECASE,
)
_REFUSES = re.compile(
    r"\b(no|not|don't|won't|instead|but|changed my mind|wait|hold on)\b", re.IGNORECASE
)
_OFFERS = re.compile(
    r"\b(shall|should|may|can|could) (i|we) (?!help|assist)|\b(like|want|prefer) me to\b"
    r"|\b(to|i|we|me) (now )?(proceed|go ahead)\b",
    re.IGNORECASE,
)
"""The policy offers to act."""
_CHECKS = re.compile(
    r"\bconfirm\b|\bagree\b|\byes\b.*\bno\b|\b(is|are) (this|that|these|everything) (ok|okay|correct|right)\b",
    re.IGNORECASE | re.DOTALL,
)
"""The policy asks for a yes, which may also be to something that is over."""
_CLOSES = re.compile(
    r"\b(any|some)thing else\b|\bhelp you with\b|\bassist you\b|\bany other\b|\bgoodbye\b",
    re.IGNORECASE,
)
_OVER = re.compile(
    r"\b(works?|working|resolved?|fixed|solved?|is done|completed?|successful(ly)?"
    r"|(i have|i've|has been|have been) (?!found|located|verified|checked|looked|reviewed|retrieved"
    r"|identified|confirmed|pulled|your|the|all)\w+)\b",
    re.IGNORECASE,
)
_FORGOT = re.compile(
    r"\b(do not|don't|cannot|can't|can not) (remember|know|recall|have)\b[^.]*", re.IGNORECASE
)
_FORGOTTEN = {
    "email": ("email",),
    "user_id": ("user id",),
    "order_id": ("order number", "order id"),
    "reservation_id": ("reservation id", "reservation number", "confirmation number"),
}


def stopped_before_the_write(row: Row, found: list[Finding]) -> Finding | None:
    """The user's last words agree and stop, the policy had just asked, and only the rest is missing."""
    items = output_of(row)
    if len(items) < 2 or not is_message(items[-1], "user"):
        return None
    if not is_message(items[-2], "assistant"):
        return None
    last, asked = text_of(items[-1]), text_of(items[-2])
    first = re.split(r"[.!\n]", last.replace(_STOP, "").strip())[0]
    agreed = _STOP in last and _AGREES.match(last) and not _REFUSES.search(first)
    undone = {f.kind for f in found}
    only_undone = "skipped_tool_call" in undone and undone <= {
        "skipped_tool_call",
        "missed_communication",
        "stall",
    }
    if agreed and only_undone and _asks_to_go_on(asked):
        return Finding(USER, "stopped_before_the_write", f"user: {last[:300]!r}")
    return None


def _asks_to_go_on(asked: str) -> bool:
    """Whether the policy's last words ask for a go-ahead: not for what else, nor whether it worked."""
    asked = asked[-1000:]
    questions = re.findall(r"[^.!?\n]*\?", asked)
    if _CLOSES.search(questions[-1] if questions else asked):
        return False
    if any(_OFFERS.search(question) for question in questions):
        return True
    return bool(_CHECKS.search(asked)) and not _OVER.search(asked)


def repeated_opening(row: Row, found: list[Finding]) -> Finding | None:
    """The user keeps saying its first words."""
    said = [" ".join(text.lower().split()) for text in texts(row, "user")]
    times = said.count(said[0]) if said and said[0] else 0
    if times < OPENINGS:
        return None
    return Finding(USER, "repeated_opening", f"user, {times} times: {said[0][:200]!r}")


def unanswered(row: Row) -> bool:
    """Whether the user never said anything after its first words but those words, or nothing."""
    said = [" ".join(text.lower().split()) for text in texts(row, "user")]
    return len(said) >= OPENINGS and all(text in ("", said[0]) for text in said)


def empty(row: Row, found: list[Finding]) -> Finding | None:
    """The user said nothing at all."""
    if any(not text.strip() for text in texts(row, "user")):
        return Finding(USER, "empty", "the user said nothing")
    return None


def false_facts(row: Row, found: list[Finding], scenario: Scenario | None) -> Finding | None:
    """The user gave a value the task does not have, and the policy went wrong with that value.

    `contradicted_instructions` where the task says otherwise of the user's own id, name or contact, or
    that they do not know it; `fabricated_facts` for any other value out of nowhere.
    """
    if scenario is None or not scenario.complete:
        return None
    calls = [
        (call, Known(json.dumps(call.arguments, ensure_ascii=False)))
        for call in policy_calls(row)
        if call.arguments
    ]
    acted_on = Known(*(json.dumps(call.arguments, ensure_ascii=False) for call, _ in calls))
    for said, told, before in _spoken(row, scenario):
        for fact in facts(said):
            if not acted_on.states(fact):
                continue  # nothing is owed to it, and the rest is dear
            kind = _false(fact, told, before, scenario)
            if kind and _explains(fact, calls, found):
                quote = f"user: {said[:200]!r}: {fact.kind} {fact.words!r}"
                return Finding(USER, kind, f"{quote} {_against(fact, kind, scenario)}")
    return None


def _spoken(row: Row, scenario: Scenario):
    """(words, what the task tells, what was known before) of each user message, in order."""
    told = Known(*scenario.texts)
    before = Known(*(str(call.get("output")) for call in row.get("user_calls") or []))
    for item in output_of(row):
        if is_message(item, "user"):
            yield text_of(item), told, before
        elif is_message(item, "assistant"):
            before.add(text_of(item))
        elif item.get("type") == "function_call_output":
            before.add(str(item.get("output")))


def _false(fact: Fact, told: Known, before: Known, scenario: Scenario) -> str | None:
    """What kind of false statement the fact is, None where it may be true."""
    if told.allows(fact) or before.allows(fact):
        return None
    if fact.kind in OWN and _own(fact.kind, scenario):
        return "contradicted_instructions"
    if _forgotten(fact.kind, scenario):
        return "contradicted_instructions"
    return None if fact.kind == "name" else "fabricated_facts"


def _own(kind: str, scenario: Scenario) -> list[str]:
    """The user's own values of a kind, as the task tells them."""
    known = scenario.own
    if kind == "user_id":
        known = "\n".join(scenario.texts)
    if kind == "name":
        return re.findall(r"(?:You are|You're|name is|called) ([A-Z][a-z]+ [A-Z][a-z]+)\b", known)
    if kind == "zip":
        return re.findall(r"(?<![\d.])\d{5}(?!\d)", known)
    return [str(fact.value) for fact in facts(known) if fact.kind == kind]


def _forgotten(kind: str, scenario: Scenario) -> str | None:
    """The task's words that the user does not know a value of this kind."""
    for match in _FORGOT.finditer(scenario.unknown):
        if any(name in match[0].lower() for name in _FORGOTTEN.get(kind, ())):
            return match[0]
    return None


def _against(fact: Fact, kind: str, scenario: Scenario) -> str:
    if kind == "fabricated_facts":
        return "is in no instruction, and nobody had said it before"
    own = _own(fact.kind, scenario)
    if own and fact.kind in OWN:
        return f"but the task says {own[0]!r}"
    return f"but the task says {_forgotten(fact.kind, scenario)!r}"


def _explains(fact: Fact, calls: list[tuple[PolicyCall, Known]], found: list[Finding]) -> bool:
    """Whether the policy acted on the value and everything it did wrong is about such a call.

    `calls` are those with arguments, each with what its arguments hold.
    """
    acted = {call.number: call for call, arguments in calls if arguments.states(fact)}
    if not acted:
        return False
    lost = any(call.tier == "error" for call in acted.values())
    return all(
        f.kind in LEFT_UNDONE
        or (f.calls and all(number in acted for number in f.calls))
        or (f.kind == "premature_transfer" and lost)
        for f in found
    )
