"""The file in which reads wait for a commit: whatever it is, it names no other session and stops nothing."""

import os
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from coord.integrations.hooks.awareness.reads import (
    BYTES_MAX,
    FILES_MAX,
    LINES_MAX,
    STALE_S,
    SWEEP_FROM,
    WaitingReads,
)

STORE = ("/home/ann/shop/.git/coord", "default")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.fixture
def waiting(environ: dict[str, str]) -> WaitingReads:
    return WaitingReads(environ, (*STORE, "ada"))


def path_of(waiting: WaitingReads) -> Path:
    return Path(waiting.folder) / waiting.name


def test_files_wait_until_they_are_removed(waiting: WaitingReads) -> None:
    assert waiting.files() == ()
    waiting.add(["file:a", "file:b"])
    waiting.add(["file:b", "file:c"])
    assert waiting.files() == ("file:a", "file:b", "file:c")
    waiting.remove(["file:a", "file:c", "file:other"])
    assert waiting.files() == ("file:b",)
    waiting.remove(["file:b"])
    assert os.listdir(waiting.folder) == []


def test_nobody_else_can_read_them(waiting: WaitingReads) -> None:
    waiting.add(["file:a"])
    assert stat.S_IMODE(path_of(waiting).stat().st_mode) == 0o600
    assert stat.S_IMODE(os.stat(waiting.folder).st_mode) == 0o700


@pytest.mark.parametrize(
    "whose",
    [("/other/.git/coord", "default", "ada"), (STORE[0], "t2", "ada"), (*STORE, "bob"), (*STORE, "../ada")],
)
def test_each_session_has_its_own(
    waiting: WaitingReads, environ: dict[str, str], whose: tuple[str, str, str]
) -> None:
    waiting.add(["file:a"])
    other = WaitingReads(environ, whose)
    other.remove(["file:a"])
    assert other.files() == ()
    other.add(["file:x"])
    assert waiting.files() == ("file:a",)
    assert len(os.listdir(waiting.folder)) == 2


def elsewhere(waiting: WaitingReads) -> Path:
    return Path(waiting.folder).parent / "elsewhere"


def symlink(waiting: WaitingReads) -> None:
    elsewhere(waiting).write_text("file:secret\n")
    path_of(waiting).symlink_to(elsewhere(waiting))


def hard_link(waiting: WaitingReads) -> None:
    elsewhere(waiting).write_text("file:secret\n")
    os.link(elsewhere(waiting), path_of(waiting))


def pipe(waiting: WaitingReads) -> None:
    os.mkfifo(path_of(waiting))


def folder(waiting: WaitingReads) -> None:
    path_of(waiting).mkdir()


def huge(waiting: WaitingReads) -> None:
    with path_of(waiting).open("wb") as file:
        file.write(b"file:secret\n")
        file.truncate(1 << 40)


def unreadable(waiting: WaitingReads) -> None:
    path_of(waiting).symlink_to("/dev/zero")


def linked_folder(waiting: WaitingReads) -> None:
    elsewhere(waiting).mkdir()
    os.rmdir(waiting.folder)
    os.symlink(elsewhere(waiting), waiting.folder)


@pytest.mark.parametrize("attack", [symlink, hard_link, pipe, folder, huge, unreadable, linked_folder])
def test_a_file_that_coord_did_not_make_counts_as_empty(
    waiting: WaitingReads, attack: Callable[[WaitingReads], None]
) -> None:
    Path(waiting.folder).mkdir(parents=True)
    attack(waiting)
    before = content(elsewhere(waiting))
    waiting.add(["file:a"])
    assert waiting.files() == ()
    assert content(elsewhere(waiting)) == before
    waiting.remove(["file:a"])
    assert content(elsewhere(waiting)) == before


def content(path: Path) -> object:
    if path.is_dir():
        return sorted(os.listdir(path))
    return path.read_text() if path.is_file() else None


@pytest.mark.parametrize("of", ["file", "folder"])
def test_what_others_can_write_counts_as_empty(waiting: WaitingReads, of: str) -> None:
    waiting.add(["file:a"])
    path = path_of(waiting) if of == "file" else Path(waiting.folder)
    path.chmod(0o777)
    assert waiting.files() == ()
    waiting.add(["file:b"])
    path.chmod(0o700)
    assert waiting.files() == ("file:a",)


def test_nothing_comes_from_a_pipe(waiting: WaitingReads) -> None:
    Path(waiting.folder).mkdir(parents=True)
    pipe(waiting)
    end = os.open(path_of(waiting), os.O_RDWR)
    os.write(end, b"file:secret\n")
    assert waiting.files() == ()
    waiting.add(["file:a"])
    assert os.read(end, 100) == b"file:secret\n"
    os.close(end)


