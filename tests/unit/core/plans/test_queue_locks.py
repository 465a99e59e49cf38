"""The locks on a task's files come with its claim, and end with it."""

from coord.core.identity import Caller
from coord.core.locks.commands import AcquireLocks, ListLocks
from coord.core.plans.commands import AddTasks, ClaimNext, NewTask
from coord.core.sweep import SWEEP_MAX
from coord.core.tasks.commands import SubmitResult
from coord.engine.engine import Engine
from coord.stores.open import open_store

LEASE_MS = 60_000
ANN, BOB = Caller("ann", agent="ann"), Caller("bob", agent="bob")


class Bench:
    """One project in one repository, with a clock in hand."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000
        self.database = open_store("memory:")
        self.engine = Engine(self.database, "local", clock=lambda: self.now)

    def add(self, *files: str) -> None:
        self.engine.call(AddTasks("p", (NewTask(task_id="t", files=files),)))

    def take(self, caller: Caller) -> object:
        command = ClaimNext(
            caller=caller, tenant="local", project="p", lease_ms=LEASE_MS, repository="repository"
        )
        return self.engine.call(command).outcome.value

    def lock(self, caller: Caller, *resources: str, ttl_ms: int = 0) -> str:
        reply = self.engine.call(AcquireLocks(caller, "repository", resources, ttl_ms=ttl_ms))
        return str(reply.outcome.value)

    def held(self) -> list[tuple[str, str]]:
        return [(lock.resource, lock.owner) for lock in self.engine.call(ListLocks(ANN))]

    def ended(self) -> set[str]:
        entries = self.database.log("local").tail(0, 1000)
        told = [event.decode() for entry in entries for event in entry.events]
        return {text.split('"')[7] for text in told if '"lock.released"' in text}


def test_a_claim_locks_its_files_until_it_ends() -> None:
    """CLM-12: the locks are granted with the claim, refused to others, and given back with the result."""
    bench = Bench()
    bench.add("file:a.py", "file:b.py")
    assert bench.take(ANN) == "task"
    assert bench.held() == [("file:a.py", "ann"), ("file:b.py", "ann")]
    assert bench.lock(BOB, "file:a.py") == "held"
    assert bench.engine.call(SubmitResult("local", "p", "t", "ann", 1, b"{}", "wp")).accepted
    assert bench.held() == []


def test_a_lock_that_is_refreshed_still_ends_with_its_claim() -> None:
    """LCK-79: asking again for what one holds refreshes it, and changes nothing else about it."""
    bench = Bench()
    bench.add("file:a.py")
    assert bench.take(ANN) == "task"
    assert bench.lock(ANN, "file:a.py") == "granted"
    assert bench.engine.call(SubmitResult("local", "p", "t", "ann", 1, b"{}", "wp")).accepted
    assert bench.held() == []


def test_a_claim_writes_the_end_of_what_it_passes_over() -> None:
    """LCK-77: a hold that ran out ends in the commit that grants its file anew, however many are due."""
    bench = Bench()
    due_before = [f"file:old/{number:02d}.py" for number in range(SWEEP_MAX + 8)]
    assert bench.lock(BOB, *due_before, ttl_ms=1_000) == "granted"
    assert bench.lock(BOB, "file:zz.py", ttl_ms=2_000) == "granted"
    bench.add("file:zz.py")
    bench.now += 5_000
    assert bench.take(ANN) == "task"
    assert "file:zz.py" in bench.ended()
    assert bench.held() == [("file:zz.py", "ann")]
