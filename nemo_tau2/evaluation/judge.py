"""A judge model for the failures that no rule decides, each verdict kept beside the rows.

The model sees the conversation as data and must quote the line that shows it; an answer that is not JSON of
the right shape, or whose quote is not in that line, is asked for again and then leaves the failure
undecided. It is never asked about what a rule has decided, and never overrules one.
"""

import asyncio
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nemo_tau2.chat import ChatFailed, Complete, ContextOverflow
from nemo_tau2.errors import UserError
from nemo_tau2.evaluation.blame import UNDECIDED
from nemo_tau2.evaluation.stored import (
    Stored,
    beside,
    open_verdicts,
    read_verdicts,
    row_sha256,
    verdict_line,
)
from nemo_tau2.evaluation.tasks import Scenario, noted
from nemo_tau2.evaluation.transcript import DEFAULT, JUDGE, Finding, Line, Row, lines
from nemo_tau2.rollouts.store import read_rows

PROMPT = Path(__file__).with_name("judge.txt").read_text(encoding="utf-8")
PROMPT_VERSION = hashlib.sha256(PROMPT.encode()).hexdigest()[:12]
ATTEMPTS = 3
"""Answers asked for before a failure stays undecided."""
CONCURRENCY = 8
MAX_ANSWER = 16 * 1024
MAX_LINE = 1_500
HEAD, TAIL = 40, 120
"""Lines of the conversation shown: its beginning and its end."""
ABOUT = {
    "policy": ("mistake", "left_undone"),
    "user_simulator": (
        "stopped_before_the_write",
        "fabricated_facts",
        "contradicted_instructions",
        "repeated_opening",
        "empty",
        "other",
    ),
    "tool_emulator": ("contradiction", "other"),
    "task": ("gold_error", "ambiguous"),
    "undecided": ("unclear",),
}
SPEAKER = {"user_simulator": "user", "tool_emulator": "result"}
"""Whose line must be quoted against whom."""
NO_VERDICT = "undecided"


class Unusable(Exception):
    """An answer that breaks the contract; the message says how."""


@dataclass
class Tally:
    """What a run of the judge came to."""

    asked: int = 0
    cached: int = 0
    undecided: int = 0


async def judge_file(rows: Path, complete: Complete, model: str) -> Tally:
    """Asks about every undecided failure that has no verdict of this prompt and model yet.

    Raises UserError where the endpoint gives no answer; verdicts so far are kept.
    """
    path, tally = beside(rows, "judged"), Tally()
    known = read_verdicts(path, PROMPT_VERSION, model, undecided=True)
    waiting: set[asyncio.Task] = set()
    try:
        with open_verdicts(path) as file:
            for row, found in _open_failures(rows):
                if row_sha256(row) in known:
                    tally.cached += 1
                    continue
                waiting.add(asyncio.create_task(_judged(row, found, complete)))
                if len(waiting) >= CONCURRENCY:
                    waiting = await _keep_first(waiting, file, model, tally)
            while waiting:
                waiting = await _keep_first(waiting, file, model, tally)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; verdicts are kept beside the rows") from None
    except ChatFailed as error:
        raise UserError(
            f"the judge gave no answer ({error}); verdicts so far are kept, run it again to go on"
        ) from None
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    return tally


def _open_failures(rows: Path) -> Iterator[tuple[Row, list[Finding]]]:
    """The rows that no rule decides, with their patterns."""
    stored = Stored(rows)
    stored.verdicts = {}
    for row in read_rows(rows):
        found, blamed = stored.of(row)
        if blamed is not None and blamed.by == DEFAULT:
            yield row, found


async def _keep_first(waiting: set, file: Any, model: str, tally: Tally) -> set:
    """Stores the verdicts that are there, one line and one flush each."""
    ended, rest = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    failed = None
    for task in ended:
        if task.exception() is not None:
            failed = task.exception()
            continue
        row, verdict = task.result()
        tally.asked += 1
        tally.undecided += verdict.kind == NO_VERDICT
        file.write(verdict_line(row, PROMPT_VERSION, model, verdict))
        file.flush()
    if failed is not None:
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        raise failed
    return rest


