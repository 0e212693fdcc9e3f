"""What all tests share."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def golden() -> Path:
    return Path(__file__).parent / "golden"
