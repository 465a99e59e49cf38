"""`coord.Worker`: what a function returns or raises becomes of its task, and a lost claim stops it."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import coord
from coord import CannotBeDone, Client, GiveBack, RateLimited, Work, Worker, WorkFailed
from coord.core.errors import ClaimLost, Unavailable, Unknown
from coord.core.tasks.commands import SubmitResult
from coord.sdk.worker.work import HUNG_S
from coord.sdk.worker.worker import WorkerEvent, WorkerReport, WorkOutcome
from tests.support.client_harness import ClientHarness, open_client_harness
from tests.support.servers.server import poll_until

WAIT_S = 10.0
SHORT_S = 1.5
"""A lease that is renewed within the test, and outlives a moment in which the machine stands still."""


@pytest.fixture
def clients(tmp_path: Path) -> Iterator[ClientHarness]:
    """Clients that share a store in memory, with a task to do."""
    with open_client_harness("memory:", tmp_path, tmp_path / "state") as clients:
        clients.client("boss", project="shop").add_task("A-001-x", description="do it")
        yield clients


@pytest.fixture
def ann(clients: ClientHarness) -> Client:
    return clients.client("ann", project="shop")


def once(client: Client, handle: Any, **options: Any) -> WorkerReport:
    return Worker(client, **options).run(handle, once=True)


def test_what_a_function_returns_is_handed_in_under_its_generation(ann: Client) -> None:
    """The function knows its generation, and its result is tagged with it.

    SDK-2, CLM-18, SDK-1, SUP-17, DOC-3.
    """

    def handle(work: Work) -> dict[str, Any]:
        assert work.task.description == "do it"
        assert ann.show().state == "working"
        return {"seen": work.generation}

    assert once(ann, handle).endings == {WorkOutcome.SUBMITTED: 1}
    result = ann.task_state("A-001-x").result
    assert result is not None
    assert (result.generation, result.result_data) == (1, {"seen": 1})


@pytest.mark.parametrize(
    ("raised", "ending", "state", "note", "retries"),
    [
        (ValueError("no such column"), WorkOutcome.FAILED, "pending", "ValueError: no such column", 1),
        (WorkFailed("tests\nred"), WorkOutcome.FAILED, "pending", "tests red", 1),
        (CannotBeDone("no such file"), WorkOutcome.FAILED, "failed", "no such file", 0),
        (GiveBack("not now"), WorkOutcome.GIVEN_BACK, "ready", "not now", 0),
        (RateLimited(60), WorkOutcome.LIMITED, "ready", "rate limited", 0),
    ],
)
def test_what_a_function_raises_says_how_it_goes_on(
    raised: Exception, ending: WorkOutcome, state: str, note: str, retries: int, ann: Client
) -> None:
    """SDK-4, REC-32, RTE-20: a failure is tried again, the hopeless is not, a rate limit is no failure."""

    def handle(_: Work) -> None:
        raise raised

    assert once(ann, handle).endings == {ending: 1}
    task = ann.show_task("A-001-x")
    assert (task.state, task.note, task.retries) == (state, note, retries)


@pytest.mark.parametrize("result", [{"deep": {1, 2}}, ["a list"], {"much": [0] * 1_000_001}])
def test_a_result_that_cannot_be_handed_in_is_a_failure(result: Any, ann: Client) -> None:
    """SDK-4: the task does not stay with a worker that has nothing to say."""
    assert once(ann, lambda _: result).endings == {WorkOutcome.FAILED: 1}
    assert "the result cannot be submitted" in ann.show_task("A-001-x").note


def test_a_worker_ends_when_all_is_done(clients: ClientHarness, ann: Client) -> None:
    """CLM-15: one task after the other, in their order, until nothing is left."""
    clients.clients[0].add_task("A-002-y", depends_on=["A-001-x"])
    seen: list[str] = []
    worked = Worker(ann).run(lambda work: seen.append(work.task_id))
    assert (seen, worked.ended_by, worked.endings) == (["A-001-x", "A-002-y"], "done", {"submitted": 2})
    assert ann.claim_task("A-001-x").reason == "DENIED_COMPLETED"


def test_a_worker_ends_when_all_is_stuck_and_says_why(ann: Client) -> None:
    """Lessons of the plan orchestrator: nothing runnable is not the same as all done."""

    def handle(_: Work) -> None:
        raise CannotBeDone("never")

    worked = Worker(ann).run(handle)
    assert (worked.ended_by, worked.waiting_for) == ("deadlocked", ["A-001-x failed"])


def test_a_worker_waits_for_what_others_do_and_says_so_once(clients: ClientHarness, ann: Client) -> None:
    """The queue is not asked in circles: who works on what is told when it changes, and ends the wait."""
    bob = clients.client("bob", project="shop")
    assert bob.claim_task("A-001-x").success
    clients.clients[0].add_task("A-002-y", depends_on=["A-001-x"])
    steps: list[WorkerEvent] = []

    def on_event(step: WorkerEvent) -> None:
        steps.append(step)
        if step.event == "waiting":
            assert bob.submit_task("A-001-x", 1, {}).accepted

    assert Worker(ann, on_event=on_event).run(lambda _: None).ended_by == "done"
    assert [(step.event, step.task_id) for step in steps] == [
        ("waiting", ""),
        ("claimed", "A-002-y"),
        ("submitted", "A-002-y"),
    ]
    assert "A-001-x is in progress (bob)" in steps[0].note


def test_a_worker_waits_no_longer_than_told(clients: ClientHarness, ann: Client) -> None:
    """`wait_s=0` takes what is there, and ends."""
    assert clients.client("bob", project="shop").claim_task("A-001-x").success
    assert Worker(ann).run(lambda _: None, wait_s=0).ended_by == "blocked"


def test_a_worker_that_keeps_stays_for_what_is_added(clients: ClientHarness, ann: Client) -> None:
    """SES-38: `keep`: done is not the end, and `stop` is."""
    seen: list[str] = []

    def on_event(step: WorkerEvent) -> None:
        if step.event == "waiting" and len(seen) == 1:
            clients.clients[0].add_task("A-002-y")

    def handle(work: Work) -> None:
        seen.append(work.task_id)
        if len(seen) == 2:
            worker.stop()

    worker = Worker(ann, on_event=on_event)
    assert worker.run(handle, keep=True).ended_by == "stopped"
    assert seen == ["A-001-x", "A-002-y"]


def taken_away(clients: ClientHarness, work: Work) -> bool:
    """Let another session take the task by force; return whether the worker has noticed."""
    bob = clients.client("bob", project="shop")
    return bob.claim_task(work.task_id, force=True, reason="urgent").success and not work.wait(WAIT_S)


def test_a_lost_claim_is_noticed_and_nothing_is_handed_in(clients: ClientHarness, ann: Client) -> None:
    """CLM-20, SCN-2: the renewal tells that somebody else has it; what comes of it counts for nothing."""

    noticed: list[bool] = []

    def handle(work: Work) -> dict[str, Any]:
        noticed.append(taken_away(clients, work))
        with pytest.raises(ClaimLost, match="GENERATION_MISMATCH"):
            work.check()
        noticed.append(True)
        return {"late": True}

    assert once(ann, handle, lease_s=SHORT_S).endings == {WorkOutcome.LOST: 1}
    assert noticed == [True, True]
    state = ann.task_state("A-001-x")
    assert (state.generation, state.result, state.rejected) == (2, None, ())


def test_a_claim_is_renewed_while_a_function_works(ann: Client) -> None:
    """SDK-3, SCH-11: the lease begins anew in the background, again and again."""

    def handle(work: Work) -> None:
        while work.renewals < 2:
            assert work.wait(0.05), work.why_lost

    assert once(ann, handle, lease_s=SHORT_S).endings == {WorkOutcome.SUBMITTED: 1}


def test_a_store_that_is_silent_for_too_long_ends_the_work(ann: Client, monkeypatch: Any) -> None:
    """SDK-4, REC-18: by our own clock, before the lease ends; then nothing is handed in either."""

    seen: list[tuple[bool, float, float]] = []

    def handle(work: Work) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(ann.engine, "call", refusing(Unavailable("the store is away")))
            seen.append((work.wait(WAIT_S), work.grace_s(10), work.left_s))

    assert once(ann, handle, lease_s=2 * SHORT_S).endings == {WorkOutcome.LOST: 1}
    ((went_on, grace_s, left_s),) = seen
    assert not went_on
    assert 0 < left_s <= grace_s < SHORT_S, "there is time left to stop, and not more than that"
    assert ann.task_state("A-001-x").result is None


def refusing(error: Exception) -> Any:
    def call(*_: Any, **__: Any) -> Any:
        raise error

    return call


@pytest.mark.parametrize("error", [Unavailable("away"), Unknown("the answer was lost")])
def test_an_outage_shorter_than_the_lease_loses_nothing(
    error: Exception, ann: Client, monkeypatch: Any
) -> None:
    """SDK-4: what was being handed in is sent again under the same id, and counts once."""
    call, sent = ann.engine.call, []

    def shaky(command: Any, **options: Any) -> Any:
        if not isinstance(getattr(command, "command", None), SubmitResult):
            return call(command, **options)
        sent.append(options["command_id"])
        if len(sent) == 1:
            if isinstance(error, Unknown):
                call(command, **options)  # it arrived; its answer did not
            raise error
        return call(command, **options)

    monkeypatch.setattr(ann.engine, "call", shaky)
    assert once(ann, lambda _: {"n": 1}).endings == {WorkOutcome.SUBMITTED: 1}
    assert len(sent) == 2
    assert sent[0] == sent[1] != ""
    assert ann.task_state("A-001-x").rejected == ()


def test_a_worker_that_is_interrupted_gives_its_task_back(ann: Client) -> None:
    """Ctrl-C in a program: the task is free at once, and no failure is counted."""

    def handle(_: Work) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Worker(ann).run(handle)
    task = ann.show_task("A-001-x")
    assert (task.state, task.retries, task.note) == ("ready", 0, "the worker was interrupted")


def test_progress_is_seen_by_others(ann: Client) -> None:
    """OBS-27: how far a worker is stands in its session, and is told to whoever runs it."""
    steps: list[WorkerEvent] = []

    def handle(work: Work) -> None:
        work.progress(0.4, "testing")
        assert ann.show().current_task["phase"] == "40 % testing"
        work.progress("nearly")

    once(ann, handle, on_event=steps.append)
    assert [step.note for step in steps if step.event == "progress"] == ["40 % testing", "nearly"]


def test_a_coroutine_function_does_the_same(ann: Client) -> None:
    """Issue 4, part 9: sync and async; the loop goes on meanwhile."""

    async def handle(work: Work) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"of": work.task_id}

    assert asyncio.run(Worker(ann).run_async(handle)).endings == {WorkOutcome.SUBMITTED: 1}
    result = ann.task_state("A-001-x").result
    assert result is not None
    assert result.result_data == {"of": "A-001-x"}


def test_a_coroutine_is_cancelled_when_its_claim_is_lost(clients: ClientHarness, ann: Client) -> None:
    """Issue 4, part 9: cancellation is how a coroutine is told; it may clean up before."""
    cleaned = threading.Event()

    async def handle(work: Work) -> None:
        try:
            await asyncio.to_thread(taken_away, clients, work)
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    worked = asyncio.run(Worker(ann, lease_s=SHORT_S).run_async(handle, once=True))
    assert (worked.endings, cleaned.is_set()) == (
        {
            WorkOutcome.LOST: 1,
        },
        True,
    )


def test_a_cancelled_worker_gives_its_task_back(ann: Client) -> None:
    """The program ends its loop: the coroutine is cancelled, the task is free, the worker has ended."""

    async def main() -> None:
        begun = asyncio.Event()

        async def handle(_: Work) -> None:
            begun.set()
            await asyncio.Event().wait()

        running = asyncio.create_task(Worker(ann).run_async(handle))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    task = ann.show_task("A-001-x")
    assert (task.state, task.note) == ("ready", "the worker was stopped")


def test_a_function_that_is_no_coroutine_fails_its_task(ann: Client) -> None:
    """A mistake is told in the task's note, and nobody waits for ever."""
    handle: Any = lambda work: {}  # noqa: E731
    assert asyncio.run(Worker(ann).run_async(handle, once=True)).endings == {WorkOutcome.FAILED: 1}
    assert "TypeError" in ann.show_task("A-001-x").note