def test_a_file_of_another_user_counts_as_empty(
    waiting: WaitingReads, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting.add(["file:a"])
    own = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: own + 1)
    waiting.add(["file:b"])
    assert waiting.files() == ()
    monkeypatch.undo()
    assert waiting.files() == ("file:a",)


def test_garbage_is_left_out(waiting: WaitingReads) -> None:
    """What looks like a name is checked by the core, which knows what files are called."""
    waiting.add(["file:a"])
    path_of(waiting).write_bytes(b"file:a\n\xff\xfe\n\nfile:torn-by-a-kill")
    assert waiting.files() == ("file:a", "")
    waiting.add(["file:b"])
    assert waiting.files()[-1] == "file:b"


def test_no_more_wait_than_there_is_room_for(waiting: WaitingReads) -> None:
    waiting.add(f"file:{number}" for number in range(3 * LINES_MAX))
    assert path_of(waiting).read_text().count("\n") == LINES_MAX
    waiting.add(["file:one-more"])
    assert len(waiting.files()) == LINES_MAX
    waiting.remove(waiting.files())
    waiting.add(["file:" + "x" * (BYTES_MAX - 100)])
    waiting.add(["file:" + "y" * 100])
    assert path_of(waiting).stat().st_size <= BYTES_MAX
    assert len(waiting.files()) == 1


def test_a_session_that_is_resumed_does_not_read_again(waiting: WaitingReads) -> None:
    waiting.add(["file:a"])
    old = time.time() - 2 * STALE_S
    os.utime(path_of(waiting), (old, old))
    assert waiting.files() == ()
    waiting.add(["file:b"])
    assert waiting.files() == ("file:b",)


def test_files_of_killed_sessions_are_swept(waiting: WaitingReads) -> None:
    Path(waiting.folder).mkdir(parents=True)
    for number in range(SWEEP_FROM):
        path = Path(waiting.folder) / str(number)
        path.write_text("")
        old = time.time() - (90_000 if number % 2 else 0)
        os.utime(path, (old, old))
    waiting.add(["file:a"])
    assert len(os.listdir(waiting.folder)) == SWEEP_FROM // 2 + 1
    assert waiting.files() == ("file:a",)


def test_a_user_has_no_more_files_than_sessions(waiting: WaitingReads) -> None:
    Path(waiting.folder).mkdir(parents=True)
    for number in range(FILES_MAX):
        (Path(waiting.folder) / str(number)).write_text("")
    waiting.add(["file:a"])
    assert len(os.listdir(waiting.folder)) == FILES_MAX


def test_what_comes_while_others_are_removed_is_kept(
    waiting: WaitingReads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook removes what was logged, at every moment in which another one adds a file."""
    real = os.write
    waiting.add(["file:a"])

    def remove_first(file: int, data: bytes) -> int:
        monkeypatch.undo()
        waiting.remove(["file:a"])
        return real(file, data)

    monkeypatch.setattr(os, "write", remove_first)
    waiting.add(["file:b"])
    assert waiting.files() == ("file:b",)


def test_two_that_remove_lose_nothing(waiting: WaitingReads, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one finds the file that was made after the first one had taken it."""
    waiting.add(["file:a"])
    real = os.unlink

    def add_first(name: str, **options: int) -> None:
        monkeypatch.undo()
        waiting.add(["file:b"])
        waiting.remove(["file:a"])
        real(name, **options)

    monkeypatch.setattr(os, "unlink", add_first)
    waiting.remove(["file:a"])
    assert waiting.files() == ("file:b",)


def test_many_hooks_at_once_lose_nothing(environ: dict[str, str]) -> None:
    """Some add, one removes what it saw, as after a commit: each file is seen at least once."""
    seen: set[str] = set()
    names = [[f"file:{worker}-{number}" for number in range(40)] for worker in range(3)]

    def add(files: list[str]) -> None:
        for file in files:
            WaitingReads(environ, (*STORE, "ada")).add([file])
            if len(WaitingReads(environ, (*STORE, "ada")).files()) > LINES_MAX // 2:
                drain()

    def drain() -> None:
        found = WaitingReads(environ, (*STORE, "ada")).files()
        seen.update(found)
        WaitingReads(environ, (*STORE, "ada")).remove(found)

    workers = [threading.Thread(target=add, args=(files,)) for files in names]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    drain()
    assert seen >= {file for files in names for file in files}
