"""Agents in any order on a real repository: nothing accepted is lost, nothing unmerged disappears."""

from pathlib import Path

import pytest

from tests.conftest import SOAK
from tests.support.git_harness import GitHarness
from tests.support.merge_interleaving import FILES, Interleaving

pytestmark = pytest.mark.long

SEEDS, LENGTH = (range(200), 150) if SOAK else (range(2), 40)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_accepted_line_is_lost(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No accepted line is lost, main is a state of an accepted merge, no unmerged work disappears."""
    harness = GitHarness(tmp_path / "yard", dict.fromkeys(FILES, "first\nlast\n"))
    for name, value in harness.environ.items():
        monkeypatch.setenv(name, value)
    run = Interleaving(harness, seed)
    try:
        for _ in range(LENGTH):
            run.step()
            run.check()
    finally:
        run.end()
        harness.close()
    assert run.accepted, run.counts
