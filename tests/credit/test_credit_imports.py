"""Turn-level credit is usable alone: numpy is all it loads."""

import subprocess
import sys


def test_credit_imports_numpy_only():
    code = "import sys, numpy; before = set(sys.modules); import nemo_tau2.credit; "
    code += "print(sorted({m.split('.')[0] for m in set(sys.modules) - before}))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = (
        "torch",
        "nemo_rl",
        "nemo_gym",
        "ray",
        "litellm",
        "pandas",
        "pydantic",
        "scipy",
        "rich",
    )
    assert not [name for name in heavy if f"'{name}'" in out.stdout]
