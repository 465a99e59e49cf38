"""A machine without settings: an empty home, and no agents."""

import os
from pathlib import Path

import pytest

from tests.support.git_folders import made_repository


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, in an environment that names no agent and no other repository."""
    for name in list(os.environ):
        if name.startswith(("COORD_", "CLAUDE", "CODEX", "GEMINI", "GIT_", "XDG_")):
            monkeypatch.delenv(name)
    made = tmp_path / "home"
    made.mkdir()
    monkeypatch.setenv("HOME", str(made))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return made


@pytest.fixture
def shop(tmp_path: Path, home: Path) -> Path:
    """A repository with one commit."""
    made_repository(tmp_path / "shop")
    return tmp_path / "shop"
