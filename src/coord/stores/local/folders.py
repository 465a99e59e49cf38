"""Create folders that only their user can write, whatever the umask is."""

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
