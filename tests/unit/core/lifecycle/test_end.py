"""The end of a session: its locks, claims, requests and messages end with it."""

import msgspec
import pytest

from coord.core.errors import Dead, Invalid, NotFound, Refused
from coord.core.identity import Caller, ProcessState
from coord.core.lifecycle import end as end_module
from coord.core.lifecycle.commands import Deregister, Register
from coord.core.lifecycle.end import SILENT_KEPT_MS
from coord.core.locks.commands import BeginToolCall
from coord.core.records import decode, encode
from coord.core.sessions.commands import GetSession, UpdateSession
from coord.core.sessions.identify import ENDED_KEPT_MS
from coord.core.sessions.schema import Session
from coord.core.tasks.commands import ClaimTask, GetTaskState
from coord.stores.contract import Commit, Put
from tests.support.lock_harness import REPOSITORY, LockHarness


@pytest.fixture
def harness() -> LockHarness:
    return LockHarness()


def end(harness: LockHarness, by: str, session: str, *, to_parent: bool = False) -> list[str]:
    """End a session; return the resources that it released."""
    reply = harness.engine.call(Deregister(harness.who(by), session, to_parent))
    released: list[str] = reply.released
    return released


def test_locks_and_requests_end_with_the_session(harness: LockHarness) -> None:
    """The next in the queue gets the lock in the same commit; a request of the session is dropped."""
    harness.lock("ann", "file:a")
    harness.lock("cid", "file:b")
    harness.wait("ann", "file:b")
    harness.wait("bob", "file:a")
    assert end(harness, "ann", "") == ["file:a"]
    assert harness.held() == {("bob", "file:a"), ("cid", "file:b")}
    harness.release("cid", "file:b")
    assert harness.held() == {("bob", "file:a")}
    (ended,) = harness.events("session.ended")
    assert (ended["session"], ended["end_reason"]) == ("ann", "deregistered")


def test_only_the_session_its_parent_or_anybody_after_its_death_may_end_it(harness: LockHarness) -> None:
    harness.parents["kid"] = "ann"
    harness.pids["bob"] = 7
    for name in ("ann", "kid", "bob"):
        harness.beat(name)
    with pytest.raises(Refused, match="is not yours"):
        end(harness, "ann", "bob")
    with pytest.raises(Refused, match="is not yours"):
        end(harness, "kid", "ann")
    assert end(harness, "ann", "kid") == []
    assert [event["end_reason"] for event in harness.events("session.ended")] == ["terminated"]
    harness.life[7] = ProcessState.DEAD
    assert end(harness, "ann", "bob") == []
    with pytest.raises(NotFound, match="there is no session bob"):
        end(harness, "ann", "bob")


def test_a_lock_that_a_sub_agent_asked_for_is_not_left_to_its_parent(harness: LockHarness) -> None:
    """Only locks that hooks took pass to the parent; this one goes to the next in the queue."""
    harness.parents["kid"] = "ann"
    harness.beat("ann")
    harness.lock("kid", "file:a")
    harness.wait("bob", "file:a")
    assert end(harness, "kid", "", to_parent=True) == ["file:a"]
    assert harness.held() == {("bob", "file:a")}


def test_a_silent_session_is_forgotten_in_the_end(harness: LockHarness) -> None:
    """One that holds nothing ends after a week; its record is deleted a day later."""
    harness.beat("silent")
    harness.pass_time(SILENT_KEPT_MS - 1)
    harness.beat("ann")
    assert harness.events("session.ended") == []
    for _ in range(4):
        harness.pass_time(ENDED_KEPT_MS)
        harness.beat("ann")
    (ended,) = harness.events("session.ended")
    assert (ended["session"], ended["end_reason"]) == ("silent", "forgotten")
    assert "session/silent" not in {
        record.key for record in harness.store.scan("session/", by="key", limit=9)
    }


FAMILY = {"kid": "ann", "sib": "ann", "grandkid": "kid"}


def found(harness: LockHarness, name: str) -> tuple[str, str]:
    """How a session ended, and what is shown as its state."""
    shown = harness.engine.call(GetSession(harness.who("watcher"), name))
    return shown.liveness.value, shown.state


def with_family(harness: LockHarness) -> None:
    """Ann leads kid and sib, kid leads grandkid; each has a lock, kid a claim, and sib waits."""
    harness.parents = dict(FAMILY)
    for name in ("ann", "bob", *FAMILY):
        harness.lock(name, f"file:{name}")
    harness.engine.call(ClaimTask("local", "shop", "login", "kid", "kid", 60_000))
    harness.wait("sib", "file:bob")
    harness.wait("cid", "file:grandkid")


