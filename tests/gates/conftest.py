"""A gated repository for each test."""

from pathlib import Path

import pytest

from tests.gates.gated import Gated, made_gated


@pytest.fixture
def shop(tmp_path: Path) -> Gated:
    """A repository with `app.py` and `lib.py` on main, and gates."""
    return made_gated(tmp_path / "made")
