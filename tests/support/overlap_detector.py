"""Detect with marker files that two processes use one path at once, whatever the locks say.

A process that holds a lock marks every path of it. A writer creates a file that must not exist yet; a reader
creates one with its session. Both mark first and look then, so at least the later of two sees the other.
"""

import os
from pathlib import Path
from typing import NamedTuple


class ExclusionViolated(Exception):
    """Two processes used a path at once although their locks conflict."""


class UsedGrant(NamedTuple):
    """One grant of a path that a process used."""

    fence: int
    session: str
    mode: str
    company: int
    """The number of other readers at that time."""


class OverlapDetector:
    """Marks the paths that one process uses, and looks for the marks of others."""

    def __init__(self, folder: Path, session: str) -> None:
        self._folder = folder
        self._session = session

    def grants(self) -> int:
        """Return how many grants all processes have used so far."""
        try:
            return (self._folder / "grants").stat().st_size
        except FileNotFoundError:
            return 0

    def work(self, paths: list[str], mode: str, fence: int) -> None:
        """Use paths: mark them, look for other marks, record the grant, and remove the marks."""
        append(self._folder / "grants", b".")
        folders = [self._folder / path.replace("/", "%") for path in paths]
        for folder in folders:
            company = self._enter(folder, mode)
            line = f"{fence} {self._session} {mode} {company}\n"
            append(folder.with_suffix(".grants"), line.encode())
        os.sched_yield()  # let others run, and find a mistake
        for folder in folders:
            self._mark(folder, mode).unlink()

    def _enter(self, folder: Path, mode: str) -> int:
        folder.mkdir(exist_ok=True)
        mark = self._mark(folder, mode)
        try:
            os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        except FileExistsError as error:
            raise ExclusionViolated(f"{self._session} and another write {folder.name}") from error
        others = [each.name for each in folder.iterdir() if each != mark]
        if mode != "read" and others:
            raise ExclusionViolated(f"{self._session} writes {folder.name} while there is {others}")
        if "writer" in others:
            raise ExclusionViolated(f"{self._session} reads {folder.name} while another writes")
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


def used_grants(folder: Path) -> dict[str, list[UsedGrant]]:
    """Return the grants of each path in the order in which they were used."""
    found = {}
    for path in folder.glob("*.grants"):
        lines = [line.split() for line in path.read_text().splitlines()]
        found[path.stem] = [UsedGrant(int(line[0]), line[1], line[2], int(line[3])) for line in lines]
    return found
