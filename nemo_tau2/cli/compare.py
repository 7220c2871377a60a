"""`nemo-tau2 compare`: two checkpoints on the same tasks, one run or several a side."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter, validators

if TYPE_CHECKING:
    from rich.console import Console


def compare(
    runs: Annotated[list[Path], Parameter(consume_multiple=True, negative="")],
    /,
    *,
    against: Annotated[list[Path] | None, Parameter(consume_multiple=True, negative="")] = None,
    k: Annotated[int, Parameter(validator=validators.Number(gte=1))] = 1,
    json: bool = False,
) -> None:
    """Compare B with A, paired by task: `compare A B`, or `compare A1 A2 --against B1 B2`.

    With two runs or more on each side it adds the mean and deviation over runs, the spread-based
    significance that is often reported, and a proper interval for the difference of the means.

    Parameters
    ----------
    runs
        The baseline's run folders or rows; without --against, the baseline and the other.
    against
        The other side's runs.
    k
        Compare pass^k.
    json
        Print one JSON object.
    """
    import json as json_module

    from nemo_tau2.errors import UserError
    from nemo_tau2.evaluation import load
    from nemo_tau2.evaluation.compare import compare as paired
    from nemo_tau2.evaluation.compare import over_runs

    if against is None and len(runs) == 2:
        runs, against = runs[:1], runs[1:]
    if not against:
        raise UserError(
            "give two runs (`compare A B`) or two sides (`compare A1 A2 --against B1 B2`)"
        )
    try:
        sides = {"A": load(runs), "B": load(against)}
        result: dict[str, Any] = paired(*sides.values(), k)
        if len(runs) > 1 and len(against) > 1:
            result["over_runs"] = over_runs(
                [load([run]) for run in runs], [load([run]) for run in against], k
            )
    except ValueError as error:
        raise UserError(f"{error}; give runs of the same tasks, or a smaller --k") from None
    several = len(runs) > 1 or len(against) > 1  # then the same trial of a task in each is no news
    result["warnings"] = [
        f"{name}: {line}"
        for name, side in sides.items()
        for line in side.as_dict()["warnings"]
        if not (several and line in side.warnings)
    ]
    if json:
        print(json_module.dumps(result, indent=2, ensure_ascii=False))
    else:
        _print(result)


def _print(result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    percent = "{:+.1f}".format
    console.print(
        f"pass^{result['k']}: A {100 * result['a']:.1f} %, B {100 * result['b']:.1f} %, "
        f"difference {percent(100 * result['difference'])} points "
        f"({percent(100 * result['low'])} to {percent(100 * result['high'])}, paired bootstrap over tasks), "
        f"p = {result['p_value']:.4f}",
        highlight=False,
    )
    console.print(
        f"{result['tasks']} tasks on both sides ({result['unpaired']} on one only): "
        f"{result['won']} won, {result['lost']} lost, {result['tied']} tied",
        highlight=False,
    )
    if result["moved_most"]:
        table = Table("task", "points", title="moved most", box=None)
        for task in result["moved_most"]:
            table.add_row(
                escape(f"{task['domain']} {task['task_id']}"), percent(100 * task["difference"])
            )
        console.print(table)
    if runs := result.get("over_runs"):
        _print_runs(runs, console)
    for line in result["warnings"]:
        console.print(f"warning: {escape(line)}", style="yellow")


def _print_runs(runs: dict[str, Any], console: "Console") -> None:
    from rich.markup import escape
    from rich.table import Table

    percent = "{:+.1f}".format
    table = Table("", *map(escape, runs["domains"]), title="over runs", box=None)
    for label, show in (
        ("A mean ± sd", lambda one: f"{one['mean_a']:.1f} ± {one['sd_a']:.1f}"),
        ("B mean ± sd", lambda one: f"{one['mean_b']:.1f} ± {one['sd_b']:.1f}"),
        ("difference", lambda one: percent(one["difference"])),
        ("combined σ", lambda one: f"{one['sigma_combined']:.1f}"),
        ("difference / σ", lambda one: f"{one['significance']:.1f}"),
        ("σ reading", lambda one: one["interpretation"].split(":")[0]),
        ("95 % interval", lambda one: f"{percent(one['low'])} to {percent(one['high'])}"),
    ):
        table.add_row(label, *map(show, runs["domains"].values()))
    console.print(table)
    console.print(runs["guide"], highlight=False)
    console.print(runs["why_they_differ"], highlight=False)
