"""The files that an agent read, for the ledger; no commit is made for them.

A hook that runs after a call which only read writes nothing into the store. It adds the names of the files to
a small file of its session, in the state folder of the user. The next command of the session that writes
anything takes them along: at the latest its heartbeat, or the end of the turn or of the session.

The file is a note, not a record. A process that is killed may lose what it was about to write, and a file
that is not as this module makes it counts as empty. Nothing in it can name another session: the command that
takes the names along says whose they are.
"""

import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from coord.core.errors import CoordError
from coord.core.keys import digest
from coord.host.consent import state_folder
from coord.host.paths import resolve_path
from coord.host.repository import find_repository
from coord.host.store_location import StoreLocation
from coord.integrations.hooks.events import Event, Kind

if TYPE_CHECKING:
    from coord.integrations.shell_commands.line import CommandLine

FOLDER = "reads"
BYTES_MAX = 16 * 1024
LINES_MAX = 128
"""How many files wait for a commit; a session commits every few seconds while it works."""
FILES_MAX = 1024
"""How many sessions of a user may have such a file."""
SWEEP_FROM = 64
"""With this many files, those that nobody has changed for a day are removed."""
KEPT_S = 86_400
STALE_S = 3_600
"""Reads that have waited for an hour are those of a session that was killed."""
TRIES = 3
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def files_read(event: Event, line: "CommandLine | None", home: StoreLocation) -> tuple[str, ...]:
    """Return the files of the session's repository that a call read, as locks name them."""
    if event.failed:
        return ()
    paths = [os.path.join(event.cwd, os.path.expanduser(path)) for path in event.reads]
    paths += line.reads if line is not None else ()
    found: dict[str, None] = {}
    for path in dict.fromkeys(paths):
        found.update(dict.fromkeys(_resources(path, home)))
    return tuple(found)


def _resources(path: str, home: StoreLocation) -> Iterable[str]:
    """Return the names of a file: as the call named it, and what links in it lead to."""
    if home.repository is None or not os.path.isfile(path):
        return ()
    try:
        repository = find_repository(os.path.dirname(path))
        if repository is None or repository.commondir != home.repository.commondir:
            return ()
        found = resolve_path(repository, path, repository.root or "", literal=True)
        return [f"file:{text}" for text in found.texts]
    except CoordError:  # a file that no lock can name
        return ()


class SessionReads:
    """The files that a session read and that are not in the log: those of this call, and those that wait."""

    def __init__(
        self,
        environ: Mapping[str, str],
        whose: tuple[str, str, str],
        event: Event,
        line: "CommandLine | None",
        home: StoreLocation,
    ) -> None:
        """`whose`: the store, the tenant and the session."""
        self._waiting = WaitingReads(environ, whose)
        self._new = files_read(event, line, home) if event.kind is Kind.AFTER else ()
        self._found = self._waiting.files()
        self.files = tuple(dict.fromkeys((*self._found, *self._new)))
        """What the next command reports."""

    def keep(self, *, logged: bool) -> None:
        """Let the files wait, unless the command has logged them."""
        if logged and self._found:
            self._waiting.remove(self.files)
        elif not logged and self._new:
            self._waiting.add(self._new)


