"""Scripts by name or path, compiled once: the built-in agents of this package, or a user's own file."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from nemo_tau2.agentscript import WorkflowGraph, apply_sidecar, compile
from nemo_tau2.errors import UserError

AGENTS = Path(__file__).with_name("agents")
"""Folder of the built-in scripts."""


def built_in() -> list[str]:
    """Names of the built-in scripts."""
    return sorted(path.stem for path in AGENTS.glob("*.agent"))


def load_script(name_or_path: str) -> WorkflowGraph:
    """Compiles a script and applies the sidecar beside it; compiled again when either file changes.

    Raises:
        UserError: there is no such script, it breaks the grammar, or the sidecar does not fit.
    """
    path, *sidecars = script_files(name_or_path)
    try:
        stamp = (path.stat().st_mtime_ns, sidecars[0].stat().st_mtime_ns if sidecars else 0)
    except OSError:
        known = ", ".join(built_in())
        raise UserError(f"no script {name_or_path!r}: give a path or one of {known}") from None
    return _load(path, stamp)


def script_files(name_or_path: str) -> list[Path]:
    """The files behind a script: the `.agent` file and, where there is one, its sidecar."""
    path = AGENTS / f"{name_or_path}.agent"
    if name_or_path not in built_in():
        path = Path(name_or_path)
    return [path, *(p for p in [sidecar_of(path)] if p.is_file())]


@lru_cache(maxsize=64)
def _load(path: Path, stamp: tuple[int, int]) -> WorkflowGraph:
    return load_graph(path)


def load_graph(file: Path, sidecar: Path | None = None) -> WorkflowGraph:
    """Compiles a script and applies its sidecar, where there is one.

    Raises:
        UserError: a file cannot be read, the script breaks the grammar, or the sidecar does not
            fit the script.
    """
    graph = compile(file)
    path = sidecar or sidecar_of(file)
    if sidecar is None and not path.is_file():
        return graph
    return apply_sidecar(graph, read_sidecar(path), str(path))


def sidecar_of(file: Path) -> Path:
    """`X.tau2.yaml` beside `X.agent`."""
    return file.with_suffix(".tau2.yaml")


def read_sidecar(path: Path) -> Any:
    """Reads the YAML of a sidecar.

    Raises:
        UserError: the file is missing or not YAML.
    """
    try:
        return yaml.safe_load(path.read_text("utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not YAML ({str(error).splitlines()[0]})") from None
