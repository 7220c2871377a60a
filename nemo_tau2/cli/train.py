"""`nemo-tau2 train`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def train(
    *overrides: Annotated[str, Parameter(allow_leading_hyphen=True)],
    config: Path,
    nemo_rl: Path | None = None,
    check: bool = False,
) -> None:
    """Trains with NeMo RL's own GRPO entry point, turn-level credit hooked in.

    The recipe is checked first; exit code 2 names the key and the fix where it fails.

    Parameters
    ----------
    overrides
        Hydra overrides of the recipe, such as grpo.max_num_steps=2, ++new.key=1 or ~old.key.
    config
        The recipe. `nemo-tau2 recipes list` shows those that ship.
    nemo_rl
        A NeMo RL checkout; by default the one nemo_rl is imported from.
    check
        Only check, off-GPU, and print the resolved plan.
    """
    from nemo_tau2.nemo_rl import launch
    from nemo_tau2.nemo_rl.check import check as check_recipe

    if not check:
        launch.run(config, list(overrides), nemo_rl)
        return
    show(check_recipe(config, list(overrides), nemo_rl))


def show(plan) -> None:
    """Prints a plan."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(show_header=False, box=None)
    for label, value in plan.lines.items():
        table.add_row(label, value)
    console.print(table)
    for note in plan.notes:
        console.print(f"note: {note}", style="yellow")
    console.print("The recipe is sound.", style="green")