async def _judged(row: Row, found: list[Finding], complete: Complete) -> tuple[Row, Finding]:
    return row, await verdict_on(row, found, complete)


async def verdict_on(row: Row, found: list[Finding], complete: Complete) -> Finding:
    """The judge's verdict, of kind `undecided` where it has none. Raises ChatFailed without an answer."""
    shown = shown_lines(row)
    messages = [
        {"role": "system", "content": PROMPT},
        {"role": "user", "content": json.dumps(_case(row, found, shown), ensure_ascii=False)},
    ]
    problem = ""
    for _ in range(ATTEMPTS):
        try:
            answer = (await complete(messages, None)).get("content") or ""
        except ContextOverflow:
            return Finding(NO_VERDICT, "unclear", "longer than the judge takes", by=JUDGE)
        try:
            return read(answer, shown)
        except Unusable as error:
            problem = str(error)
    return Finding(
        NO_VERDICT, "unclear", f"{UNDECIDED}: the judge's answer {problem}"[:400], by=JUDGE
    )


def read(answer: str, shown: list[tuple[int, Line]]) -> Finding:
    """The verdict in an answer. Raises Unusable where it breaks the contract."""
    if len(answer) > MAX_ANSWER:
        raise Unusable(f"has {len(answer)} characters")
    answer = answer.rsplit("</think>", 1)[-1]
    try:
        given = json.loads(answer[answer.find("{") : answer.rfind("}") + 1])
    except (ValueError, RecursionError):
        raise Unusable("is not JSON") from None
    if not isinstance(given, dict):
        raise Unusable("is no object")
    party, about, reason = (given.get(key) for key in ("party", "about", "reason"))
    if not isinstance(party, str) or about not in ABOUT.get(party, ()):
        raise Unusable("names no party, or another fault than it may have")
    reason = " ".join(str(reason or "").split())[:200]
    if party == NO_VERDICT:
        return Finding(NO_VERDICT, about, reason or "the judge does not say why", by=JUDGE)
    quote = _quoted(given, party, shown)
    return Finding(party, about, f"line {given['line']}: {quote!r}: {reason}"[:400], by=JUDGE)


def _quoted(given: Row, party: str, shown: list[tuple[int, Line]]) -> str:
    """The quote, if it is in the line it names and that line is the right speaker's."""
    number, quote = given.get("line"), given.get("quote")
    if isinstance(number, bool) or not isinstance(number, int) or not isinstance(quote, str):
        raise Unusable("has no line or no quote")
    line = dict(shown).get(number)
    quote = " ".join(quote.split())[:300]
    if line is None or not quote or quote.lower() not in " ".join(line.text.split()).lower():
        raise Unusable(f"quotes what line {number} does not say"[:100])
    if line.who != SPEAKER.get(party, line.who):
        raise Unusable(f"quotes {line.who} against {party}")
    return quote


def shown_lines(row: Row) -> list[tuple[int, Line]]:
    """The numbered lines the judge is shown, each cut to a bearable length."""
    every = [Line(line.who, line.text[:MAX_LINE]) for line in lines(row)]
    numbered = list(enumerate(every))
    return numbered if len(numbered) <= HEAD + TAIL else numbered[:HEAD] + numbered[-TAIL:]


def _case(row: Row, found: list[Finding], shown: list[tuple[int, Line]]) -> Row:
    full = noted(row)
    scenario = Scenario.of(full)
    gold = (full.get("task") or {}).get("gold_actions") or []
    return {
        "scenario": [text[: 4 * MAX_LINE] for text in scenario.texts] if scenario else None,
        "gold_actions": [
            {key: g[key] for key in ("actor", "name", "arguments", "errored")} for g in gold
        ],
        "ended_by": row["stop_reason"],
        "patterns": [f"{f.kind}: {f.evidence}"[:400] for f in found[:20]],
        "lines": [{"line": n, "who": line.who, "text": line.text} for n, line in shown],
    }
