"""Whether a fence still counts: the rule on which git's gates rest."""

import pytest

from coord.core.errors import Invalid
from coord.core.identity import Caller, ProcessState
from coord.core.locks import locks
from coord.core.locks import queries as rules
from coord.core.locks.commands import (
    CheckFences,
    CheckLocks,
    FenceInfo,
    GetLocks,
    ListLockRequests,
    ListLocks,
)
from tests.support.lock_harness import REPOSITORY, LockHarness
from tests.support.store_harness import open_store_harness


@pytest.fixture
def harness() -> LockHarness:
    return LockHarness()


def checked(harness: LockHarness, fence: int, resource: str = "file:a", part: str = "") -> FenceInfo:
    (shown,) = harness.engine.call(CheckFences(REPOSITORY, ((fence, resource, part),)))
    assert isinstance(shown, FenceInfo)
    return shown


def locked(harness: LockHarness, name: str, resource: str = "file:a", mode: str = "") -> int:
    return int(harness.lock(name, resource, mode=mode).locks[0].fence)


def test_standing_lock_counts(harness: LockHarness) -> None:
    """A fence counts while its lock stands, also renewed, and beside other locks of the same commit."""
    fence = harness.lock("ann", "file:a", "file:b").locks[0].fence
    harness.renew("ann", "file:a")
    for resource in ("file:a", "file:b"):
        assert checked(harness, fence, resource) == FenceInfo(resource, fence, "ann", "held")


def test_lock_that_was_given_back_counts(harness: LockHarness) -> None:
    """What a holder ended itself was finished, whoever came after."""
    fence = locked(harness, "ann")
    harness.release("ann", "file:a")
    locked(harness, "bob")
    assert checked(harness, fence) == FenceInfo("file:a", fence, "ann", "released")
    other = locked(harness, "cleo", "file:b")
    harness.leave("cleo")
    assert not checked(harness, other, "file:b").superseded


@pytest.mark.parametrize("over", ["file:a", "file:*", "file:."])
@pytest.mark.parametrize("gone", [False, True], ids=["holds", "was there"])
def test_lost_lock_that_another_had_since_is_superseded(harness: LockHarness, over: str, gone: bool) -> None:
    """A lease that ran out counts until somebody else is granted something that overlaps."""
    fence = locked(harness, "ann")
    harness.pass_time(400_000)
    assert checked(harness, fence) == FenceInfo("file:a", fence, "ann", "expired")
    locked(harness, "bob", "file:z")
    assert not checked(harness, fence).superseded
    later = locked(harness, "bob", over)
    if gone:
        harness.release("bob", over)
    assert checked(harness, fence) == FenceInfo("file:a", fence, "ann", "expired", True, "bob", later)


def test_lock_taken_anew_does_not_supersede_itself(harness: LockHarness) -> None:
    """Who lost a lock and took it again is in nobody's way; nor is a reader."""
    fence = locked(harness, "ann")
    harness.pass_time(400_000)
    locked(harness, "ann")
    harness.release("ann", "file:a")
    locked(harness, "bob", mode="read")
    assert not checked(harness, fence).superseded


def test_part_of_a_glob(harness: LockHarness) -> None:
    """Of a glob that was lost, only what another one was granted since is superseded."""
    fence = locked(harness, "ann", "file:src/*")
    harness.pass_time(400_000)
    locked(harness, "bob", "file:src/b")
    assert checked(harness, fence, "file:src/*").superseded
    assert checked(harness, fence, "file:src/*", "file:src/b").superseded
    assert not checked(harness, fence, "file:src/*", "file:src/a").superseded


def test_dead_and_stolen(harness: LockHarness) -> None:
    """A holder that died or was robbed is late as soon as another one holds."""
    harness.pids["ann"] = 7
    fence = locked(harness, "ann")
    harness.life[7] = ProcessState.DEAD
    assert checked(harness, fence).end_reason == "owner_dead"
    stolen = locked(harness, "bob")
    assert checked(harness, fence).superseded
    harness.steal("cleo", "file:a", force=True, reason="test")
    assert checked(harness, stolen).by == "cleo"


