"""Calls of tools, as hooks tell of them: what they lock, how long that is kept, and when it is given back."""

from typing import Any

import pytest

from coord.core import commands as c
from coord.core.identity import Caller, Process, ProcessState
from coord.core.locks import tool_calls as call
from coord.core.locks.tool_call_commands import BeginToolCall, EndToolCall, ReleaseHookLocks
from coord.core.replies import Liveness, Outcome
from tests.support.lock_harness import REPOSITORY, LockDesk

CALL_MS = 660_000
FILE_MS = 300_000
TREE = "/tree"


class CallDesk(LockDesk):
    """A desk where sessions call tools."""

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
def desk() -> CallDesk:
    return CallDesk()


def test_a_call_locks_what_it_writes(desk: CallDesk) -> None:
    """The first one gets the file; the other is refused and told by whom it is held.

    INT-5, LCK-74, LCK-21, LCK-86.
    """
    assert desk.begin("ada", "file:a").ok
    refused = desk.begin("bob", "file:a", "file:b")
    assert (refused.outcome, refused.holder.owner) == (Outcome.HELD, "ada")
    assert desk.held() == {("ada", "file:a")}


def test_a_call_under_a_glob_of_another_is_refused(desk: CallDesk) -> None:
    """LCK-76: a held glob covers the files below it."""
    desk.lock("ada", "file:src/*")
    assert desk.begin("bob", "file:src/app.py").holder.resource == "file:src/*"


def test_before_a_call_the_lease_is_that_of_the_call(desk: CallDesk) -> None:
    """LCK-24: all that the session holds lasts as long as the call may; after it, as long as is usual."""
    desk.lock("ada", "file:mine")
    desk.begin("ada", "file:a", lease_ms=2 * 3_600_000)
    assert desk.left_ms("ada", "file:mine") == desk.left_ms("ada", "file:a") == 2 * 3_600_000
    desk.end("ada")
    assert desk.left_ms("ada", "file:mine") == desk.left_ms("ada", "file:a") == FILE_MS


def test_what_was_asked_for_by_name_keeps_its_terms(desk: CallDesk) -> None:
    """LCK-79: a hook neither shortens a lock of its own session nor gives it back."""
    desk.lock("ada", "file:a", ttl=7_200_000, reason="mine")
    desk.begin("ada", "file:a")
    (lock,) = desk.end("ada").locks
    assert (lock.expires_ms - desk.now, lock.reason, lock.worktree) == (7_200_000, "mine", "")
    assert desk.release_hook_locks("ada", "file:a") == []
    assert desk.held() == {("ada", "file:a")}


def test_what_is_asked_for_by_name_later_stays(desk: CallDesk) -> None:
    """A lock that a hook took is the session's own as soon as it asks for it."""
    desk.begin("ada", "file:a")
    desk.lock("ada", "file:a")
    desk.end("ada")
    assert desk.release_hook_locks("ada", "file:a") == []


def test_a_read_lock_of_its_own_is_no_right_to_write(desk: CallDesk) -> None:
    """LCK-17: who only reads has to get the write lock, against other readers too."""
    desk.lock("ada", "file:a", mode="read")
    desk.lock("bob", "file:a", mode="read")
    assert desk.begin("ada", "file:a").holder.owner == "bob"
    desk.release("bob", "file:a")
    assert desk.begin("ada", "file:a").ok
    assert desk.lock("bob", "file:a", mode="read").outcome is Outcome.HELD


def test_any_call_renews_but_not_all_the_time(desk: CallDesk) -> None:
    """What a session holds is renewed by its calls, in one commit at most every 15 seconds.

    INT-9, SES-22.
    """
    desk.begin("ada", "file:a", "file:b")
    desk.end("ada")
    desk.pass_time(400_000)
    assert desk.written_by(lambda: desk.end("ada", "-")) == ["lock", "lock", "session"]
    desk.pass_time(14_999)
    assert desk.written_by(lambda: desk.end("ada", "-")) == []
    desk.pass_time(2)
    assert desk.written_by(lambda: desk.end("ada", "-")) == ["lock", "lock", "session"]


