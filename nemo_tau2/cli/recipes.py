"""`nemo-tau2 recipes list` and `nemo-tau2 recipes copy`."""

from pathlib import Path

from cyclopts import App

app = App(name="recipes", help="List the recipes, or copy one to edit.")


@app.command(name="list")
def list_recipes() -> None:
    """Lists the recipes that ship with the package, one a line."""
    from nemo_tau2.nemo_rl.recipes import names, title

    width = max(map(len, names()))
    for name in names():
        print(f"{name:<{width}}  {title(name)}")


@app.command
def copy(name: str, folder: Path) -> None:
    """Copies a recipe, and the bases it inherits from, into a folder.

    Parameters
    ----------
    name
        As `recipes list` prints it.
    folder
        Where to; it is made where it does not exist.
    """
    from nemo_tau2.nemo_rl.recipes import copy as copy_recipe

    for path in copy_recipe(name, folder):
        print(path)
