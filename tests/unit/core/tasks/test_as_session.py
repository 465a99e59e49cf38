"""Claims by name and what their holder asks about them: one step each, and the locks with it or nothing."""

from typing import Any

import msgspec
import pytest

from coord.core.errors import Impostor
from coord.core.identity import Caller, Process
from coord.core.plans.commands import AddTasks, ClaimNamed, NewTask
from coord.core.sessions.identify import HEARTBEAT_QUIET_MS
from coord.core.tasks.commands import AsSession, ReleaseClaim, RenewLease, SubmitResult
from tests.support.lock_harness import REPOSITORY, LockHarness

LEASE_MS = 60_000


class ClaimHarness(LockHarness):
    """Sessions claim tasks of one project by name."""

    def add(self, task: str, *files: str) -> None:
        self.engine.call(AddTasks("p", (NewTask(task_id=task, files=files, repository=REPOSITORY),)))

    def claim(self, name: str, task: str = "t", **options: Any) -> Any:
        command = ClaimNamed(
            caller=self.who(name), tenant="local", project="p", task=task, lease_ms=LEASE_MS, **options
        )
        return self.engine.call(command)

    def renew_claim(self, name: str, generation: int = 1) -> str:
        asked = RenewLease("local", "p", "t", "", generation)
        return str(self.engine.call(AsSession(self.who(name), asked)).reason)

    def submit(self, name: str, generation: int = 1) -> str:
        asked = SubmitResult("local", "p", "t", "", generation, b"{}", "wp")
        return str(self.engine.call(AsSession(self.who(name), asked)).reason)

    def release_claim(self, name: str, generation: int = 1) -> str:
        asked = ReleaseClaim("local", "p", "t", "", generation)
        return str(self.engine.call(AsSession(self.who(name), asked)).reason)


@pytest.fixture
def harness() -> ClaimHarness:
    return ClaimHarness()


def test_a_claim_by_name_takes_the_locks_in_the_same_commit(harness: ClaimHarness) -> None:
    """CLM-12: claim and locks are one entry; the locks are fenced by it, renewed and given back with it."""
    harness.add("t", "file:a.py", "file:b.py")
    head = harness.store.seen.offset
    reply = harness.claim("ann")
    assert harness.store.seen.offset == head + 1
    assert [(lock.resource, lock.fence) for lock in reply.locks] == [
        ("file:a.py", head + 1),
        ("file:b.py", head + 1),
    ]
    assert not harness.lock("bob", "file:b.py").ok
    assert harness.submit("ann") == "ACCEPTED"
    assert harness.lock("bob", "file:a.py", "file:b.py").ok


def test_a_held_file_denies_the_whole_claim(harness: ClaimHarness) -> None:
    """CLM-12: all or nothing; the denial names the file and its holder, and leaves its record alone."""
    harness.add("t", "file:a.py", "file:b.py")
    assert harness.lock("bob", "file:b.py").ok
    harness.store.written.clear()
    reply = harness.claim("ann")
    assert (reply.success, reply.reason, reply.current_holder) == (False, "DENIED_LOCKED", "bob")
    assert reply.detail == "file:b.py is held by bob"
    assert harness.store.written == ["rejected/p/t/00000000/ann/claim:DENIED_LOCKED"]
    assert harness.claim("ann", lock_files=False).claim.generation.generation == 1
    assert harness.lock("eve", "file:a.py").ok, "--no-locks leaves them"


def test_a_forced_claim_gets_the_locks_of_the_one_it_ends(harness: ClaimHarness) -> None:
    """A claim that is taken over gives its locks back first, so its own files are not in the way."""
    harness.add("t", "file:a.py")
    assert harness.claim("ann").success
    reply = harness.claim("bob", force=True, reason="ann is on holiday")
    assert [lock.owner for lock in reply.locks] == ["bob"]
    assert harness.renew_claim("ann") == "GENERATION_MISMATCH"


def test_what_a_holder_asks_is_one_step(harness: ClaimHarness) -> None:
    """Renew, release and submit find their session on the way: one call, at most one entry each."""
    harness.add("t")
    assert harness.claim("ann").success
    head = harness.store.seen.offset
    assert harness.renew_claim("ann") == "RENEWED"
    assert harness.release_claim("bob") == "SESSION_MISMATCH"
    assert harness.release_claim("ann") == "RELEASED"
    assert harness.claim("ann").claim.generation.generation == 2
    assert harness.submit("ann", 2) == "ACCEPTED"
    assert harness.store.seen.offset == head + 5


def test_what_a_holder_asks_is_a_sign_of_life(harness: ClaimHarness) -> None:
    """SES-22: a renewal counts as a heartbeat; a session never seen is not begun by asking in vain."""
    harness.add("t")
    assert harness.claim("ann").success
    harness.pass_time(HEARTBEAT_QUIET_MS)
    harness.store.written.clear()
    assert harness.renew_claim("ann") == "RENEWED"
    assert sorted(harness.store.written) == ["session/ann", "task/p/t"]
    harness.store.written.clear()
    assert harness.renew_claim("nobody") == "SESSION_MISMATCH"
    assert harness.store.written == ["rejected/p/t/00000001/nobody/renew:SESSION_MISMATCH"]


def test_nobody_asks_for_another(harness: ClaimHarness) -> None:
    """Who lives below one session cannot renew in the name of another one."""
    harness.add("t")
    harness.pids = {"ann": 1, "bob": 2}
    assert harness.claim("ann").success
    harness.lock("bob", "file:b.py")
    caller = Caller("ann", process_ancestors=(Process(2, 1),))
    with pytest.raises(Impostor):
        harness.engine.call(AsSession(caller, RenewLease("local", "p", "t", "", 1)))


def test_a_command_id_is_of_the_session_not_of_the_process(harness: ClaimHarness) -> None:
    """A submission sent again from another process, under its command id, gets the same answer."""
    harness.add("t")
    assert harness.claim("ann").success
    asked = SubmitResult("local", "p", "t", "", 1, b"{}", "wp")
    first = harness.engine.call(AsSession(harness.who("ann"), asked), command_id="c1")
    again = msgspec.structs.replace(harness.who("ann"), cwd="/elsewhere")
    assert harness.engine.call(AsSession(again, asked), command_id="c1") == first
    assert first.accepted
