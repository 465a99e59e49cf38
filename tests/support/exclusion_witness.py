"""Files that show who works on what: whoever holds a lock marks all it covers, and meets nobody's mark.

A writer's mark is a file that must not exist yet, so a second writer is seen whatever the locks say. Readers
have a mark each. Both mark first and look then: of two that are there at once, at least the later one sees
the other.
"""

import os
from pathlib import Path
from typing import NamedTuple


class DoubleHold(Exception):
    """Two were at work that should have excluded each other."""


class Grant(NamedTuple):
    """One line of the book of a path."""

    fence: int
    session: str
    mode: str
    company: int
    """How many readers besides were there."""


class Witness:
    """What one process sees of the others."""

    def __init__(self, folder: Path, session: str) -> None:
        self._folder = folder
        self._session = session

    def grants(self) -> int:
        """Return how many grants were used so far, by all."""
        try:
            return (self._folder / "grants").stat().st_size
        except FileNotFoundError:
            return 0

    def work(self, paths: list[str], mode: str, fence: int) -> None:
        """Be at work on paths: mark, look around, write it down, and take the marks away."""
        append(self._folder / "grants", b".")
        folders = [self._folder / path.replace("/", "%") for path in paths]
        for folder in folders:
            company = self._enter(folder, mode)
            line = f"{fence} {self._session} {mode} {company}\n"
            append(folder.with_suffix(".book"), line.encode())
        os.sched_yield()  # the others are welcome to find a mistake
        for folder in folders:
            self._mark(folder, mode).unlink()

    def _enter(self, folder: Path, mode: str) -> int:
        folder.mkdir(exist_ok=True)
        mark = self._mark(folder, mode)
        try:
            os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        except FileExistsError as error:
            raise DoubleHold(f"{self._session} and another write {folder.name}") from error
        others = [each.name for each in folder.iterdir() if each != mark]
        if mode != "read" and others:
            raise DoubleHold(f"{self._session} writes {folder.name} while there is {others}")
        if "writer" in others:
            raise DoubleHold(f"{self._session} reads {folder.name} while another writes")
        return len(others)

    def _mark(self, folder: Path, mode: str) -> Path:
        return folder / (f"reader-{self._session}" if mode == "read" else "writer")


def append(path: Path, data: bytes) -> None:
    """Add to a file in one step."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, data)
    finally:
        os.close(file)


def books(folder: Path) -> dict[str, list[Grant]]:
    """Return the grants of each path in the order in which they were used."""
    found = {}
    for path in folder.glob("*.book"):
        lines = [line.split() for line in path.read_text().splitlines()]
        found[path.stem] = [Grant(int(line[0]), line[1], line[2], int(line[3])) for line in lines]
    return found
