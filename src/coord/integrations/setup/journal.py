"""The journal of a setup, from which `coord uninstall` restores every file.

The journal has each file as it was before, and a digest of the file that coord wrote. A setup writes the
journal before the first file, so an interrupted setup can be undone too.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256

import msgspec

from coord.core.errors import Corrupt, Unavailable, Unsupported
from coord.integrations.setup.files import Content, read_file, write_file
from coord.stores.local.folders import make_private_folder

SCHEMA = 1
NAME = "setup.json"
INIT, UNINSTALL = "init", "uninstall"


class Edit(msgspec.Struct, frozen=True):
    """One changed file; `how` names the way to find our part in it."""

    path: str
    how: str
    before: Content | None
    digest: str
    """Of the file that coord wrote."""


class Journal(msgspec.Struct, frozen=True):
    """All edits of one setup, the folders created for them, and its options."""

    edits: tuple[Edit, ...] = ()
    folders: tuple[str, ...] = ()
    scope: str = "local"
    tools: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    """The branches that the gate of a shared bare repository protects."""
    tenant: str = ""
    """The tenant whose locks the gates check."""
    schema: int = SCHEMA
    unfinished: str = ""
    """The command that is writing files, or was killed while it did: `init` or `uninstall`."""
    ephemeral: str = ""
    """The folder of the coord that the hooks run, if something may remove it at any time."""
    http: tuple[str, ...] = ()
    """The fields of `HttpForm` if Claude Code asks the hub by HTTP."""

    def find(self, path: str) -> Edit | None:
        """Return the edit of a file."""
        return next((edit for edit in self.edits if edit.path == path), None)


def digest(content: Content | None) -> str:
    """Return a digest of a file's bytes and mode; empty for no file."""
    if content is None:
        return ""
    return f"{'link' if content.link else oct(content.mode)}:{sha256(content.data).hexdigest()}"


def read_journal(folder: str) -> Journal:
    """Return the journal in a folder; an empty one if there is none."""
    found = read_file(f"{folder}/{NAME}")
    if found is None:
        return Journal()
    try:
        journal = msgspec.json.decode(found.data, type=Journal)
    except msgspec.DecodeError as error:
        raise Corrupt(f"cannot decode {folder}/{NAME}: {error}", hint="restore it from a backup") from error
    if journal.schema > SCHEMA:
        raise Unsupported(f"a newer coord wrote {folder}/{NAME}", hint="use that version")
    return journal


def write_journal(folder: str, journal: Journal) -> None:
    """Write a journal; remove the file of an empty one."""
    path = f"{folder}/{NAME}"
    if journal.edits or journal.folders:
        write_file(path, Content(msgspec.json.encode(journal), 0o600), durable=True)
    elif os.path.lexists(path):
        write_file(path, None)


@contextmanager
def setup_lock(folder: str) -> Iterator[None]:
    """Exclude other setups of the same folder inside the block."""
    try:
        make_private_folder(folder)
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise Unavailable(
            f"{folder} cannot be opened: {error.strerror}", hint="check who owns the repository"
        ) from error
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        with suppress(OSError):  # a folder with files stays
            os.rmdir(folder)
        os.close(opened)
