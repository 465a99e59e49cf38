"""What a lock excludes, and what ends it: its lease, the death of its owner, or neither."""

import pytest

from coord.core.errors import Invalid
from coord.core.identity import ProcessState
from tests.support.lock_harness import LockHarness

EXPIRED, DEAD, SILENT, ALIVE, UNKNOWN = "expired", "dead", "silent", "alive", "unknown"


PROFILES = {"file": "file:a", "name": "name:a", "ticket": "file:a"}


@pytest.fixture
def harness() -> LockHarness:
    return LockHarness()


@pytest.mark.parametrize(
    ("profile", "owner", "granted"),
    [
        ("file", EXPIRED, True),
        ("file", DEAD, True),
        ("file", SILENT, False),
        ("file", ALIVE, False),
        ("file", UNKNOWN, False),
        ("name", EXPIRED, False),
        ("name", DEAD, False),
        ("name", SILENT, False),
        ("name", ALIVE, False),
        ("name", UNKNOWN, False),
        ("ticket", EXPIRED, True),
        ("ticket", DEAD, True),
        ("ticket", SILENT, True),
        ("ticket", ALIVE, False),
        ("ticket", UNKNOWN, False),
    ],
)
def test_what_ends_a_hold(harness: LockHarness, profile: str, owner: str, granted: bool) -> None:
    """CFL-6, CFL-8, LCK-27, LCK-38, LCK-77, SCH-4: what an acquire may pass over, by profile and owner."""
    harness.pids["ann"] = 7
    harness.life[7] = {DEAD: ProcessState.DEAD, ALIVE: ProcessState.ALIVE}.get(owner, ProcessState.UNKNOWN)
    ttl = 30_000 if owner == EXPIRED else 600_000
    first = harness.lock("ann", PROFILES[profile], ttl=ttl, profile=profile)
    harness.pass_time(121_000 if owner == SILENT else 20_000)
    if owner == EXPIRED:
        harness.beat("ann")
        harness.pass_time(10_000)
    reply = harness.lock("bob", PROFILES[profile], profile=profile)
    assert reply.ok is granted
    if granted:
        assert reply.locks[0].fence > first.locks[0].fence
    else:
        assert (reply.holder.owner, reply.position) == ("ann", 1)


def test_ticket_of_a_living_owner_outlasts_its_lease(harness: LockHarness) -> None:
    """LCK-27, CFL-6, AMB-4: past its lease a ticket stands as long as its owner's process is seen alive."""
    harness.pids["ann"], harness.life[7] = 7, ProcessState.ALIVE
    harness.lock("ann", "file:a", ttl=30_000, profile="ticket")
    harness.pass_time(100_000)
    assert not harness.lock("bob", "file:a").ok
    harness.life[7] = ProcessState.UNKNOWN
    assert harness.lock("cid", "file:a").ok


def test_silent_owner_keeps_its_other_locks_while_it_lives(harness: LockHarness) -> None:
    """SCN-24: two minutes of silence end a ticket; a process that is seen alive is not declared dead."""
    harness.pids["ann"], harness.life[7] = 7, ProcessState.ALIVE
    harness.lock("ann", "file:t", profile="ticket", ttl=900_000)
    harness.lock("ann", "file:f", ttl=900_000)
    harness.pass_time(121_000)
    assert harness.lock("bob", "file:t").ok
    assert ("ann", "file:f") in harness.held()


@pytest.mark.parametrize(
    ("held", "wanted", "granted"),
    [
        ("read", "read", True),
        ("read", "write", False),
        ("write", "read", False),
        ("write", "write", False),
        ("read", "exclusive", False),
        ("exclusive", "read", False),
    ],
)
def test_modes(harness: LockHarness, held: str, wanted: str, granted: bool) -> None:
    """LCK-5, LCK-13, LCK-14, LCK-16, LCK-17, LCK-18, LCK-19, LCK-20: only readers share."""
    harness.lock("ann", "file:a", mode=held)
    assert harness.lock("bob", "file:a", mode=wanted).ok is granted
    assert harness.check("bob", "file:a", mode=wanted).free is granted


def test_names_are_one_in_all_spellings(harness: LockHarness) -> None:
    """CFL-4: a name in another case or composition is the same lock, and every session can hold it."""
    harness.lock("ann", "name:\u0390")
    assert not harness.lock("bob", "name:\u03aa\u0301").ok
    assert harness.lock("s" * 128, "name:" + "\u0390" * 70).ok
    with pytest.raises(Invalid):
        harness.lock("ann", "name:" + "%" * 100 + "\U0001f600" * 40)