def test_a_worker_takes_only_what_it_was_told_to(ann: Client) -> None:
    """The same choices as `next_task`."""
    ann.add_task("B-001-z", type="docs", track="B")
    seen: list[str] = []
    Worker(ann, types=["docs"], tracks=["B"]).run(lambda work: seen.append(work.task_id), once=True)
    assert seen == ["B-001-z"]
    with pytest.raises(coord.Invalid):
        Worker(ann, lease_s=-1).run(lambda _: None)


def test_a_forced_claim_takes_its_place_on_the_track(clients: ClientHarness, ann: Client) -> None:
    """AMB-13: whoever loses the task leaves the track by that, and is not in the way of its successor."""
    assert ann.claim_task("A-001-x").success
    bob = clients.client("bob", project="shop")
    assert bob.claim_task("A-001-x", force=True, reason="stuck").success
    ann.add_task("A-002-y")
    assert ann.claim_task("A-002-y").reason == "DENIED_NOT_READY", "bob is on the track now, alone"


class Clock:
    """A clock for the time limit: it stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def limit_clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("coord.sdk.worker.work.clock", clock)
    return clock


def test_work_without_progress_is_over_and_counts_as_a_failure(ann: Client, limit_clock: Clock) -> None:
    """REC-29: the function is told, and its task returns to the queue with the reason."""

    over: list[bool] = []

    def handle(work: Work) -> None:
        for seconds in (599, 599, 1):
            limit_clock.now += seconds
            over.append(work.over)
            if len(over) == 1:
                work.progress(0.5)
        work.check()

    assert once(ann, handle, time_limit_s=600).endings == {WorkOutcome.FAILED: 1}
    task = ann.show_task("A-001-x")
    assert (over, task.state, task.retries) == ([False, False, True], "pending", 1)
    assert task.note == "no progress for 600 s"


def test_a_coroutine_without_progress_is_cancelled(ann: Client) -> None:
    """The same limit for a coroutine, which can be stopped from outside."""

    async def handle(_: Work) -> None:
        await asyncio.get_running_loop().create_future()

    worked = asyncio.run(Worker(ann, time_limit_s=0.2).run_async(handle, once=True))
    assert worked.endings == {WorkOutcome.FAILED: 1}
    assert ann.show_task("A-001-x").note == "no progress for 0.2 s"


def test_a_claim_of_work_that_does_not_stop_is_not_renewed_for_ever(ann: Client, limit_clock: Clock) -> None:
    """A function cannot be killed; but it loses its claim, so that another agent gets the task."""

    def handle(work: Work) -> None:
        limit_clock.now += 600 + HUNG_S
        poll_until(lambda: work.lost, WAIT_S, "the claim is still renewed")

    assert once(ann, handle, time_limit_s=600, lease_s=SHORT_S).endings == {WorkOutcome.LOST: 1}
