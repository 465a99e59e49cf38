"""A yard for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.git_harness import Yard


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    """A repository with two files of three lines each on main."""
    made = Yard(tmp_path / "yard", {"app.py": "1\n2\n3\n", "lib.py": "1\n2\n3\n"})
    yield made
    made.close()
