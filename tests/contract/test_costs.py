"""What an operation costs, exactly: records and commits, calls of the store, and syncs of the disk.

Few records per operation and one sync per commit are the whole of performance, so more of either is a defect.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import psycopg
import pytest

from coord.core.brief.commands import GetBrief
from coord.core.identity import Caller
from coord.core.ids import work_product_ref
from coord.core.lifecycle.commands import Register
from coord.core.limits import UNLIMITED_TENANT
from coord.core.locks.commands import AcquireLocks
from coord.core.plans.commands import AddTasks, ClaimNext, NewTask
from coord.core.tasks.commands import AsSession, SubmitResult, SubmitResults
from coord.sdk.coordinator import TaskCoordinator
from coord.stores.log import sole_writer
from coord.stores.open import open_store
from tests.support.servers.postgres import PostgresServer, in_log_shape
from tests.support.stores.costs_child import MARK, NOW
from tests.support.stores.processes import children
from tests.support.stores.stand_in import StandIn, StandInDatabase

TENANTS = [UNLIMITED_TENANT, "limited"]
LEASE_S = 60
READS_OF_A_CROWD = 4


class Cost(NamedTuple):
    """What one operation did to the store."""

    records: int
    commits: int
    loads: int
    ranges: int = 0
    """How many of these the loads had."""
    verifications: int = 0


class CostHarness:
    """A coordinator over a counting store, by a clock that the test turns."""

    def __init__(self, url: str, tenant: str) -> None:
        self.tenant = tenant
        self.now = NOW
        self.database = StandInDatabase(open_store(url))
        self.store: StandIn = self.database.log(tenant)
        self.coordinator = TaskCoordinator(self.database, clock=lambda: self.now)
        # The first batch also looks for what is due; that belongs to no operation.
        self.coordinator.claim_task(tenant, "shop", "first", "agent", "someone", 3000)

    def cost(self, act: Callable[[], bool]) -> Cost:
        """Return what an operation costs; it must have gone as the test thinks."""
        self.store.start_counting()
        assert act()
        calls = self.store.calls
        return Cost(
            self.store.records_written, calls["commit"], calls["load"], calls["range"], calls["verify"]
        )

    def claim(self, session: str = "session", task: str = "task") -> bool:
        return self.coordinator.claim_task(self.tenant, "shop", task, "agent", session, LEASE_S).success

    def renew(self, generation: int = 1) -> bool:
        return self.coordinator.renew_lease(self.tenant, "shop", "task", "session", generation).success

    def release(self, generation: int = 1) -> bool:
        return self.coordinator.release_claim(self.tenant, "shop", "task", "session", generation).success

    def next_task(self, session: str) -> ClaimNext:
        return ClaimNext(caller=Caller(session), tenant=self.tenant, project="shop", lease_ms=LEASE_S * 1000)

    def submit(self, generation: int = 1, session: str = "session") -> bool:
        reply = self.coordinator.submit_result(self.tenant, "shop", "task", session, generation, {"ok": True})
        return reply.accepted


@pytest.fixture(params=TENANTS)
def harness(
    request: pytest.FixtureRequest, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[CostHarness]:
    # A stale load would be verified or not, depending on the time.
    monkeypatch.setattr(sole_writer, "RECENT_MS", 0)
    harness = CostHarness(store_url, request.param)
    with closing(harness.coordinator):
        yield harness


@pytest.fixture(params=TENANTS)
def in_memory(request: pytest.FixtureRequest) -> Iterator[CostHarness]:
    """For how often something is read, which does not depend on the store."""
    harness = CostHarness("memory:", request.param)
    with closing(harness.coordinator):
        yield harness


def limited(harness: CostHarness, records: int) -> int:
    """How many records more a limited tenant writes: its counts."""
    return 0 if harness.tenant == UNLIMITED_TENANT else records


def test_a_first_claim(harness: CostHarness) -> None:
    """The task and the index of the session's claims; in a limited tenant also the three counts."""
    assert harness.cost(harness.claim) == Cost(2 + limited(harness, 3), commits=1, loads=1)


