"""Where the official scripts and outputs are."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data(shared_dir: Path) -> Path:
    """The official scripts and outputs; skips where they are absent."""
    path = shared_dir / "data" / "agentscript"
    if not path.is_dir():
        pytest.skip(f"no Agent Script data at {path}")
    return path
