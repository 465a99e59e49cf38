"""`coord report --html FILE`: the page and the log of a run in one file."""

import shutil
import stat
from pathlib import Path

from coord.transports.hub.page.report import MARK
from tests.support.cli import Coord


def test_a_report_is_written_and_written_again(repository: Path, coord: Coord) -> None:
    coord("ada lock a.py")
    first = coord("ada report --html run.html")
    assert (first.code, first.answer["bytes"]) == (0, (repository / "run.html").stat().st_size)
    assert MARK in (repository / "run.html").read_bytes()
    assert stat.S_IMODE((repository / "run.html").stat().st_mode) == 0o600, "it has names, paths and results"
    coord("ada lock b.py")
    assert coord("ada report --html run.html --since 1h").answer["bytes"] > first.answer["bytes"]


def test_no_other_file_is_written_over(repository: Path, coord: Coord) -> None:
    (repository / "notes.html").write_text("mine")
    (repository / "link.html").symlink_to("notes.html")
    for name in ("notes.html", "link.html"):
        refused = coord(f"ada report --html {name}")
        assert (refused.code, "is no report" in refused.line) == (2, True)
    assert (repository / "notes.html").read_text() == "mine"


def test_a_new_store_says_of_nothing_that_it_was_trimmed(repository: Path, coord: Coord) -> None:
    """Its offsets begin at a high number, so that those of the lost one do not return."""
    coord("ada lock a.py")
    shutil.rmtree(repository / ".git/coord/store")
    assert coord("ada init --new-store").code == 0
    coord("ada lock b.py")
    for call in ("report", "log tail", "log stats", "report --html run.html"):
        said = coord(f"ada {call}")
        assert (said.code, "trimmed" in said.line) == (0, False), said.line
