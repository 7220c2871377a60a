"""Reward and advantage of one rollout, turn by turn: the picture of a calibration.

In the manner of Figure 1 of arXiv:2604.02869: the reward of each turn above, the advantage each
estimator gives it below, green where it reinforces, red where it suppresses, grey where it is dead.
The left column has the stored rewards, the right one the proposed. matplotlib is imported on use.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nemo_tau2.calibration.loop import Calibration
from nemo_tau2.calibration.rewards import turn_rewards
from nemo_tau2.calibration.rollouts import RolloutSet
from nemo_tau2.credit import intended_sign, turn_advantages
from nemo_tau2.credit.diagnostics import TOL
from nemo_tau2.credit.options import NAMES
from nemo_tau2.errors import UserError

GREEN, RED, GREY, BLUE = "#2e8b57", "#c0392b", "#9e9e9e", "#34679a"
SHORT = {
    "gold_exact": "gold",
    "soft_match": "soft",
    "read_only": "read",
    "state_change": "state",
    "message": "msg",
    "error": "error",
    "duplicate": "dup",
}
MOST_TURNS = 30


def pick_rollout(rollouts: RolloutSet) -> int:
    """The rollout to draw: failing, in a group of mixed outcomes, nearly five turns, many tiers."""
    mixed: dict[tuple[str, str], set[bool]] = {}
    for group, passed in zip(rollouts.groups, rollouts.passed.tolist(), strict=True):
        mixed.setdefault(group, set()).add(passed)

    def rank(i: int) -> tuple:
        tiers = rollouts.turn_tiers[i]
        alone = len(mixed[rollouts.groups[i]]) < 2
        return (alone, bool(rollouts.passed[i]), abs(len(tiers) - 5), -len(set(tiers)))

    return min(range(len(rollouts)), key=rank)


def plot(rollouts: RolloutSet, result: Calibration, options: Mapping[str, Any], path: Path) -> None:
    """Draws one rollout under every estimator and writes a picture of the kind `path` ends in.

    Raises `UserError` where matplotlib is absent or cannot write that kind.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise UserError("--plot needs matplotlib: pip install 'nemo-tau2[report]'") from None
    i = pick_rollout(rollouts)
    tiers = rollouts.turn_tiers[i][:MOST_TURNS]
    width = max(9.0, 0.9 * len(tiers) + 4)
    figure = Figure(figsize=(width, 1.35 * (len(NAMES) + 1) + 1.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(
        len(NAMES) + 1, 2, sharex=True, sharey="row", gridspec_kw={"hspace": 0.04}
    )
    columns = (
        ("stored rewards", rollouts.turn_rewards, result.stored),
        ("proposed rewards", turn_rewards(rollouts, result.proposed), result.proposed),
    )
    for column, (title, turns, paid) in zip(axes.T, columns, strict=True):
        column[0].set_title(title, fontsize=11)
        rewards = np.asarray(turns[i], dtype=np.float64)[:MOST_TURNS]
        _bars(column[0], rewards, [BLUE] * len(tiers))
        for axis, name in zip(column[1:], NAMES, strict=True):
            every = turn_advantages(rollouts.outcomes, rollouts.groups, turns, name, **options)
            _strip(axis, every[i][:MOST_TURNS], tiers, paid)
        column[-1].set_xticks(range(len(tiers)), [SHORT[t] for t in tiers], fontsize=9)
    for axis, name in zip(axes[:, 0], ("reward", *NAMES), strict=True):
        axis.set_ylabel(name, rotation=0, ha="right", va="center", fontsize=10)
    domain, group = rollouts.groups[i]
    figure.suptitle(
        f"{domain} {group}: a rollout with outcome {rollouts.outcomes[i]:g}, turn by turn\n"
        "green reinforces, red suppresses, grey is dead; a shade marks the wrong sign for the tier",
        fontsize=11,
    )
    try:
        figure.savefig(path, dpi=150)
    except (ValueError, OSError) as error:
        raise UserError(f"--plot {path}: {error}") from None


def _bars(axis: Any, values: np.ndarray, colours: Sequence[str]) -> None:
    axis.bar(range(len(values)), values, color=colours, width=0.72)
    axis.axhline(0, color="black", linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelsize=8)
    axis.use_sticky_edges = False
    axis.margins(y=0.32)
    for k, value in enumerate(values):
        up = value >= 0
        axis.annotate(
            f"{value:.2f}",
            (k, value),
            textcoords="offset points",
            xytext=(0, 2 if up else -2),
            ha="center",
            va="bottom" if up else "top",
            fontsize=7.5,
        )


def _strip(axis: Any, values: np.ndarray, tiers: Sequence[str], paid: Mapping[str, float]) -> None:
    colours = [GREY if abs(v) <= TOL else GREEN if v > 0 else RED for v in values]
    _bars(axis, values, colours)
    for k, (value, tier) in enumerate(zip(values, tiers, strict=True)):
        if intended_sign(tier, paid[tier]) * value < -TOL:
            axis.axvspan(k - 0.48, k + 0.48, color=RED, alpha=0.15, linewidth=0)
