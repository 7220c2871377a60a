"""Learning curves of `nemo-tau2 bench learning`: one panel per task and reward set."""

from pathlib import Path
from typing import Any

from nemo_tau2.errors import UserError

COLOURS = {
    "grpo": "#555555",
    "rloo_norm": "#b8860b",
    "mt_grpo immediate": "#e07b39",
    "mt_grpo sum": "#c0392b",
    "gtpo": "#2e8b57",
    "gtpo_hybrid": "#34679a",
    "turn_rloo": "#7d3c98",
}


def draw(result: dict[str, Any], path: Path) -> None:
    """Mean pass rate against updates, with a band from the second to the second-last seed.

    Raises `UserError` where matplotlib is absent or cannot write `path`.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise UserError("--plot needs matplotlib: pip install 'nemo-tau2[report]'") from None
    panels = [
        (task, rewards)
        for task in dict.fromkeys(arm["task"] for arm in result["arms"])
        for rewards in ("outcome only", "naive", "calibrated")
    ]
    figure = Figure(figsize=(12, 7), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(panels) // 3, 3, sharex=True, sharey=True, squeeze=False)
    for axis, (task, rewards) in zip(axes.flat, panels, strict=True):
        for arm in result["arms"]:
            shown = (arm["task"], arm["rewards"], arm["normaliser"])
            if shown != (task, rewards, "turns"):
                continue
            colour, x = COLOURS[arm["estimator"]], range(len(arm["curve_mean"]))
            axis.plot(x, arm["curve_mean"], color=colour, label=arm["estimator"])
            axis.fill_between(
                x, arm["curve_low"], arm["curve_high"], color=colour, alpha=0.15, linewidth=0
            )
        axis.axhline(result["goal"], color="black", linewidth=0.6, linestyle=":")
        axis.set_title(f"{task} task, rewards: {rewards}", fontsize=11)
        axis.set_ylim(0, 1.02)
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False, fontsize=8, loc="center right")
    figure.supxlabel("updates", fontsize=10)
    figure.supylabel("exact pass rate", fontsize=10)
    try:
        figure.savefig(path, dpi=130)
    except (ValueError, OSError) as error:
        raise UserError(f"--plot {path}: {error}") from None
