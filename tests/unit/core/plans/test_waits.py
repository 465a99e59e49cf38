"""Cycles through tasks and sub-agents: every kind is broken, and none that can end by itself."""

from collections.abc import Callable
from typing import Any

import pytest

from coord.core.identity import Caller, Process, ProcessState
from coord.core.locks.commands import OTHER_TASK, ListLocks, ListWaits
from coord.core.plans.commands import (
    AddTasks,
    ClaimNamed,
    ClaimNext,
    EndTaskWait,
    GetTasks,
    NewTask,
    NextTask,
    SetTrack,
)
from coord.core.tasks.commands import SubmitResult
from coord.core.why.commands import WhySession
from tests.support.lock_harness import REPOSITORY, LockHarness

LEASE_MS = 3_600_000
LONG = 3_600_000


class Office(LockHarness):
    """Sessions with locks and tasks; `ann` and `bob` are in each other's way, `kid` is a sub-agent of ann."""

    def __init__(self) -> None:
        super().__init__()
        self.parents["kid"] = "ann"
        self.registered: set[str] = set()

    def add(self, name: str, *files: str, after: tuple[str, ...] = (), **fields: Any) -> None:
        task = NewTask(
            task_id=name, files=tuple(f"file:{each}" for each in files), depends_on=after, **fields
        )
        self.engine.call(AddTasks("p", (task,)))

    def hold(self, name: str, *files: str, **options: Any) -> None:
        assert self.lock(name, *(f"file:{each}" for each in files), ttl=LONG, **options).ok
        self.pass_time(1_000)

    def claim(self, name: str, task: str) -> None:
        command = ClaimNamed(
            caller=self.caller(name),
            tenant="local",
            project="p",
            task=task,
            lease_ms=LEASE_MS,
            repository=REPOSITORY,
        )
        assert self.engine.call(command).success
        self.pass_time(1_000)

    def caller(self, name: str) -> Caller:
        return Caller(name, agent=name, parent=self.parents.get(name, ""))

    def ask(self, name: str, **options: Any) -> NextTask:
        """Wait for a task: ask, as the SDK does it, again and again."""
        options = {"wait_ms": LONG, "leased": False, "registered": name in self.registered, **options}
        command = ClaimNext(
            caller=self.caller(name),
            tenant="local",
            project="p",
            lease_ms=LEASE_MS,
            repository=REPOSITORY,
            **options,
        )
        reply: NextTask = self.engine.call(command)
        if reply.registered:
            self.registered.add(name)
        else:
            self.registered.discard(name)
        return reply

    def submit(self, name: str, task: str) -> None:
        assert self.engine.call(SubmitResult("local", "p", task, name, 1, b"{}", "wp")).accepted

    def submit_newest(self, name: str, task: str) -> None:
        (info,) = self.engine.call(GetTasks("p", (task,))).tasks
        self.engine.call(SubmitResult("local", "p", task, name, info.generation, b"{}", "wp"))

    def victims(self) -> list[str]:
        return [event["victim"] for event in self.events("lock.deadlock") if event["resolved"]]


@pytest.fixture
def office() -> Office:
    return Office()


def locks(office: Office) -> None:
    """Each waits for the other's lock."""
    office.hold("ann", "a")
    office.hold("bob", "b")
    office.wait("ann", "file:b")
    office.wait("bob", "file:a")


def place(office: Office) -> None:
    """Bob waits behind ann, and ann for bob's lock."""
    office.hold("bob", "b")
    office.wait("ann", "file:b", "file:c")
    office.wait("bob", "file:c")


def upgrades(office: Office) -> None:
    """Two readers want to write."""
    office.hold("ann", "a", mode="read")
    office.hold("bob", "a", mode="read")
    office.wait("ann", "file:a", mode="write")
    office.wait("bob", "file:a", mode="write")


def claim_and_lock(office: Office) -> None:
    """Ann's lock belongs to her claim."""
    office.add("t", "a")
    office.claim("ann", "t")
    office.hold("bob", "b")
    office.wait("ann", "file:b")
    office.wait("bob", "file:a")


def claim_and_claim(office: Office) -> None:
    """Each has a claim and waits for a file of the other's."""
    office.add("t", "a")
    office.add("u", "b")
    office.claim("ann", "t")
    office.claim("bob", "u")
    office.wait("ann", "file:b")
    office.wait("bob", "file:a")


