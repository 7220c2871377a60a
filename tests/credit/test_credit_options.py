"""What a recipe may say, and what it is told when it says something else."""

import pytest

from nemo_tau2.credit import ESTIMATORS, check_options
from nemo_tau2.credit.options import DEFAULTS, NAMES
from nemo_tau2.errors import UserError


def test_every_name_has_an_estimator():
    assert tuple(ESTIMATORS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_defaults_are_the_papers(name):
    got = check_options(name)
    assert (got["gamma"], got["lam"], got["norm"], got["ddof"]) == (0.9, 0.3, "per_index", 1)
    assert got == check_options(name, DEFAULTS)


def test_an_unknown_key_is_refused_with_the_known_ones():
    known = "gamma, lambda, norm, ddof, eps, mode, clip, scale"
    with pytest.raises(
        UserError, match=f"gtpo_hybrid: unknown option gama: the known ones are {known}"
    ):
        check_options("gtpo_hybrid", {"gama": 0.9})


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(
        UserError, match=r"unknown estimator 'gtpo2': choose one of grpo, rloo_norm"
    ):
        check_options("gtpo2")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("gamma", 1.1), ("gamma", -0.1), ("gamma", True), ("gamma", "high"), ("gamma", None),
        ("lambda", float("nan")), ("lambda", -1), ("norm", "global"), ("ddof", 2), ("ddof", True),
        ("eps", -1e-6), ("mode", "mean"), ("clip", -1), ("clip", float("inf")), ("scale", 1),
    ],
)  # fmt: skip
def test_values_out_of_range_are_refused_by_key(key, value):
    with pytest.raises(UserError, match=f"mt_grpo: {key} is "):
        check_options("mt_grpo", {key: value})


def test_yaml_reads_1e_6_as_a_string():
    assert check_options("grpo", {"eps": "1e-6"})["eps"] == 1e-6
