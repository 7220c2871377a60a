"""Who talks to the policy: a script that answers with its facts, or a frozen model in the role.

What no customer may do, whoever plays it, and a model is asked to say otherwise (`helpers.ATTEMPTS`):
say nothing, stop at once. A model may not restart the conversation either, nor give `SAME_REPLIES` times
in a row the same answer to different messages. A customer who has everything and goes on for
`IDLE_REPLIES` messages has failed too. Each of these is the customer's failure, so the rollout is masked;
a conversation that goes on for any other reason until a budget ends it is the policy's.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from nemo_tau2.chat import Complete
from nemo_tau2.outcomes import InfrastructureFailure, StopReason
from nemo_tau2.simulation.helpers import PROMPTS, Unusable, ask
from nemo_tau2.simulation.judge import Line, needless
from nemo_tau2.simulation.records import snake
from nemo_tau2.simulation.scenario import Question, SpecRow

STOP = "###STOP###"
MAX_MESSAGE = 8000
"""Characters a customer message may have."""
MAX_HEARD = 4000
"""Characters of a policy's message that a model in the role gets to see."""
SAME_REPLIES = 5
"""Equal answers in a row, each to another message of the policy, that a model may not give."""
IDLE_REPLIES = 4
"""Messages of a customer who has been told everything, without a call between, that are too many."""

_GREETING = "Hello, how can I help?"
_GOODBYE = re.compile(r"good ?bye|have a (great|nice|good) day", re.IGNORECASE)


class CustomerRole(Protocol):
    """One customer in one episode."""

    async def reply(self, said: str | None) -> str:
        """The next message; `said` is None for the first. Holds STOP when it is the last."""


def opening_of(row: SpecRow) -> str:
    """The first message: the row's own, or the numbered needs."""
    needs = " ".join(f"{q.number}. {q.text}" for q in row.questions)
    return row.customer.opening or f"Hello, I need help: {needs}".strip()


def check_message(text: str, opening: bool) -> None:
    """Raises InfrastructureFailure where no customer may say this."""
    problem = "it said nothing" if not text.strip() else ""
    if opening and STOP in text:
        problem = "it stopped at once"
    if problem:
        raise InfrastructureFailure(StopReason.USER_SIMULATOR_FAILED, problem)


def check_need(questions: Sequence[Question], transcript: Sequence[Line]) -> None:
    """Raises InfrastructureFailure where the customer goes on although it has everything."""
    if needless(questions, transcript) >= IDLE_REPLIES:
        problem = f"it went on for {IDLE_REPLIES} messages after everything was answered"
        raise InfrastructureFailure(StopReason.USER_SIMULATOR_FAILED, problem)


class ScriptedCustomer:
    """Opens, gives the facts the agent names, leaves when its needs are met or patience ends.

    `is_served` says whether every need is met; the episode knows.
    """

    def __init__(self, row: SpecRow, facts: dict[str, Any], is_served: Callable[[], bool]):
        self.row, self.facts, self.is_served = row, facts, is_served
        self.idle = 0

    async def reply(self, said: str | None) -> str:
        if said is None:
            return opening_of(self.row)
        if self.is_served() or _GOODBYE.search(said):
            return f"Thank you. {STOP}"
        self.idle += 1
        if self.idle > self.row.persona.patience:
            return f"This takes too long. {STOP}"
        text = said.casefold()
        asked = {
            name: value
            for name, value in self.facts.items()
            if snake(name).replace("_", " ") in text or name.casefold() in text
        }
        if asked:
            return ", ".join(f"{k.replace('_', ' ')}: {v}" for k, v in list(asked.items())[:8])
        return "Please go on."


class LLMCustomer:
    """A model in the role. It may not stop at once, restart the conversation, or say nothing."""

    def __init__(self, row: SpecRow, facts: dict[str, Any], complete: Complete):
        self.complete = complete
        self._first: str | None = None
        self._exchanged: list[tuple[str, str]] = []
        system = PROMPTS["customer"].format(
            name=row.persona.name,
            style=row.persona.style,
            questions="\n".join(f"{q.number}. {q.text}" for q in row.questions),
            facts="\n".join(f"{k}: {v}" for k, v in facts.items()),
        )
        self._messages = [{"role": "system", "content": system}]

    def recall(self, exchanged: list[tuple[str | None, str]]) -> None:
        """Takes over a dialogue that a prefix has had in its name."""
        for said, answered in exchanged:
            self._took(said or _GREETING, answered)
            self._messages += [
                {"role": "user", "content": said or _GREETING},
                {"role": "assistant", "content": answered},
            ]

    async def reply(self, said: str | None) -> str:
        self._messages.append({"role": "user", "content": (said or _GREETING)[:MAX_HEARD]})

        def read(text: str) -> str:
            if not text:
                raise Unusable("an empty message")
            if len(text) > MAX_MESSAGE:
                raise Unusable(f"a message of {len(text)} characters")
            if self._first is None and STOP in text:
                raise Unusable("it stopped at once")
            if self._first is not None and _plain(text) == _plain(self._first):
                raise Unusable("it restarted the conversation")
            if self._repeats(said or _GREETING, text):
                raise Unusable(f"the same answer {SAME_REPLIES} times in a row")
            return text

        text = await ask(self.complete, self._messages, read, StopReason.USER_SIMULATOR_FAILED)
        self._took(said or _GREETING, text)
        self._messages.append({"role": "assistant", "content": text})
        return text

    def _took(self, said: str, answered: str) -> None:
        self._first = self._first or answered
        self._exchanged = [*self._exchanged, (said, answered)][1 - SAME_REPLIES :]

    def _repeats(self, said: str, text: str) -> bool:
        if STOP in text:
            return False
        exchanged = [*self._exchanged, (said, text)]
        replies = {_plain(reply) for _, reply in exchanged}
        heard = {_plain(message) for message, _ in exchanged}
        return len(replies) == 1 and len(heard) == SAME_REPLIES


def _plain(text: str) -> str:
    return " ".join(text.replace(STOP, " ").casefold().split())