def test_a_further_claim_of_a_session(harness: CostHarness) -> None:
    """The number of sessions stays as it is, and is not written."""
    assert harness.claim()
    assert harness.cost(lambda: harness.claim(task="other")) == Cost(
        2 + limited(harness, 2), commits=1, loads=1
    )


def test_a_refused_claim(harness: CostHarness) -> None:
    """A refusal is one record, once; repeated within the minute it writes nothing."""
    assert harness.claim()
    assert harness.cost(lambda: not harness.claim("other")) == Cost(1, commits=1, loads=2)
    assert harness.cost(lambda: not harness.claim("other")) == Cost(0, commits=0, loads=2)


def test_a_renewal(harness: CostHarness) -> None:
    """The task alone, in every tenant."""
    assert harness.claim()
    assert harness.cost(harness.renew) == Cost(1, commits=1, loads=1)


def test_a_refused_renewal(harness: CostHarness) -> None:
    """A stale renewal is one record, once; repeated within the minute it writes nothing."""
    assert harness.claim()
    assert harness.cost(lambda: not harness.renew(2)) == Cost(1, commits=1, loads=2)
    assert harness.cost(lambda: not harness.renew(2)) == Cost(0, commits=0, loads=2)


def test_a_submission(harness: CostHarness) -> None:
    """The task, its result, and the index entry that goes; in a limited tenant also the counts."""
    assert harness.claim()
    assert harness.cost(harness.submit) == Cost(3 + limited(harness, 3), commits=1, loads=1)


def test_a_stale_submission(harness: CostHarness) -> None:
    """A rejected submission is one record, once; repeated within the minute it writes nothing."""
    assert harness.claim()
    assert harness.release()
    assert harness.claim("other")
    assert harness.cost(lambda: not harness.submit(1)).records == 1
    again = harness.cost(lambda: not harness.submit(1))
    assert (again.records, again.commits) == (0, 0)


def test_a_release(harness: CostHarness) -> None:
    """The task, and the index entry that goes; in a limited tenant also the counts."""
    assert harness.claim()
    assert harness.cost(harness.release) == Cost(2 + limited(harness, 3), commits=1, loads=1)


def test_a_claim_after_a_release(harness: CostHarness) -> None:
    """As a first claim, and the ended generation moves to its history."""
    assert harness.claim()
    assert harness.release()
    assert harness.cost(harness.claim) == Cost(3 + limited(harness, 3), commits=1, loads=2)


def test_a_claim_after_an_expiry(harness: CostHarness) -> None:
    """The old index entry goes, the new one comes, the ended generation moves to its history: one commit.

    Its session is left a record of what it lost.
    Somebody passes the deadline on the way, so the due line is scanned.
    """
    assert harness.claim()
    harness.now += LEASE_S * 1000
    cost = harness.cost(lambda: harness.claim("other"))
    assert (cost.records, cost.commits) == (5 + limited(harness, 4), 1)


def test_many_claims_in_one_batch(harness: CostHarness) -> None:
    """A batch is one load and one commit; its counts are written once."""
    keys = [(harness.tenant, "shop", f"task-{number}") for number in range(90)]

    def claim_all() -> bool:
        results = harness.coordinator.batch_claim(keys, ("agent", "session", LEASE_S))
        return all(result.success for result in results.values())

    assert harness.cost(claim_all) == Cost(180 + limited(harness, 3), commits=1, loads=1)