def task_behind_file(office: Office) -> None:
    """Ann waits for a task whose file bob has locked, and bob for her lock."""
    office.add("t", "b")
    office.hold("ann", "a")
    office.hold("bob", "b")
    office.ask("ann")
    office.wait("bob", "file:a")


def task_behind_claim(office: Office) -> None:
    """Ann waits for a task that depends on bob's, and bob for her lock."""
    office.add("t")
    office.add("u", after=("t",))
    office.hold("ann", "a")
    office.claim("bob", "t")
    office.ask("ann")
    office.wait("bob", "file:a")


def task_behind_track(office: Office) -> None:
    """Ann waits for a task on a track that bob fills, and bob for her lock."""
    office.add("t", track="x")
    office.add("u", track="x")
    office.engine.call(SetTrack("p", "x", 1))
    office.hold("ann", "a")
    office.claim("bob", "t")
    office.ask("ann")
    office.wait("bob", "file:a")


def tasks_behind_files(office: Office) -> None:
    """Each waits for a task whose file the other has locked."""
    office.add("t", "b", type="one")
    office.add("u", "a", type="two")
    office.hold("ann", "a")
    office.hold("bob", "b")
    office.ask("ann", types=("one",))
    office.ask("bob", types=("two",))


def lock_closes_before_task(office: Office) -> None:
    """The wait for the task begins last."""
    office.add("t", "b")
    office.hold("ann", "a")
    office.hold("bob", "b")
    office.wait("bob", "file:a")
    office.ask("ann")


def sub_agent(office: Office) -> None:
    """Ann's sub-agent waits for bob's lock, and bob for ann's."""
    office.hold("ann", "a")
    office.hold("bob", "b")
    office.wait("kid", "file:b")
    office.wait("bob", "file:a")


def sub_agent_last(office: Office) -> None:
    """The wait of the sub-agent closes the cycle."""
    office.hold("ann", "a")
    office.hold("bob", "b")
    office.wait("bob", "file:a")
    office.wait("kid", "file:b")


def sub_agent_for_task(office: Office) -> None:
    """The sub-agent, which holds nothing, waits for a task whose file bob has locked."""
    office.add("t", "b")
    office.hold("ann", "a")
    office.hold("bob", "b")
    office.ask("kid")
    office.wait("bob", "file:a")


