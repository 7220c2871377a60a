"""Natural-language assertions: judged by a model, for τ²-bench v1.0 retail tasks whose reward needs them.

The packaged tasks need no judge. Without one, the basis is left out of the reward and the row says so.
"""

import json
from pathlib import Path
from typing import Any

from nemo_tau2.chat import ChatFailed, Complete
from nemo_tau2.outcomes import InfrastructureFailure, StopReason
from nemo_tau2.tau2.engine import Message, RewardType, Task

ATTEMPTS = 3
"""Verdicts asked for before the judge counts as failed."""

PROMPT = Path(__file__).with_name("nl_judge.txt").read_text(encoding="utf-8")


class NLJudge:
    """Args:
    complete: the chat completion of the judging model.
    """

    def __init__(self, complete: Complete):
        self.complete = complete

    def needed(self, task: Task) -> bool:
        """Whether the task's reward asks for a judge."""
        criteria = task.evaluation_criteria
        return bool(
            criteria and RewardType.NL_ASSERTION in criteria.reward_basis and criteria.nl_assertions
        )

    async def __call__(self, task: Task, trajectory: list[Message]) -> list[dict[str, Any]]:
        """One {"assertion", "met", "reason"} per assertion, in order.

        Raises InfrastructureFailure with `judge_failed` when no well-formed answer comes.
        """
        assertions = task.evaluation_criteria.nl_assertions
        conversation = "\n".join(f"{message.role}: {message.content}" for message in trajectory)
        numbered = "\n".join(f"{index}. {text}" for index, text in enumerate(assertions, start=1))
        messages = [
            {"role": "system", "content": PROMPT},
            {
                "role": "user",
                "content": f"conversation:\n{conversation}\n\nexpectedOutcomes:\n{numbered}",
            },
        ]
        problem = ""
        for _ in range(ATTEMPTS):
            try:
                answer = await self.complete(messages, None)
            except ChatFailed as error:
                raise InfrastructureFailure(StopReason.JUDGE_FAILED, str(error)) from None
            verdicts, problem = _read(answer.get("content") or "", len(assertions))
            if verdicts is not None:
                return [
                    {"assertion": text, "met": met, "reason": reason[:500]}
                    for text, (met, reason) in zip(assertions, verdicts, strict=True)
                ]
        raise InfrastructureFailure(StopReason.JUDGE_FAILED, f"the judge's answer {problem}")


def _read(text: str, count: int) -> tuple[list[tuple[bool, str]] | None, str]:
    """The verdicts in an answer, or None with what is wrong with it."""
    start, end = text.find("{"), text.rfind("}")
    try:
        results = json.loads(text[start : end + 1])["results"]
        verdicts = {
            int(r["number"]): (r["metExpectation"], str(r.get("reasoning", ""))) for r in results
        }
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return None, f"cannot be read: {error!r}"
    if sorted(verdicts) != list(range(1, count + 1)):
        return None, f"judges outcomes {sorted(verdicts)}, not 1 to {count}"
    if not all(isinstance(met, bool) for met, _ in verdicts.values()):
        return None, "holds a verdict that is neither true nor false"
    return [verdicts[number] for number in range(1, count + 1)], ""