def test_many_next_tasks_in_one_batch(harness: CostHarness) -> None:
    """However many sessions ask for work at once, the store is read a few times: not once for each."""
    engine = harness.coordinator.engine(harness.tenant)
    if harness.tenant != UNLIMITED_TENANT:
        harness.coordinator.set_limits(harness.tenant, max_concurrent_claims=100, max_active_sessions=100)
    engine.call(AddTasks("shop", tuple(NewTask(task_id=f"task-{number:02d}") for number in range(99))))

    def all_next() -> bool:
        replies = engine.call_many([harness.next_task(f"session-{number}") for number in range(90)])
        return [reply.task.task_id for reply in replies] == [f"task-{number:02d}" for number in range(90)]

    cost = harness.cost(all_next)
    assert cost.commits == 1
    assert cost.loads <= READS_OF_A_CROWD


def test_the_next_task_of_several_classes(in_memory: CostHarness) -> None:
    """What is at the heads of all classes is loaded at once; each has a line of its own to look at."""
    harness = in_memory
    engine = harness.coordinator.engine(harness.tenant)
    tasks = [NewTask(task_id=f"task-{number}", type=f"type-{number % 5}") for number in range(20)]
    engine.call(AddTasks("shop", tuple(tasks)))
    assert engine.call(harness.next_task("worker")).task.task_id == "task-0"
    cost = harness.cost(lambda: engine.call(harness.next_task("worker")).task.task_id == "task-1")
    assert (cost.commits, cost.loads, cost.ranges) == (1, 3, 7)


def test_a_brief_among_many_agents(in_memory: CostHarness) -> None:
    """However many agents there are, the store is asked twice: for all that they have, then for the tasks."""
    harness = in_memory
    engine = harness.coordinator.engine(harness.tenant)
    if harness.tenant != UNLIMITED_TENANT:
        harness.coordinator.set_limits(harness.tenant, max_concurrent_claims=100, max_active_sessions=100)
    engine.call(AddTasks("shop", tuple(NewTask(task_id=f"task-{number}") for number in range(99))))
    crew = [Caller(f"agent-{number}", project="shop") for number in range(50)]
    engine.call_many([Register(caller=each, peers=False) for each in crew])
    engine.call_many([AcquireLocks(each, "r", (f"file:{each.session}",)) for each in crew])
    engine.call_many([harness.next_task(each.session) for each in crew])
    for health in (True, False):
        brief = GetBrief(crew[0], health=health)
        cost = harness.cost(lambda brief=brief: len(engine.call(brief).crew) == len(crew) - 1)  # type: ignore[misc]
        assert (cost.commits, cost.loads) == (0, 2)


def test_several_tasks_in_one_step(in_memory: CostHarness) -> None:
    """However many one step takes, it reads as often as for one; and handing them in is one load."""
    harness = in_memory
    engine = harness.coordinator.engine(harness.tenant)
    engine.call(AddTasks("shop", tuple(NewTask(task_id=f"task-{number:02d}") for number in range(90))))
    command, taken = msgspec.structs.replace(harness.next_task("worker"), limit=80), []

    def take() -> bool:
        reply = engine.call(command)
        taken.extend([reply, *reply.more])
        return len(taken) == 80

    assert engine.call(harness.next_task("worker")).ok
    cost = harness.cost(take)
    assert (cost.records, cost.commits, cost.loads, cost.ranges) == (3 * 80 + limited(harness, 2), 1, 2, 2)
    results = tuple(
        SubmitResult(harness.tenant, "shop", each.task.task_id, "", 1, b"{}", "product") for each in taken
    )
    cost = harness.cost(lambda: len(engine.call(SubmitResults(Caller("worker"), results))) == 80)
    assert (cost.records, cost.commits, cost.loads, cost.ranges) == (
        5 * 80 + 1 + limited(harness, 2),
        1,
        1,
        0,
    )


