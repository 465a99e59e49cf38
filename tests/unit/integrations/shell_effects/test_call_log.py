"""Which calls were under way when: in doubt more of them, never fewer."""

import multiprocessing
from pathlib import Path

import pytest

from coord.integrations.shell_effects import call_log
from coord.integrations.shell_effects.call_log import Call, CallFolder, Calls


def begun(calls: Calls, name: str, session: str, *, shell: bool = True, timeout_s: float = 60) -> Call:
    calls.begin(name, session, shell=shell, now_s=1000, timeout_s=timeout_s)
    found = calls.find(name, session)
    assert found is not None
    return found


def names(found: list[Call]) -> list[str]:
    return [call.name for call in found]


def test_calls_that_overlap_are_beside_each_other() -> None:
    """One that ended before is not; one that began and ended in between is."""
    calls = Calls()
    begun(calls, "earlier", "ada")
    calls.end("earlier", "ada")
    begun(calls, "around", "ada")
    mine = begun(calls, "mine", "bob")
    begun(calls, "within", "eve")
    calls.end("within", "eve")
    calls.end("around", "ada")
    begun(calls, "late", "ada")
    begun(calls, "own", "bob")
    assert names(calls.concurrent_with(mine)) == ["around", "within", "late"]


def test_a_call_whose_end_was_never_told_is_forgotten_in_time() -> None:
    """Its agent was killed: it stands beside others only as long as it may have run."""
    calls = Calls()
    begun(calls, "killed", "ada", timeout_s=10)
    assert names(calls.concurrent_with(begun(calls, "mine", "bob"))) == ["killed"]
    calls.end("mine", "bob")
    calls.begin("later", "bob", shell=True, now_s=1011, timeout_s=60)
    later = calls.find("later", "bob")
    assert later is not None
    assert calls.concurrent_with(later) == []


def test_what_is_forgotten_is_known_to_be_missing(monkeypatch: object) -> None:
    """Bounded: after too many calls one that began before them can prove nothing any more."""
    calls = Calls()
    mine = begun(calls, "mine", "bob")
    for number in range(call_log.CALLS_MAX):
        begun(calls, f"call-{number}", f"session-{number}")
        calls.end(f"call-{number}", f"session-{number}")
    assert len(calls.calls) == call_log.CALLS_MAX
    assert not calls.complete_since(mine)
    assert calls.complete_since(begun(calls, "new", "bob"))
    assert len(calls.sessions) <= call_log.SESSIONS_MAX


def test_a_damaged_file_leaves_everything_in_doubt_for_an_hour(tmp_path: Path) -> None:
    """What was under way is not known then, so a call of nobody stands beside all others."""
    folder = CallFolder(str(tmp_path), "/tree")
    with folder.lock_calls() as calls:
        assert calls.concurrent_with(begun(calls, "mine", "bob")) == []
    Path(folder.path, "calls").write_bytes(b"\x93\x01")
    with folder.lock_calls() as calls:
        assert calls.find("mine", "bob") is None
        calls.begin("next", "bob", shell=True, now_s=0, timeout_s=60)
        found = calls.find("next", "bob")
        assert found is not None
        assert [call.shell for call in calls.concurrent_with(found)] == [True]


@pytest.mark.parametrize("kept", [0, 6, 8, 12, -1])
def test_half_of_a_log_is_no_log(tmp_path: Path, kept: int) -> None:
    """A killed process or a full disk leaves the begin of a new log before the rest of the old one."""
    folder = CallFolder(str(tmp_path), "/tree")
    file = Path(folder.path, "calls")
    with folder.lock_calls() as calls:
        begun(calls, "old", "ada")
    old = file.read_bytes()
    with folder.lock_calls() as calls:
        begun(calls, "new", "bob")
    new = file.read_bytes()
    assert call_log.read_calls(folder.path) is not None
    file.write_bytes(new[:kept] + old[kept:] if kept >= 0 else new[:-1])
    found = call_log.read_calls(folder.path)
    if kept == 0:
        assert found is not None
        assert names(found.calls) == ["old"]
    else:
        assert found is None


def test_a_log_may_become_shorter(tmp_path: Path) -> None:
    """The file is written in place and keeps its size; what is left of longer logs does not count."""
    folder = CallFolder(str(tmp_path), "/tree")
    file = Path(folder.path, "calls")
    with folder.lock_calls() as calls:
        for number in range(9):
            begun(calls, f"call-{number}", "ada")
    before = file.stat()
    with folder.lock_calls() as calls:
        del calls.calls[1:]
    after = file.stat()
    assert (after.st_ino, after.st_size) == (before.st_ino, before.st_size)
    with folder.lock_calls() as calls:
        assert names(calls.calls) == ["call-0"]


def test_a_failure_in_a_turn_changes_nothing(tmp_path: Path) -> None:
    """Who fails half way leaves what was there."""
    folder = CallFolder(str(tmp_path), "/tree")
    with folder.lock_calls() as calls:
        begun(calls, "mine", "bob")
    try:
        with folder.lock_calls() as calls:
            calls.end("mine", "bob")
            raise RuntimeError
    except RuntimeError:
        pass
    with folder.lock_calls() as calls:
        assert calls.find("mine", "bob") is not None


def _begin_many(folder: str, session: str) -> None:
    for number in range(20):
        with CallFolder(folder, "/tree").lock_calls() as calls:
            calls.begin(f"call-{number}", session, shell=False, now_s=0, timeout_s=60)


def test_processes_take_turns(tmp_path: Path) -> None:
    """Four processes at once: no call is lost, no number is given out twice."""
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_begin_many, args=(str(tmp_path), f"s{n}")) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    with CallFolder(str(tmp_path), "/tree").lock_calls() as calls:
        assert sorted(call.began for call in calls.calls) == list(range(1, 81))


def test_files_of_long_gone_calls_are_swept(tmp_path: Path) -> None:
    """Two weeks later nobody asks for them; what a session kept is named, for its refs have to go, too."""
    folder = CallFolder(str(tmp_path), "/tree")
    for name in ("before-a", "index-a", "saved-a"):
        Path(folder.path, name).touch()
    now_s = Path(folder.path, "saved-a").stat().st_mtime
    assert folder.sweep(now_s) == []
    assert folder.sweep(now_s + call_log.KEPT_DAYS * 86_400 + 1) == [f"{folder.path}/saved-a"]
    assert sorted(path.name for path in Path(folder.path).iterdir()) == ["saved-a"]
