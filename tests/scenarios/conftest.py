"""Scenes and repositories for the stories."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.git_folders import made_repository
from tests.scenarios.office import Office, opened_office
from tests.scenarios.scene import Scene, opened_scene


@pytest.fixture
def scene(store_url: str) -> Iterator[Scene]:
    """A scene over a fresh store of every kind."""
    with opened_scene(store_url) as scene:
        yield scene


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A real git repository in which coord was never used."""
    made_repository(tmp_path / "shop")
    return tmp_path / "shop"


@pytest.fixture
def office(store_url: str, repository: Path, tmp_path: Path) -> Iterator[Office]:
    """Clients of the library that share a fresh store of every kind."""
    with opened_office(store_url, repository, tmp_path / "state") as office:
        yield office
