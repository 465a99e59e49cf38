"""What sessions are shown to do: their claims, their waits, behind whom, and at what cost."""

from typing import Any

import pytest

from coord.core.identity import ProcessState
from coord.core.lifecycle.commands import Register
from coord.core.locks.commands import BeginToolCall, EndToolCall
from coord.core.plans.commands import AddTasks, ClaimNext, NewTask
from coord.core.routing.commands import GetAgents
from coord.core.sessions.commands import GetSession, ListSessions, UpdateSession
from coord.core.tasks.commands import ClaimTask, ReleaseClaim
from coord.core.tasks.types import ReleaseReason
from tests.support.lock_harness import REPOSITORY, T0, LockHarness


@pytest.fixture
def harness() -> LockHarness:
    return LockHarness()


def show(harness: LockHarness, name: str) -> Any:
    return harness.engine.call(GetSession(harness.who("watcher"), name))


def claim(harness: LockHarness, session: str, task: str) -> None:
    assert harness.engine.call(ClaimTask("local", "shop", task, session, session, 60_000)).success


def begin(harness: LockHarness, name: str, *resources: str) -> Any:
    command = BeginToolCall(harness.who(name), REPOSITORY, resources, call="c", lease_ms=60_000, worktree="w")
    return harness.engine.call(command)


def test_a_claim_makes_a_session_work(harness: LockHarness) -> None:
    """CLM-12, STA-5, STA-12: until the claim ends or expires; its task is the current task."""
    harness.engine.call(AddTasks("shop", (NewTask(task_id="login", estimate_s=90),)))
    harness.beat("ann")
    assert (show(harness, "ann").state, show(harness, "ann").current_task) == ("idle", {})
    claim(harness, "ann", "login")
    assert show(harness, "ann").state == "working"
    assert show(harness, "ann").current_task == {
        "ticket": "login",
        "project": "shop",
        "generation": 1,
        "started_ms": T0,
        "estimated_completion_ms": T0 + 90_000,
    }
    harness.engine.call(ReleaseClaim("local", "shop", "login", "ann", 1, ReleaseReason.VOLUNTARY))
    assert (show(harness, "ann").state, show(harness, "ann").current_task) == ("idle", {})
    harness.pass_time(1)
    claim(harness, "ann", "other")
    harness.pass_time(60_000)
    assert show(harness, "ann").state == "idle", "no sweep has recorded the end of the lease yet"


def test_the_newest_claim_is_shown_unless_the_session_says_otherwise(harness: LockHarness) -> None:
    harness.beat("ann")
    for task in ("b-first", "a-second"):
        harness.pass_time(1)
        claim(harness, "ann", task)
    assert show(harness, "ann").current_task["ticket"] == "a-second"
    harness.engine.call(UpdateSession(caller=harness.who("ann"), task="my own words"))
    assert show(harness, "ann").current_task == {"ticket": "my own words"}


def test_a_session_that_waits_is_blocked(harness: LockHarness) -> None:
    """STA-4, STA-11: it says on what, behind whom and at which position, until it has the lock."""
    harness.lock("ada", "file:a")
    first = harness.wait("bob", "file:a")
    harness.pass_time(40_000)
    harness.wait("cid", "file:a", "file:b")
    (wait,) = show(harness, "cid").waits
    assert show(harness, "cid").state == "blocked"
    assert (wait.resources, wait.since_ms, wait.behind, wait.position) == (
        ("file:a", "file:b"),
        T0 + 40_000,
        ["ada", "bob"],
        2,
    )
    (wait,) = show(harness, "bob").waits
    assert (wait.behind, wait.position) == (["ada"], 1)
    harness.release("ada", "file:a")
    assert (show(harness, "bob").state, show(harness, "bob").waits) == ("idle", [])
    assert harness.confirm("bob", first).ok
    harness.release("bob", "file:a")
    assert show(harness, "cid").state == "idle"


def test_only_a_wait_that_somebody_waits_for_blocks(harness: LockHarness) -> None:
    """Neither a denied request nor one whose process is gone or whose time is over."""
    harness.lock("ada", "file:a", ttl=3_600_000)
    assert not harness.lock("bob", "file:a").ok
    assert show(harness, "bob").state == "idle"
    harness.wait("cid", "file:a", leased=True)
    assert show(harness, "cid").state == "blocked"
    harness.pass_time(15_000)
    assert show(harness, "cid").state == "idle"


