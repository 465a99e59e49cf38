"""Delegations: who does what for whom, until it is done, cancelled, or its recipient has ended."""

from typing import Any

import pytest

from coord.core.errors import Invalid, LimitReached, NotFound, Refused
from coord.core.identity import Caller, ProcessState
from coord.core.lifecycle.commands import Register
from coord.core.messages.commands import AddDelegation, EndDelegation, ListDelegations
from tests.support.lock_harness import LockHarness
from tests.support.message_calls import receive, subjects

LOGIN = "write the tests of the login form"


def delegate(
    harness: LockHarness, by: str = "ann", to: str = "bob", what: str = LOGIN, task: str = ""
) -> Any:
    return harness.engine.call(AddDelegation(caller=harness.who(by), to=to, what=what, task=task))


def end(harness: LockHarness, name: str, by: str, *, cancel: bool = False) -> Any:
    return harness.engine.call(EndDelegation(caller=harness.who(by), id=name, cancel=cancel))


def active(harness: LockHarness) -> list[str]:
    return [each.id for each in harness.engine.call(ListDelegations(harness.who("ann")))]


def test_it_is_asked_for_and_done(harness: LockHarness) -> None:
    """MSG-19: its recipient gets a message, reports it as done, and its sender hears of that."""
    harness.engine.call(Register(caller=Caller("bob", agent="otto", role="tester")))
    added = delegate(harness, to="otto", task="A-001-login").delegation
    assert active(harness) == [added.id]
    (message,) = receive(harness, "bob", drain=True).messages
    assert (message.kind, message.subject) == ("request", f"{added.id}: {LOGIN}")
    assert message.blob == {"delegation": added.id, "task": "A-001-login"}
    with pytest.raises(Refused, match="only bob reports"):
        end(harness, added.id, "ann")
    end(harness, added.id, "bob")
    assert active(harness) == []
    assert subjects(receive(harness, "ann")) == [f'[System] bob has done: "{LOGIN}" ({added.id})']
    (event,) = harness.events("delegation.added")
    assert (event["to"], event["to_agent"], event["to_role"]) == ("bob", "otto", "tester")
    with pytest.raises(NotFound):
        end(harness, added.id, "bob")


def test_it_is_cancelled(harness: LockHarness) -> None:
    """MSG-19: by whoever gave it, or by a person; its recipient hears of it."""
    first, second = delegate(harness).delegation, delegate(harness, what="paint the house").delegation
    receive(harness, "bob", drain=True)
    with pytest.raises(Refused, match="only ann cancels"):
        end(harness, first.id, "bob", cancel=True)
    end(harness, first.id, "ann", cancel=True)
    person = Caller("ida@host:7-1", person=True)
    harness.engine.call(EndDelegation(caller=person, id=second.id, cancel=True))
    assert subjects(receive(harness, "bob")) == [
        f'[System] cancelled: "{LOGIN}" ({first.id})',
        f'[System] cancelled: "paint the house" ({second.id})',
    ]
    assert [event["session"] for event in harness.events("delegation.cancelled")] == ["ann", "ida@host:7-1"]
    assert active(harness) == []


def test_it_ends_with_its_recipient(harness: LockHarness) -> None:
    """MSG-19: whether that leaves or dies; a successor takes it over. Its sender is notified."""
    harness.pids = {"eve": 7}
    harness.beat("eve")
    first, second = delegate(harness).delegation, delegate(harness, to="eve", what="paint").delegation
    harness.engine.call(Register(caller=harness.who("new"), replaces="bob", force=True, reason="it hangs"))
    assert set(active(harness)) == {first.id, second.id}
    harness.life = {7: ProcessState.DEAD}
    harness.pass_time(130_000)
    harness.beat("ann")
    assert active(harness) == [first.id]
    receive(harness, "new", drain=True)
    harness.leave("new")
    assert active(harness) == []
    assert subjects(receive(harness, "ann")) == [
        f'[System] eve has ended without: "paint" ({second.id})',
        f'[System] new has ended without: "{LOGIN}" ({first.id})',
    ]
    assert {event["end_reason"] for event in harness.events("delegation.ended")} == {"recipient ended"}


def test_a_similar_one_is_only_a_warning(harness: LockHarness) -> None:
    """DED-1, DED-2: more than half of the words, among active ones, whoever gave them; it proceeds anyway."""
    harness.beat("eve")
    first = delegate(harness).delegation
    again = delegate(harness, "eve", what="Write login form tests, please")
    assert [(each.delegation.id, each.share) for each in again.similar] == [(first.id, 1.0)]
    assert delegate(harness, what="login form").similar == [], "half of the words is not more than half"
    assert delegate(harness, what="paint the house").similar == []
    assert len(active(harness)) == 4
    end(harness, first.id, "bob")
    end(harness, again.delegation.id, "bob")
    assert delegate(harness).similar == []


def test_it_goes_to_one_session(harness: LockHarness) -> None:
    """MSG-19: an agent with several sessions is no address for it; 500 are active at most."""
    for name in ("s-1", "s-2"):
        harness.engine.call(Register(caller=Caller(name, agent="otto")))
    with pytest.raises(Invalid, match="otto means 2 sessions"):
        delegate(harness, to="otto")
    for number in range(500):
        delegate(harness, f"lead-{number // 100}", what=f"job {number}")
    with pytest.raises(LimitReached, match="500 delegations"):
        delegate(harness)
