"""A queue tries again with growing pauses, gives up after its attempts, and stops when it is told to."""

import threading
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coord.followers.reactions import queue
from coord.followers.reactions.actions import Outcome
from coord.followers.reactions.events import Delivery, Pattern, Position
from coord.followers.reactions.queue import BACKOFF_S_MAX, Finished, ReactionQueue, backoff_s
from coord.followers.reactions.settings import Command, Reaction

JOIN_S = 30.0
REACTION = Reaction("a", Pattern(("task.*",)), Command(("true",), "/"), 3, 60, "file", 0)


def delivery(number: int) -> Delivery:
    return Delivery(Position(number, 0), "task.completed", 0, {})


def performed(outcomes: list[Outcome], monkeypatch: pytest.MonkeyPatch) -> tuple[list[Finished], int]:
    """Perform one delivery with these outcomes; return how it ended, and how often it was tried."""
    monkeypatch.setattr(queue, "BACKOFF_S", 0.0)
    left, found = list(outcomes), deque[Finished]()
    made = ReactionQueue(REACTION, lambda *_: left.pop(0), found, Position(0, 0))
    made.offer(delivery(1))
    made.go_on()
    assert made._thread is not None
    made._thread.join(JOIN_S)
    return list(found), len(outcomes) - len(left)


def test_a_failure_is_tried_again_as_often_as_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    bad, good = Outcome("no answer"), Outcome()
    assert performed([bad, good, good], monkeypatch)[1] == 2
    (found,), tried = performed([bad, bad, bad, good], monkeypatch)
    assert (found.outcome.error, found.attempts, tried) == ("no answer", 3, 3)
    (found,), tried = performed([Outcome("gone", permanent=True), good], monkeypatch)
    assert (found.outcome.error, tried) == ("gone", 1)
    assert performed([Outcome("coord stops", stopped=True), good], monkeypatch)[0] == []


def test_a_queue_that_stops_waits_for_no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = threading.Event()

    def attempt(*_: object) -> Outcome:
        tried.set()
        return Outcome("later", after_s=3600)

    found = deque[Finished]()
    made = ReactionQueue(REACTION, attempt, found, Position(0, 0))
    made.offer(delivery(1))
    made.offer(delivery(2))
    made.go_on()
    assert tried.wait(JOIN_S)
    made.close()
    assert made._thread is not None
    assert not made._thread.is_alive()
    assert (made.first, made.waiting, list(found)) == (Position(1, 0), 2, [])


@given(st.lists(st.booleans(), max_size=30), st.integers(1, 5))
def test_it_is_bounded_and_drops_the_oldest(steps: list[bool], bound: int) -> None:
    """Whatever comes and goes, at most the bound waits, in order, and all that is missing was counted."""
    before, queue.WAITING_MAX = queue.WAITING_MAX, bound
    try:
        made = ReactionQueue(REACTION, lambda *_: Outcome(), deque(), Position(0, 0))
        expected: list[int] = []
        offered = taken = 0
        for offers in steps:
            if offers:
                offered += 1
                made.offer(delivery(offered))
                expected = [*expected, offered][-bound:]
            elif (found := made._take()) is not None:
                assert found.position.offset == expected.pop(0)
                made.noted()
                taken += 1
        assert made.waiting == len(expected) <= bound
        assert offered == taken + len(expected) + made.dropped_count
        assert made.first == (Position(expected[0], 0) if expected else None)
    finally:
        queue.WAITING_MAX = before


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_pauses_grow_and_are_bounded(attempts: int, chance: float) -> None:
    pause = backoff_s(attempts, chance)
    assert 0.5 <= pause <= BACKOFF_S_MAX
    assert backoff_s(attempts + 1, chance) >= pause