def test_a_call_of_a_sub_agent_keeps_what_its_session_holds(desk: CallDesk) -> None:
    """A sub-agent that works is life of the session above it, whose locks it works under."""
    desk.parents = {"kid": "ada"}
    desk.lock("ada", "file:src/*")
    for number in range(5):
        desk.begin("kid", "file:src/app.py", call=f"c{number}")
        desk.pass_time(200_000)
        desk.end("kid", f"c{number}")
    assert desk.held() == {("ada", "file:src/*"), ("kid", "file:src/app.py")}
    assert desk.engine.call(c.GetSession(desk.who("ada"))).liveness is Liveness.LIVE


def test_a_parent_is_refused_while_its_sub_agent_holds(desk: CallDesk) -> None:
    """Sub-agents are owners of their own: siblings and the session above are refused."""
    desk.parents = {"kid": "ada", "sister": "ada"}
    desk.beat("ada")
    assert desk.begin("kid", "file:a").ok
    assert desk.begin("ada", "file:a").holder.owner == "kid"
    assert desk.begin("sister", "file:a").holder.owner == "kid"


def test_a_call_under_way_is_life(desk: CallDesk) -> None:
    """SES-18: who waits for a long tool is not suspect; once the call should be over, it is."""
    desk.begin("ada", lease_ms=3_600_000)
    desk.pass_time(3_599_999)
    assert desk.engine.call(c.GetSession(desk.who("bob"), "ada")).liveness is Liveness.LIVE
    desk.pass_time(1)
    assert desk.engine.call(c.GetSession(desk.who("bob"), "ada")).liveness is Liveness.HUNG


def test_nothing_is_given_back_while_a_call_is_under_way(desk: CallDesk) -> None:
    """A call that was let through may be about to write: its file is not given back by another one's end."""
    desk.begin("ada", "file:a", call="edit")
    desk.begin("ada", call="shell")
    assert desk.end("ada", "shell").under_way == 1
    assert desk.release_hook_locks("ada", "file:a") == []
    assert desk.end("ada", "edit").under_way == 0
    assert desk.release_hook_locks("ada", "file:a", "file:never-held") == ["file:a"]
    assert desk.held() == set()


def test_a_call_that_never_ended_is_over_in_time(desk: CallDesk) -> None:
    """A call that somebody else denied tells no end: it counts until it should be over, or the turn is."""
    desk.begin("ada", "file:a", call="denied")
    desk.begin("ada", "file:a", call="other")
    desk.end("ada", "other")
    assert desk.release_hook_locks("ada", "file:a") == []
    assert desk.end("ada", "").under_way == 0
    assert desk.release_hook_locks("ada", "file:a") == ["file:a"]


def test_what_is_given_back_goes_to_who_waits(desk: CallDesk) -> None:
    """LCK-35: the commit that gives back serves the line."""
    desk.begin("ada", "file:a")
    desk.wait("bob", "file:a")
    desk.end("ada")
    desk.release_hook_locks("ada", "file:a")
    assert desk.held() == {("bob", "file:a")}


def test_a_lapsed_lock_that_nobody_took_is_taken_anew(desk: CallDesk) -> None:
    """After a long silence the session goes on as if nothing had been."""
    first = desk.begin("ada", "file:a").locks[0].fence
    desk.end("ada")
    desk.pass_time(CALL_MS + 1)
    again = desk.begin("ada", "file:a")
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
    desk: CallDesk, theirs: str, mode: str, denied: bool
) -> None:
    """What the session knows of the file may be out of date; it is told so, once."""
    desk.begin("ada", "file:a")
    desk.end("ada")
    desk.pass_time(CALL_MS + 1)
    desk.lock("bob", theirs, mode=mode)
    desk.release("bob", theirs)
    reply = desk.begin("ada", "file:a")
    assert (reply.outcome is Outcome.CHANGED) == denied
    assert not denied or (reply.holder.owner, reply.holder.resource) == ("bob", theirs)
    assert desk.begin("ada", "file:a").ok


def test_a_stolen_lock_is_refused_twice(desk: CallDesk) -> None:
    """First it is held by another, then it has been; only then it is free."""
    desk.begin("ada", "file:a")
    desk.steal("bob", "file:a", force=True, reason="urgent")
    assert desk.begin("ada", "file:a").outcome is Outcome.HELD
    desk.release("bob", "file:a")
    assert desk.begin("ada", "file:a").outcome is Outcome.CHANGED
    assert desk.begin("ada", "file:a").ok


