"""Many small tasks by one client: taken and handed in by the step, on every store."""

from typing import Any

import pytest

from coord import connect
from coord.core.errors import Invalid
from coord.core.identity import Caller
from coord.core.limits import RECORD_RESULT_BYTES
from coord.core.locks.commands import AcquireLocks
from coord.core.plans.commands import AddTasks, ClaimNext, NewTask
from coord.core.tasks.types import SubmissionReason
from coord.engine.engine import Engine
from coord.sdk.client import results as large
from coord.sdk.validation.tasks import new_task
from coord.stores.contract import Limits
from coord.stores.open import open_store
from tests.support.stores.stand_in import StandInDatabase

NAMES = [f"task-{number:03d}" for number in range(300)]


def open_client(url: str) -> Any:
    return connect(url, session="worker", project="shop", environ={})


def test_many_tasks_are_done_in_few_commits(store_url: str) -> None:
    """CLM-13, issue 6: each once and in order, two commits for as many as were asked for."""
    with open_client(store_url) as client:
        client.add_tasks([new_task(name) for name in NAMES])
        store = client.database.log(client.tenant)
        before, done = store.seen.offset, []
        while (reply := client.next_task(limit=100)).ok:
            taken = [reply, *reply.more]
            done += [each.task.task_id for each in taken]
            results = [(each.task.task_id, each.claim.generation, {"n": 1}) for each in taken]
            assert all(submitted.accepted for submitted in client.submit_tasks(results))
        assert (done, reply.outcome.value) == (NAMES, "done")
        assert store.seen.offset - before == 6
        assert client.task_result(NAMES[-1]) == b'{"n":1}'


def test_results_of_any_size_are_answered_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """TEN-12, issue 6: a step holds so much; a large one goes by itself, and each answer is in its place."""
    monkeypatch.setattr(large, "STEP_RESULTS", 2)
    sizes = [10, 10, 10, RECORD_RESULT_BYTES + 1, 10]
    with open_client("memory:") as client:
        client.add_tasks([new_task(name) for name in NAMES[:4]])
        reply = client.next_task(limit=4)
        names = [each.task.task_id for each in (reply, *reply.more)] + ["of-nobody"]
        texts = ["x" * size for size in sizes]
        replies = client.submit_tasks(
            (name, 1, {"text": text}) for name, text in zip(names, texts, strict=True)
        )
        assert [each.reason for each in replies] == [SubmissionReason.ACCEPTED] * 4 + [
            SubmissionReason.NO_CLAIM
        ]
        assert [len(client.task_result(name)) for name in names[:4]] == [size + 11 for size in sizes[:4]]
        assert client.submit_tasks([]) == []


def test_results_that_are_too_much_for_one_commit_are_handed_in_by_several() -> None:
    """TEN-12, issue 6: a store with small commits takes the same results, and answers them in order."""
    room = Limits(commit_bytes=576 * 1024, durable=False, shared=False)
    database = StandInDatabase(open_store("memory:"), room)
    engine, caller = Engine(database, "local"), Caller("worker")
    for name in NAMES[:8]:
        engine.call(AddTasks("shop", (NewTask(task_id=name),)))
    taken = engine.call(ClaimNext(caller=caller, tenant="local", project="shop", lease_ms=60_000, limit=8))
    names = [each.task.task_id for each in (taken, *taken.more)]
    data = b'"' + b"x" * 120_000 + b'"'
    replies = large.submit_all(engine, caller, [(("local", "shop", name), 1, data) for name in names])
    assert [(each.work_product_ref or "").split("-gen")[0] for each in replies] == [
        f"wp-{name}" for name in names
    ]


@pytest.mark.parametrize("limit", [0, -1, 251, True, "2", None])
def test_how_many_is_a_number_in_measure(limit: Any) -> None:
    """Issue 6: bad input is refused with the next step, and changes nothing."""
    with open_client("memory:") as client:
        client.add_tasks([new_task("one")])
        with pytest.raises(Invalid, match="invalid number of tasks") as caught:
            client.next_task(limit=limit)
        assert caught.value.hint == "use 1 to 250"
        assert client.show_task("one").state == "ready"


def test_a_deadlock_ends_the_wait_for_a_task() -> None:
    """DLK-15: whoever loses a lock is told at once; a wait that was given up is forgotten."""
    with open_client("memory:") as client:
        engine, repository = client.engine, client.location.repository_id
        engine.call(AddTasks("shop", (NewTask(task_id="t", files=("name:b",), repository=repository),)))
        assert client.acquire("name:a").ok
        bob = Caller("bob", agent="bob")
        assert engine.call(AcquireLocks(bob, repository, ("name:b",), priority=5)).ok
        assert client.next_task(wait_s=0.01).outcome.value == "blocked"
        waiting = AcquireLocks(bob, repository, ("name:a",), priority=5, wait_ms=60_000, wait_id="w")
        assert engine.call(waiting).outcome.value == "waiting", "the client has given up"
        reply = client.next_task(wait_s=60)
        assert (reply.lost, reply.lost_to) == (["name:a"], "bob")


@pytest.mark.parametrize("stops", [True, False])
def test_a_wait_behind_claims_only_goes_on_unless_asked(stops: bool) -> None:
    """Each has claimed what the other waits for: nobody loses anything, and a lease may still expire."""
    with open_client("memory:") as client:
        engine, repository = client.engine, client.location.repository_id
        tasks = [NewTask(task_id=name, repository=repository) for name in ("a", "b")]
        tasks += [
            NewTask(task_id=f"{name}2", depends_on=(name,), repository=repository) for name in ("a", "b")
        ]
        engine.call(AddTasks("shop", tuple(tasks)))
        assert client.claim_task("a").success
        zed = ClaimNext(
            caller=Caller("zed", agent="zed"), tenant="local", project="shop", lease_ms=60_000, wait_ms=60_000
        )
        assert engine.call(zed).ok
        assert engine.call(zed).outcome.value == "blocked"
        reply = client.next_task(wait_s=60 if stops else 0.05, stop_if_deadlocked=stops)
        assert (reply.lost, bool(reply.lost_to)) == ([], stops)