def test_ending_a_lead_ends_its_children(harness: LockHarness) -> None:
    """SUP-9, SUP-10, SUP-11: all below it end in the same commit, with their locks, claims and waits."""
    with_family(harness)
    before = len(harness.store.tail(0, 100_000))
    reply = harness.engine.call(Deregister(harness.who("ann")))
    assert len(harness.store.tail(0, 100_000)) == before + 1
    assert (reply.released, sorted(reply.terminated)) == (["file:ann"], ["grandkid", "kid", "sib"])
    assert harness.held() == {("bob", "file:bob"), ("cid", "file:grandkid")}
    harness.release("bob", "file:bob")
    assert harness.held() == {("cid", "file:grandkid")}, "the wait of sib is gone"
    assert harness.engine.call(GetTaskState("local", "shop", "login")).state == "ready"
    assert found(harness, "ann") == ("ended", "completed")
    assert {found(harness, name) for name in FAMILY} == {("ended", "terminated")}
    ended = {event["session"]: event for event in harness.events("session.ended")}
    assert {ended[name]["by"] for name in FAMILY} == {"ann"}
    lost = {event["session"]: event["end_reason"] for event in harness.events("lock.released")}
    assert lost == {"ann": "session_ended", **dict.fromkeys(FAMILY, "parent_ended"), "bob": "released"}


def test_a_terminated_session_is_told_who_ended_it(harness: LockHarness) -> None:
    """SUP-9: its next command is refused with the reason and the way back; then it begins without locks."""
    with_family(harness)
    harness.leave("ann")
    for ask in (harness.beat, lambda name: harness.lock(name, "file:x")):
        with pytest.raises(Dead, match="kid was terminated: its lead ann has ended") as caught:
            ask("kid")
        assert "coord register" in caught.value.hint
    reply = harness.engine.call(Register(caller=harness.who("kid")))
    assert (reply.new, reply.session.state, reply.session.end_note) == (True, "idle", "")
    assert harness.lock("kid", "file:kid").ok
    with pytest.raises(Dead):
        harness.beat("grandkid")


def test_a_parent_ends_one_child_with_those_below_it(harness: LockHarness) -> None:
    with_family(harness)
    reply = harness.engine.call(Deregister(harness.who("ann"), "kid"))
    assert reply.terminated == ["grandkid"]
    assert [found(harness, name)[0] for name in ("ann", "sib")] == ["live", "live"]
    with pytest.raises(Dead, match="kid was terminated: ann ended it"):
        harness.beat("kid")


def test_a_dead_lead_takes_its_children_with_it(harness: LockHarness) -> None:
    """SUP-9: in the sweep that proves its death; the process of a child may be alive."""
    harness.pids["ann"] = 7
    with_family(harness)
    harness.life[7] = ProcessState.DEAD
    harness.pass_time(120_000)
    harness.beat("bob")
    assert found(harness, "ann") == ("dead", "crashed")
    assert {found(harness, name) for name in FAMILY} == {("ended", "terminated")}
    assert harness.held() == {("bob", "file:bob"), ("cid", "file:grandkid")}


def test_a_child_that_finds_its_lead_dead(harness: LockHarness) -> None:
    """The death is recorded with the command of the child; the next sweep ends the child."""
    harness.pids["ann"] = 7
    harness.parents["kid"] = "ann"
    harness.beat("ann")
    harness.beat("kid")
    harness.lock("ann", "file:d")
    harness.life[7] = ProcessState.DEAD
    assert harness.lock("kid", "file:d").ok
    assert found(harness, "ann") == ("dead", "crashed")
    with pytest.raises(Dead, match="its lead ann has ended"):
        harness.lock("kid", "file:e")
    harness.pass_time(1_000)
    harness.beat("bob")
    assert found(harness, "kid") == ("ended", "terminated")
    assert harness.held() == set()


def test_a_marked_child_may_register_again_at_once(harness: LockHarness) -> None:
    """It loses what it had, although no sweep came by."""
    harness.pids["ann"] = 7
    harness.parents["kid"] = "ann"
    harness.beat("ann")
    harness.beat("kid")
    harness.lock("ann", "file:d")
    harness.life[7] = ProcessState.DEAD
    harness.lock("kid", "file:d")
    reply = harness.engine.call(Register(caller=harness.who("kid")))
    assert reply.new
    assert harness.held() == set()
    harness.pass_time(1_000)
    harness.beat("bob")
    assert found(harness, "kid") == ("live", "idle")


