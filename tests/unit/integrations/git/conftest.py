"""A repository with a commit, and `coord` to be called in it."""

from pathlib import Path

import pytest

from tests.support.cli import coord, repository
from tests.support.git_folders import git

__all__ = ["coord", "repository"]


@pytest.fixture
def shop(repository: Path) -> Path:
    """A repository with an identity and one commit that holds `src/app.py` and `docs/help.md`."""
    for name, value in (("user.name", "Ann"), ("user.email", "ann@example.org")):
        git(repository, "config", name, value)
    for name in ("src/app.py", "docs/help.md"):
        (repository / name).parent.mkdir()
        (repository / name).write_text("first\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "first")
    return repository
