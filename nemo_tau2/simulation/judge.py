"""Who says which sub-questions are resolved: a rule over the transcript, or a frozen model.

A missing or malformed single verdict is None (not resolved); an answer that cannot be read, or has no
verdict on any of the questions, is asked for again and then fails as `judge_failed`. Verdicts for unknown
numbers are ignored.
"""

import json
from collections.abc import Sequence
from typing import Any, Protocol

from nemo_tau2.chat import Complete
from nemo_tau2.outcomes import StopReason
from nemo_tau2.rewards.coverage import Evidence, Need, grounds
from nemo_tau2.simulation.helpers import PROMPTS, Unusable, ask
from nemo_tau2.simulation.records import normal
from nemo_tau2.simulation.scenario import Question
from nemo_tau2.simulation.untrusted import read_json

Verdicts = dict[int, bool | None]
Line = tuple[str, Any]
"""(`customer` | `agent`, text), (`tool`, Evidence) or (`error`, text), in order."""


MAX_LINE, MAX_TRANSCRIPT = 4000, 120_000
"""Characters of one line of the transcript a model judge sees, and about of the whole: a policy that talks
without end must not overflow the judge, which would mask its rollout."""


class Judge(Protocol):
    """Judges one finished conversation."""

    async def __call__(self, questions: Sequence[Question], transcript: Sequence[Line]) -> Verdicts:
        """One verdict per question. Raises InfrastructureFailure with `judge_failed`."""


class RuleJudge:
    """Resolved: after a grounding call the agent said one of the fields' values to the customer.

    Where no field has a telling value (`is_telling`), any words to the customer are enough.
    """

    async def __call__(self, questions: Sequence[Question], transcript: Sequence[Line]) -> Verdicts:
        return judged(questions, transcript)


def judged(questions: Sequence[Question], transcript: Sequence[Line]) -> Verdicts:
    """The rule. A generic question is resolved once the agent has said anything."""
    return {q.number: _resolved(q, transcript) for q in questions}


def need_of(question: Question) -> Need:
    """The evidence a question needs."""
    return Need(question.number, question.action, question.fields, question.arguments)


def _resolved(question: Question, transcript: Sequence[Line]) -> bool:
    need, wanted, grounded = need_of(question), [], question.action is None
    for kind, what in transcript:
        if kind == "tool" and grounds(need, what):
            grounded = True
            wanted += [what.outputs[f] for f in question.fields if f in what.outputs]
        elif kind == "agent" and grounded:
            telling = [value for value in wanted if is_telling(value)]
            if not telling or any(says(what, value) for value in telling):
                return True
    return False


def needless(questions: Sequence[Question], transcript: Sequence[Line]) -> int:
    """Customer messages since every question was answered in full, or the last call after that.

    In full: a grounding call, and every field's value was said since. 0 where one is not, or is generic:
    nobody can tell then.
    """
    if not questions or any(q.action is None for q in questions):
        return 0
    answered = [_answered_at(question, transcript) for question in questions]
    if None in answered:
        return 0
    since = max(answered)
    for index in range(len(transcript) - 1, since, -1):
        if transcript[index][0] in ("tool", "error"):
            since = index
            break
    return sum(kind == "customer" for kind, _ in transcript[since + 1 :])


def _answered_at(question: Question, transcript: Sequence[Line]) -> int | None:
    """Where the agent had said every value of the latest grounding call."""
    missing: list[Any] | None = None
    for index, (kind, what) in enumerate(transcript):
        if kind == "tool" and grounds(need_of(question), what):
            missing = [what.outputs[f] for f in question.fields if f in what.outputs]
        elif kind == "agent" and missing is not None:
            missing = [value for value in missing if not _says_all(what, value)]
            if not missing:
                return index
    return None


def _says_all(text: str, value: Any) -> bool:
    if isinstance(value, dict):
        return all(_says_all(text, item) for item in value.values())
    if isinstance(value, list):
        return all(_says_all(text, item) for item in value)
    return says(text, value)


def is_telling(value: Any) -> bool:
    """Whether saying a value shows that it is known: a yes or no can be guessed."""
    if isinstance(value, dict | list):
        return any(map(is_telling, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, bool) and value not in (None, "")


def says(text: str, value: Any) -> bool:
    """Whether a text holds a value; one that is not telling is held by any text."""
    if not is_telling(value):
        return bool(text.strip())
    if isinstance(value, dict):
        return any(says(text, item) for item in value.values())
    if isinstance(value, list):
        return any(says(text, item) for item in value)
    return normal(value) in normal(text)


class LLMJudge:
    """A model with the grounding rule in its prompt."""

    def __init__(self, complete: Complete):
        self.complete = complete

    async def __call__(self, questions: Sequence[Question], transcript: Sequence[Line]) -> Verdicts:
        numbers = {q.number for q in questions}
        limit = min(MAX_LINE, max(200, MAX_TRANSCRIPT // max(1, len(transcript))))
        lines = "\n".join(f"{kind}: {_text(what, limit)}" for kind, what in transcript)
        asked = "\n".join(f"{q.number}. {q.text}" for q in questions)
        messages = [
            {"role": "system", "content": PROMPTS["judge"]},
            {"role": "user", "content": f"Transcript:\n{lines}\n\nQuestions:\n{asked}"},
        ]
        return await ask(
            self.complete, messages, lambda text: read(text, numbers), StopReason.JUDGE_FAILED
        )


def read(text: str, numbers: set[int]) -> Verdicts:
    """The verdicts in an answer. Raises Unusable where there is none on any of the questions."""
    try:
        entries = read_json(text[text.find("{") : text.rfind("}") + 1])["verdicts"]
    except (ValueError, KeyError, TypeError):
        raise Unusable("no JSON with verdicts") from None
    if not isinstance(entries, list):
        raise Unusable("verdicts is no list")
    verdicts: Verdicts = dict.fromkeys(numbers)
    seen: set[int] = set()
    for entry in entries:
        number = entry.get("number") if isinstance(entry, dict) else None
        if not isinstance(number, int) or isinstance(number, bool) or number not in numbers:
            continue
        verdict = entry.get("resolved")
        valid = isinstance(verdict, bool) and (number not in seen or verdicts[number] is verdict)
        verdicts[number] = verdict if valid else None
        seen.add(number)
    if not seen:
        raise Unusable("no verdict on any of the questions")
    return verdicts


def _text(what: Any, limit: int) -> str:
    """One line, so that nobody can write another speaker's."""
    if isinstance(what, Evidence):
        what = {"action": what.action, "arguments": what.arguments, "outputs": what.outputs}
    text = json.dumps(what, ensure_ascii=False, default=str)
    return text if len(text) <= limit else f"{text[:limit]} ... ({len(text)} characters)"