class WaitingReads:
    """The file with the reads of a session that wait for a commit.

    Hooks of a session run at the same time. Each adds its lines with one write, and looks afterwards whether
    another one has removed the file: then it adds them again. A hook that removes lines renames the file
    first, so that no two of them have the same one, unlinks it, and reads it only then.
    """

    def __init__(self, environ: Mapping[str, str], whose: tuple[str, str, str]) -> None:
        """`whose`: the store, the tenant and the session."""
        self.folder = f"{state_folder(environ)}/{FOLDER}"
        self.name = digest(os.fsencode("\0".join(whose)).hex())

    def files(self) -> tuple[str, ...]:
        """Return the files that wait; nothing if the file is not ours, or not as we make it.

        A session that was killed may be resumed later. What it read then is forgotten: the ledger would say
        that it was now.
        """
        found: tuple[str, ...] = ()
        with suppress(OSError), self._open_folder() as folder, self._open(folder) as file:
            found = _lines(os.read(file, BYTES_MAX))
            if time.time() - os.fstat(file).st_mtime < STALE_S:
                return found
        if found:
            self.remove(found)
        return ()

    def add(self, files: Iterable[str]) -> None:
        """Let files wait; they are dropped if there is no room."""
        with suppress(OSError):
            if not os.path.isdir(self.folder):
                from coord.stores.local.folders import make_private_folder

                make_private_folder(self.folder)
            with self._open_folder() as folder:
                for _ in range(TRIES):
                    if self._add(folder, files):
                        return

    def remove(self, files: Iterable[str]) -> None:
        """Forget files that were logged; others that came in between wait again."""
        taken = f"{self.name}.{os.getpid()}.{id(self)}"
        with suppress(OSError), self._open_folder() as folder:
            os.rename(self.name, taken, src_dir_fd=folder, dst_dir_fd=folder)
            try:
                with self._open(folder, taken) as file:
                    os.unlink(taken, dir_fd=folder)
                    left = set(_lines(os.read(file, BYTES_MAX))).difference(files)
            except OSError:
                os.unlink(taken, dir_fd=folder)
                raise
            if left:
                self.add(sorted(left))

    def _add(self, folder: int, files: Iterable[str]) -> bool:
        """Add lines; return whether nobody has removed the file since."""
        if self.name not in (names := os.listdir(folder)):
            _sweep(folder, names)
        with self._open(folder, flags=os.O_RDWR | os.O_APPEND | os.O_CREAT) as file:
            data = os.read(file, BYTES_MAX)
            known = _lines(data)
            room = LINES_MAX - len(known)
            new = [text.encode() + b"\n" for text in files if text not in known][: max(0, room)]
            more = (b"" if data.endswith(b"\n") or not data else b"\n") + b"".join(new)
            if not new or len(data) + len(more) > BYTES_MAX:
                return True
            os.write(file, more)
            return os.fstat(file).st_nlink > 0

    @contextmanager
    def _open_folder(self) -> Iterator[int]:
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | _FLAGS)
        try:
            _check(os.fstat(folder), stat.S_IFDIR)
            yield folder
        finally:
            os.close(folder)

    @contextmanager
    def _open(self, folder: int, name: str = "", flags: int = os.O_RDONLY) -> Iterator[int]:
        file = os.open(name or self.name, flags | _FLAGS, 0o600, dir_fd=folder)
        try:
            found = os.fstat(file)
            _check(found, stat.S_IFREG)
            if found.st_nlink > 1 or found.st_size > BYTES_MAX:
                raise PermissionError(f"{self.folder}/{name or self.name} is not as coord makes it")
            yield file
        finally:
            os.close(file)


def _check(found: os.stat_result, kind: int) -> None:
    """Raise unless this is a file of this kind, and of this user, in which nobody else can write."""
    if stat.S_IFMT(found.st_mode) != kind or found.st_uid != os.getuid() or found.st_mode & OTHERS_WRITE:
        raise PermissionError("it is not a private file of this user")


def _lines(data: bytes) -> tuple[str, ...]:
    """Return the whole lines, each once; one that is no text does not count."""
    found: dict[str, None] = {}
    for line in data.split(b"\n")[:-1][:LINES_MAX]:
        with suppress(UnicodeDecodeError):
            found[line.decode()] = None
    return tuple(found)


def _sweep(folder: int, names: list[str]) -> None:
    """Remove the files of sessions that were killed; raise if there are too many others."""
    if len(names) < SWEEP_FROM:
        return
    oldest = time.time() - KEPT_S
    for name in names:
        with suppress(OSError):
            if os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime < oldest:
                os.unlink(name, dir_fd=folder)
    if len(names) >= FILES_MAX and len(os.listdir(folder)) >= FILES_MAX:
        raise PermissionError("too many files of sessions")
