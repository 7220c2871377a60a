"""Coverage of a task's numbered sub-questions, gated by duplicate calls and grounded by evidence.

    cov = #{sub-questions resolved} / #{sub-questions}          (Koa eq. 1)
    R = 0 if there was a consecutive duplicate call else cov    (Koa eq. 2)

A judge says which questions are resolved. A data-bound question also needs evidence: a successful
call of its action, with its arguments, before the answer. Both are needed (K18 made checkable), and
where they differ the question is listed as a disagreement. Pure: who judged is not known here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nemo_tau2.rewards.tiers import deep_equal


@dataclass(frozen=True, slots=True)
class Need:
    """What grounds one question. `action` None: nothing has to."""

    number: int
    action: str | None = None
    fields: tuple[str, ...] = ()
    arguments: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """One successful call: its action, all its arguments, and what the policy saw of its outputs."""

    action: str
    arguments: Mapping[str, Any]
    outputs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Coverage:
    """The result: resolved numbers, coverage in [0, 1] and where judge and evidence differ."""

    resolved: tuple[int, ...]
    value: float
    disagreements: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()


def grounds(need: Need, call: Evidence) -> bool:
    """Whether a successful call can ground an answer: its action, and the arguments asked for."""
    if need.action is None or call.action != need.action:
        return False
    wanted = need.arguments or {}
    return all(k in call.arguments and deep_equal(call.arguments[k], v) for k, v in wanted.items())


def is_grounded(need: Need, calls: Sequence[Evidence]) -> bool:
    """Whether the evidence a question needs is there; a generic question needs none."""
    return need.action is None or any(grounds(need, call) for call in calls)


def coverage(
    needs: Sequence[Need], verdicts: Mapping[int, bool | None], calls: Sequence[Evidence]
) -> Coverage:
    """Judge and evidence together. A missing or malformed (None) verdict is not resolved."""
    resolved, disagreements, missing = [], [], []
    for need in needs:
        verdict = verdicts.get(need.number)
        evidence = is_grounded(need, calls)
        if not isinstance(verdict, bool):
            missing.append(need.number)
        elif need.action is not None and verdict and not evidence:
            disagreements.append(need.number)
        if verdict is True and evidence:
            resolved.append(need.number)
    value = len(resolved) / len(needs) if needs else 0.0
    return Coverage(tuple(resolved), value, tuple(disagreements), tuple(missing))


def gated(value: float, has_duplicate: bool) -> float:
    """Eq. 2."""
    return 0.0 if has_duplicate else value
