"""Locks that were granted after a fence: the rule behind late results and the fences of git."""

import pytest

from coord.core.locks import locks
from coord.core.locks.locks import SOMEBODY, ended_since, granted_since
from coord.core.locks.resources import parse_resource
from coord.core.transaction import Transaction
from tests.support.lock_harness import REPOSITORY, LockHarness
from tests.support.rule_harness import Kept, RuleHarness


def owners(harness: LockHarness, resource: str, fence: int, limit: int | None = None) -> list[str]:
    """Run the rule on what the store of a harness holds."""
    source = RuleHarness()
    for prefix in ("lock/", "ended/"):
        (records,) = harness.store.load([], [(prefix, "key", 1000, ("", ""))]).ranges
        source.records |= {each.key: Kept(each.value, each.index_key) for each in records}
    (parsed,) = parse_resource(resource, REPOSITORY)
    tx = Transaction(source)
    found = granted_since(tx, parsed, fence) if limit is None else ended_since(tx, parsed, fence, limit)
    return [lock.owner for lock in found]


def test_only_later_and_overlapping_locks() -> None:
    """Those on record come first, then those that ended; older and other ones are left out."""
    harness = LockHarness()
    fence = harness.lock("ann", "file:src/a.py").locks[0].fence
    harness.release("ann", "file:src/a.py")
    harness.lock("bob", "file:src/*.py")
    harness.release("bob", "file:src/*.py")
    harness.lock("cleo", "file:docs")
    harness.release("cleo", "file:docs")
    assert owners(harness, "file:src/a.py", fence, 100) == ["bob"]
    assert owners(harness, "file:src/a.py", fence - 1, 100) == ["ann", "bob"]


def test_doubt_counts_as_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind too many later locks nobody can look."""
    monkeypatch.setattr(locks, "GRANTS_MAX", 2)
    harness = LockHarness()
    fence = harness.lock("ann", "file:a").locks[0].fence
    for number in range(2):
        harness.lock("bob", f"file:b{number}")
        harness.release("bob", f"file:b{number}")
    assert owners(harness, "file:a", fence, 3) == []
    assert owners(harness, "file:a", fence, 2) == [SOMEBODY]
