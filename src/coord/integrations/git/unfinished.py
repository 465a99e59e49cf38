"""Notes of commands that change a repository, from which the next command finishes or undoes a killed one.

A command writes a note into the git directory of its worktree before it starts git, and removes it at the
end. Git runs behind a shell that first adds git's own process to the note. So a lock file of git that is
younger than the note belongs to that git, if git is proven dead and no other process can hold the file.
"""

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import msgspec

from coord.core.errors import Busy, Unavailable
from coord.core.identity import Process, ProcessState
from coord.host.processes import describe, probe
from coord.integrations.git.index_lock import holder
from coord.integrations.git.run import INDEX_NAP_S, INDEX_WAIT_S, Git

FOLDER = "coord-running"
"""The notes of one worktree, in its git directory."""
_FORMAT = 1
_SECOND_INDEX = re.compile(r"next-index-([0-9]{1,9})\.lock")
_STARTER = 'read -r stat 2>/dev/null </proc/$$/stat; printf "%s\\n" "$stat" >>"$0" && exec "$@"'


class Note(msgspec.Struct, frozen=True):
    """What a command is about to do, and the process that does it."""

    kind: str
    process: Process | None
    head: str = ""
    ref: str = ""
    """The branch that moves; empty if HEAD is detached."""
    target: str = ""
    files: list[str] = []
    new: list[str] = []
    """Files that the command adds to the index."""
    session: str = ""
    format: int = _FORMAT


class Unfinished(msgspec.Struct, frozen=True):
    """A note whose process is gone, and the gits that it had started."""

    path: str
    note: Note
    gits: list[Process]

    @property
    def message(self) -> str:
        """The file for the message of a commit."""
        return f"{self.path}.message"


class Running:
    """The note of a running command."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.message = f"{path}.message"

    def starter(self) -> tuple[str, ...]:
        """Return the words before `git` that let git note its process first."""
        return ("sh", "-c", _STARTER, f"{self.path}.git")


@contextmanager
def running(git_dir: str, note: Note) -> Iterator[Running]:
    """Keep a note while a command changes a repository."""
    folder = f"{git_dir}/{FOLDER}"
    path = f"{folder}/{os.getpid()}-{os.urandom(4).hex()}"
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with open(f"{path}.draft", "wb") as file:
            file.write(msgspec.json.encode(_printable(note)))
        os.rename(f"{path}.draft", path)
    except OSError as error:
        raise Unavailable(f"{folder}: {error.strerror}", hint="check whether git can write there") from error
    try:
        yield Running(path)
    finally:
        _remove(path)


def own_process() -> Process | None:
    """Return this process."""
    return describe(os.getpid())


def unfinished(git_dir: str) -> list[Unfinished]:
    """Return the notes of commands whose process is proven dead; wait for a git that outlived its command."""
    folder, found = f"{git_dir}/{FOLDER}", list[Unfinished]()
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    for name in names:
        path = f"{folder}/{name}"
        if "." in name:
            if name.partition(".")[0] not in names and not name.endswith(".draft"):
                _remove(path)
            continue
        try:
            with open(path, "rb") as file:
                note = msgspec.json.decode(file.read(), type=Note)
        except (OSError, msgspec.MsgspecError):
            continue
        if note.process is None or probe(note.process).life is not ProcessState.DEAD:
            continue
        gits = _gits(f"{path}.git", note.process)
        _wait(gits)
        found.append(Unfinished(path, note, gits))
    return found


def clear_locks(left: Unfinished, worktree: str, locks: list[str]) -> list[str]:
    """Remove the lock files that the gits of a killed command left; raise if a process may hold one."""
    began_ns = os.stat(left.path).st_mtime_ns
    cleared: list[str] = []
    for lock in locks:
        try:
            made_ns = os.lstat(lock).st_mtime_ns
        except OSError:
            continue
        if made_ns < began_ns:
            continue  # it was there before
        process = holder(os.path.realpath(lock), os.path.realpath(worktree))
        if process:
            raise Busy(
                f"{process} may hold {lock}", hint="wait for it; if no git is running there, remove that file"
            )
        with suppress(FileNotFoundError):
            os.unlink(lock)
        cleared.append(lock)
    return cleared


def lock_files(git: Git, git_dir: str, left: Unfinished) -> list[str]:
    """Return the lock files that a commit or a merge takes."""
    main_dir = git.must("rev-parse", "--path-format=absolute", "--git-common-dir").text
    own = [f"{git_dir}/{name}" for name in os.listdir(git_dir) if _is_dead_index(name)]
    refs = [f"{main_dir}/{left.note.ref}.lock"] if left.note.ref else []
    return [f"{git_dir}/index.lock", *own, f"{git_dir}/HEAD.lock", f"{git_dir}/ORIG_HEAD.lock", *refs]


def _is_dead_index(name: str) -> bool:
    """Whether a file is the second index of a `git commit` that has ended; its name has the process."""
    found = _SECOND_INDEX.fullmatch(name)
    process = describe(int(found[1])) if found else None
    if found and process is None:
        with suppress(PermissionError, OverflowError):
            return not _runs(int(found[1]))
    return process is not None and probe(process).life is ProcessState.DEAD


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def forget(left: Unfinished) -> None:
    """Remove a note: what it was about is finished or undone."""
    _remove(left.path)


def _remove(path: str) -> None:
    for each in (f"{path}.git", f"{path}.message", path):
        with suppress(FileNotFoundError):
            os.unlink(each)


def _gits(path: str, process: Process) -> list[Process]:
    """Return the gits that a command started, as the shell before each of them wrote it down."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    found: list[Process] = []
    for line in lines:
        pid, _, rest = line.partition(" ")
        fields = rest.rpartition(")")[2].split()
        if pid.isdigit() and len(fields) > 19 and fields[19].isdigit():
            found.append(msgspec.structs.replace(process, pid=int(pid), start=int(fields[19])))
    return found


def _wait(gits: list[Process]) -> None:
    """Wait for gits that still run, because only their command was killed."""
    deadline = time.monotonic() + INDEX_WAIT_S
    while alive := [each for each in gits if probe(each).life is ProcessState.ALIVE]:
        if time.monotonic() >= deadline:
            raise Busy(f"git (process {alive[0].pid}) is still running", hint="try again when it has ended")
        time.sleep(INDEX_NAP_S)  # noqa: TID251 - no signal reports the end of a foreign child


def _printable(note: Note) -> Note:
    """Return a note whose names can be written as JSON."""
    return msgspec.structs.replace(
        note,
        files=[os.fsencode(name).hex() for name in note.files],
        new=[os.fsencode(name).hex() for name in note.new],
    )


def names_of(encoded: list[str]) -> list[str]:
    """Return the names of files in a note."""
    return [os.fsdecode(bytes.fromhex(each)) for each in encoded]
