"""The tool calls in one worktree, in a small file that processes share under a file lock.

Numbers that are handed out under the lock put calls in order, so no clock has to be right. If the file was
damaged or is full, calls may be missing; then other calls count as running, so that nobody is blamed.
"""

import os
from _thread import get_native_id  # a hub answers in many threads
from binascii import crc32
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple, TypeVar

import msgspec

from coord.core.errors import Unavailable
from coord.core.keys import digest
from coord.stores.local.fair_lock import lock_within

LOCK_WAIT_S = 1.0
CALLS_MAX = 256
PATHS_MAX = 16
"""How many files of an editor are noted; with this many, it may write others too."""
SESSIONS_MAX = 256
KEPT_DAYS = 14
FILE_BYTES_MAX = 64 << 20
NUMBER_BYTES = 4
READ_TRIES = 3
DOUBT_S = 3600.0
"""After the file was damaged, an unknown call may run for this long."""

T = TypeVar("T")


class Call(msgspec.Struct, array_like=True):
    """A tool call; `ended` is 0 while it runs, as far as is known."""

    name: str
    session: str
    shell: bool
    began: int
    until_s: float
    ended: int = 0
    paths: tuple[bytes, ...] = ()
    """The files that an editor writes; a shell may write any."""


class CallText(NamedTuple):
    """What a call says that it does, and where it ran."""

    text: str = ""
    cwd: str = ""


class Calls(msgspec.Struct):
    """The calls in a worktree. Calls that ended up to number `forgotten` may be missing."""

    number: int = 0
    calls: list[Call] = []
    sessions: dict[str, int] = {}
    """Sessions whose hooks report their calls here."""
    forgotten: int = 0
    active_s: dict[str, float] = {}
    """When each session last began or ended a call."""

    def begin(
        self,
        name: str,
        session: str,
        *,
        shell: bool,
        now_s: float,
        timeout_s: float,
        paths: Sequence[str] = (),
    ) -> None:
        """Record a call before it starts; `paths`: the files of an editor."""
        self.number += 1
        self.active_s[session] = now_s
        self.sessions.pop(session, None)
        self.sessions[session] = self.number
        self.calls = [each for each in self.calls if each.name != name or each.session != session]
        named = tuple(os.fsencode(path) for path in paths[:PATHS_MAX])
        self.calls.append(Call(name, session, shell, self.number, now_s + timeout_s, paths=named))
        self._forget(now_s)

    def end(self, name: str, session: str, now_s: float = 0.0) -> None:
        """Record the end of a call."""
        self.number += 1
        self.active_s[session] = max(now_s, self.active_s.get(session, 0.0))
        for call in self.calls:
            if call.name == name and call.session == session and not call.ended:
                call.ended = self.number

    def find(self, name: str, session: str) -> Call | None:
        """Return a running call."""
        wanted = (call for call in self.calls if call.name == name and call.session == session)
        return next((call for call in wanted if not call.ended), None)

    def concurrent_with(self, call: Call) -> list[Call]:
        """Return the calls of other sessions that ran at some time since this one started."""
        others = (each for each in self.calls if each.session != call.session)
        return [each for each in others if not each.ended or each.ended > call.began]

    def may_have_written(self, call: Call, sessions: Collection[str], path: str) -> bool:
        """Whether a call of these sessions may have written a file since another call started.

        An editor that has ended wrote its files before their content was saved.
        """
        name = os.fsencode(path)
        return any(
            each.shell or (not each.ended and (name in each.paths or len(each.paths) == PATHS_MAX))
            for each in self.concurrent_with(call)
            if each.session in sessions
        )

    def is_idle_since(self, session: str, at_s: float) -> bool:
        """Whether hooks see the calls of a session, none is running, and the last one ended before."""
        running = any(call.session in (session, "") and not call.ended for call in self.calls)
        return session in self.sessions and not running and self.active_s.get(session, at_s) < at_s

    def complete_since(self, call: Call) -> bool:
        """Whether the log has every call that ran since this one started."""
        return self.forgotten < call.began

    def _forget(self, now_s: float) -> None:
        """Drop calls that nobody will ask about, and the oldest ones above the limit."""
        for call in self.calls:
            if not call.ended and call.until_s < now_s:  # its agent was killed
                call.ended = self.number
        first = min((call.began for call in self.calls if not call.ended), default=self.number)
        self.calls = [call for call in self.calls if not call.ended or call.ended > first]
        while len(self.calls) > CALLS_MAX:
            gone = self.calls.pop(0)
            self.forgotten = max(self.forgotten, gone.ended or self.number)
        while len(self.sessions) > SESSIONS_MAX:
            oldest = next(iter(self.sessions))
            del self.sessions[oldest]
            self.active_s.pop(oldest, None)


