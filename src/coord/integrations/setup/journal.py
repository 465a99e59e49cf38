"""What was changed by set-up, kept so that all of it can be put back as it was.

The record holds every file as it was before, and what was made of it as a digest. It is written before the
first file is: whatever interrupts set-up, nothing is forgotten.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256

import msgspec

from coord.core.errors import Corrupt, Unsupported
from coord.integrations.setup.files import Content, put, read

SCHEMA = 1
NAME = "setup.json"


class Edit(msgspec.Struct, frozen=True):
    """One file that was changed, and how: `how` names what can find our part in it again."""

    path: str
    how: str
    before: Content | None
    digest: str
    """Of what was made of it."""


class Record(msgspec.Struct, frozen=True):
    """All edits of one set-up, the folders made for them, and how it was asked for."""

    edits: tuple[Edit, ...] = ()
    folders: tuple[str, ...] = ()
    scope: str = "local"
    tools: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    """Of a shared bare repository: the branches that its gate guards."""
    tenant: str = ""
    """The store whose locks it checks."""
    schema: int = SCHEMA

    def find(self, path: str) -> Edit | None:
        """Return the edit of a file."""
        return next((edit for edit in self.edits if edit.path == path), None)


def digest(content: Content | None) -> str:
    """Return a digest of a file: of its bytes and of what it is."""
    if content is None:
        return ""
    return f"{'link' if content.link else oct(content.mode)}:{sha256(content.data).hexdigest()}"


def read_record(folder: str) -> Record:
    """Return the record in a folder; without one nothing was changed."""
    found = read(f"{folder}/{NAME}")
    if found is None:
        return Record()
    try:
        record = msgspec.json.decode(found.data, type=Record)
    except msgspec.DecodeError as error:
        raise Corrupt(
            f"{folder}/{NAME} cannot be understood: {error}", hint="restore it from a copy"
        ) from error
    if record.schema > SCHEMA:
        raise Unsupported(f"{folder}/{NAME} was written by a newer coord", hint="use that one")
    return record


def write_record(folder: str, record: Record) -> None:
    """Keep a record; an empty one is none."""
    path = f"{folder}/{NAME}"
    if record.edits or record.folders:
        put(path, Content(msgspec.json.encode(record), 0o600), durable=True)
    elif os.path.lexists(path):
        put(path, None)


@contextmanager
def exclusively(folder: str) -> Iterator[None]:
    """Keep every other set-up of the same folder out during the block."""
    os.makedirs(folder, exist_ok=True)
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        with suppress(OSError):  # it stays if there is anything in it
            os.rmdir(folder)
        os.close(opened)