def test_many_results_in_one_batch(in_memory: CostHarness) -> None:
    """Tasks that nothing depends on need not look for what does: one load, no scan, however many they are."""
    harness = in_memory
    engine = harness.coordinator.engine(harness.tenant)
    names = [f"task-{number:02d}" for number in range(90)]
    engine.call(AddTasks("shop", tuple(NewTask(task_id=name) for name in names)))
    assert all(reply.task for reply in engine.call_many([harness.next_task("worker")] * len(names)))
    results = [SubmitResult(harness.tenant, "shop", name, "", 1, b"{}", "product") for name in names]
    handed_in = [AsSession(Caller("worker"), result) for result in results]
    cost = harness.cost(lambda: all(reply.accepted for reply in engine.call_many(handed_in)))
    assert (cost.commits, cost.loads, cost.ranges) == (1, 1, 0)


def test_a_result_and_the_next_task_in_one_commit(harness: CostHarness) -> None:
    """A worker hands in and takes its next task in one batch: one commit for each task, not two."""
    engine = harness.coordinator.engine(harness.tenant)
    engine.call(AddTasks("shop", (NewTask(task_id="one"), NewTask(task_id="two"))))
    first = engine.call(harness.next_task("worker"))
    submission = SubmitResult(
        harness.tenant, "shop", "one", "worker", 1, b"{}", work_product_ref("one", 1, "0" * 32)
    )
    found: list[Any] = []

    def submit_and_next() -> bool:
        found.extend(engine.call_many([submission, harness.next_task("worker")]))
        return True

    assert first.task.task_id == "one"
    assert harness.cost(submit_and_next).commits == 1
    assert (found[0].accepted, found[1].task.task_id) == (True, "two")


def test_questions_write_nothing(harness: CostHarness) -> None:
    """Questions never write, never sweep, and are answered by what they load."""
    assert harness.claim()
    coordinator, tenant = harness.coordinator, harness.tenant
    harness.now += 10 * LEASE_S * 1000
    for ask in (
        lambda: coordinator.get_task_state(tenant, "shop", "task"),
        lambda: coordinator.get_claim_history(tenant, "shop", "task"),
        lambda: coordinator.get_active_claims_for_session(tenant, "session"),
        lambda: coordinator.list_expired_claims(tenant),
    ):
        cost = harness.cost(lambda ask=ask: ask() is not None)  # type: ignore[misc]
        assert (cost.records, cost.commits) == (0, 0)


# Syncs of the disk.

SYNCS = {"memory": 0, "file": 2, "sqlite": 1, "postgresql": 1}
"""Syncs per commit: the entry and its folder; the write-ahead log; the server's."""

WRITING = ["claim", "renewal", "release", "second claim", "refused claim", "submission", "batch of claims"]
READING = ["claim refused again", "question"]


@pytest.mark.parametrize("tenant", TENANTS)
@pytest.mark.parametrize("kind", ["memory", "files", "sqlite"])
def test_syncs_of_stores_in_this_process(
    kind: str, tenant: str, make_url: Callable[[str], str], strace: str, tmp_path: Path
) -> None:
    """Every operation that writes is one commit, with the syncs of one commit; the others cost none."""
    url, trace = make_url(kind), tmp_path / "trace"
    calls = "trace=fsync,fdatasync,sync_file_range,msync,syncfs,sync,access,faccessat,faccessat2"
    with children(
        "costs_child", (url, tenant), under=(strace, "-f", "-qq", "-o", str(trace), "-e", calls)
    ) as (child,):
        assert child.finish() == 0
    counted = syncs_by_operation(trace.read_text())
    per_commit = SYNCS[url.partition(":")[0]]
    assert counted == {**dict.fromkeys(WRITING, per_commit), **dict.fromkeys(READING, 0)}


def syncs_by_operation(trace: str) -> dict[str, int]:
    """Return how many syncs lie between the marks of a trace."""
    counted: dict[str, int] = {}
    operation = ""
    for line in trace.splitlines():
        if found := re.search(rf'access(?:at2?)?\(.*"{MARK}([^"]+)"', line):
            operation = found[1]
            counted[operation] = 0
        elif operation and re.search(r"\b(fsync|fdatasync|sync_file_range|msync|syncfs|sync)\(", line):
            counted[operation] += 1
    del counted["end"]
    return counted