class CallFolder:
    """The folder of one worktree's private files, inside the git directory."""

    def __init__(self, coord_folder: str, worktree: str) -> None:
        self.coord_folder = coord_folder
        self.path = f"{coord_folder}/effects/{short(worktree)}"
        if not os.path.isdir(self.path):
            os.makedirs(self.path, mode=0o700, exist_ok=True)

    def file(self, kind: str, *of: str) -> str:
        """Return the path of a private file."""
        return f"{self.path}/{kind}-{short(chr(0).join(of))}"

    @contextmanager
    def lock_calls(self) -> Iterator[Calls]:
        """Yield the calls under the file lock, and write them back."""
        lock = os.open(f"{self.path}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            if not lock_within(lock, LOCK_WAIT_S):
                raise Unavailable(
                    f"{self.path}/lock is held by another process",
                    hint="look whether that process is stopped",
                )
            calls = read_calls(self.path) or self._new_calls()
            yield calls
            write_calls(self.path, calls)
        finally:
            os.close(lock)

    def _new_calls(self) -> Calls:
        """Return an empty log; after damage, one with an unknown call that runs beside all others."""
        try:
            written_s = os.stat(f"{self.path}/calls").st_mtime
        except FileNotFoundError:
            return Calls()
        return Calls(1, [Call("", "", True, 1, written_s + DOUBT_S)])

    def sweep(self, now_s: float) -> list[str]:
        """Remove old files of calls; return the old files of sessions, which need more work."""
        gone: list[str] = []
        for entry in os.scandir(self.path):
            if entry.name in ("lock", "calls") or entry.stat(follow_symlinks=False).st_mtime > (
                now_s - KEPT_DAYS * 86_400
            ):
                continue
            if entry.name.startswith("saved-"):
                gone.append(entry.path)
            else:
                remove(entry.path)
        return gone


def sessions_elsewhere(folder: CallFolder) -> set[str]:
    """Return the sessions whose hooks report their calls in another worktree of the repository."""
    found: set[str] = set()
    above, own = os.path.split(folder.path)
    for name in os.listdir(above):
        calls = None if name == own else read_calls(f"{above}/{name}")
        found.update(() if calls is None else calls.sessions)
    return found


def read_calls(folder: str) -> Calls | None:
    """Return the calls in a folder; None if they are missing or damaged.

    A reader without the lock may come while another process writes. It reads again.
    """
    for _ in range(READ_TRIES):
        try:
            file = os.open(f"{folder}/calls", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            data = os.read(file, min(os.fstat(file).st_size, FILE_BYTES_MAX))
        except OSError:
            return None
        finally:
            os.close(file)
        size = int.from_bytes(data[:NUMBER_BYTES], "big")
        content = data[2 * NUMBER_BYTES :][:size]
        if data[: 2 * NUMBER_BYTES] == _head(content):
            with suppress(msgspec.DecodeError):
                return msgspec.msgpack.decode(content, type=Calls)
    return None


def write_calls(folder: str, calls: Calls) -> None:
    """Write the calls under the lock, in place: replacing a file takes twenty times as long (0.1 ms).

    A process that is killed here leaves a wrong checksum, so the file counts as damaged.
    """
    content = msgspec.msgpack.encode(calls)
    data = _head(content) + content
    file = os.open(f"{folder}/calls", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        written = os.pwrite(file, data, 0)
        while written < len(data):
            written += os.pwrite(file, data[written:], written)
    finally:
        os.close(file)


def _head(content: bytes) -> bytes:
    """Return what stands before the calls: their size, since the file never shrinks, and a checksum."""
    return len(content).to_bytes(NUMBER_BYTES, "big") + crc32(content).to_bytes(NUMBER_BYTES, "big")


def short(text: str) -> str:
    """Return a file name for a text with any bytes."""
    return digest(text.encode("utf-8", "surrogateescape").hex())


def read_file(path: str, kind: type[T]) -> T | None:
    """Return the content of a private file; None if it is missing or damaged."""
    try:
        with open(path, "rb") as file:
            return msgspec.msgpack.decode(file.read(FILE_BYTES_MAX), type=kind)
    except (OSError, msgspec.DecodeError):
        return None


def write_file(path: str, what: object) -> None:
    """Write a private file atomically; a power cut may lose it."""
    new = f"{path}.{get_native_id()}"
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(msgspec.msgpack.encode(what))
    os.replace(new, path)


def remove(path: str) -> None:
    """Remove a file if it exists."""
    with suppress(FileNotFoundError):
        os.unlink(path)
