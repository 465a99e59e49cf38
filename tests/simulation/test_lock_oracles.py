"""The judge of lock runs itself: what one commit may do to a hold that its owner gets anew, and what not."""

import json
from typing import Any

import pytest

from coord.stores.contract import Commit, Put
from tests.linearizability.ledger import Violation
from tests.simulation.oracles.locks import LockOracle

KEY = "lock/file/repo/a//=ann"
GRANTED_MS, LEASE_MS = 1_000, 20_000
ENDS_MS = GRANTED_MS + LEASE_MS
NAMES = {"resource": "file:a", "session": "ann"}


def _grant(at: int, mode: str, profile: str, *before: dict[str, Any]) -> Commit:
    """A commit that grants `ann` a lock, after the events of what ended before in the same commit."""
    hold = {"resource": "file:a", "owner": "ann", "mode": mode, "profile": profile}
    put = Put(json.dumps({**hold, "expires_ms": at + LEASE_MS}).encode())
    events = [*before, {"event": "lock.acquired", **NAMES}]
    return Commit(puts={KEY: put}, events=[json.dumps(event).encode() for event in events], at=at)


def _end(end_reason: str, until_ms: int) -> dict[str, Any]:
    return {"event": "lock.released", **NAMES, "fence": 1, "end_reason": end_reason, "until_ms": until_ms}


def _oracle(profile: str) -> LockOracle:
    """Books in which `ann` reads under a lock of a profile."""
    oracle = LockOracle(is_dead=lambda _: False)
    oracle.add(_grant(GRANTED_MS, "read", profile), 1)
    return oracle


def test_a_ticket_that_ends_and_is_granted_anew_in_one_commit_is_no_upgrade() -> None:
    """LCK: past its lease a ticket may end before its reader asks to write; the log tells both."""
    oracle = _oracle("ticket")
    oracle.add(_grant(ENDS_MS + 5, "write", "file", _end("expired", ENDS_MS)), 2)
    assert (oracle.counts["ended expired"], oracle.counts["upgraded"]) == (1, 0)
    assert [(held.fence, held.ended) for held in oracle.granted["file:a", 1]] == [(1, 2)]
    assert oracle.locks[KEY].fence == 2


@pytest.mark.parametrize("at", [ENDS_MS - 5, ENDS_MS + 5])
def test_a_ticket_whose_reader_writes_from_now_on_is_an_upgrade(at: int) -> None:
    """LCK: a ticket past its lease stands while nothing ended it, and its reader may write without a gap."""
    oracle = _oracle("ticket")
    oracle.add(_grant(at, "write", "ticket"), 2)
    assert (oracle.counts["ended expired"], oracle.counts["upgraded"]) == (0, 1)


@pytest.mark.parametrize(
    ("profile", "at", "complaint"),
    [("ticket", ENDS_MS - 5, "expired before its time"), ("file", ENDS_MS - 5, "an event without a change")],
)
def test_an_end_before_its_time_is_found(profile: str, at: int, complaint: str) -> None:
    """LCK: no lease is said to have run out before it did, whoever has the lock next."""
    with pytest.raises(Violation, match=complaint):
        _oracle(profile).add(_grant(at, "write", profile, _end("expired", at)), 2)
