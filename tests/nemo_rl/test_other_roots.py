"""The marked tests on every further checkout of NEMO_RL_ROOTS, each in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import roots

pytestmark = pytest.mark.nemo_rl


@pytest.mark.timeout(600)
@pytest.mark.parametrize("root", roots()[1:], ids=lambda root: root.name)
def test_on(root):
    command = [sys.executable, "-m", "pytest", "-q", "-m", "nemo_rl", str(Path(__file__).parent)]
    environment = os.environ | {"NEMO_RL_ROOTS": str(root)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
