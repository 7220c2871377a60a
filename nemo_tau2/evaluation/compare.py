"""Two evaluations, paired by task."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np

from nemo_tau2.evaluation.aggregate import Evaluation
from nemo_tau2.evaluation.intervals import interval
from nemo_tau2.evaluation.pass_k import task_pass_k
from nemo_tau2.evaluation.runs import GUIDE, WHY_THEY_DIFFER, compare_runs

MOVED = 10
"""Tasks listed as having moved most."""


def compare(a: Evaluation, b: Evaluation, k: int = 1) -> dict[str, Any]:
    """B minus A in pass^k over the tasks that both have with at least k graded trials, equally weighted.

    Raises ValueError where there is no such task.
    """
    left, right = _per_task(a, k), _per_task(b, k)
    shared = sorted(left.keys() & right.keys())
    if not shared:
        raise ValueError(f"no task has {k} graded trials on both sides")
    moves = [right[key] - left[key] for key in shared]
    low, high = interval([moves], [1.0])
    most = sorted(zip(shared, moves, strict=True), key=lambda pair: -abs(pair[1]))
    return {
        "k": k,
        "tasks": len(shared),
        "unpaired": len(left.keys() ^ right.keys()),
        "a": float(np.mean([left[key] for key in shared])),
        "b": float(np.mean([right[key] for key in shared])),
        "difference": float(np.mean(moves)),
        "low": low,
        "high": high,
        "p_value": permutation_p(moves),
        "won": sum(move > 0 for move in moves),
        "lost": sum(move < 0 for move in moves),
        "tied": sum(move == 0 for move in moves),
        "moved_most": [
            {"domain": key[0], "task_id": key[1], "difference": move}
            for key, move in most[:MOVED]
            if move
        ],
    }


def over_runs(a: Sequence[Evaluation], b: Sequence[Evaluation], k: int = 1) -> dict[str, Any]:
    """Scores of single runs compared per domain and over all (mean of the domains), in percent.

    Raises ValueError for fewer than two runs on a side, or a run without k graded trials of a task.
    """
    left, right = [_scores(run, k) for run in a], [_scores(run, k) for run in b]
    names = sorted(set.intersection(*(set(scores) for scores in [*left, *right])))
    if not names:
        raise ValueError(f"no domain has pass^{k} in every run")
    sides = [[[run[name] for run in side] for name in names] for side in (left, right)]
    compared = {name: compare_runs(x, y) for name, x, y in zip(names, *sides, strict=True)}
    if len(names) > 1:
        means = [[fmean(run[name] for name in names) for run in side] for side in (left, right)]
        compared["macro mean"] = compare_runs(*means)
    return {
        "domains": {name: one.as_dict() for name, one in compared.items()},
        "guide": GUIDE,
        "why_they_differ": WHY_THEY_DIFFER,
    }


def permutation_p(differences: Sequence[float], draws: int = 10_000, seed: int = 0) -> float:
    """Two-sided sign-flip p-value of the mean, (1 + as extreme) / (1 + draws): never 0."""
    moves = np.asarray([d for d in differences if d], dtype=float)
    if not len(moves):
        return 1.0
    rng = np.random.default_rng(seed)
    observed, extreme = abs(moves.sum()), 0
    for start in range(0, draws, 1000):  # bounded memory
        size = min(1000, draws - start)
        signs = rng.choice((-1.0, 1.0), (size, len(moves)))
        extreme += int((np.abs(signs @ moves) >= observed - 1e-12).sum())
    return (1 + extreme) / (1 + draws)


def _scores(run: Evaluation, k: int) -> dict[str, float]:
    """{domain: mean over its tasks of pass^k, in percent}."""
    by_domain: dict[str, list[float]] = {}
    for (domain, _), value in _per_task(run, k).items():
        by_domain.setdefault(domain, []).append(value)
    return {domain: 100 * fmean(found) for domain, found in by_domain.items()}


def _per_task(evaluation: Evaluation, k: int) -> dict[tuple[str, str], float]:
    every = {
        key: task_pass_k(task.successes, task.graded, k) for key, task in evaluation.tasks().items()
    }
    return {key: value for key, value in every.items() if value is not None}
