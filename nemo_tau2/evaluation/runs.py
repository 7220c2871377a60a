"""Several runs per side: the blog's significance column, and an interval that answers the question.

The blog divides the difference of means by sqrt(sd_A^2 + sd_B^2), the spread of a *single* pair of runs.
The uncertainty of a difference of means is smaller, sqrt(sd_A^2/n_A + sd_B^2/n_B): Welch's interval.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import hypot, inf
from statistics import fmean, stdev
from typing import Any

from scipy.stats import t as student_t

WHY_THEY_DIFFER = (
    "significance is in units of one run's spread (it does not grow with more runs); "
    "the interval is for the difference of the means, whose spread falls with the number of runs"
)

GUIDE = "significance, as the blog reads it: above 3 very high, above 2 high, 1 to 2 moderate, below 1 low"


@dataclass(frozen=True, slots=True)
class RunsComparison:
    """Side B minus side A; standard deviations with n - 1. `low` to `high` is Welch's 95 % interval."""

    mean_a: float
    sd_a: float
    mean_b: float
    sd_b: float
    difference: float
    sigma_combined: float
    significance: float
    interpretation: str
    low: float
    high: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def compare_runs(a: Sequence[float], b: Sequence[float]) -> RunsComparison:
    """Compares scores of runs. Raises ValueError for fewer than two runs on a side."""
    if min(len(a), len(b)) < 2:
        raise ValueError("a standard deviation over runs needs at least two runs on each side")
    sd_a, sd_b, difference = stdev(a), stdev(b), fmean(b) - fmean(a)
    combined = hypot(sd_a, sd_b)
    significance = abs(difference) / combined if combined else (inf if difference else 0.0)
    half = _welch_half_width(sd_a**2 / len(a), sd_b**2 / len(b), len(a), len(b))
    return RunsComparison(
        fmean(a), sd_a, fmean(b), sd_b, difference, combined, significance,
        interpret(significance), difference - half, difference + half,
    )  # fmt: skip


def interpret(significance: float) -> str:
    """The blog's guide."""
    if significance > 3:
        return "very high: definitive effect"
    if significance > 2:
        return "high: statistically significant"
    if significance >= 1:
        return "moderate: suggestive but inconclusive"
    return "low: within random variation"


def _welch_half_width(va: float, vb: float, na: int, nb: int) -> float:
    if va + vb == 0:
        return 0.0
    freedom = (va + vb) ** 2 / (va**2 / (na - 1) + vb**2 / (nb - 1))
    return float(student_t.ppf(0.975, freedom)) * (va + vb) ** 0.5