def test_among_too_many_later_grants_the_file_counts_as_changed(
    desk: CallDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work is bounded: where it cannot be told in a measure, doubt refuses (once)."""
    monkeypatch.setattr(call, "GRANTS_MAX", 4)
    desk.begin("ada", "file:a")
    desk.end("ada")
    desk.pass_time(CALL_MS + 1)
    for number in range(9):
        desk.lock("bob", f"file:other-{number}")
        desk.release("bob", f"file:other-{number}")
    assert desk.begin("ada", "file:a").outcome is Outcome.CHANGED
    assert desk.begin("ada", "file:a").ok


def test_what_was_lost_is_forgotten_after_a_day(desk: CallDesk) -> None:
    """Records of losses do not pile up."""
    desk.begin("ada", "file:a")
    desk.pass_time(CALL_MS + 1)
    desk.beat("bob")
    assert [found.key for found in desk.store.scan("lost-hook/", by="key", limit=9)] != []
    desk.pass_time(24 * 3_600_000)
    desk.beat("bob")
    assert [found.key for found in desk.store.scan("lost-hook/", by="key", limit=9)] == []


def test_the_edits_of_a_sub_agent_stay_locked_for_its_session(desk: CallDesk) -> None:
    """A sub-agent ends, its edits stay: what hooks locked for it goes to the session above, the rest ends."""
    desk.parents = {"kid": "ada"}
    desk.beat("ada")
    desk.begin("kid", "file:a")
    desk.lock("kid", "file:by-name")
    desk.end("kid")
    desk.engine.call(c.Deregister(desk.who("kid"), to_parent=True))
    assert desk.held() == {("ada", "file:a")}
    assert desk.begin("ada", "file:a").ok
    desk.end("ada")
    assert desk.release_hook_locks("ada", "file:a") == ["file:a"]


def test_a_sub_agent_under_its_session_s_lock_hands_nothing_up_twice(desk: CallDesk) -> None:
    """Where the session above holds the very file, the sub-agent's hold just ends."""
    desk.parents = {"kid": "ada"}
    desk.lock("ada", "file:a")
    fence = desk.end("ada", "-").locks[0].fence
    desk.begin("kid", "file:a")
    desk.engine.call(c.Deregister(desk.who("kid"), to_parent=True))
    (lock,) = desk.end("ada", "-").locks
    assert (lock.resource, lock.fence) == ("file:a", fence)


def test_a_killed_session_s_lock_is_free(desk: CallDesk) -> None:
    """REC-1: a call under way does not protect a session whose process is proven dead."""
    desk.pids = {"ada": 7}
    desk.begin("ada", "file:a")
    desk.life = {7: ProcessState.DEAD}
    assert desk.begin("bob", "file:a").ok


def test_who_was_asked_to_give_way_is_not_renewed(desk: CallDesk) -> None:
    """LCK-25: a call does not prolong a lock that was promised to another."""
    desk.begin("ada", "file:a")
    desk.preempt("bob", "file:a", priority=5, grace_ms=10_000)
    desk.begin("ada", "file:a", call="c2", lease_ms=3_600_000)
    assert desk.left_ms("ada", "file:a") == CALL_MS
    desk.pass_time(10_001)
    assert desk.begin("bob", "file:a").ok


def test_a_reminder_is_remembered(desk: CallDesk) -> None:
    """What a session was reminded of is known at its next stop."""
    fence = desk.begin("ada", "file:a").locks[0].fence
    assert desk.end("ada").reminded == 0
    desk.release_hook_locks("ada", reminded=fence)
    assert desk.end("ada").reminded == fence


def test_a_sub_agent_of_a_twin_belongs_to_the_twin(desk: CallDesk) -> None:
    """SES-25: of two processes that resumed one session, each has its own sub-agents."""
    desk.pids = {"ada": 1}
    desk.life = {1: ProcessState.ALIVE, 2: ProcessState.ALIVE}
    desk.beat("ada")
    desk.pids = {"ada": 2}
    twin = desk.beat("ada").session_id
    kid = desk.who("kid")
    below = Caller("kid", parent="ada", process=Process(2, 1), process_ancestors=(Process(2, 1),))
    desk.engine.call(c.Heartbeat(below))
    assert (twin, desk.engine.call(c.GetSession(kid, "kid")).parent) == ("ada~2", "ada~2")