@pytest.mark.parametrize("tenant", TENANTS)
@pytest.mark.parametrize("shaped", [str, in_log_shape])
def test_syncs_of_the_server(
    tenant: str, shaped: Callable[[str], str], postgres_server: PostgresServer
) -> None:
    """One commit is one sync of the server's write-ahead log; whoever is woken costs none.

    The server syncs for purposes of its own, too, and where its WAL writer is first, it reports that later:
    what counts is that one of several runs has just these.
    """
    url = postgres_server.fresh_url(shaped)
    with closing(TaskCoordinator.open(url)) as coordinator:
        coordinator.claim_task(tenant, "shop", "warm", "agent", "warm")
    runs = [syncs_of_run(postgres_server, url, tenant, f"run-{number}") for number in range(4)]
    wanted = {**dict.fromkeys(WRITING, TIMES * SYNCS["postgresql"]), **dict.fromkeys(READING, 0)}
    seen = {name: [run[name] for run in runs] for name in runs[0]}
    assert seen.keys() == wanted.keys()
    assert {name: found for name, found in seen.items() if wanted[name] not in found} == {}


TIMES = 8


def syncs_of_run(server: PostgresServer, url: str, tenant: str, name: str) -> dict[str, int]:
    """Return the server's syncs for doing each operation several times over."""
    tasks = [f"{name}-{number}" for number in range(TIMES)]

    def each(act: Callable[[TaskCoordinator, str], object]) -> Callable[[TaskCoordinator], None]:
        return lambda coordinator: [act(coordinator, task) for task in tasks].clear()

    operations: dict[str, Callable[[TaskCoordinator], None]] = {
        "claim": each(lambda c, task: c.claim_task(tenant, "shop", task, "agent", name, 3000)),
        "refused claim": each(lambda c, task: c.claim_task(tenant, "shop", task, "agent", "other", 3000)),
        "claim refused again": each(
            lambda c, task: c.claim_task(tenant, "shop", task, "agent", "other", 3000)
        ),
        "question": each(lambda c, task: c.get_task_state(tenant, "shop", task)),
        "renewal": each(lambda c, task: c.renew_lease(tenant, "shop", task, name, 1)),
        "release": each(lambda c, task: c.release_claim(tenant, "shop", task, name, 1)),
        "second claim": each(lambda c, task: c.claim_task(tenant, "shop", task, "agent", name, 3000)),
        "submission": each(lambda c, task: c.submit_result(tenant, "shop", task, name, 2, {"ok": True})),
        "batch of claims": each(
            lambda c, task: c.batch_claim(
                [(tenant, "shop", f"{task}-{n}") for n in range(3)], ("agent", name, 3000)
            )
        ),
    }
    return {operation: server_syncs(server, url, act) for operation, act in operations.items()}


def server_syncs(server: PostgresServer, url: str, act: Callable[[TaskCoordinator], None]) -> int:
    """Return how often the server synced its log while a coordinator was open and did something."""
    with server.admin() as admin:
        before = wal_syncs(admin)
        with closing(TaskCoordinator.open(url, clock=lambda: NOW)) as coordinator:
            act(coordinator)
        wait_until_gone(admin, url.rpartition("/")[2])
        return wal_syncs(admin) - before


def wal_syncs(admin: "psycopg.Connection[tuple[int]]") -> int:
    row = admin.execute("SELECT wal_sync FROM pg_stat_wal").fetchone()
    assert row is not None
    return row[0]


def wait_until_gone(admin: "psycopg.Connection[tuple[int]]", database: str) -> None:
    """Wait until the server has ended every connection to a database: only then are its numbers complete."""
    deadline = time.monotonic() + 60
    while True:
        row = admin.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND backend_type = 'client backend'",
            (database,),
        ).fetchone()
        if row is not None and row[0] == 0:
            return
        assert time.monotonic() < deadline, "the connections do not end"
