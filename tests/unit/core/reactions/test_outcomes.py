"""Reactions write in nobody's name: outcomes, messages of the system, and decisions that are logged."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from coord.core.errors import NotFound
from coord.core.identity import Caller
from coord.core.reactions.commands import DecideReaction, NoteReactions, SendReactionMessage
from coord.core.reactions.schema import ReactionDropped, ReactionFailed, ReactionRan, ReactionRefused, hops_of
from coord.stores.open import open_store
from tests.support.store_harness import StoreHarness


@pytest.fixture
def harness() -> Iterator[StoreHarness]:
    with closing(open_store("memory:")) as database:
        yield StoreHarness(database)


def test_outcomes_are_events(harness: StoreHarness) -> None:
    ran = ReactionRan("4.0.test", "test", "git.committed", 12, "ok", 1)
    failed = ReactionFailed("5.0.chat", "chat", "task.completed", "no answer", 8, 1)
    dropped = ReactionDropped("chat", 3, "6.0", "8.1")
    refused = ReactionRefused("9.0.loop", "loop", "message.sent", 4)
    assert harness.call(NoteReactions((ran,), (failed,), (dropped,), (refused,))) == 4
    names = [event["event"] for event in harness.events()]
    assert names == ["reaction.ran", "reaction.failed", "reaction.dropped", "reaction.refused"]


def test_a_message_comes_from_the_system_and_from_nobody_else(harness: StoreHarness) -> None:
    """Neither the agent that caused the event nor the person who configured the reaction says this."""
    harness.actor("lea-1", role="lead").register()
    harness.actor("ada-1").register()
    harness.call(SendReactionMessage(to="role:lead", subject="ada is done", reaction="summary", hops=1))
    (message,) = harness.actor("lea-1").receive()
    assert (message.from_session_id, message.subject, message.hops) == ("system", "[System] ada is done", 1)
    assert message.blob == {"reaction": "summary"}
    assert harness.actor("ada-1").receive() == []
    with pytest.raises(NotFound, match="role boss"):
        harness.call(SendReactionMessage(to="role:boss", subject="x", reaction="summary"))


def test_a_decision_says_who_made_it(harness: StoreHarness) -> None:
    harness.call(DecideReaction(Caller("ada-1", agent="ada"), id="5.0.chat", retry=True))
    harness.call(DecideReaction(Caller("ada-1", agent="ada"), id="6.0.chat", retry=False))
    made = [(each["id"], each["decision"], each["session"]) for each in harness.events("reaction.decided")]
    assert made == [("5.0.chat", "retry", "ada-1"), ("6.0.chat", "drop", "ada-1")]


@pytest.mark.parametrize(
    ("details", "hops"),
    [
        ({}, 0),
        ({"hops": 2}, 2),
        ({"origin": {"hops": 3}}, 3),
        ({"hops": 1, "origin": {"hops": 2}}, 2),
        ({"origin": "ada", "hops": "many"}, 0),
        ({"origin": {"hops": None}}, 0),
    ],
)
def test_hops_are_those_of_the_event_or_of_its_origin(details: dict, hops: int) -> None:
    assert hops_of(details) == hops
