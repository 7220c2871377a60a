"""pass^k over tasks: the unbiased estimate, and its bounds when trials are missing.

Convention for unequal trials: pass^k is the mean of C(c, k) / C(n, k) over the tasks with n >= k graded
trials, n and c being each task's own. Tasks with fewer trials take no part; `tasks` says how many did.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

CONVENTION = (
    "pass^k: mean over the tasks with at least k graded trials of C(c,k)/C(n,k), "
    "n and c each task's own graded and successful trials"
)


@dataclass(frozen=True, slots=True)
class TaskTrials:
    """One task: `planned` trials, `graded` of them scored, `successes` of those rewarded 1."""

    planned: int
    graded: int
    successes: int


def task_pass_k(successes: int, trials: int, k: int) -> float | None:
    """C(c, k) / C(n, k); None where the task has fewer than k trials."""
    return comb(successes, k) / comb(trials, k) if trials >= k else None


def values(tasks: Sequence[TaskTrials], k: int) -> list[float]:
    """Each task's pass^k, tasks with fewer than k graded trials left out."""
    every = (task_pass_k(task.successes, task.graded, k) for task in tasks)
    return [value for value in every if value is not None]


def bounds(tasks: Sequence[TaskTrials], k: int) -> tuple[float, float] | None:
    """(worst, best) mean pass^k were every ungraded planned trial a failure, or a success.

    None where no task was planned with k trials.
    """
    planned = [task for task in tasks if task.planned >= k]
    if not planned:
        return None
    worst = sum(comb(task.successes, k) / comb(task.planned, k) for task in planned)
    best = sum(
        comb(task.successes + task.planned - task.graded, k) / comb(task.planned, k)
        for task in planned
    )
    return worst / len(planned), best / len(planned)


def task_weighted(scores: Sequence[float], tasks: Sequence[int]) -> float:
    """Mean of the domains' scores weighted by their numbers of tasks (Koa's average)."""
    return sum(s * n for s, n in zip(scores, tasks, strict=True)) / sum(tasks)
