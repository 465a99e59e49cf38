"""A gated repository for each test."""

import shutil
from pathlib import Path

import pytest

from tests.support.gate_harness import GateHarness, made_gated


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a gated repository that nobody changes."""
    return made_gated(tmp_path_factory.mktemp("gates") / "made").home


@pytest.fixture
def shop(made_once: Path, tmp_path: Path) -> GateHarness:
    """A repository with `app.py` and `lib.py` on main, and gates; a copy, whose store moved along."""
    shutil.copytree(made_once, tmp_path / "made", symlinks=True)
    return GateHarness(tmp_path / "made/shop", tmp_path / "made")
