"""Imports point one way (`LAYER` is the table), and the pure parts stay pure."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "nemo_tau2"

LAYER = {
    "cli": 4,
    "bench": 4,
    "nemo_rl": 3,
    "gym": 3,
    "gym_root": 3,
    "rollouts": 3,
    "report": 3,
    "datasets": 3,
    "evaluation": 3,
    "tau2": 2,
    "agentscript": 1,
    "rewards": 1,
    "credit": 1,
    "calibration": 2,
    "simulation": 2,
}
"""Higher may import lower; areas of one layer may import each other only where named below."""

SIDEWAYS = {
    ("rollouts", "gym"),
    ("datasets", "rollouts"),
    ("gym_root", "gym"),
    ("report", "calibration"),
    ("report", "evaluation"),
    ("report", "rollouts"),
    ("nemo_rl", "gym"),
    ("cli", "bench"),
    ("evaluation", "rollouts"),
}
ROOT = {
    "chat",
    "chat_items",
    "endpoints",
    "episodes",
    "errors",
    "outcomes",
    "gym_compat",
    "diagnosis",
    "recipes",
    "train",
}
PURE = ("credit", "rewards", "agentscript")
HEAVY = {"nemo_gym", "nemo_rl", "ray", "torch", "litellm", "tau2", "fastapi", "aiohttp"}


def imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_imports_point_down(path):
    area = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for name in imports(path):
        parts = name.split(".")
        if parts[0] != "nemo_tau2" or len(parts) == 1:
            assert area not in PURE or parts[0] not in HEAVY, f"{area} must not import {name}"
            continue
        target = parts[1]
        if target == area or target in ROOT or area in ROOT:
            continue
        down = LAYER[area] > LAYER[target] or (area, target) in SIDEWAYS
        assert down, f"{area} (layer {LAYER[area]}) imports {target} (layer {LAYER[target]})"


@pytest.mark.parametrize("area", PURE)
def test_pure_areas_import_alone(area):
    code = (
        f"import nemo_tau2.{area}, sys; "
        f"heavy = {sorted(HEAVY)!r}; print([m for m in heavy if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_tau2_starts_without_litellm():
    code = "import nemo_tau2.tau2.episode, sys; print('litellm' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
