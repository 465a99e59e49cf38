"""Deadlocks of two to eight parties, and a patient waiter among the privileged: how long they last."""

import json
import random
from collections.abc import Callable, Generator
from typing import Any

import pytest

from coord.core.errors import CoordError
from coord.core.locks.commands import AcquireLocks, ConfirmWait, ListLocks, LockReply, Outcome, ReleaseLocks
from coord.core.locks.wait_queue import AGING_MS
from tests.conftest import SOAK
from tests.simulation.agents import Ask, Rest, Routine
from tests.simulation.resources import REPOSITORY, RING
from tests.simulation.scene import Actor, Scene
from tests.simulation.scheduler import START_MS
from tests.simulation.setting import CALM, Weather

INTERLEAVED = Weather(interleave=0.4)
BROKEN_WITHIN_MS = 60_000
SERVICE_MS = 5_000
LOOK_MS = 1_000
HIGH = 3


def _lock(actor: Actor, resource: str, wait_ms: int = 0, priority: int = 0) -> AcquireLocks:
    return AcquireLocks(
        actor.caller,
        REPOSITORY,
        (resource,),
        wait_ms=wait_ms,
        wait_id=actor.world.draw_id(),
        waiter=actor.waiter,
        priority=priority,
    )


def _stand(actor: Actor, resource: str, priority: int = 0) -> Generator[Any, Any, LockReply]:
    """Wait in line until something comes of it."""
    reply = yield Ask(_lock(actor, resource, 3_000_000, priority))
    while reply.outcome is Outcome.WAITING:
        yield Rest(LOOK_MS)
        reply = yield Ask(ConfirmWait(actor.caller, reply.wait.wait_id))
    return reply


def _bid(actor: Actor, resource: str) -> Generator[Any, Any, LockReply]:
    """Ask again and again without waiting, until it is granted or one's own lock is lost."""
    while True:
        reply = yield Ask(_lock(actor, resource))
        own = yield Ask(ListLocks(actor.caller, own=True))
        if reply.ok or not own:
            return reply
        yield Rest(actor.world.chance.randrange(4_000, 8_000))


def _party(place: int, parties: int, style: str) -> Callable[[Actor], Routine]:
    """Take one lock of the ring, wait until everybody has, want the next one; give all back at the end."""

    def play(actor: Actor) -> Routine:
        own, wanted = RING[place], RING[(place + 1) % parties]
        reply = yield Ask(_lock(actor, own))
        assert reply.ok, reply
        while len(actor.world.observer.oracle.locks) < parties and not actor.world.notes:
            yield Rest(1_000)
        actor.world.notes.setdefault("closed_ms", actor.world.now_us // 1000)
        reply = yield from (_stand if style == "wait" else _bid)(actor, wanted)
        actor.world.notes[actor.session] = "granted" if reply.ok else "victim"
        released = yield Ask(ReleaseLocks(actor.caller, REPOSITORY, ()))
        assert not isinstance(released, CoordError), released

    return play


def _styles(kind: str, parties: int, chance: random.Random) -> list[str]:
    mixed = [chance.choice(("wait", "denied")) for _ in range(parties - 2)]
    return ["wait", "denied", *mixed] if kind == "mixed" else [kind] * parties


@pytest.mark.parametrize("weather", [CALM, INTERLEAVED], ids=["calm", "interleaved"])
@pytest.mark.parametrize("kind", ["wait", "denied", "mixed"])
@pytest.mark.parametrize("parties", range(2, 9) if SOAK else (2, 3, 5, 8))
def test_a_circle_is_broken_within_a_minute(parties: int, kind: str, weather: Weather) -> None:
    """Whoever waits in a circle, or asks again and again, goes on within 60 s (DLK-13).

    DLK-2, DLK-3, DLK-13, PRF-8.
    """
    styles = _styles(kind, parties, random.Random(parties))
    scene = Scene(parties, [_party(n, parties, style) for n, style in enumerate(styles)], weather)
    scene.play()
    found = [
        (entry.at, event)
        for entry in scene.observer.entries
        for event in map(json.loads, entry.events)
        if event["event"] == "lock.deadlock"
    ]
    broken_ms = [event.get("until_ms", at) for at, event in found if event["resolved"] or "until_ms" in event]
    assert broken_ms, found
    assert all(event["victim"] in event["cycle"] for _, event in found)
    counts = scene.observer.counts
    assert counts["ended deadlock"] + counts["ended preempted"] == len(broken_ms)
    assert counts["ended deadlock"] == (len(broken_ms) if kind == "wait" else 0), (
        "bids leave time to give way"
    )
    assert "granted" in scene.notes.values()
    closed_ms = START_MS + scene.notes["closed_ms"]
    assert max(broken_ms) - closed_ms <= BROKEN_WITHIN_MS
    assert not scene.observer.oracle.locks


def _privileged(actor: Actor) -> Routine:
    """Want the lock with high priority all the time, until the patient one had it."""
    yield Rest(actor.world.chance.randrange(0, 2_000))
    while "waited_ms" not in actor.world.notes:
        reply = yield from _stand(actor, RING[0], HIGH)
        if reply.ok:
            actor.world.notes["overtook"] = actor.world.notes.get("overtook", 0) + (
                "since" in actor.world.notes
            )
            yield Rest(SERVICE_MS)
            yield Ask(ReleaseLocks(actor.caller, REPOSITORY, (RING[0],), reply.locks[0].fence))


def _patient(actor: Actor) -> Routine:
    yield Rest(30_000)
    began = actor.world.now_us // 1000
    actor.world.notes["since"] = began
    reply = yield from _stand(actor, RING[0])
    assert reply.ok, reply
    actor.world.notes["waited_ms"] = actor.world.now_us // 1000 - began
    yield Ask(ReleaseLocks(actor.caller, REPOSITORY, (RING[0],)))


@pytest.mark.parametrize("weather", [CALM, INTERLEAVED], ids=["calm", "interleaved"])
@pytest.mark.parametrize("privileged", [2, 4, 6] if SOAK else [2, 5])
def test_the_aged_get_through(privileged: int, weather: Weather) -> None:
    """SCN-22, DLK-17: among constant requests of priority 3, one of priority 0 waits for its head start only.

    Whoever came within that time is ahead of it: at most one request each, and one that is being served.
    """
    scene = Scene(privileged, [_patient, *[_privileged] * privileged], weather)
    scene.notes["overtook"] = 0
    scene.play()
    waited_ms, turn_ms = scene.notes["waited_ms"], SERVICE_MS + 3 * LOOK_MS
    assert waited_ms <= HIGH * AGING_MS + (privileged + 1) * turn_ms
    assert waited_ms >= HIGH * AGING_MS - turn_ms, "priority was worth nothing"
    assert scene.notes["overtook"] >= privileged
