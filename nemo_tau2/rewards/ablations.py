"""Koa's rejected rewards (eq. 10-13), kept for ablation. Pure functions of numbers in [0, 1]."""

from collections.abc import Mapping


def task_with_penalties(
    solved: bool, penalties: Mapping[str, float], weights: Mapping[str, float]
) -> float:
    """R = R_bin - sum_k lambda_k p_k (eq. 10); may be negative. A penalty without a weight is 0."""
    return float(solved) - sum(weights.get(k, 0.0) * p for k, p in penalties.items())


def structural_credit(
    passed: bool, scores: Mapping[str, float], weights: Mapping[str, float], cap: float = 0.15
) -> float:
    """R = 1 if the judge passes it, else min(c, sum_i w_i s_i) (eq. 11); c went from 0.6 to 0.15."""
    return 1.0 if passed else min(cap, sum(weights.get(k, 0.0) * s for k, s in scores.items()))


def two_step_coverage(
    used_relevant_tool: bool, coverage: float, w_tool: float = 0.3, w_correct: float = 0.7
) -> float:
    """R = w_tool 1[relevant tool used] + w_correct cov (eq. 12); later (0.4, 0.6)."""
    return w_tool * used_relevant_tool + w_correct * coverage


def floored_gate(
    successful_tools: int, coverage: float, w_tool: float = 0.4, w_correct: float = 0.6
) -> float:
    """R = T_det (w_tool + w_correct cov), T_det = 1[successful tools >= 1] (eq. 13)."""
    return (w_tool + w_correct * coverage) if successful_tools >= 1 else 0.0
