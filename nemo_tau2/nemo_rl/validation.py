"""What a validation of NeMo RL measures on our rollouts: the metrics we add, and every metric's name.

The names are those of `checkpointing.metric_name: "val:<name>"`, which ranks checkpoints. Nothing here
runs a validation; the loop is NeMo RL's.
"""

import functools
from collections.abc import Mapping
from difflib import get_close_matches
from itertools import product
from typing import Any

import numpy as np

from nemo_tau2.errors import UserError
from nemo_tau2.nemo_rl import compat
from nemo_tau2.nemo_rl.actor import MASKED
from nemo_tau2.nemo_rl.rollouts import to_numpy

STATISTICS = ("mean", "max", "min", "median", "stddev")
"""What NeMo RL makes of every number; its histogram cannot rank checkpoints."""
FIELDS = (
    "reward",
    "mask_sample",
    "trial",
    "num_turns",
    "num_tool_calls",
    "num_tool_errors",
    "num_user_messages",
)
"""Numeric fields at the top level of every verify response of our environments, masked ones included.

NeMo RL averages the fields that an agent's first response has. A field that only some responses have
(`seconds`) is therefore logged, but may be missing at a save, which ends the run.
"""
GRADED = "graded_reward/mean"
"""The mean reward over the rollouts that infrastructure did not break; 0 where it broke all of them."""
MASKED_SHARE = "masked/mean"
"""The share of the others, over all environments."""


def graded_metrics(batch: Mapping[str, Any]) -> dict[str, float]:
    """`graded_reward/mean` over a rollout batch and per agent, and the share of masked rollouts.

    NeMo RL's own means count a masked rollout as reward 0. A truncated one is the policy's failure and
    stays in.
    """
    rewards = to_numpy(batch["total_reward"]).astype(np.float64)
    masked = np.array([bool(log[0].get(MASKED)) for log in batch["message_log"]], dtype=bool)
    agents = np.array([str(ref["name"]) for ref in batch["agent_ref"]])
    out = {GRADED: _mean(rewards[~masked]), MASKED_SHARE: _mean(masked)}
    for agent in sorted(set(agents.tolist())):
        out[f"{agent}/{GRADED}"] = _mean(rewards[~masked & (agents == agent)])
    return out


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else 0.0


def adding_graded_metrics(original: Any) -> Any:
    """NeMo RL's Gym rollout function, with `graded_metrics` among the metrics of its result."""

    @functools.wraps(original)
    def run(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        result.rollout_metrics.update(graded_metrics(result.final_batch))
        return result

    return run


def check_metric(metric: str, agents: Mapping[str, bool], generations: int = 1) -> str | None:
    """Raises `UserError` where no validation has the metric `val:<name>`; returns a note, or None.

    `agents` those that the validation data names, and whether they are ours; `generations` rollouts per
    prompt.
    """
    key = f"checkpointing.metric_name {metric!r}"
    prefix, _, name = metric.partition(":")
    if prefix == "train":
        return f"{key} is a training metric; whether it exists was not checked"
    if not agents:
        raise UserError(f"{key} ranks by validation, but there is no data.validation; set it")
    agent = name.partition("/")[0]
    if not agents.get(agent, True) and name != f"{agent}/{GRADED}":
        return f"{key}: {agent} is no agent of nemo-tau2; whether it has that field was not checked"
    families = _families(agents, generations)
    known = _names(families)
    if name in known:
        return None
    close = get_close_matches(name, known, 1)
    hint = f" (did you mean val:{close[0]}?)" if close else ""
    choices = ", ".join(f"val:{'/'.join(map(_braces, family))}" for family in families)
    raise UserError(f"{key}: no validation of this recipe has it{hint}; choose from {choices}")


def metric_names(agents: Mapping[str, bool], generations: int = 1) -> list[str]:
    """The metrics that every validation has, by which a checkpoint can be ranked.

    Left out are histograms, tables, timings, and what depends on the rows (NeMo RL's effort levels) or
    on `reward_penalties`. `agents` and `generations` as for `check_metric`.
    """
    return _names(_families(agents, generations))


def _families(agents: Mapping[str, bool], generations: int) -> list[tuple[tuple[str, ...], ...]]:
    """Names as products: each family is a sequence of alternatives, joined by slashes."""
    percentiles = compat.validation_percentiles()
    plain = ["accuracy", "pass_k"] if percentiles and generations > 1 else ["accuracy"]
    plain += ["avg_length", "mean_gen_tokens_per_sample", MASKED_SHARE, GRADED]
    plain += ["natural_termination_rate", "truncation_rate"]
    tokens = ("turns_per_sample", "total_tokens_per_sample", "gen_tokens_per_sample")
    summarised = dict.fromkeys(("total_reward", *tokens, *percentiles))
    ours = tuple(sorted(agent for agent, is_ours in agents.items() if is_ours))
    return [
        (tuple(plain),),
        (tuple(sorted(agents)), (GRADED,)),
        *([(ours, FIELDS, STATISTICS)] if ours else []),
        (tuple(summarised), STATISTICS),
        *(((name,), found) for name, found in percentiles.items()),
    ]


def _names(families: list[tuple[tuple[str, ...], ...]]) -> list[str]:
    return ["/".join(parts) for family in families for parts in product(*family)]


def _braces(alternatives: tuple[str, ...]) -> str:
    return alternatives[0] if len(alternatives) == 1 else f"{{{','.join(alternatives)}}}"
