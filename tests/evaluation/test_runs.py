"""The blog's table of five runs per side, recomputed; where its own rounding disagrees is said here."""

from statistics import fmean

import pytest

from nemo_tau2.evaluation.pass_k import task_weighted
from nemo_tau2.evaluation.runs import compare_runs

SFT = {"retail": [71.3, 69.7, 66.2, 63.8, 66.2], "airline": [51.0, 59.0, 58.5, 55.0, 54.0],
       "telecom": [73.0, 75.0, 72.1, 72.5, 74.8], "avg": [65.1, 67.9, 65.6, 63.8, 65.0]}  # fmt: skip
RL = {"retail": [67.5, 68.6, 69.1, 67.8, 67.3], "airline": [62.5, 55.0, 55.0, 56.0, 55.5],
      "telecom": [87.1, 82.7, 84.6, 88.2, 86.8], "avg": [72.4, 68.8, 69.6, 70.7, 69.9]}  # fmt: skip
PRINTED = {  # mean, sd SFT; mean, sd RL; difference, combined sigma, significance
    "retail": (67.4, 3.0, 68.1, 0.8, 0.7, 3.1, 0.2),
    "airline": (55.5, 3.3, 56.8, 3.2, 1.3, 4.6, 0.3),
    "telecom": (73.5, 1.3, 85.9, 2.2, 12.4, 2.6, 4.8),
    "avg": (65.5, 1.5, 70.2, 1.4, 4.7, 2.0, 2.3),
}


NAMES = ("mean_a", "sd_a", "mean_b", "sd_b", "difference", "sigma_combined", "significance")
ITS_ROUNDING = {
    # 0.62 exactly; the blog subtracts its rounded means, 68.1 - 67.4.
    ("retail", "difference"): 0.6,
    # 70.28, 4.80 and 2.36 exactly; the blog cuts the mean to 70.2 and goes on from there.
    ("avg", "mean_b"): 70.3,
    ("avg", "difference"): 4.8,
    ("avg", "significance"): 2.4,
}


@pytest.mark.parametrize("domain", PRINTED)
def test_the_blogs_table_to_the_digit(domain):
    found = compare_runs(SFT[domain], RL[domain]).as_dict()
    for name, printed in zip(NAMES, PRINTED[domain], strict=True):
        expected = ITS_ROUNDING.get((domain, name), printed)
        assert round(found[name] + 1e-9, 1) == expected, name


def test_the_blogs_rl_mean_is_cut_not_rounded():
    assert fmean(RL["avg"]) == pytest.approx(70.28)


@pytest.mark.parametrize(
    ("scores", "mean"),
    [
        ((69.0, 86.2, 64.0), 74.00),
        ((62.5, 81.6, 95.8), 83.99),
        ((56.0, 74.1, 34.2), 54.48),
        ((61.5, 79.9, 60.5), 68.64),
        ((62.0, 81.6, 60.5), 69.42),  # prints 69.41: it weighted unrounded scores
    ],
)
def test_koas_averages_are_weighted_by_tasks(scores, mean):
    assert round(task_weighted(scores, (50, 114, 114)), 2) == mean


def test_the_interval_of_means_is_narrower_than_the_spread_of_single_runs():
    c = compare_runs(SFT["avg"], RL["avg"])
    assert c.low > 2.4 and c.high < 7.0 and c.interpretation.startswith("high")
