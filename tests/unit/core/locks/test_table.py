"""The reads of a lock command: everything that it may conflict with, loaded at once."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from coord.core import keys
from coord.core.dispatch import TARGETS
from coord.core.locks.commands import AcquireLocks
from coord.core.locks.resources import Resource, parse_resource
from coord.core.transaction import Transaction
from tests.support.lock_harness import REPOSITORY, LockHarness


@pytest.fixture
def harness() -> LockHarness:
    return LockHarness()


def test_reads_do_not_grow_with_locks_elsewhere(harness: LockHarness) -> None:
    """Ten thousand locks in the same and other directories cost nothing to who asks for another file."""

    def work() -> None:
        assert harness.check("bob", "file:src/new.py").free
        assert harness.lock("bob", "file:src/new.py").ok
        harness.release("bob", "file:src/new.py")

    harness.beat("bob")
    work()
    exact = harness.read_by(work)
    harness.beat("ann")
    harness.give("ann", [f"file:src/{'' if n % 2 else f'p{n % 100}/'}m{n}.py" for n in range(10_000)])
    assert harness.read_by(work) == exact
    assert harness.check("bob", "file:src/m9999.py", "file:src/p98/m9998.py").free is False


def test_questions_to_the_store(harness: LockHarness) -> None:
    """OPN-7: a lock is one read and one commit however deep its path, a look is one read."""
    harness.beat("ann")
    path = "file:" + "/".join("abcdefgh")

    def questions(act: Callable[[], Any]) -> int:
        harness.store.questions = 0
        act()
        return harness.store.questions

    assert questions(lambda: harness.lock("ann", path, "file:b/c/d", "file:e/f/**")) == 2
    assert questions(lambda: harness.check("ann", f"{path}/i")) == 1
    harness.beat("bob")
    assert questions(lambda: harness.check("bob", path)) <= 3, (
        "who holds it is read, too, and all of it verified"
    )
    assert questions(lambda: harness.lock("bob", "file:z")) == 2
    harness.beat("cid")
    denied = questions(lambda: harness.lock("cid", path, "file:b/c/d", "file:e/f/g"))
    assert denied <= 4, "the locks, all about their holder, the message to it, and the commit"


def test_a_denial_scans_each_range_once(harness: LockHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request loads its lock table once, and the rule is not restarted to read the holder."""
    harness.lock("ann", "file:a/b")
    scans: list[str] = []
    scan = Transaction.scan

    def counted(self: Transaction, prefix: str, **options: Any) -> Any:
        scans.append(prefix)
        return scan(self, prefix, **options)

    monkeypatch.setattr(Transaction, "scan", counted)
    assert not harness.lock("bob", "file:a/b").ok
    looks = Counter(prefix for prefix in scans if prefix.startswith(keys.LOCK_PREFIX))
    assert set(looks.values()) == {1}


def test_more_ranges_than_are_read_at_once(harness: LockHarness) -> None:
    """What stands in the way is found in the last portion of ranges as in the first."""
    paths = [f"file:d{number:02d}/a/b/c/d/e/f.py" for number in range(60)]
    assert sum(len(resource.ranges) for path in paths for resource in parse_resource(path, REPOSITORY)) > 400
    for held in (paths[0], paths[-1], "file:d59/a/b/**"):
        harness.lock("ann", held)
        assert not harness.lock("bob", *paths).ok
        assert not harness.check("bob", *paths).free
        harness.release("ann", held)
    harness.release("bob")
    assert harness.lock("cid", *paths).ok


class Work:
    """Counts what a command does: runs of its rule, reads, scans and compared patterns."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts: Counter[str] = Counter()
        for owner, name in ((Transaction, "get"), (Transaction, "scan"), (Resource, "overlaps")):
            monkeypatch.setattr(owner, name, self._counted(name, getattr(owner, name)))
        rule = "coord.core.locks.acquire:acquire_locks"
        monkeypatch.setitem(TARGETS, rule, self._counted("runs", TARGETS[rule]))

    def _counted(self, name: str, function: Any) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            self.counts[name] += 1
            return function(*args, **options)

        return call

    def of(self, harness: LockHarness, commands: list[AcquireLocks]) -> dict[str, int]:
        """Return the counts of commands that are run in one batch and denied."""
        self.counts.clear()
        harness.store.questions = 0
        assert not any(reply.ok for reply in harness.engine.call_many(commands))
        return {**self.counts, "questions": harness.store.questions}


@pytest.mark.parametrize("requests", [1, 3])
def test_the_work_of_a_broad_request_grows_with_the_locks(
    harness: LockHarness, monkeypatch: pytest.MonkeyPatch, requests: int
) -> None:
    """Four times the locks and holders are at most four times the work, alone and in a batch with others.

    A rule that was restarted for every page or for every holder would do sixteen times the work.
    """
    work = Work(monkeypatch)
    wide = [
        AcquireLocks(harness.who(f"ask{number}"), REPOSITORY, ("file:src/**/*.py",))
        for number in range(requests)
    ]
    counts = []
    for first, end in ((0, 500), (500, 2000)):
        hold_many(harness, first, end)
        counts.append(work.of(harness, wide))
    few, many = counts
    assert few["overlaps"] >= 500
    for name in ("get", "scan", "overlaps"):
        assert many[name] <= 4.5 * few[name], name
    assert many["runs"] <= few["runs"] + 3 * requests
    assert many["questions"] <= few["questions"] + 3
    assert requests > 1 or many["runs"] == few["runs"] == 1


def hold_many(harness: LockHarness, first: int, end: int) -> None:
    """Ten locks for each session, each session in a process of its own."""
    for start in range(first, end, 10):
        name = f"holder{start}"
        harness.pids[name] = start + 100
        assert harness.lock(
            name, *(f"file:src/d{number // 50}/f{number}.py" for number in range(start, start + 10))
        ).ok
