"""Calls of tools, as hooks tell of them: what they lock, how long that is kept, and when it is given back."""

from typing import Any

import pytest

from coord.core.identity import Caller, Process, ProcessState
from coord.core.lifecycle.commands import Deregister
from coord.core.locks import tool_calls as call
from coord.core.locks.commands import BeginToolCall, EndToolCall, Outcome, ReleaseHookLocks
from coord.core.sessions.commands import GetSession, Heartbeat
from coord.core.sessions.schema import Liveness
from tests.support.lock_harness import REPOSITORY, LockHarness

CALL_MS = 660_000
FILE_MS = 300_000
TREE = "/tree"


class ToolCallHarness(LockHarness):
    """A lock harness whose sessions call tools."""

    def begin(self, name: str, *resources: str, call: str = "c1", lease_ms: int = CALL_MS) -> Any:
        return self.engine.call(
            BeginToolCall(self.who(name), REPOSITORY, resources, call=call, lease_ms=lease_ms, worktree=TREE)
        )

    def end(self, name: str, call: str = "c1") -> Any:
        return self.engine.call(EndToolCall(self.who(name), call))

    def release_hook_locks(self, name: str, *resources: str, reminded: int = 0) -> list[str]:
        found: list[str] = self.engine.call(
            ReleaseHookLocks(self.who(name), REPOSITORY, resources, reminded)
        ).released
        return found

    def left_ms(self, name: str, resource: str) -> int:
        (found,) = [lock for lock in self.end(name, "-").locks if lock.resource == resource]
        return int(found.expires_ms) - self.now


@pytest.fixture
def harness() -> ToolCallHarness:
    return ToolCallHarness()


def test_a_call_locks_what_it_writes(harness: ToolCallHarness) -> None:
    """The first one gets the file; the other is refused and told by whom it is held.

    INT-5, LCK-74, LCK-21, LCK-86.
    """
    assert harness.begin("ada", "file:a").ok
    refused = harness.begin("bob", "file:a", "file:b")
    assert (refused.outcome, refused.holder.owner) == (Outcome.HELD, "ada")
    assert harness.held() == {("ada", "file:a")}


