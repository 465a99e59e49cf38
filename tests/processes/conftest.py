"""A crew of processes for every store that several processes can open."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes.crew import Crew, gathered


@pytest.fixture
def crew(shared_url: str, tmp_path: Path) -> Iterator[Crew]:
    with gathered(shared_url, tmp_path) as crew:
        yield crew
