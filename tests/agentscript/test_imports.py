"""The front end is usable alone: it imports the standard library and pydantic, nothing else."""

import ast
import subprocess
import sys
from pathlib import Path

import nemo_tau2.agentscript

PACKAGE = Path(nemo_tau2.agentscript.__file__).parent


def test_only_the_standard_library_and_pydantic() -> None:
    allowed = set(sys.stdlib_module_names) | {"pydantic", "nemo_tau2"}
    for path in sorted(PACKAGE.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, path.name
                names = [node.module or ""]
            for name in names:
                assert name.partition(".")[0] in allowed, f"{path.name} imports {name}"
                if name.startswith("nemo_tau2."):
                    assert name.startswith(("nemo_tau2.agentscript", "nemo_tau2.errors"))


def test_importing_it_loads_no_yaml() -> None:
    code = "import sys, nemo_tau2.agentscript; sys.exit('yaml' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_nothing_evaluates_strings() -> None:
    for path in sorted(PACKAGE.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec", "compile", "__import__"), path.name
