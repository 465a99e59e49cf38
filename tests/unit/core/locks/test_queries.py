"""Whether a fence still counts: the rule on which git's gates rest."""

import pytest

from coord.core.errors import Invalid
from coord.core.git_log_commands import CheckFences, FenceInfo
from coord.core.identity import ProcessState
from coord.core.locks import queries as rules
from tests.support.lock_harness import REPOSITORY, LockDesk


@pytest.fixture
def desk() -> LockDesk:
    return LockDesk()


def checked(desk: LockDesk, fence: int, resource: str = "file:a", part: str = "") -> FenceInfo:
    (shown,) = desk.engine.call(CheckFences(REPOSITORY, ((fence, resource, part),)))
    assert isinstance(shown, FenceInfo)
    return shown


def locked(desk: LockDesk, name: str, resource: str = "file:a", mode: str = "") -> int:
    return int(desk.lock(name, resource, mode=mode).locks[0].fence)


def test_standing_lock_counts(desk: LockDesk) -> None:
    """A fence counts while its lock stands, also renewed, and beside other locks of the same commit."""
    fence = desk.lock("ann", "file:a", "file:b").locks[0].fence
    desk.renew("ann", "file:a")
    for resource in ("file:a", "file:b"):
        assert checked(desk, fence, resource) == FenceInfo(resource, fence, "ann", "held")


def test_lock_that_was_given_back_counts(desk: LockDesk) -> None:
    """What a holder ended itself was finished, whoever came after."""
    fence = locked(desk, "ann")
    desk.release("ann", "file:a")
    locked(desk, "bob")
    assert checked(desk, fence) == FenceInfo("file:a", fence, "ann", "released")
    other = locked(desk, "cleo", "file:b")
    desk.leave("cleo")
    assert not checked(desk, other, "file:b").superseded


@pytest.mark.parametrize("over", ["file:a", "file:*", "file:."])
@pytest.mark.parametrize("gone", [False, True], ids=["holds", "was there"])
def test_lost_lock_that_another_had_since_is_superseded(desk: LockDesk, over: str, gone: bool) -> None:
    """A lease that ran out counts until somebody else is granted something that overlaps."""
    fence = locked(desk, "ann")
    desk.pass_time(400_000)
    assert checked(desk, fence) == FenceInfo("file:a", fence, "ann", "expired")
    locked(desk, "bob", "file:z")
    assert not checked(desk, fence).superseded
    later = locked(desk, "bob", over)
    if gone:
        desk.release("bob", over)
    assert checked(desk, fence) == FenceInfo("file:a", fence, "ann", "expired", True, "bob", later)


def test_lock_taken_anew_does_not_supersede_itself(desk: LockDesk) -> None:
    """Who lost a lock and took it again is in nobody's way; nor is a reader."""
    fence = locked(desk, "ann")
    desk.pass_time(400_000)
    locked(desk, "ann")
    desk.release("ann", "file:a")
    locked(desk, "bob", mode="read")
    assert not checked(desk, fence).superseded


def test_part_of_a_glob(desk: LockDesk) -> None:
    """Of a glob that was lost, only what another one was granted since is superseded."""
    fence = locked(desk, "ann", "file:src/*")
    desk.pass_time(400_000)
    locked(desk, "bob", "file:src/b")
    assert checked(desk, fence, "file:src/*").superseded
    assert checked(desk, fence, "file:src/*", "file:src/b").superseded
    assert not checked(desk, fence, "file:src/*", "file:src/a").superseded


def test_dead_and_stolen(desk: LockDesk) -> None:
    """A holder that died or was robbed is late as soon as another one holds."""
    desk.pids["ann"] = 7
    fence = locked(desk, "ann")
    desk.life[7] = ProcessState.DEAD
    assert checked(desk, fence).end_reason == "owner_dead"
    stolen = locked(desk, "bob")
    assert checked(desk, fence).superseded
    desk.steal("cleo", "file:a", force=True, reason="test")
    assert checked(desk, stolen).by == "cleo"


def test_unknown_fence(desk: LockDesk) -> None:
    """Of a fence that nobody was given, or of another resource, nothing is known."""
    fence = locked(desk, "ann")
    assert checked(desk, fence + 1).end_reason == "unknown"
    assert checked(desk, fence, "file:b").end_reason == "unknown"


@pytest.mark.parametrize("fence", [(0, "file:a"), (10**16, "file:a"), (1, "file:{a,b}"), (1, "a")])
def test_malformed_fence(desk: LockDesk, fence: tuple[int, str]) -> None:
    """Bad input is refused with a hint."""
    with pytest.raises(Invalid) as caught:
        desk.engine.call(CheckFences(REPOSITORY, ((*fence, ""),)))
    assert caught.value.hint
    with pytest.raises(Invalid):
        desk.engine.call(CheckFences(REPOSITORY, ((1, "file:a", ""),) * (rules.FENCES_MAX + 1)))


def test_work_is_bounded(desk: LockDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind too many later grants nobody can look: then the fence does not count."""
    monkeypatch.setattr(rules, "GRANTS_MAX", 3)
    fence = locked(desk, "ann")
    desk.pass_time(400_000)
    for number in range(2):
        locked(desk, "bob", f"file:b{number}")
        desk.release("bob", f"file:b{number}")
    assert not checked(desk, fence).superseded
    locked(desk, "bob", "file:b3")
    desk.release("bob", "file:b3")
    assert checked(desk, fence).superseded
