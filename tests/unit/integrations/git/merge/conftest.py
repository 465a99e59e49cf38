"""A yard for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.git_harness import GitHarness


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[GitHarness]:
    """A repository with two files of three lines each on main."""
    made = GitHarness(tmp_path / "yard", {"app.py": "1\n2\n3\n", "lib.py": "1\n2\n3\n"})
    yield made
    made.close()
