"""`nemo-tau2 calibrate`: will these turn rewards teach what they should, and which would?"""

import json as json_module
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter


def calibrate(
    rollouts: Path,
    *,
    estimator: Literal["grpo", "rloo_norm", "mt_grpo", "gtpo", "gtpo_hybrid", "turn_rloo"] = (
        "gtpo_hybrid"
    ),
    write: Path | None = None,
    plot: Path | None = None,
    gamma: float = 0.9,
    lam: Annotated[float, Parameter(name="--lambda")] = 0.3,
    norm: Literal["per_index", "zero_pad", "pooled"] = "per_index",
    mode: Literal["sum", "immediate"] = "sum",
    min_support: int = 20,
    tol: float = 1e-6,
    seed: int = 0,
    json: bool = False,
) -> None:
    """Measure on stored rollouts what their turn rewards teach, and propose rewards.

    Prints four tables: how well each tier tells passing from failing rollouts; the mean advantage
    of each tier and its sign; mismatches, correlation and dead turns of every estimator; where the
    gradient goes. Then the loop: rewards from the first table, advantages from the rewards, again
    until no tier has the wrong sign, or the reason why that cannot be had.

    Parameters
    ----------
    rollouts
        A rollouts.jsonl of `nemo-tau2 rollout`. Masked rows are left out and counted, and so are
        pivot rows, whose only turn is paid the reward itself.
    estimator
        The estimator that training will use.
    write
        Write the proposed rewards to this YAML file, in the form the environments read: for τ² a
        reward file (`--rewards`), for Agent Script a settings file (`rollout --rows --settings`).
    plot
        Draw one rollout's rewards and advantages to this file (png, pdf or svg).
    gamma
        Discount of gtpo, gtpo_hybrid and turn_rloo.
    lam
        Weight of the outcome advantage in gtpo_hybrid.
    norm
        What a turn is compared with: the same turn of the group's other rollouts, the same with
        absent turns as zeros, or all turns of the group.
    mode
        Whether mt_grpo sums the turn advantages to the end of the rollout.
    min_support
        A tier in fewer rollouts gets no reward and is not judged.
    tol
        A turn with an advantage no larger than this is dead.
    seed
        Seed of the bootstrap.
    json
        Print one JSON object instead of tables.
    """
    from rich.console import Console
    from rich.progress import open as open_with_progress

    from nemo_tau2.calibration.loop import Settings
    from nemo_tau2.calibration.loop import calibrate as run
    from nemo_tau2.calibration.rollouts import read_rollouts
    from nemo_tau2.credit import check_options
    from nemo_tau2.errors import UserError
    from nemo_tau2.report import credit_tables

    options = {"gamma": gamma, "lambda": lam, "norm": norm, "mode": mode}
    options = check_options(estimator, options)
    for target in (write, plot):
        if target is not None and not target.parent.is_dir():
            raise UserError(f"{target}: there is no folder {target.parent}")
    quiet = Console(stderr=True)
    try:
        with open_with_progress(
            rollouts, "rb", description="reading", transient=True, console=quiet
        ) as lines:
            found = read_rollouts(lines, str(rollouts))
    except OSError as error:
        raise UserError(f"{rollouts}: {error.strerror}: give a rollouts.jsonl") from None
    result = run(found, estimator, options, Settings(min_support=min_support, tol=tol, seed=seed))

    counted = f"{len(found)} rollouts in {len(set(found.groups))} groups"
    counts = {"rollouts": len(found), "groups": len(set(found.groups))}
    counts |= {"masked": found.masked, "pivot": found.pivot, "unfinished": found.unfinished}
    if json:
        json_module.dump(counts | credit_tables.to_dict(result), sys.stdout, allow_nan=False)
        print()
    else:
        left_out = f"{found.masked} masked, {found.pivot} pivot, {found.unfinished} unfinished"
        _print(result, f"{counted}, {left_out}")
    if write is not None:
        _write(write, result, f"{counted} of {rollouts.name}")
    if plot is not None:
        from nemo_tau2.report.credit_plot import plot as draw

        draw(found, result, options, plot)


def _print(result, counts: str) -> None:
    from rich.console import Console

    from nemo_tau2.report import credit_tables

    console = Console()
    console.print(counts)
    for table in credit_tables.tables(result):
        console.print(table)
    for number, (_, mismatches) in enumerate(result.rounds, 1):
        console.print(f"round {number}: mismatches {', '.join(mismatches) or 'none'}")
    before, after = result.reward_correlation
    console.print(
        f"Corr(mean turn reward, outcome): {before:.2f} stored → {after:.2f} proposed",
        highlight=False,
    )
    if result.converged:
        console.print(f"[green]no mismatch under {result.estimator}[/] with the proposed rewards")
    for reason in result.reasons:
        console.print(f"[red]not settled[/]: {reason}", highlight=False)


def _write(path: Path, result, source: str) -> None:
    """Writes the rewards through a temporary file, so that no half of one is ever read."""
    from nemo_tau2.calibration.rewards import to_yaml
    from nemo_tau2.errors import UserError

    state = "no mismatch" if result.converged else "; ".join(result.reasons)
    comment = f"nemo-tau2 calibrate, {source}, estimator {result.estimator}.\nResult: {state}."
    seen = {power.tier for power in result.power if power.support}
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_text(to_yaml(result.proposed, comment, seen), encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise UserError(f"--write {path}: {error.strerror}") from None
