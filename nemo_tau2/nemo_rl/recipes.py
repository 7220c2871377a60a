"""The recipes that ship with the package (`nemo_tau2/recipes/*.yaml`)."""

from pathlib import Path

from nemo_tau2.errors import UserError

FOLDER = Path(__file__).resolve().parent.parent / "recipes"


def names() -> list[str]:
    """The recipes, sorted; files that start with an underscore are bases, reward files are not recipes."""
    found = (path.stem for path in FOLDER.glob("*.yaml"))
    return sorted(name for name in found if not name.startswith(("_", "rewards_")))


def title(name: str) -> str:
    """The first line of a recipe's header."""
    first = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8").partition("\n")[0]
    return first.lstrip("# ")


def copy(name: str, folder: Path) -> list[Path]:
    """Copies a recipe and the bases it inherits from beside it; returns the files, the recipe first.

    Raises `UserError` for an unknown recipe and where a file is there already.
    """
    if name not in names():
        raise UserError(f"no recipe {name!r}: nemo-tau2 recipes list shows what ships")
    sources = _with_bases(f"{name}.yaml")
    targets = [folder / source.name for source in sources]
    existing = [target for target in targets if target.exists()]
    if existing:
        raise UserError(f"{existing[0]} exists: choose another folder or move it away")
    folder.mkdir(parents=True, exist_ok=True)
    for source, target in zip(sources, targets, strict=True):
        target.write_bytes(source.read_bytes())
    return targets


def _with_bases(file: str) -> list[Path]:
    import yaml

    path = FOLDER / file
    bases = yaml.safe_load(path.read_text(encoding="utf-8")).get("defaults") or []
    bases = [bases] if isinstance(bases, str) else bases
    ours = [base for base in bases if (FOLDER / base).is_file()]
    out = [path]
    for base in ours:
        out += [p for p in _with_bases(base) if p not in out]
    return out
