"""Create folders that belong to their user alone."""

import os
from contextlib import suppress

PRIVATE = 0o700


def make_private_folder(path: str) -> None:
    """Create a folder and those above it for this user only, whatever the umask is; keep what exists."""
    if os.path.isdir(path):
        return
    above = os.path.dirname(path)
    if above != path:
        make_private_folder(above)
    with suppress(FileExistsError):
        os.mkdir(path, PRIVATE)