def test_a_session_that_holds_something_and_waits_for_a_task_is_blocked(harness: LockHarness) -> None:
    """STA-4: one that holds nothing and waits for work is idle: it is ready."""
    harness.engine.call(AddTasks("shop", (NewTask(task_id="login", files=("file:a",)),)))
    harness.lock("ada", "file:a")

    def ask(name: str) -> None:
        waits: dict[str, Any] = {"lease_ms": 60_000, "wait_ms": 60_000, "leased": False}
        caller = harness.who(name)
        harness.engine.call(
            ClaimNext(caller=caller, tenant="local", project="shop", repository=REPOSITORY, **waits)
        )

    ask("bob")
    assert (show(harness, "bob").state, show(harness, "bob").waits) == ("idle", [])
    harness.lock("bob", "file:b")
    ask("bob")
    (wait,) = show(harness, "bob").waits
    assert (show(harness, "bob").state, wait.resources, wait.project) == ("blocked", (), "shop")


def test_a_tool_call_makes_a_session_work_on_its_file(harness: LockHarness) -> None:
    """The file stays known after the call; a call without files changes nothing of that."""
    harness.beat("ann")
    begin(harness, "ann", "file:src/app.py", "name:n")
    assert (show(harness, "ann").state, show(harness, "ann").current_file) == ("working", "src/app.py")
    harness.engine.call(EndToolCall(harness.who("ann"), "c"))
    assert (show(harness, "ann").state, show(harness, "ann").current_file) == ("idle", "src/app.py")
    begin(harness, "ann")
    assert show(harness, "ann").current_file == "src/app.py"


@pytest.mark.parametrize(
    ("reported", "later"), [("starting", "idle"), ("completed", "idle"), ("failed", "failed")]
)
def test_a_tool_call_drops_reports_that_it_disproves(harness: LockHarness, reported: str, later: str) -> None:
    """A session that said `starting` works with its first call, and is idle after it."""
    harness.engine.call(UpdateSession(caller=harness.who("ann"), status=reported))
    assert show(harness, "ann").state == reported
    begin(harness, "ann")
    harness.engine.call(EndToolCall(harness.who("ann"), "c"))
    assert show(harness, "ann").state == later


def test_death_is_shown_before_anybody_records_it(harness: LockHarness) -> None:
    """STA-4: a proof that the process is gone is enough; silence is no proof."""
    harness.pids["ann"] = 7
    harness.beat("ann")
    claim(harness, "ann", "login")
    assert show(harness, "ann").state == "working"
    harness.life[7] = ProcessState.DEAD
    assert show(harness, "ann").state == "crashed"


def test_all_who_show_a_session_say_the_same(harness: LockHarness) -> None:
    """One rule: the session itself, its peers, the agents of the project and who registers next to it."""
    harness.engine.call(Register(caller=harness.who("ann")))
    ann = harness.engine.call(UpdateSession(caller=harness.who("ann"), capabilities={"testing": 1.0}))
    assert ann.state == "idle"
    harness.lock("ada", "file:a")
    harness.wait("ann", "file:a")
    (listed,) = [
        peer for peer in harness.engine.call(ListSessions(harness.who("bob"))) if peer.session_id == "ann"
    ]
    registered = harness.engine.call(Register(caller=harness.who("bob")))
    (told,) = [peer for peer in registered.peers if peer.session_id == "ann"]
    (agent,) = harness.engine.call(GetAgents("", "ann"))
    assert {show(harness, "ann").state, listed.state, told.state, agent.state} == {"blocked"}


@pytest.mark.parametrize("sessions", [3, 40])
def test_a_list_costs_the_same_number_of_questions(harness: LockHarness, sessions: int) -> None:
    """What the sessions do is read together, whatever their number."""
    harness.lock("ada", "file:a")
    for number in range(sessions):
        name = f"s{number:02d}"
        harness.pids[name] = 100 + number
        harness.wait(name, "file:a")
        claim(harness, name, f"t{number}")
    harness.store.questions = 0
    peers = harness.engine.call(ListSessions(harness.who("ada")))
    assert [peer.state for peer in peers] == ["blocked"] * sessions
    assert [peer.waits[0].position for peer in peers] == list(range(1, sessions + 1))
    assert harness.store.questions == 8
