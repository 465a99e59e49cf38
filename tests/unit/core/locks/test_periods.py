"""When locks were held: present periods, and the ended ones, newest first, however many there are."""

import pytest

from coord.core.errors import Invalid
from coord.core.identity import Caller
from coord.core.locks import queries as rules
from coord.core.locks.commands import ListLockPeriods, LockPeriod, ReleaseLocks
from tests.support.lock_harness import LockHarness
from tests.support.store_harness import StoreHarness, open_store_harness


@pytest.fixture
def harness() -> LockHarness:
    return LockHarness()


def held_once(harness: LockHarness, name: str, *resources: str) -> int:
    """Lock and release; return the fence."""
    fence = harness.lock(name, *resources).locks[0].fence
    harness.release(name, *resources)
    return int(fence)


def ended(harness: LockHarness | StoreHarness, limit: int = 500, **which: object) -> list[list[LockPeriod]]:
    """Return the pages of ended periods, the last of which says that it is the last."""
    pages, before, more = [], 0, True
    while more:
        command = ListLockPeriods(ended=True, before=before, limit=limit, **which)  # type: ignore[arg-type]
        page = harness.engine.call(command) if isinstance(harness, LockHarness) else harness.call(command)
        pages.append(page.periods)
        assert not page.after
        before, more = page.before, bool(page.before)
    return pages


def names(pages: list[list[LockPeriod]]) -> list[str]:
    return [period.resource for page in pages for period in page]


def test_present_periods_come_in_pages_and_end_at_their_deadline() -> None:
    """Current locks in pages; a lock whose lease has expired is reported as ended."""
    with open_store_harness("memory:") as harness:
        ann = harness.actor("ann")
        ann.take("file:first.py", "file:last.py")
        ann.unlock("file:first.py")
        (current,) = harness.call(ListLockPeriods()).periods
        assert (current.resource, current.until_ms, current.end_reason) == ("file:last.py", 0, "")
        assert harness.call(ListLockPeriods("file/repo")).periods == [current]
        assert harness.call(ListLockPeriods(resources=("file:last.*",))).periods == [current]
        assert harness.call(ListLockPeriods(resources=("file:first.py", "name:last.py"))).periods == []
        ann.take("file:second.py")
        first = harness.call(ListLockPeriods(limit=1))
        second = harness.call(ListLockPeriods(limit=1, after=first.after))
        assert names([first.periods, second.periods]) == ["file:last.py", "file:second.py"]
        harness.pass_seconds(301)
        expired, _ = harness.call(ListLockPeriods()).periods
        assert (expired.end_reason, expired.until_ms) == ("expired", expired.from_ms + 300_000)


@pytest.mark.parametrize("limit", [1, 2, 3, 500])
def test_ended_periods_come_newest_first(harness: LockHarness, limit: int) -> None:
    """Every period is on one page, whatever the length of a page: the locks of one grant stay together."""
    fences = [held_once(harness, "ann", f"file:{number}.py") for number in range(5)]
    both = held_once(harness, "bob", "file:x.py", "file:y.py")
    held_once(harness, "bob", "name:push")
    pages = ended(harness, limit)
    found = names(pages)
    assert found[0] == "name:push"
    assert sorted(found[1:3]) == ["file:x.py", "file:y.py"]
    assert found[3:] == [f"file:{number}.py" for number in reversed(range(5))]
    assert [period.fence for page in pages for period in page][1:] == [both, both, *reversed(fences)]
    assert max(map(len, pages)) <= limit + 1


def test_only_what_was_granted_before_a_fence(harness: LockHarness) -> None:
    """A page of an earlier time: what was granted later is not on it."""
    fences = [held_once(harness, "ann", f"file:{number}.py") for number in range(3)]
    page = harness.engine.call(ListLockPeriods(ended=True, before=fences[2]))
    assert names([page.periods]) == ["file:1.py", "file:0.py"]
    assert harness.engine.call(ListLockPeriods(ended=True, before=1)).periods == []


def test_of_one_resource_in_every_repository(harness: LockHarness) -> None:
    """A folder, a glob and the file itself are one history; names, projects and other files are others."""
    for resource in ("file:src/a.py", "file:src/*", "file:src", "file:docs/a.md", "name:src", "project:shop"):
        held_once(harness, "ann", resource)
    assert names(ended(harness, resources=("file:src/a.py",))) == ["file:src", "file:src/*", "file:src/a.py"]
    assert names(ended(harness, resources=("file:docs",))) == ["file:docs/a.md"]
    assert names(ended(harness, resources=("name:src", "project:shop"))) == ["project:shop", "name:src"]
    assert names(ended(harness, resources=("file:src/a.py",), space="name/repo")) == []
    with open_store_harness("memory:") as other:
        for repository in ("here", "elsewhere"):
            other.actor("bob").take("file:src/a.py", "file:b.py", repository=repository)
            other.call(ReleaseLocks(Caller("bob"), repository, ()))
        assert names(ended(other, resources=("file:src/a.py",))) == ["file:src/a.py"] * 2


@pytest.mark.parametrize("page", [1, 2, 7])
def test_pages_of_the_store_hide_nothing(
    harness: LockHarness, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    """However few keys are read at once, and if one grant has more locks than that."""
    monkeypatch.setattr(rules, "PAGE", page)
    every = []
    for number in range(12):
        resources = [f"file:{number}-{each}.py" for each in range(number % 4)] or [f"file:{number}.py"]
        held_once(harness, "ann", *resources)
        every += resources
    found = names(ended(harness, 3))
    assert sorted(found) == sorted(every)
    assert len(found) == len(every)
    grants = [int(name.removeprefix("file:").partition(".")[0].partition("-")[0]) for name in found]
    assert grants == sorted(grants, reverse=True)


def test_the_work_for_a_page_is_bounded(harness: LockHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that finds little ends early and says where to go on: the rest is on the next ones."""
    monkeypatch.setattr(rules, "READ_MAX", 4)
    monkeypatch.setattr(rules, "PAGE", 2)
    held_once(harness, "ann", "file:rare.py")
    for number in range(20):
        held_once(harness, "ann", f"file:{number}.py")
    pages = ended(harness, 2, resources=("file:rare.py",))
    assert len(pages) > 2
    assert names(pages) == ["file:rare.py"]


@pytest.mark.parametrize(
    "wrong",
    [
        ListLockPeriods(before=7),
        ListLockPeriods(ended=True, after="lock/x"),
        ListLockPeriods(ended=True, before=-1),
        ListLockPeriods(ended=True, before=10**16),
        ListLockPeriods(ended=True, limit=0),
        ListLockPeriods(limit=-1),
        ListLockPeriods(resources=("src/a.py",)),
        ListLockPeriods(resources=("name:a",) * 257),
    ],
)
def test_a_wrong_question_is_refused(harness: LockHarness, wrong: ListLockPeriods) -> None:
    """A cursor of the other list would hide locks without a word."""
    with pytest.raises(Invalid) as caught:
        harness.engine.call(wrong)
    assert caught.value.hint