def test_a_call_reads_the_store_once(harness: ToolCallHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook waits for each read: what a call needs is known before, also the locks that it extends."""
    harness.begin("ada", "file:a")
    harness.end("ada")
    store = harness.engine._store
    load, loads = store.load, []

    def counted(keys: Any, *more: Any, **options: Any) -> Any:
        loads.append(keys)
        return load(keys, *more, **options)

    monkeypatch.setattr(store, "load", counted)
    assert harness.begin("ada", "file:a").ok
    assert len(loads) == 1


def test_a_call_under_a_glob_of_another_is_refused(harness: ToolCallHarness) -> None:
    """LCK-76: a held glob covers the files below it."""
    harness.lock("ada", "file:src/*")
    assert harness.begin("bob", "file:src/app.py").holder.resource == "file:src/*"


def test_before_a_call_the_lease_is_that_of_the_call(harness: ToolCallHarness) -> None:
    """LCK-24: all that the session holds lasts as long as the call may; after it, as long as is usual."""
    harness.lock("ada", "file:mine")
    harness.begin("ada", "file:a", lease_ms=2 * 3_600_000)
    assert harness.left_ms("ada", "file:mine") == harness.left_ms("ada", "file:a") == 2 * 3_600_000
    harness.end("ada")
    assert harness.left_ms("ada", "file:mine") == harness.left_ms("ada", "file:a") == FILE_MS


def test_what_was_asked_for_by_name_keeps_its_terms(harness: ToolCallHarness) -> None:
    """LCK-79: a hook neither shortens a lock of its own session nor gives it back."""
    harness.lock("ada", "file:a", ttl=7_200_000, reason="mine")
    harness.begin("ada", "file:a")
    (lock,) = harness.end("ada").locks
    assert (lock.expires_ms - harness.now, lock.reason, lock.worktree) == (7_200_000, "mine", "")
    assert harness.release_hook_locks("ada", "file:a") == []
    assert harness.held() == {("ada", "file:a")}


def test_what_is_asked_for_by_name_later_stays(harness: ToolCallHarness) -> None:
    """A lock that a hook took is the session's own as soon as it asks for it."""
    harness.begin("ada", "file:a")
    harness.lock("ada", "file:a")
    harness.end("ada")
    assert harness.release_hook_locks("ada", "file:a") == []


def test_a_read_lock_of_its_own_is_no_right_to_write(harness: ToolCallHarness) -> None:
    """LCK-17: who only reads has to get the write lock, against other readers too."""
    harness.lock("ada", "file:a", mode="read")
    harness.lock("bob", "file:a", mode="read")
    assert harness.begin("ada", "file:a").holder.owner == "bob"
    harness.release("bob", "file:a")
    assert harness.begin("ada", "file:a").ok
    assert harness.lock("bob", "file:a", mode="read").outcome is Outcome.HELD


def test_any_call_renews_but_not_all_the_time(harness: ToolCallHarness) -> None:
    """What a session holds is renewed by its calls, in one commit at most every 15 seconds.

    INT-9, SES-22.
    """
    harness.begin("ada", "file:a", "file:b")
    harness.end("ada")
    harness.pass_time(400_000)
    assert harness.written_by(lambda: harness.end("ada", "-")) == ["lock", "lock", "session"]
    harness.pass_time(14_999)
    assert harness.written_by(lambda: harness.end("ada", "-")) == []
    harness.pass_time(2)
    assert harness.written_by(lambda: harness.end("ada", "-")) == ["lock", "lock", "session"]


def test_a_call_of_a_sub_agent_keeps_what_its_session_holds(harness: ToolCallHarness) -> None:
    """A sub-agent that works is life of the session above it, whose locks it works under."""
    harness.parents = {"kid": "ada"}
    harness.lock("ada", "file:src/*")
    for number in range(5):
        harness.begin("kid", "file:src/app.py", call=f"c{number}")
        harness.pass_time(200_000)
        harness.end("kid", f"c{number}")
    assert harness.held() == {("ada", "file:src/*"), ("kid", "file:src/app.py")}
    assert harness.engine.call(GetSession(harness.who("ada"))).liveness is Liveness.LIVE


def test_a_parent_is_refused_while_its_sub_agent_holds(harness: ToolCallHarness) -> None:
    """Sub-agents are owners of their own: siblings and the session above are refused."""
    harness.parents = {"kid": "ada", "sister": "ada"}
    harness.beat("ada")
    assert harness.begin("kid", "file:a").ok
    assert harness.begin("ada", "file:a").holder.owner == "kid"
    assert harness.begin("sister", "file:a").holder.owner == "kid"


def test_a_call_under_way_is_life(harness: ToolCallHarness) -> None:
    """SES-18: who waits for a long tool is not suspect; once the call should be over, it is."""
    harness.begin("ada", lease_ms=3_600_000)
    harness.pass_time(3_599_999)
    assert harness.engine.call(GetSession(harness.who("bob"), "ada")).liveness is Liveness.LIVE
    harness.pass_time(1)
    assert harness.engine.call(GetSession(harness.who("bob"), "ada")).liveness is Liveness.HUNG


def test_nothing_is_given_back_while_a_call_is_under_way(harness: ToolCallHarness) -> None:
    """A call that was let through may be about to write: its file is not given back by another one's end."""
    harness.begin("ada", "file:a", call="edit")
    harness.begin("ada", call="shell")
    assert harness.end("ada", "shell").under_way == 1
    assert harness.release_hook_locks("ada", "file:a") == []
    assert harness.end("ada", "edit").under_way == 0
    assert harness.release_hook_locks("ada", "file:a", "file:never-held") == ["file:a"]
    assert harness.held() == set()


def test_a_call_that_never_ended_is_over_in_time(harness: ToolCallHarness) -> None:
    """A call that somebody else denied tells no end: it counts until it should be over, or the turn is."""
    harness.begin("ada", "file:a", call="denied")
    harness.begin("ada", "file:a", call="other")
    harness.end("ada", "other")
    assert harness.release_hook_locks("ada", "file:a") == []
    assert harness.end("ada", "").under_way == 0
    assert harness.release_hook_locks("ada", "file:a") == ["file:a"]


def test_what_is_given_back_goes_to_who_waits(harness: ToolCallHarness) -> None:
    """LCK-35: the commit that gives back serves the line."""
    harness.begin("ada", "file:a")
    harness.wait("bob", "file:a")
    harness.end("ada")
    harness.release_hook_locks("ada", "file:a")
    assert harness.held() == {("bob", "file:a")}


def test_a_lapsed_lock_that_nobody_took_is_taken_anew(harness: ToolCallHarness) -> None:
    """After a long silence the session goes on as if nothing had been."""
    first = harness.begin("ada", "file:a").locks[0].fence
    harness.end("ada")
    harness.pass_time(CALL_MS + 1)
    again = harness.begin("ada", "file:a")
    assert again.ok
    assert again.locks[0].fence > first


@pytest.mark.parametrize(
    ("theirs", "mode", "denied"),
    [
        ("file:a", "write", True),
        ("file:*", "write", True),
        ("file:b", "write", False),
        ("file:a", "read", False),
    ],
)
def test_a_lapsed_lock_that_somebody_had_since_is_refused_once(
    harness: ToolCallHarness, theirs: str, mode: str, denied: bool
) -> None:
    """What the session knows of the file may be out of date; it is told so, once."""
    harness.begin("ada", "file:a")
    harness.end("ada")
    harness.pass_time(CALL_MS + 1)
    harness.lock("bob", theirs, mode=mode)
    harness.release("bob", theirs)
    reply = harness.begin("ada", "file:a")
    assert (reply.outcome is Outcome.CHANGED) == denied
    assert not denied or (reply.holder.owner, reply.holder.resource) == ("bob", theirs)
    assert harness.begin("ada", "file:a").ok


def test_a_stolen_lock_is_refused_twice(harness: ToolCallHarness) -> None:
    """First it is held by another, then it has been; only then it is free."""
    harness.begin("ada", "file:a")
    harness.steal("bob", "file:a", force=True, reason="urgent")
    assert harness.begin("ada", "file:a").outcome is Outcome.HELD
    harness.release("bob", "file:a")
    assert harness.begin("ada", "file:a").outcome is Outcome.CHANGED
    assert harness.begin("ada", "file:a").ok


def test_among_too_many_later_grants_the_file_counts_as_changed(
    harness: ToolCallHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work is bounded: where it cannot be told in a measure, doubt refuses (once)."""
    monkeypatch.setattr(call, "GRANTS_MAX", 4)
    harness.begin("ada", "file:a")
    harness.end("ada")
    harness.pass_time(CALL_MS + 1)
    for number in range(9):
        harness.lock("bob", f"file:other-{number}")
        harness.release("bob", f"file:other-{number}")
    assert harness.begin("ada", "file:a").outcome is Outcome.CHANGED
    assert harness.begin("ada", "file:a").ok


def test_what_was_lost_is_forgotten_after_a_day(harness: ToolCallHarness) -> None:
    """Records of losses do not pile up."""
    harness.begin("ada", "file:a")
    harness.pass_time(CALL_MS + 1)
    harness.beat("bob")
    assert [found.key for found in harness.store.scan("lost-hook/", by="key", limit=9)] != []
    harness.pass_time(24 * 3_600_000)
    harness.beat("bob")
    assert [found.key for found in harness.store.scan("lost-hook/", by="key", limit=9)] == []


def test_the_edits_of_a_sub_agent_stay_locked_for_its_session(harness: ToolCallHarness) -> None:
    """A sub-agent ends, its edits stay: what hooks locked for it goes to the session above, the rest ends."""
    harness.parents = {"kid": "ada"}
    harness.beat("ada")
    harness.begin("kid", "file:a")
    harness.lock("kid", "file:by-name")
    harness.end("kid")
    harness.engine.call(Deregister(harness.who("kid"), to_parent=True))
    assert harness.held() == {("ada", "file:a")}
    assert harness.begin("ada", "file:a").ok
    harness.end("ada")
    assert harness.release_hook_locks("ada", "file:a") == ["file:a"]


def test_a_sub_agent_under_its_session_s_lock_hands_nothing_up_twice(harness: ToolCallHarness) -> None:
    """Where the session above holds the very file, the sub-agent's hold just ends."""
    harness.parents = {"kid": "ada"}
    harness.lock("ada", "file:a")
    fence = harness.end("ada", "-").locks[0].fence
    harness.begin("kid", "file:a")
    harness.engine.call(Deregister(harness.who("kid"), to_parent=True))
    (lock,) = harness.end("ada", "-").locks
    assert (lock.resource, lock.fence) == ("file:a", fence)


def test_a_killed_session_s_lock_is_free(harness: ToolCallHarness) -> None:
    """REC-1: a call under way does not protect a session whose process is proven dead."""
    harness.pids = {"ada": 7}
    harness.begin("ada", "file:a")
    harness.life = {7: ProcessState.DEAD}
    assert harness.begin("bob", "file:a").ok


def test_who_was_asked_to_give_way_is_not_renewed(harness: ToolCallHarness) -> None:
    """LCK-25: a call does not prolong a lock that was promised to another."""
    harness.begin("ada", "file:a")
    harness.preempt("bob", "file:a", priority=5, grace_ms=10_000)
    harness.begin("ada", "file:a", call="c2", lease_ms=3_600_000)
    assert harness.left_ms("ada", "file:a") == CALL_MS
    harness.pass_time(10_001)
    assert harness.begin("bob", "file:a").ok


def test_a_reminder_is_remembered(harness: ToolCallHarness) -> None:
    """What a session was reminded of is known at its next stop."""
    fence = harness.begin("ada", "file:a").locks[0].fence
    assert harness.end("ada").reminded == 0
    harness.release_hook_locks("ada", reminded=fence)
    assert harness.end("ada").reminded == fence


def test_a_sub_agent_of_a_twin_belongs_to_the_twin(harness: ToolCallHarness) -> None:
    """SES-25: of two processes that resumed one session, each has its own sub-agents."""
    harness.pids = {"ada": 1}
    harness.life = {1: ProcessState.ALIVE, 2: ProcessState.ALIVE}
    harness.beat("ada")
    harness.pids = {"ada": 2}
    twin = harness.beat("ada").session_id
    kid = harness.who("kid")
    below = Caller("kid", parent="ada", process=Process(2, 1), process_ancestors=(Process(2, 1),))
    harness.engine.call(Heartbeat(below))
    assert (twin, harness.engine.call(GetSession(kid, "kid")).parent) == ("ada~2", "ada~2")
