"""Words for generated scenarios from a frozen helper model; what is asked for stays as it was.

Only texts change: numbers, actions, fields and arguments are the generator's. An answer must hold
every question once and every identifier of the questions; otherwise it is asked for again.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nemo_tau2.chat import Complete
from nemo_tau2.outcomes import StopReason
from nemo_tau2.simulation.helpers import Unusable, ask
from nemo_tau2.simulation.scenario import Persona, Scenario
from nemo_tau2.simulation.untrusted import read_json

PROMPT = Path(__file__).with_name("scenario.txt").read_text("utf-8")
PROMPT_VERSION = hashlib.sha256(PROMPT.encode()).hexdigest()[:12]
MAX_OPENING, MAX_QUESTION = 2000, 500
"""Characters of an opening, and of a question."""


async def reword(scenario: Scenario, persona: Persona, complete: Complete) -> Scenario:
    """The scenario in a helper's words.

    Raises:
        InfrastructureFailure: three answers were unusable, or none came.
    """
    asked = "\n".join(f"{q.number}. {q.text}" for q in scenario.questions)
    prompt = PROMPT.format(style=persona.style, questions=asked)
    opening, texts = await ask(
        complete,
        [{"role": "user", "content": prompt}],
        lambda text: read(text, scenario),
        StopReason.USER_SIMULATOR_FAILED,
    )
    questions = tuple(q.model_copy(update={"text": texts[q.number]}) for q in scenario.questions)
    customer = scenario.customer.model_copy(update={"opening": opening})
    return scenario.model_copy(update={"questions": questions, "customer": customer})


async def reword_all(
    scenarios: list[Scenario],
    personas: list[Persona],
    complete: Complete,
    finished: Path,
    done: Callable[[], None] = lambda: None,
    concurrency: int = 8,
) -> list[Scenario]:
    """Each scenario in the style of its persona, in the same order.

    `finished` keeps what is done, line by line, so that a build that was cut short goes on where it
    was; `done` is called after each. Raises as `reword` does, once what was under way has ended.
    """
    known = _read_finished(finished)
    gate = asyncio.Semaphore(concurrency)

    async def one(scenario: Scenario, persona: Persona) -> Scenario:
        key = _key(scenario, persona)
        async with gate:
            if key not in known:
                known[key] = await reword(scenario, persona, complete)
                line = json.dumps({"key": key, "scenario": known[key].model_dump(mode="json")})
                with finished.open("a", encoding="utf-8") as file:
                    file.write(line + "\n")
        done()
        return known[key]

    tasks = await asyncio.gather(*map(one, scenarios, personas), return_exceptions=True)
    for task in tasks:
        if isinstance(task, BaseException):
            raise task
    return tasks


def _key(scenario: Scenario, persona: Persona) -> str:
    text = f"{PROMPT_VERSION}/{persona.style}/{scenario.model_dump_json()}"
    return hashlib.sha256(text.encode()).hexdigest()


def _read_finished(path: Path) -> dict[str, Scenario]:
    """What an earlier build has done; a torn last line is left out."""
    known: dict[str, Scenario] = {}
    if not path.is_file():
        return known
    for line in path.read_text("utf-8").splitlines():
        try:
            entry = json.loads(line)
            known[entry["key"]] = Scenario.model_validate(entry["scenario"])
        except (ValueError, KeyError, TypeError):
            continue
    return known


def read(text: str, scenario: Scenario) -> tuple[str, dict[int, str]]:
    """Opening and texts in an answer. Raises Unusable where they break the contract."""
    try:
        answer = read_json(text[text.find("{") : text.rfind("}") + 1])
        opening = answer["opening"]
        pairs = [(entry["number"], entry["text"]) for entry in answer["questions"]]
    except (ValueError, KeyError, TypeError):
        raise Unusable("no JSON with opening and questions") from None
    if not _is_text(opening, MAX_OPENING) or not all(_is_text(t, MAX_QUESTION) for _, t in pairs):
        raise Unusable("a text is missing or too long")
    numbers = [q.number for q in scenario.questions]
    if sorted(str(n) for n, _ in pairs) != sorted(map(str, numbers)):
        raise Unusable(f"the questions are not exactly {numbers}")
    texts = {int(number): text for number, text in pairs}
    for question in scenario.questions:
        for value in (question.arguments or {}).values():
            if str(value) not in texts[question.number]:
                raise Unusable(f"question {question.number} lacks {value!r}")
    return opening.strip(), texts


def _is_text(value: Any, limit: int) -> bool:
    return isinstance(value, str) and 0 < len(value.strip()) <= limit
