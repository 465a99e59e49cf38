"""The stories of the third founding document: peers, named locks, thefts, messages."""

import json
import os
import threading
from typing import Any

import msgspec
import pytest

from coord.core import keys
from coord.core.errors import NotOwner, NotStealable, Unsupported
from coord.core.identity import Caller, Process
from coord.core.locks.commands import AcquireLocks, Outcome, ReleaseLocks
from coord.core.locks.resources import parse_resource
from coord.core.sessions.schema import Liveness
from coord.engine.engine import Engine
from coord.host.processes import describe, probe
from coord.stores.contract import Commit, Put
from tests.support.client_harness import ClientHarness
from tests.support.store_harness import REPOSITORY, Actor, StoreHarness


class Crash(Exception):
    """What goes wrong in the middle of a task."""


def lock_key(resource: str, session: str) -> str:
    return parse_resource(resource, REPOSITORY)[0].lock_key(session)


def write(harness: StoreHarness, key: str, fields: dict[str, Any], index_key: str = "") -> None:
    """Put a record as another version of coord would have written it."""
    version = harness.store.load([key])[key].version
    puts = {key: Put(msgspec.json.encode(fields), index_key)}
    harness.store.commit(Commit({key: version}, puts, at=harness.now, id=os.urandom(8)))


def read(harness: StoreHarness, key: str) -> dict[str, Any]:
    value = harness.store.load([key])[key].value
    assert value is not None, f"there is no {key}"
    fields: dict[str, Any] = json.loads(value)
    return fields


def test_scn_33_a_failing_task_gives_its_locks_back(clients: ClientHarness) -> None:
    """SCN-33, LCK-26: whatever is raised inside the block, the lock is free when the block is left."""
    beatrice, otto = clients.client("beatrice"), clients.client("otto")

    def fail() -> None:
        with beatrice.lock("src/app.py", ttl_s=300) as held:
            assert otto.acquire("src/app.py").outcome is Outcome.HELD
            assert held.fence > 0
            raise Crash("tests failed")

    with pytest.raises(Crash, match="tests failed"):
        fail()
    assert beatrice.locks() == []
    assert otto.acquire("src/app.py").ok
    with otto.lock("src/other.py"):
        assert len(otto.locks()) == 2
    assert [lock.resource for lock in otto.locks()] == ["file:src/app.py"], "the block took only its own"


def test_scn_34_a_session_meets_its_peers(harness: StoreHarness) -> None:
    """SCN-34, SES-18: who registers is shown the two others, where they are and what they do."""
    harness.actor("c87d1c5c", cwd="/projects/reverie").register(task="TOD-406", phase="merge")
    harness.pass_seconds(1)
    harness.actor("3443aaaa", cwd="/projects/shop").register(status="working")
    harness.pass_seconds(400)
    harness.actor("3443aaaa").beat()
    registered = harness.actor("newcomer").register()
    assert registered.new
    shown = {peer.session_id: (peer.cwd, peer.liveness, peer.current_task) for peer in registered.peers}
    assert shown == {
        "c87d1c5c": ("/projects/reverie", Liveness.STALE, {"ticket": "TOD-406", "phase": "merge"}),
        "3443aaaa": ("/projects/shop", Liveness.LIVE, {"status": "working"}),
    }
    assert [peer.session_id for peer in harness.actor("newcomer").peers(live=True)] == ["3443aaaa"]


