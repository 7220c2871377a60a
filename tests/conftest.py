"""Fixtures shared by every test."""

from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The third-party test data beside the checkout (`../shared`); skips where it is absent."""
    path = REPO.parent / "shared"
    if not (path / "data").is_dir():
        pytest.skip(f"third-party test data is not at {path}")
    return path
