"""Real NeMo RL trees for tests marked `nemo_rl`: NEMO_RL_ROOTS names checkouts, separated by colons.

One process can import one NeMo RL. So each test file with that marker runs its checks in the process
at hand when it is the first root's, and `test_other_roots.py` reruns the marked tests per further root
in a process of its own.
"""

import importlib.util
import os
import sys
from pathlib import Path

import pytest


def roots() -> list[Path]:
    named = os.environ.get("NEMO_RL_ROOTS", "")
    return [Path(part).resolve() for part in named.split(os.pathsep) if part]


@pytest.fixture(scope="session")
def nemo_rl_root() -> Path:
    """The first checkout, importable as nemo_rl; skips where none is named or torch is missing."""
    found = roots()
    if not found:
        pytest.skip("NEMO_RL_ROOTS names no NeMo RL checkout")
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    if str(found[0]) not in sys.path:
        sys.path.insert(0, str(found[0]))
    # This folder's name makes `nemo_rl` a namespace package until a checkout is on the path.
    module = sys.modules.get("nemo_rl")
    if module is not None and getattr(module, "__file__", None) is None:
        del sys.modules["nemo_rl"]
    os.environ["NEMO_RL_DIR"] = str(found[0])
    return found[0]


@pytest.fixture
def hooks(nemo_rl_root):
    """The hooks, installed for one test."""
    from nemo_tau2.nemo_rl import hooks as module

    yield module.install()
    module.uninstall()


@pytest.fixture
def config(nemo_rl_root):
    """The smoke recipe as NeMo RL's MasterConfig."""
    from nemo_tau2.nemo_rl.check import _master_config, load
    from nemo_tau2.nemo_rl.launch import locate, nemo_rl_config, prepare
    from nemo_tau2.nemo_rl.recipes import FOLDER

    locate()
    prepare()
    return _master_config(nemo_rl_config(load(FOLDER / "smoke_qwen3_0.6b.yaml", [])))