KINDS: list[Callable[[Office], None]] = [
    locks,
    place,
    upgrades,
    claim_and_lock,
    claim_and_claim,
    task_behind_file,
    task_behind_claim,
    task_behind_track,
    tasks_behind_files,
    lock_closes_before_task,
    sub_agent,
    sub_agent_last,
    sub_agent_for_task,
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_of_cycle_is_broken(office: Office, kind: Callable[[Office], None]) -> None:
    """DLK-2, DLK-3, DLK-21: through locks, tasks, dependencies, tracks and sub-agents; one victim."""
    kind(office)
    (victim,) = office.victims()
    told = [
        name
        for name in ("ann", "bob", "kid")
        if any("you lost" in each for each in office.told(name, "preempt"))
    ]
    assert victim in told


def test_the_victim_that_waits_for_a_task_reads_its_loss(office: Office) -> None:
    """DLK-15: its next question says what it lost and to whom; then it may wait again."""
    task_behind_claim(office)
    assert office.victims() == ["ann"], "a claim is not taken: ann loses the lock that bob needs"
    reply = office.ask("ann")
    assert (reply.outcome.value, reply.lost, reply.lost_to) == ("blocked", ["file:a"], "bob")
    assert ("bob", "file:a") in office.held()
    assert office.ask("ann").lost_to == "", "the loss is read once"
    office.submit("bob", "t")
    task = office.ask("ann").task
    assert task is not None
    assert task.task_id == "u"


def test_the_winner_gets_the_task(office: Office) -> None:
    """DLK-7: bob has worked less, so ann gets the file of her task."""
    office.add("t", "b")
    office.hold("ann", "a")
    office.hold("bob", "b")
    office.ask("ann")
    assert office.wait("bob", "file:a").outcome == "deadlock"
    task = office.ask("ann").task
    assert task is not None
    assert office.held() == {("ann", "file:a"), ("ann", "file:b")}
    assert office.engine.call(EndTaskWait(office.caller("ann"))) is False, "the claim has ended the wait"


def free_task(office: Office) -> None:
    """Another task has free files: it could be taken now."""
    office.add("free", "f", type="two")
    office.add("next", after=("free",))


def other_holder(office: Office) -> None:
    """The file of another task is locked by a session that does not wait."""
    office.hold("cid", "c")
    office.add("other", "c")


def other_claim(office: Office) -> None:
    """Others depend on a task of a session that does not wait."""
    office.add("s")
    office.add("v", after=("s",))
    office.claim("cid", "s")


@pytest.mark.parametrize("way_out", [free_task, other_holder, other_claim], ids=lambda each: each.__name__)
@pytest.mark.parametrize("last", ["ann", "bob"])
def test_a_wait_with_a_way_out_costs_nobody(
    office: Office, way_out: Callable[[Office], None], last: str
) -> None:
    """DLK-20: waiting for a task is waiting for one of several; it is a deadlock if no other can come."""
    office.add("t", "b")
    way_out(office)
    office.hold("ann", "a")
    office.hold("bob", "b")
    if last == "bob":
        office.ask("ann", types=("one",), lock_files=True)
        office.wait("bob", "file:a")
    else:
        office.wait("bob", "file:a")
        office.ask("ann", types=("one",))
    assert office.victims() == []
    assert {("ann", "file:a"), ("bob", "file:b")} <= office.held()


def test_the_last_way_out_closes_the_cycle(office: Office) -> None:
    """DLK-3: when the other session stops, the next question of the waiting one finds the deadlock."""
    office.add("t", "b")
    other_holder(office)
    office.hold("ann", "a")
    office.hold("bob", "b")
    office.ask("ann")
    office.wait("bob", "file:a")
    office.wait("cid", "file:a")
    office.ask("ann")
    assert office.victims()


def test_a_full_track_needs_one_agent_only(office: Office) -> None:
    """DLK-20: a track has room when any of its agents is done."""
    for name in ("t", "u", "v"):
        office.add(name, track="x")
    office.engine.call(SetTrack("p", "x", 2))
    office.hold("ann", "a")
    office.claim("bob", "t")
    office.claim("cid", "u")
    office.ask("ann")
    office.wait("bob", "file:a")
    assert office.victims() == [], "cid may finish"
    office.wait("cid", "file:a")
    office.ask("ann")
    assert office.victims() == ["ann"]


def test_claims_only(office: Office) -> None:
    """DLK-3: where only claims are in the way, a wait is refused, and no claim is taken."""
    office.add("t")
    office.add("u")
    office.add("v", after=("t", "u"))
    office.claim("ann", "t")
    office.claim("bob", "u")
    office.ask("ann")
    replies = [office.ask("bob"), office.ask("ann")]
    (refused,) = [reply for reply in replies if reply.lost_to]
    assert refused.lost == []
    assert len(office.victims()) == 1
    office.submit("ann", "t")
    office.submit("bob", "u")


def test_a_wait_that_has_ended_blocks_nobody(office: Office) -> None:
    """DLK-20: a session that gave up, and one whose process died, do not wait."""
    office.add("t", "b")
    office.hold("ann", "a")
    office.hold("bob", "b")
    office.ask("ann")
    assert office.engine.call(EndTaskWait(office.caller("ann"))) is True
    office.registered.clear()
    waiting = office.wait("bob", "file:a")
    assert waiting.outcome == "waiting"
    office.withdraw("bob", waiting)
    office.life[7] = ProcessState.DEAD
    office.ask("ann", waiter=Process(7, 1))
    assert office.wait("bob", "file:a").outcome == "waiting"


def test_a_leased_wait_is_renewed_or_forgotten(office: Office) -> None:
    """DLK-20: a wait of another host counts for 15 s after its last question."""
    office.add("t", "b")
    office.hold("ann", "a")
    office.hold("bob", "b")
    office.ask("ann", leased=True)
    for _ in range(4):
        office.pass_time(10_000)
        office.ask("ann", leased=True)
    office.pass_time(15_000)
    waiting = office.wait("bob", "file:a")
    assert waiting.outcome == "waiting"
    office.ask("ann", leased=True)
    assert len(office.victims()) == 1


def test_a_session_that_holds_nothing_writes_nothing(office: Office) -> None:
    """A hundred idle workers must not fill the log, and a claim that succeeds reads nothing more."""
    office.add("t", "b")
    office.hold("bob", "b")
    office.ask("ann")
    assert office.written_by(lambda: office.ask("ann")) == []
    assert office.written_by(lambda: office.ask("ann", wait_ms=0)) == []
    office.release("bob", "file:b")
    reads = []
    for wait_ms in (0, LONG):
        with_file = f"f{wait_ms}"
        office.add(with_file, with_file)
    office.ask("warm", wait_ms=0)
    reads = [
        office.read_by(lambda wait_ms=wait_ms: office.ask("one", wait_ms=wait_ms)) for wait_ms in (0, LONG)
    ]
    assert reads[0] >= reads[1]


def test_a_session_that_ends_does_not_wait(office: Office) -> None:
    """A session that has left blocks nobody, and its parent does not wait for it."""
    sub = office.wait("kid", "file:none")
    assert sub.ok
    office.hold("ann", "a")
    office.hold("bob", "b")
    office.wait("kid", "file:b")
    office.leave("kid")
    assert office.wait("bob", "file:a").outcome == "waiting"
    assert office.victims() == []
    assert len(office.engine.call(ListLocks(office.who("ann")))) == 2


def test_the_graph_shows_waits_for_tasks(office: Office) -> None:
    """DLK-2: with the tasks that the session could get, and what blocks each."""
    office.add("t", "b")
    office.add("u", track="x")
    office.add("v", track="x")
    office.engine.call(SetTrack("p", "x", 1))
    office.hold("ann", "a")
    office.hold("bob", "b")
    office.claim("cid", "u")
    office.ask("ann")
    (wait,) = office.engine.call(ListWaits())
    assert (wait.session, wait.kind, set(wait.wants)) == ("ann", "task", {"t", "v"})
    blockers = {(each.session, each.by, each.what) for each in wait.blockers}
    assert blockers == {("bob", "lock", "t"), ("cid", "track", "v")}


def test_a_reader_of_another_project_learns_no_task(office: Office) -> None:
    """Sessions and locks belong to the tenant; which tasks there are is known to their project only."""
    office.add("secret", "b")
    office.hold("ann", "a")
    office.hold("bob", "b")
    office.ask("ann")
    told = {}
    for project in ("", "p", "other"):
        (wait,) = office.engine.call(ListWaits(Caller("", project=project)))
        why = office.engine.call(WhySession("ann", project))
        told[project] = [wait.wants[0], wait.blockers[0].what, *(each.text for each in why.reasons[:2])]
        assert wait.blockers[0].session == "bob"
    named = ["secret", "secret", "ann waits for secret", "bob holds secret"]
    assert told[""] == told["p"] == named
    assert told["other"] == [each.replace("secret", OTHER_TASK) for each in named]
    assert office.engine.call(WhySession("ann", "other")).remedy is None


@pytest.mark.parametrize("closing", ["rem", "bea"])
def test_the_task_of_lower_priority_returns_to_the_queue(office: Office, closing: str) -> None:
    """DLK-8, DLK-16, LCK-10: Rem's task has priority 3 and Beatrice's 5, and both requests have none."""
    office.add("r", "r", priority=3)
    office.add("b", "b", priority=5)
    office.claim("rem", "r")
    office.claim("bea", "b")
    wants = {"rem": "file:b", "bea": "file:r"}
    first = "bea" if closing == "rem" else "rem"
    replies = {name: office.wait(name, wants[name]) for name in (first, closing)}
    assert office.victims() == ["rem"]
    refused = replies["rem"] if closing == "rem" else office.confirm("rem", replies["rem"])
    assert (refused.outcome, refused.lost, refused.lost_to) == ("deadlock", ["file:r"], "bea")
    assert (refused.claims, refused.again) == (["r"], ["file:b", "file:r"])
    told = office.told("rem", "preempt")
    assert any(each.endswith("then run: coord lock b r && coord task claim r") for each in told)
    states = {task.task_id: task.state for task in office.engine.call(GetTasks("p")).tasks}
    assert states == {"r": "ready", "b": "in_progress"}
