"""What a mirror has on this machine: its settings, its place in the log, and the manifest of its files.

It lies beside the store and not in the mirror, where anybody may write. Nothing else is believed about which
files coord wrote. A mirror belongs to a machine, so a store that several machines share knows nothing of it.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from coord.core.errors import Corrupt, Unavailable
from coord.stores.local.fair_lock import lock_within
from coord.stores.local.safe_folder import FILE_MODE, FOLDER_MODE, Signature

FOLDER = "mirrors"
WAIT_S = 10.0
"""How long a process waits for another one that writes the same mirror; that takes milliseconds."""
CHANGES_KEPT = 20


class FileNote(msgspec.Struct, frozen=True, array_like=True):
    """A file as coord wrote it; without a signature, it was about to."""

    digest: str
    signature: Signature | None = None


class ForeignChange(msgspec.Struct, frozen=True):
    """A change to a mirror that coord did not make."""

    path: str
    what: str
    at_ms: int


class Root(msgspec.Struct):
    """The files and folders that coord made below one folder."""

    files: dict[str, FileNote] = {}
    folders: list[str] = []
    drafts: dict[str, str] = {}
    """Files that are being written, with the digest of their new content ("": being removed)."""
    blocked: list[str] = []
    """Paths that others use, and that were reported."""


class LogFile(msgspec.Struct):
    """One text log: the number of the current part, its size, and that of the part before it."""

    part: int = 0
    size: int = 0
    former: int = 0


class MirrorState(msgspec.Struct):
    """The state of one mirror on this machine."""

    tenant: str
    project: str
    folder: str = ""
    """Where it is, if that was chosen."""
    made_folder: bool = False
    verbose: bool = False
    offset: int = 0
    due_ms: int = 0
    roots: dict[str, Root] = {}
    logs: dict[str, LogFile] = {}
    reader: bytes = b""
    """What the reader of the log remembers (`log_lines.py`)."""
    changes: list[ForeignChange] = []

    def note_change(self, path: str, what: str, now: int) -> None:
        """Remember a change by somebody else, of which the newest are kept."""
        self.changes = [*self.changes, ForeignChange(path, what, now)][-CHANGES_KEPT:]


class StateFile:
    """The state of one mirror in the folder of a store."""

    def __init__(self, store_folder: str, name: str) -> None:
        self.folder = f"{store_folder}/{FOLDER}/{name}"
        self._path = f"{self.folder}/state.json"
        self._lock = f"{store_folder}/{FOLDER}.lock"

    def load(self) -> MirrorState | None:
        """Return the state; None if the mirror is off."""
        try:
            with open(self._path, "rb") as file:
                return msgspec.json.decode(file.read(), type=MirrorState)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unavailable(f"{self._path} cannot be read: {error.strerror}") from error
        except msgspec.MsgspecError as error:
            raise Corrupt(
                f"{self._path} is damaged, so nobody knows which files coord wrote",
                hint=f"remove the mirror's files by hand, then {self.folder}, and switch it on again",
            ) from error

    def save(self, state: MirrorState) -> None:
        """Replace the state in one step."""
        try:
            os.makedirs(self.folder, FOLDER_MODE, exist_ok=True)
            with open(
                os.open(f"{self._path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE), "wb"
            ) as new:
                new.write(msgspec.json.encode(state))
            os.replace(f"{self._path}.new", self._path)
        except OSError as error:
            raise Unavailable(f"{self._path} cannot be written: {error.strerror}") from error

    def forget(self) -> None:
        """Remove the state: the mirror is off."""
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def exclusively(self) -> Iterator[None]:
        """Keep other processes from the mirrors of this store; the end of a process ends that, too."""
        try:
            file = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
        except OSError as error:
            raise Unavailable(f"{self._lock} cannot be opened: {error.strerror}") from error
        try:
            if not lock_within(file, WAIT_S):
                raise Unavailable("another process writes the mirrors of this store", hint="try again")
            yield
        finally:
            os.close(file)
