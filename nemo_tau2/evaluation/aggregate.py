"""Stored rollouts to an `Evaluation`. Rows are streamed: only a few numbers of each are kept."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import Any

from nemo_tau2.errors import UserError
from nemo_tau2.evaluation.blame import findings
from nemo_tau2.evaluation.breakdown import by_gold, by_parameter, by_rule, by_tool
from nemo_tau2.evaluation.intervals import interval
from nemo_tau2.evaluation.pass_k import CONVENTION, TaskTrials, bounds, values
from nemo_tau2.evaluation.stored import Judgement, Stored, row_files
from nemo_tau2.evaluation.tasks import noted
from nemo_tau2.evaluation.transcript import Finding, Row
from nemo_tau2.outcomes import SUCCESS
from nemo_tau2.rollouts.store import RowKey, part_of, read_rows, row_key

TaskKey = tuple[str, str]
"""(domain, with the mode where it has several; task id)."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is kept of one row. A success has no `blame`, unless doing nothing would have passed.

    `coverage` is the share of the customer's questions that were resolved, where there are any.
    """

    domain: str
    task_id: str
    trial: int
    reward: float
    success: bool
    masked: bool
    stop_reason: str
    turns: int
    tokens: int | None
    seconds: float | None
    gold_actions: int | None
    coverage: float | None = None
    patterns: tuple[Finding, ...] = ()
    blame: Finding | None = None

    @classmethod
    def of(cls, row: dict[str, Any], judge: Callable[[Row], Judgement] = findings) -> "Outcome":
        """Reads one stored row; `judge` finds its patterns and whom it is owed to."""
        usage = (row.get("response") or {}).get("usage") or {}
        _, task_id, trial = row_key(row)
        info = row.get("reward_info") or {}
        reward = 0.0 if row["mask_sample"] else float(row["reward"])
        if not isfinite(reward):
            raise ValueError(f"a reward of {reward}")
        gold = (noted(row).get("task") or {}).get("gold_actions")
        found, blamed = judge(row)
        return cls(
            domain=part_of(row),
            task_id=task_id,
            trial=trial,
            reward=reward,
            success=not row["mask_sample"] and reward >= SUCCESS,
            masked=bool(row["mask_sample"]),
            stop_reason=row["stop_reason"],
            turns=row.get("num_turns") or 0,
            tokens=usage.get("total_tokens"),
            seconds=row.get("seconds"),
            gold_actions=None if gold is None else len(gold),
            coverage=info.get("coverage") if info.get("verdicts") else None,
            patterns=tuple(found),
            blame=blamed,
        )


@dataclass
class Evaluation:
    """The outcomes of one run and how many trials of each task were planned."""

    outcomes: list[Outcome]
    planned: dict[TaskKey, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """The report as plain JSON; docs/evaluation.md lists the fields."""
        names = sorted({domain for domain, _ in self.tasks()})
        domains = {name: self._part([name]) for name in names}
        return {
            "convention": CONVENTION,
            "warnings": self.warnings + self._missing(domains),
            "domains": domains,
            "overall": self._part(names) | {"macro": self._pass_k(names, macro=True)},
        }

    def tasks(self, names: Sequence[str] | None = None) -> dict[TaskKey, TaskTrials]:
        """Trials per task; a task without a plan was planned as often as it has rows."""
        rows: dict[TaskKey, list[Outcome]] = defaultdict(list)
        for outcome in self.outcomes:
            rows[outcome.domain, outcome.task_id].append(outcome)
        trials = {}
        for key in sorted(rows.keys() | self.planned.keys()):
            if names is None or key[0] in names:
                graded = [outcome.success for outcome in rows[key] if not outcome.masked]
                planned = max(self.planned.get(key, 0), len(rows[key]))
                trials[key] = TaskTrials(planned, len(graded), sum(graded))
        return trials

    def _part(self, names: Sequence[str]) -> dict[str, Any]:
        tasks = self.tasks(names).values()
        outcomes = [outcome for outcome in self.outcomes if outcome.domain in names]
        graded = [outcome for outcome in outcomes if not outcome.masked]
        return {
            "pass_k": self._pass_k(names, macro=False),
            "denominators": {
                "planned": sum(task.planned for task in tasks),
                "finished": len(outcomes),
                "infrastructure_failed": len(outcomes) - len(graded),
                "graded": len(graded),
                "tasks_planned": len(tasks),
                "tasks_graded": sum(task.graded > 0 for task in tasks),
            },
            "stop_reasons": dict(Counter(o.stop_reason for o in outcomes).most_common()),
            "patterns": dict(
                Counter(p for o in graded for p in {f.kind for f in o.patterns}).most_common()
            ),
            "patterns_by_gold": by_gold(graded),
            "patterns_by_tool": by_tool(graded),
            "wrong_parameters": by_parameter(graded),
            "blame": dict(
                Counter(o.blame.kind for o in outcomes if o.blame and not o.success).most_common()
            ),
            "blame_by_rule": by_rule(outcomes),
            "difficulty": _difficulty(graded),
            "reward_mean": _mean(o.reward for o in graded),
            "coverage_mean": _mean(o.coverage for o in graded if o.coverage is not None),
            "turns": _mean(o.turns for o in graded),
            "tokens": _mean(o.tokens for o in graded if o.tokens is not None),
            "seconds": _mean(o.seconds for o in graded if o.seconds is not None),
        }

    def _pass_k(self, names: Sequence[str], macro: bool) -> dict[str, Any]:
        """k (as text) to value, interval, bounds and the number of tasks behind it."""
        by_domain = [list(self.tasks([name]).values()) for name in names]
        longest = max((task.planned for tasks in by_domain for task in tasks), default=0)
        return {str(k): _estimate(by_domain, k, macro) for k in range(1, longest + 1)}

    def _missing(self, domains: dict[str, Any]) -> list[str]:
        lines = []
        for name, part in domains.items():
            counts = part["denominators"]
            lost = counts["planned"] - counts["graded"]
            if lost:
                lines.append(
                    f"{name}: {lost} of {counts['planned']} planned trials were not graded "
                    f"({counts['infrastructure_failed']} infrastructure failures); "
                    "read pass^k with its worst and best case"
                )
            if idle := part["patterns"].get("reward_by_inaction"):
                lines.append(f"{name}: {idle} successes are on tasks that reward doing nothing")
        return lines


def load(paths: Iterable[Path]) -> Evaluation:
    """Reads run folders or `rollouts.jsonl` files, with what is stored beside them: `planned.json`,
    `findings.jsonl` and `judged.jsonl`, where there are such.

    Raises UserError where there is no file or no row, or a file is given twice.
    """
    evaluation, paths = Evaluation([]), [Path(path) for path in paths]
    seen: dict[RowKey, Path] = {}
    again = []
    for file in row_files(paths):
        _read_planned(file.with_name("planned.json"), evaluation.planned)
        stored = Stored(file)
        for row in read_rows(file):
            evaluation.outcomes.append(_outcome(row, file, stored))
            if row_key(row) in seen:
                again.append((row_key(row), seen[row_key(row)], file))
            seen.setdefault(row_key(row), file)
    if again:
        evaluation.warnings.append(_said_twice(again))
    if not evaluation.outcomes:
        raise UserError(f"{', '.join(map(str, paths))}: no rollouts yet; finish the run first")
    return evaluation


def _outcome(row: Row, file: Path, stored: Stored) -> Outcome:
    where = f"{file}: task {row.get('task_id')}, trial {row.get('trial')}"
    try:
        return Outcome.of(row, stored.of)
    except KeyError as error:
        problem = f"the row has no {error}"
    except (TypeError, AttributeError, ValueError) as error:
        problem = f"not a readable row ({error})"
    raise UserError(f"{where}: {problem}; docs/rollouts.md lists the fields")


def _said_twice(again: list[tuple[RowKey, Path, Path]]) -> str:
    """The line about rollouts of the same task and trial."""
    (domain, task_id, trial), first, second = again[0]
    places = f"in {first} and in {second}" if first != second else f"twice in {first}"
    return (
        f"{len(again)} rollouts have the task and trial of another one (the first: {domain} "
        f"{task_id}, trial {trial}, {places}); each counts as a further trial of its task"
    )


def _read_planned(path: Path, planned: dict[TaskKey, int]) -> None:
    if not path.exists():
        return
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        for domain, tasks in stored.items():
            for task_id, trials in tasks.items():
                planned[domain, task_id] = planned.get((domain, task_id), 0) + int(trials)
    except (ValueError, AttributeError, TypeError):
        raise UserError(f"{path}: not a plan of trials per task; remove the file") from None


def _estimate(by_domain: list[list[TaskTrials]], k: int, macro: bool) -> dict[str, Any]:
    strata = [found for found in (values(tasks, k) for tasks in by_domain) if found]
    count = sum(map(len, strata))
    weights = [1 / len(strata) if macro else len(s) / count for s in strata]
    low, high = interval(strata, weights) if strata else (None, None)
    groups = by_domain if macro else [[task for tasks in by_domain for task in tasks]]
    ends = [end for end in (bounds(tasks, k) for tasks in groups) if end]
    return {
        "value": sum(w * fmean(s) for s, w in zip(strata, weights, strict=True))
        if strata
        else None,
        "low": low,
        "high": high,
        "worst": fmean(end[0] for end in ends) if ends else None,
        "best": fmean(end[1] for end in ends) if ends else None,
        "tasks": count,
    }


def _difficulty(graded: list[Outcome]) -> dict[str, Any]:
    """Number of gold actions (as text) to the number of rollouts and their mean success."""
    groups: dict[int, list[bool]] = defaultdict(list)
    for outcome in graded:
        if outcome.gold_actions is not None:
            groups[outcome.gold_actions].append(outcome.success)
    return {
        str(n): {"rollouts": len(wins), "success": fmean(wins)}
        for n, wins in sorted(groups.items())
    }


def _mean(found: Iterable[float]) -> float | None:
    numbers = list(found)
    return fmean(numbers) if numbers else None