def test_unknown_fence(harness: LockHarness) -> None:
    """Of a fence that nobody was given, or of another resource, nothing is known."""
    fence = locked(harness, "ann")
    assert checked(harness, fence + 1).end_reason == "unknown"
    assert checked(harness, fence, "file:b").end_reason == "unknown"


@pytest.mark.parametrize("fence", [(0, "file:a"), (10**16, "file:a"), (1, "file:{a,b}"), (1, "a")])
def test_malformed_fence(harness: LockHarness, fence: tuple[int, str]) -> None:
    """Bad input is refused with a hint."""
    with pytest.raises(Invalid) as caught:
        harness.engine.call(CheckFences(REPOSITORY, ((*fence, ""),)))
    assert caught.value.hint
    with pytest.raises(Invalid):
        harness.engine.call(CheckFences(REPOSITORY, ((1, "file:a", ""),) * (rules.FENCES_MAX + 1)))


def test_work_is_bounded(harness: LockHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind too many later grants nobody can look: then the fence does not count."""
    monkeypatch.setattr(locks, "GRANTS_MAX", 3)
    fence = locked(harness, "ann")
    harness.pass_time(400_000)
    for number in range(2):
        locked(harness, "bob", f"file:b{number}")
        harness.release("bob", f"file:b{number}")
    assert not checked(harness, fence).superseded
    locked(harness, "bob", "file:b3")
    harness.release("bob", "file:b3")
    assert checked(harness, fence).superseded


def test_requests_are_listed_while_they_count() -> None:
    """A waiting request and a denied one are told apart; both are gone after their deadline."""
    with open_store_harness("memory:") as harness:
        harness.actor("ann").take("file:a.py", ttl_ms=3_600_000)
        harness.actor("bob").wait_for("file:a.py", wait_s=30)
        assert not harness.actor("cid").lock("file:a.py").ok
        found = harness.call(ListLockRequests())
        assert [(each.session, each.resources, each.denied) for each in found] == [
            ("bob", ("file:a.py",), False),
            ("cid", ("file:a.py",), True),
        ]
        harness.pass_seconds(3_000)
        assert harness.call(ListLockRequests()) == []


def test_a_listing_names_the_waiters_of_each_lock() -> None:
    """LCK-33: in the order of the queue, for every lock that blocks the request; denied ones do not wait."""
    with open_store_harness("memory:") as harness:
        harness.actor("ann").take("file:a.py", "file:b.py", "file:c.py", ttl_ms=3_600_000)
        harness.actor("bob").wait_for("file:a.py", wait_s=100)
        harness.actor("cid").wait_for("file:*.py", wait_s=100)
        assert not harness.actor("dan").lock("file:c.py").ok
        listed = harness.call(GetLocks(Caller("onlooker"))).locks
        assert {lock.resource: lock.waiters for lock in listed} == {
            "file:a.py": ["bob", "cid"],
            "file:b.py": ["cid"],
            "file:c.py": ["cid"],
        }
        assert not any(lock.waiters for lock in harness.call(ListLocks(Caller("onlooker"))))
        harness.pass_seconds(101)
        assert not any(lock.waiters for lock in harness.call(GetLocks(Caller("onlooker"))).locks)


def test_waiters_are_looked_up_together(harness: LockHarness) -> None:
    """Two reads and their verification, however many locks and waiters there are."""
    harness.beat("ann")
    harness.give("ann", [f"file:{number:03d}.py" for number in range(100)])
    for number in range(20):
        harness.wait(f"s{number}", f"file:{number:03d}.py")
    harness.store.questions = 0
    listed = harness.engine.call(GetLocks(harness.who("watcher"))).locks
    assert harness.store.questions <= 3
    assert sum(len(lock.waiters) for lock in listed) == 20


def listed_in_pages(harness: LockHarness, limit: int, session: str = "") -> list[list[str]]:
    pages, after, more = [], "", True
    while more:
        page = harness.engine.call(GetLocks(harness.who("watcher"), session, after, limit))
        pages.append([lock.resource for lock in page.locks])
        after, more = page.after, bool(page.after)
    return pages


def test_pages_show_every_lock_once(harness: LockHarness) -> None:
    """The last page says that it is the last, also if it is full; of one session or of all."""
    for name in ("ann", "bob"):
        harness.beat(name)
    harness.give("ann", [f"file:{number}.py" for number in range(4)])
    harness.give("bob", ["file:4.py", "name:x"])
    every = [f"file:{number}.py" for number in range(5)] + ["name:x"]
    assert listed_in_pages(harness, 3) == [every[:3], every[3:]]
    assert listed_in_pages(harness, 4) == [every[:4], every[4:]]
    first, second = listed_in_pages(harness, 3, "ann")
    assert (len(first), sorted(first + second)) == (3, every[:4])
    harness.pass_time(3_600_000)
    assert listed_in_pages(harness, 3) == [[], []], "expired locks are on no page"


def test_a_page_of_another_list_is_refused(harness: LockHarness) -> None:
    """A cursor of one listing would skip locks of another without a word."""
    harness.lock("ann", "file:a", "file:b")
    after = harness.engine.call(GetLocks(harness.who("watcher"), "", "", 1)).after
    assert after
    for session, wrong in (("ann", after), ("", "x")):
        with pytest.raises(Invalid, match="is not on this list"):
            harness.engine.call(GetLocks(harness.who("watcher"), session, wrong, 1))


def test_a_page_reads_a_page(harness: LockHarness) -> None:
    """What a page costs does not grow with the number of locks, wherever the page is."""
    harness.beat("ann")
    costs = []
    for first, end in ((0, 500), (500, 2000)):
        harness.give("ann", [f"file:{number:04d}.py" for number in range(first, end)])
        after = harness.engine.call(GetLocks(harness.who("watcher"), "", "", 200)).after
        page = GetLocks(harness.who("watcher"), "", after, 100)
        costs.append(harness.read_by(lambda: harness.engine.call(page)))  # noqa: B023 - now
    assert costs[0] == costs[1] <= 103


def test_a_check_names_as_many_holders_as_it_was_asked_for(harness: LockHarness) -> None:
    """It reads no more locks than that once the refusal is certain, and says that there are more."""
    harness.beat("ann")
    costs = []
    for first, end in ((0, 500), (500, 2000)):
        harness.give("ann", [f"file:d/{number:04d}.py" for number in range(first, end)])
        ask = CheckLocks(harness.who("bob"), REPOSITORY, ("file:d/*.py",), limit=10)
        found = harness.engine.call(ask)
        assert (found.free, len(found.holders), found.more) == (False, 10, True)
        costs.append(harness.read_by(lambda: harness.engine.call(ask)))  # noqa: B023 - now
    assert costs[1] <= costs[0] + 1, "a further page is not read"
    assert len(harness.check("bob", "file:d/*.py").holders) == 2000, "without a limit all are named"


def test_a_limited_check_says_whether_something_is_left_out(harness: LockHarness) -> None:
    """Locks of the dead are no holders, so they neither fill the limit nor count as more."""
    harness.pids = {"ann": 1, "bob": 2}
    for name in ("ann", "bob"):
        harness.lock(name, *(f"file:d/{name}{number}.py" for number in range(3)))
    ask = CheckLocks(harness.who("cid"), REPOSITORY, ("file:d/ann*", "file:d/*", "file:d"), limit=6)
    assert (len(harness.engine.call(ask).holders), harness.engine.call(ask).more) == (6, False)
    harness.life[1] = ProcessState.DEAD
    ask = CheckLocks(harness.who("cid"), REPOSITORY, ("file:d/*",), limit=3)
    found = harness.engine.call(ask)
    assert ([lock.owner for lock in found.holders], found.more) == (["bob"] * 3, False)
    harness.life[2] = ProcessState.DEAD
    assert harness.engine.call(ask).free
