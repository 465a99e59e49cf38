"""Folders that only their user can write, whatever the umask is; and which file has a path."""

import os
from contextlib import suppress

PRIVATE, READABLE = 0o700, 0o755


def make_private_folder(path: str) -> None:
    """Create a folder and those above it for this user only; keep what exists."""
    _make(path, PRIVATE)


def make_readable_folder(path: str) -> None:
    """Create a folder and those above it, which others may read and never write; keep what exists."""
    _make(path, READABLE)


def _make(path: str, mode: int) -> None:
    if os.path.isdir(path):
        return
    above = os.path.dirname(path)
    if above != path:
        _make(above, mode)
    with suppress(FileExistsError):
        os.mkdir(path, mode)


def file_id(path: str) -> tuple[int, int] | None:
    """Return the identity of the file at a path; None if it is gone."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