def test_a_large_family_is_ended_in_steps(harness: LockHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep ends what the commit had no room for; until then no command of theirs is accepted."""
    monkeypatch.setattr(end_module, "ENDED_BYTES_MAX", 3_000)
    names = [f"kid{number:02d}" for number in range(20)]
    harness.parents = dict.fromkeys(names, "ann") | {"grandkid": "kid19"}
    for name in ("ann", *names, "grandkid"):
        harness.lock(name, f"file:{name}")
    reply = harness.engine.call(Deregister(harness.who("ann")))
    assert sorted(reply.terminated) == names
    left = [name for name in names if found(harness, name)[0] == "live"]
    assert 0 < len(left) < 20
    with pytest.raises(Dead, match="its lead ann has ended"):
        harness.lock(left[0], "file:x")
    for _ in range(3):
        harness.pass_time(1_000)
        harness.beat("bob")
    assert harness.held() == set()
    assert {found(harness, name) for name in (*names, "grandkid")} == {("ended", "terminated")}


def test_a_cycle_of_parents_ends(harness: LockHarness) -> None:
    """SUP-9: rules make no such cycle, but a damaged record must not make the end loop."""
    harness.parents = {"kid": "ann"}
    harness.beat("ann")
    harness.beat("kid")
    loaded = harness.store.load(["session/ann"])["session/ann"]
    ann = msgspec.structs.replace(decode(loaded.value, Session, "session/ann"), parent="kid")
    harness.store.commit(
        Commit({"session/ann": loaded.version}, {"session/ann": Put(encode(ann))}, at=harness.now)
    )
    reply = harness.engine.call(Deregister(harness.who("kid"), "ann"))
    assert (reply.session_id, reply.terminated) == ("ann", ["kid"])


def test_a_sub_agent_that_stops_leaves_the_hook_locks_below_it_to_its_parent(harness: LockHarness) -> None:
    """Its edits and those of its own sub-agents are still in the tree."""
    harness.parents = dict(FAMILY)
    for name in ("ann", "kid", "grandkid"):
        harness.beat(name)
    for name in ("kid", "grandkid"):
        files = (f"file:{name}",)
        call = BeginToolCall(harness.who(name), REPOSITORY, files, call="c", lease_ms=60_000, worktree="w")
        assert harness.engine.call(call).ok
    assert end(harness, "kid", "", to_parent=True) == []
    assert harness.held() == {("ann", "file:kid"), ("ann", "file:grandkid")}


def test_sub_agents_seen_before_their_lead_end_with_it(harness: LockHarness) -> None:
    """A hook may meet a sub-agent first; it lives in the process of its lead."""
    harness.pids = {"ann": 7, "ann.1": 7}
    harness.parents["ann.1"] = "ann"
    harness.lock("ann.1", "file:a")
    harness.beat("ann")
    assert harness.leave("ann").terminated == ["ann.1"]
    assert harness.held() == set()


def test_a_failed_session_that_ends_has_failed(harness: LockHarness) -> None:
    """SUP-10: an end of its own is no termination; what it reported last counts."""
    harness.engine.call(UpdateSession(caller=harness.who("ann"), status="failed"))
    harness.leave("ann")
    assert found(harness, "ann") == ("ended", "failed")


def test_a_person_ends_any_session_by_force_for_a_reason(harness: LockHarness) -> None:
    """Its locks go on; the session hears who ended it; an agent may not, and nobody without a reason."""
    harness.lock("ann", "file:a")
    harness.wait("bob", "file:a")
    grace = Caller("tty-1", user="grace", person=True)
    with pytest.raises(Invalid, match="requires --reason"):
        harness.engine.call(Deregister(grace, "ann", force=True))
    with pytest.raises(Refused, match="only people"):
        harness.engine.call(Deregister(harness.who("bob"), "ann", force=True, reason="mine"))
    with pytest.raises(Refused, match="is not yours"):
        harness.engine.call(Deregister(grace, "ann", reason="without force"))
    reply = harness.engine.call(Deregister(grace, "ann", force=True, reason="it runs in circles"))
    assert reply.released == ["file:a"]
    assert harness.held() == {("bob", "file:a")}
    (ended,) = harness.events("session.ended")
    assert (ended["end_reason"], ended["by"]) == ("terminated", "tty-1")
    assert ended["evidence"] == "grace ended it (it runs in circles)"
    with pytest.raises(Dead, match="grace ended it"):
        harness.beat("ann")