def test_scn_35_two_race_for_one_name(harness: StoreHarness) -> None:
    """SCN-35: of two sessions that lock `main-branch` at the same moment exactly one owns it."""
    engines = [Engine(harness.database, harness.tenant, clock=lambda: harness.now) for _ in range(2)]
    actors = [harness.actor("left"), harness.actor("right")]
    for _ in range(8):
        start = threading.Barrier(2)
        outcomes: dict[str, Outcome] = {}

        def race(number: int, start: threading.Barrier = start, into: dict[str, Outcome] = outcomes) -> None:
            command = AcquireLocks(actors[number].caller, REPOSITORY, ("name:main-branch",))
            start.wait(30)
            into[actors[number].session] = engines[number].call(command).outcome

        threads = [threading.Thread(target=race, args=[number]) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert sorted(outcomes.values()) == [Outcome.GRANTED, Outcome.HELD]
        (owner,) = harness.holders().values()
        assert outcomes[owner] is Outcome.GRANTED
        engines[0].call(ReleaseLocks(Caller(owner), REPOSITORY, ("name:main-branch",)))


def refuse_theft(harness: StoreHarness, thief: Actor, resource: str, lacking: str) -> None:
    """Prove that a theft is refused for this one reason, and that nothing is released."""
    before = harness.head
    with pytest.raises(NotStealable) as caught:
        thief.steal(resource)
    assert lacking in caught.value.message
    assert ";" not in caught.value.message, "nothing else is missing"
    assert "--force" in caught.value.hint
    assert harness.events("lock.released", before) == []


def test_scn_36_a_theft_needs_three_things(harness: StoreHarness) -> None:
    """Stale owner, lease over, ten minutes old; and the record keeps the theft.

    SCN-36, LCK-50, LCK-52, AUD-20, REC-26.
    """
    silent, living, thief = harness.actor("silent"), harness.actor("living"), harness.actor("thief")
    taken = silent.take("name:main-push", ttl_ms=60_000)
    silent.take("name:cargo-build", ttl_ms=3_600_000)
    living.take("name:pr-merge-queue", ttl_ms=60_000)
    harness.at(400)
    refuse_theft(harness, thief, "name:main-push", "it is 400 s old")
    harness.at(690)
    living.beat()
    harness.at(700)
    refuse_theft(harness, thief, "name:cargo-build", "its lease lasts 2900 s more")
    refuse_theft(harness, thief, "name:pr-merge-queue", "its owner was active 10 s ago")

    stolen = thief.steal("name:main-push")
    assert stolen.ok
    assert stolen.locks[0].fence > taken.fence
    (kept,) = [json.loads(record.value) for record in harness.store.scan("ended/", by="key", limit=9)]
    assert (kept["end_reason"], kept["by"], kept["lock"]["owner"]) == ("stolen", "thief", "silent")
    assert (kept["lock"]["fence"], kept["until_ms"]) == (taken.fence, harness.now)
    assert "stale" in kept["note"]
    assert [message.kind for message in silent.receive()] == ["preempt"]


def test_scn_37_a_pid_that_belongs_to_another_now(harness: StoreHarness) -> None:
    """The pid runs, but what runs was started later: the session is dead, and its lock free.

    SCN-37, SES-20.
    """
    own = describe(os.getpid())
    assert own is not None
    before_it = Process(own.pid, own.start - 1, own.machine, own.boot, own.namespace)
    harness.engine = Engine(harness.database, harness.tenant, clock=lambda: harness.now, probe=probe)
    reused, same = harness.actor("reused", process=before_it), harness.actor("same", process=own)
    reused.take("file:a.py")
    same.take("file:b.py")
    looker = harness.actor("looker")
    liveness = {peer.session_id: peer.liveness for peer in looker.peers()}
    assert liveness == {"reused": Liveness.DEAD, "same": Liveness.LIVE}
    assert [peer.session_id for peer in looker.peers(live=True)] == ["same"]
    assert looker.lock("file:b.py").outcome is Outcome.HELD
    assert looker.lock("file:a.py").outcome is Outcome.GRANTED
    assert f"pid {own.pid}" in harness.events("session.ended")[0]["evidence"]


def test_scn_38_areas_of_a_project(harness: StoreHarness) -> None:
    """SCN-38, LCK-56, LCK-57: one area serialises, two are independent, and so is the whole project."""
    ann, bob = harness.actor("ann"), harness.actor("bob")
    ann.take("project:reverie:engram_compat")
    assert bob.lock("project:reverie:engram_compat").outcome is Outcome.HELD
    assert bob.lock("project:reverie:dream-runner").outcome is Outcome.GRANTED
    assert bob.lock("project:reverie").outcome is Outcome.GRANTED
    assert ann.lock("project:reverie").outcome is Outcome.HELD
    ann.unlock("project:reverie:engram_compat")
    assert bob.lock("project:reverie:engram_compat").outcome is Outcome.GRANTED
    assert set(harness.holders().values()) == {"bob"}


def test_scn_39_only_the_owner_unlocks(harness: StoreHarness) -> None:
    """SCN-39, LCK-67: a release by another session is refused, names the owner, and changes nothing."""
    ann, bob = harness.actor("ann"), harness.actor("bob")
    bob.register()
    ann.take("name:main-push")
    before = harness.head
    with pytest.raises(NotOwner) as caught:
        bob.unlock("name:main-push")
    assert "held by ann" in caught.value.message
    assert "steal" in caught.value.hint
    assert (harness.head, harness.holders()) == (before, {"name:main-push": "ann"})


def test_scn_40_leaving_gives_everything_back(harness: StoreHarness) -> None:
    """Dereg releases all locks at once, serves who waits, and removes the session.

    SCN-40, LCK-68, SES-39, SES-40.
    """
    ann, bob = harness.actor("ann"), harness.actor("bob")
    bob.register()
    held = ["file:a.py", "file:src/*.py", "name:main-push", "project:shop"]
    for resource in held:
        ann.take(resource)
    place = bob.wait_for("name:main-push")
    before = harness.head
    assert sorted(ann.leave().released) == held
    assert harness.head == before + 1
    assert harness.holders() == {"name:main-push": "bob"}
    assert bob.confirm(place).ok
    assert bob.peers() == []
    assert bob.show("ann").liveness is Liveness.ENDED
    assert {event["end_reason"] for event in harness.events("lock.released")} == {"session_ended"}


def test_scn_41_messages_come_in_order(harness: StoreHarness) -> None:
    """SCN-41: messages are read in the order they were sent, also within a millisecond; drain empties."""
    ann, bob, cid = harness.actor("ann"), harness.actor("bob"), harness.actor("cid")
    for actor in (ann, bob, cid):
        actor.register()
    for number in range(12):
        sender = (ann, cid)[number % 2]
        sender.send("bob", "status", f"message {number}", blob={"number": number})
        harness.pass_seconds((number // 4) * 0.001)
    expected = [f"message {number}" for number in range(12)]
    assert [message.subject for message in bob.peek()] == expected
    drained = bob.receive(drain=True)
    assert [message.subject for message in drained] == expected
    assert [message.blob["number"] for message in drained] == list(range(12))
    assert bob.receive(drain=True) == []
    assert bob.peek() == []
    assert ann.receive() == [], "nobody else got them"


def test_scn_42_a_newer_schema_is_refused(harness: StoreHarness) -> None:
    """SCN-42: a lock written by a newer version is never skipped: what it could cover is refused."""
    ann = harness.actor("ann")
    ann.register()
    newer = {"schema": 2, "resource": "file:src/app.py", "owner": "future", "certainty": 0.9}
    write(harness, lock_key("file:src/app.py", "future"), newer)
    write(harness, keys.session("other"), {"schema": 7, "session_id": "other"})
    before = harness.head
    for refused in (
        lambda: ann.lock("file:src/app.py"),
        lambda: ann.lock("file:src/*"),
        lambda: ann.lock("file:src", wait_s=60),
        lambda: ann.check("file:src/app.py"),
        lambda: ann.steal("file:src/app.py", force=True, reason="now"),
        lambda: harness.actor("other").beat(),
        lambda: ann.send("other", "status", "hello"),
    ):
        with pytest.raises(Unsupported) as caught:
            refused()
        assert "upgrade" in caught.value.hint
    assert harness.head == before
    assert ann.lock("file:docs/app.py").ok, "what it cannot cover is free as ever"


def test_scn_43_unknown_fields_survive(harness: StoreHarness) -> None:
    """SCN-43, SCM-6: what a newer version wrote beside our fields is there after we rewrote the record."""
    ann, bob = harness.actor("ann"), harness.actor("bob")
    ann.register(task="TOD-1")
    bob.register()
    ann.take("file:a.py")
    bob.send("ann", "status", "hello")
    (inbox,) = [record.key for record in harness.store.scan(keys.inbox_prefix("ann"), by="key", limit=9)]
    written = (keys.session("ann"), lock_key("file:a.py", "ann"), inbox)
    extra = {"mood": {"calm": [1, 2.5, None]}, "weather": "fine"}
    for key in written:
        record = harness.store.load([key])[key]
        write(harness, key, {**read(harness, key), **extra}, record.index_key)
    harness.pass_seconds(20)
    ann.update(phase="review")
    fence = ann.renew("file:a.py").locks[0].fence
    assert [message.subject for message in ann.receive(drain=False)] == ["hello"]
    harness.pass_seconds(20)
    ann.beat()
    ann.take("file:a.py")
    for key in written:
        assert extra.items() <= read(harness, key).items()
    assert read(harness, keys.session("ann"))["current_task"] == {"ticket": "TOD-1", "phase": "review"}
    assert ann.check("file:a.py", fence=fence).free
