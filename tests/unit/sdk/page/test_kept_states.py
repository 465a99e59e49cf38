"""States in a folder beside the pin, in which others of the same user may write."""

import os
import stat
import zlib
from pathlib import Path

import pytest

from coord.core.page.state import PageState
from coord.host.pin import FORMAT, Pin, create_pin, replace_pin
from coord.host.store_location import StoreLocation
from coord.sdk.page import kept_states
from coord.sdk.page.kept_states import RULES_ID, KeptStates, StateAt

STATE = PageState(5, 7)


def states_of(folder: Path, store_id: str = "store", epoch: int = 0, tenant: str = "local") -> KeptStates:
    return kept_states.kept_states(StoreLocation("memory:", "", None, store_id, epoch, str(folder)), tenant)


def folder_of(tmp_path: Path) -> Path:
    """Return the folder of the states, which has one state."""
    states_of(tmp_path).keep(STATE)
    (found,) = (tmp_path / "page").iterdir()
    return found


def known(tmp_path: Path) -> list[int]:
    return [each.offset for each in states_of(tmp_path).known()]


@pytest.mark.parametrize("which", ["page", "log"])
def test_a_link_leads_nowhere(tmp_path: Path, which: str) -> None:
    """An agent in a sandbox that may write beside the pin gets nothing removed or written elsewhere."""
    pin_folder = tmp_path / "pin"
    pin_folder.mkdir()
    log = folder_of(pin_folder)
    link = log.parent if which == "page" else log
    link.rename(tmp_path / "victim")
    link.symlink_to(tmp_path / "victim")
    victim = Path(os.path.realpath(log))
    old = f"{'0' * 12}-5-5"
    for name in ("id_rsa", old):
        (victim / name).write_text("precious")
    before = sorted(os.listdir(victim))
    kept = states_of(pin_folder)
    assert kept.known() == []
    kept.keep(PageState(6, 7))
    assert sorted(os.listdir(victim)) == before
    assert (kept.known(), kept.read(StateAt(6, 7))) == ([(6, 7)], PageState(6, 7))


@pytest.mark.parametrize("kind", ["fifo", "link", "folder"])
def test_only_regular_files_are_states(tmp_path: Path, kind: str) -> None:
    """Nothing waits for a FIFO, and what cannot be read is not offered again."""
    path = folder_of(tmp_path) / f"{RULES_ID}-9-9"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(path.with_name(f"{RULES_ID}-5-7"))
    else:
        path.mkdir()
    kept = states_of(tmp_path)
    assert kept.known() == [(5, 7)]
    assert kept.read(StateAt(9, 9)) is None
    assert kept.read(StateAt(5, 7)) == STATE


def test_a_small_file_with_much_in_it_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_states, "STATE_BYTES_MAX", 10_000)
    kept = states_of(tmp_path)
    bomb = folder_of(tmp_path) / f"{RULES_ID}-9-9"
    bomb.write_bytes(zlib.compress(b'{"offset":9,"at":9' + b" " * 20_000 + b"}"))
    assert kept.read(StateAt(9, 9)) is None
    assert not bomb.exists()
    (bomb.parent / f"{RULES_ID}-8-8").write_bytes(zlib.compress(b'{"tables":{"a":{"b":{"c":' + b"[" * 9_000))
    assert kept.read(StateAt(8, 8)) is None
    assert known(tmp_path) == [5]


def test_a_state_that_is_too_large_for_a_file_stays_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_states, "STATE_BYTES_MAX", 10)
    kept = states_of(tmp_path)
    kept.keep(STATE)
    assert (kept.read(StateAt(5, 7)), known(tmp_path)) == (STATE, [])


def test_a_file_that_cannot_be_removed_is_not_offered_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody would ask for it for ever."""
    (folder_of(tmp_path) / f"{RULES_ID}-9-9").write_bytes(b"x")
    kept = states_of(tmp_path)

    def refuse(path: str, *, dir_fd: int) -> None:
        raise PermissionError(path, dir_fd)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refuse)
        assert kept.read(StateAt(9, 9)) is None
    assert kept.known() == [(5, 7)]
    kept.keep(PageState(9, 9))
    assert kept.known() == [(5, 7), (9, 9)]


@pytest.mark.parametrize("mode", [0o770, 0o701])
def test_a_folder_that_is_open_to_others_is_not_used(tmp_path: Path, mode: int) -> None:
    folder = folder_of(tmp_path)
    for each in (folder, folder.parent):
        each.chmod(mode)
        kept = states_of(tmp_path)
        assert kept.known() == []
        kept.keep(PageState(6, 6))
        assert len(list(folder.iterdir())) == 1
        assert stat.S_IMODE(each.stat().st_mode) == mode
        each.chmod(0o700)
    assert known(tmp_path) == [5]


def test_a_folder_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder_of(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert known(tmp_path) == []


def test_names_that_are_not_of_states_are_left_alone(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    (folder / f"{'0' * 12}-4-4").write_text("of other rules")
    (folder / "below").mkdir()
    others = ["notes.txt", f"{RULES_ID}-{'9' * 99}-1", "draft-of-mine", "below"]
    for name in others[:-1]:
        (folder / name).write_text("theirs")
    assert known(tmp_path) == [5]
    states_of(tmp_path).keep(PageState(6, 6))
    assert known(tmp_path) == [5, 6]
    names = {f"{RULES_ID}-5-7", f"{RULES_ID}-6-6", *others}
    assert {*os.listdir(folder)} == names


def test_what_killed_processes_left_is_removed(tmp_path: Path) -> None:
    """A file that is being written by another process stays."""
    folder = folder_of(tmp_path)
    now = folder.stat().st_mtime
    for name, age_s in (("draft-0123456789abcdef", 3700), ("draft-fedcba9876543210", 60)):
        (folder / name).write_bytes(b"half")
        os.utime(folder / name, (now - age_s, now - age_s))
    states_of(tmp_path).keep(PageState(6, 6))
    assert [name for name in os.listdir(folder) if name.startswith("draft-")] == ["draft-fedcba9876543210"]


def test_states_of_a_store_that_the_pin_does_not_name_any_more_are_removed(tmp_path: Path) -> None:
    """Those of other tenants stay; and a process that still has the earlier store removes nothing."""
    (tmp_path / "page/notes").mkdir(mode=0o700, parents=True)
    (tmp_path / "page").chmod(0o700)
    logs = [("old", 0, "local"), ("new", 0, "local"), ("new", 1, "acme"), ("new", 1, "local")]

    def left() -> list[bool]:
        return [bool(states_of(tmp_path, *log).known()) for log in logs]

    create_pin(str(tmp_path), Pin(FORMAT, "memory:", "newest", 2))
    for log in logs:
        states_of(tmp_path, *log).keep(STATE)
    assert left() == [True] * 4
    replace_pin(str(tmp_path), Pin(FORMAT, "memory:", "new", 1))
    states_of(tmp_path, *logs[0]).keep(PageState(6, 6))
    assert left() == [True] * 4
    states_of(tmp_path, *logs[3]).keep(PageState(6, 6))
    assert left() == [False, False, True, True]
    assert len(list((tmp_path / "page").iterdir())) == 3, "two logs, and the notes"
