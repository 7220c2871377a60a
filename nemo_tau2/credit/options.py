"""The options of an advantage estimator, as a recipe spells them.

Every estimator accepts every option, so an ablation can change `name` alone; docs/credit.md says
which options each one reads.
"""

import math
from collections.abc import Mapping
from typing import Any

from nemo_tau2.errors import UserError

NAMES = ("grpo", "rloo_norm", "mt_grpo", "gtpo", "gtpo_hybrid", "turn_rloo")
NORMS = ("per_index", "zero_pad", "pooled")
MODES = ("sum", "immediate")
DEFAULTS = {
    "gamma": 0.9,
    "lambda": 0.3,
    "norm": "per_index",
    "ddof": 1,
    "eps": 1e-6,
    "mode": "sum",
    "clip": None,
    "scale": False,
}


def check_options(name: str, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Checks an estimator's name and options and fills in the defaults.

    `options` has the recipe's keys (`gamma, lambda, norm, ddof, eps, mode, clip, scale`; a `name`
    key must not be among them). Returns the keyword arguments of `turn_advantages`, where `lambda`
    is spelled `lam`: `turn_advantages(o, g, r, name, **check_options(name, options))`.

    Raises `UserError` for an unknown estimator, an unknown key (naming the known ones) or a value
    out of range.
    """
    if name not in NAMES:
        raise UserError(f"unknown estimator {name!r}: choose one of {', '.join(NAMES)}")
    options = dict(options or {})
    unknown = [str(key) for key in options if key not in DEFAULTS]
    if unknown:
        known = ", ".join(DEFAULTS)
        raise UserError(f"{name}: unknown option {', '.join(unknown)}: the known ones are {known}")
    merged = DEFAULTS | options
    clip = merged["clip"]
    return {
        "gamma": _number(name, "gamma", merged["gamma"], low=0.0, high=1.0),
        "lam": _number(name, "lambda", merged["lambda"], low=0.0),
        "norm": _choice(name, "norm", merged["norm"], NORMS),
        "ddof": _choice(name, "ddof", merged["ddof"], (0, 1)),
        "eps": _number(name, "eps", merged["eps"], low=0.0),
        "mode": _choice(name, "mode", merged["mode"], MODES),
        "clip": None if clip is None else _number(name, "clip", clip, low=0.0),
        "scale": _choice(name, "scale", merged["scale"], (False, True)),
    }


def _number(name: str, key: str, value: Any, *, low: float, high: float = math.inf) -> float:
    """A finite float in [low, high]; "1e-6" counts, because YAML 1.1 reads it as a string."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and low <= number <= high):
        span = f"at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
        raise UserError(f"{name}: {key} is {value!r}: it must be a number {span}")
    return number


def _choice(name: str, key: str, value: Any, allowed: tuple) -> Any:
    for choice in allowed:
        if value == choice and isinstance(value, bool) == isinstance(choice, bool):
            return choice
    raise UserError(f"{name}: {key} is {value!r}: choose one of {', '.join(map(str, allowed))}")
