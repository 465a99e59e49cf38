"""Tasks that were split: done when their parts are, and open as long as one of these is."""

from typing import Any

import pytest

from coord.core.errors import Invalid, Refused
from coord.core.plans.commands import AddTasks, GetTasks, NewTask, RetryTask, SkipTask, SplitTask
from coord.core.tasks.commands import (
    ClaimTask,
    GetClaimHistory,
    GetResult,
    GetTaskState,
    ReleaseClaim,
    ResetTask,
    SubmitResult,
)
from coord.core.tasks.types import ReleaseReason
from coord.engine.engine import Engine
from coord.stores.open import open_store


class Bench:
    """One project, one worker, and a clock in hand."""

    def __init__(self, *, tenant: str = "local", parts: int = 3) -> None:
        self.now, self.tenant = 1_700_000_000_000, tenant
        self.database = open_store("memory:")
        self.engine = Engine(self.database, tenant, clock=lambda: self.now)
        self.add("before")
        self.add("t", "before", track="A", files=("file:a.py",), retries_max=0)
        self.add("after", "t")
        self.split(parts=parts)

    def add(self, name: str, *depends_on: str, **fields: Any) -> Any:
        task = NewTask(task_id=name, depends_on=depends_on, **fields)
        return self.engine.call(AddTasks("p", (task,)))

    def split(self, name: str = "t", parts: int = 3) -> Any:
        return self.engine.call(SplitTask(self.tenant, "p", name, parts))

    def do(self, name: str, result: bytes = b'{"n":1}') -> bool:
        claim = self.engine.call(ClaimTask(self.tenant, "p", name, "ann", "ann-1", 60_000)).claim
        if claim is None:
            return False
        number = claim.generation.generation
        command = SubmitResult(self.tenant, "p", name, "ann-1", number, result, f"wp-{name}")
        return bool(self.engine.call(command).accepted)

    def fail(self, name: str) -> None:
        claim = self.engine.call(ClaimTask(self.tenant, "p", name, "ann", "ann-1", 60_000)).claim
        number = claim.generation.generation
        self.engine.call(ReleaseClaim(self.tenant, "p", name, "ann-1", number, ReleaseReason.ERROR))

    def reset(self, name: str) -> None:
        self.engine.call(ResetTask(self.tenant, "p", name, "once more"))

    def listed(self, name: str = "t") -> Any:
        return self.engine.call(GetTasks("p", (name,))).tasks[0]

    def states(self) -> dict[str, str]:
        return {task.task_id: task.state for task in self.engine.call(GetTasks("p")).tasks}

    def result(self) -> Any:
        return self.engine.call(GetResult(self.tenant, "p", "t")).result_data

    def event_count(self, event: str) -> int:
        entries = self.database.log(self.tenant).tail(0, 1000)
        return sum(f'"{event}"'.encode() in each for entry in entries for each in entry.events)


def finished(*, tenant: str = "local") -> Bench:
    """Return a bench where all is done but what comes after."""
    bench = Bench(tenant=tenant)
    assert bench.do("before")
    assert all(bench.do(f"t::{number}", b'{"n":%d}' % number) for number in (1, 2, 3))
    return bench


def test_the_last_part_merges_the_results_in_order() -> None:
    """CLM-59: the task is done in the commit that finishes its last part; whoever waited for it goes on."""
    bench = Bench()
    assert not bench.do("t::1"), "parts wait for what their task waits for"
    assert bench.do("before")
    assert not bench.do("t"), "the whole is not claimed"
    for number, name in enumerate(("t::3", "t::1")):
        assert bench.listed().parts_done == number
        assert bench.do(name, b'{"by":"%s"}' % name.encode())
    assert (bench.listed().state, bench.listed().parts, bench.listed().parts_done) == ("pending", 3, 2)
    assert bench.states()["after"] == "pending"
    assert bench.do("t::2", b'{"by":"t::2"}')
    assert (bench.listed().state, bench.listed().parts_done) == ("done", 3)
    assert bench.result() == {"parts": [{"by": "t::1"}, {"by": "t::2"}, {"by": "t::3"}]}
    assert bench.states()["after"] == "ready"
    state = bench.engine.call(GetTaskState("local", "p", "t"))
    assert state.result.result_data == bench.result()
    assert state.result.size_bytes == len('{"parts":[{"by":"t::1"},{"by":"t::2"},{"by":"t::3"}]}')
    assert state.result.work_product_ref.startswith("wp-t-gen1-")
    assert (bench.event_count("task.split"), bench.event_count("task.merged")) == (1, 1)


def test_parts_are_what_the_task_was_but_on_no_track() -> None:
    """TID-12: one agent per track, but who splits a task wants several to work on it."""
    bench = Bench()
    part = bench.listed("t::2")
    assert (part.track, part.files, part.depends_on, part.parts) == ("", ["file:a.py"], ["before"], 0)
    assert bench.listed().track == "A"


def test_a_part_that_fails_blocks_until_it_is_retried_or_skipped() -> None:
    """CLM-59: nothing is merged while a part is missing; one that is skipped is null in the result."""
    bench = Bench()
    bench.do("before")
    assert bench.do("t::1")
    assert bench.do("t::2")
    bench.fail("t::3")
    assert (bench.states()["t::3"], bench.states()["t"], bench.states()["after"]) == (
        "errored",
        "blocked",
        "blocked",
    )
    bench.engine.call(RetryTask("local", "p", "t::3"))
    assert (bench.states()["t"], bench.states()["after"]) == ("pending", "pending")
    bench.engine.call(SkipTask("local", "p", "t::3", "not needed"))
    assert bench.states()["t"] == "done"
    assert bench.result() == {"parts": [{"n": 1}, {"n": 1}, None]}


@pytest.mark.parametrize("tenant", ["local", "acme"])
def test_a_part_that_is_opened_again_opens_the_whole(tenant: str) -> None:
    """CLM-58: a merged result holds as long as its parts do; history keeps it, the next is merged anew."""
    bench = finished(tenant=tenant)
    assert bench.states()["after"] == "ready"
    bench.reset("t::2")
    assert (bench.listed().state, bench.listed().parts_done, bench.states()["after"]) == (
        "pending",
        2,
        "pending",
    )
    assert bench.do("t::2", b'{"n":20}')
    assert bench.result() == {"parts": [{"n": 1}, {"n": 20}, {"n": 3}]}
    history = bench.engine.call(GetClaimHistory(tenant, "p", "t"))
    assert [(each.generation, each.release_reason) for each in history] == [
        (1, "COMPLETED"),
        (2, "COMPLETED"),
    ]
    earlier = bench.engine.call(GetResult(tenant, "p", "t", 1))
    assert earlier.result_data == {"parts": [{"n": 1}, {"n": 2}, {"n": 3}]}


def test_the_whole_is_reset_skipped_and_retried_with_its_parts() -> None:
    """CLM-58: what happens to the whole happens to what it is made of."""
    bench = finished()
    bench.reset("t")
    assert {name: state for name, state in bench.states().items() if name.startswith("t")} == {
        "t": "pending",
        "t::1": "ready",
        "t::2": "ready",
        "t::3": "ready",
    }
    assert bench.listed().parts_done == 0
    claim = ClaimTask("local", "p", "t::1", "ann", "ann-1", 60_000)
    assert bench.engine.call(claim).success
    with pytest.raises(Refused, match=r"t::1 is in progress \(ann-1\)"):
        bench.engine.call(SkipTask("local", "p", "t", ""))
    bench.reset("t::1")
    assert bench.do("t::2")
    bench.engine.call(SkipTask("local", "p", "t", ""))
    assert [bench.states()[name] for name in ("t", "t::1", "t::2", "t::3", "after")] == [
        "skipped",
        "skipped",
        "done",
        "skipped",
        "ready",
    ]
    bench.engine.call(RetryTask("local", "p", "t"))
    assert [bench.states()[name] for name in ("t", "t::1", "t::2", "t::3", "after")] == [
        "pending",
        "ready",
        "done",
        "ready",
        "pending",
    ]
    assert bench.do("t::1")
    assert bench.do("t::3")
    assert bench.states()["t"] == "done"


def test_what_the_whole_depends_on_its_parts_depend_on() -> None:
    """TID-16: a changed plan keeps the parts, and they wait for what is new; a circle is refused."""
    bench = Bench()
    assert bench.add("t", "before", track="A", files=("file:a.py",), retries_max=0).same == ["t"]
    bench.add("more")
    bench.add("t", "before", "more", track="A", files=("file:a.py",), retries_max=0)
    bench.do("before")
    assert bench.states()["t::1"] == "pending"
    bench.do("more")
    assert bench.states()["t::1"] == "ready"
    with pytest.raises(Invalid, match="t::1 -> after -> t -> t::1"):
        bench.add("t::1", "after")
    bench.add("last", "t::3")
    with pytest.raises(Invalid, match="tasks depend on each other"):
        bench.add("t", "last")
    assert bench.listed("t::3").depends_on == ["before", "more"]


def test_what_cannot_be_split_is_refused_and_changes_nothing() -> None:
    """TID-10: `ID::n` has one level; work that runs, is done, or has such names already stays as it is."""
    bench = Bench()
    before = bench.database.log("local").seen.offset
    assert bench.split().parts == 3, "again is harmless"
    for name, parts, words in [
        ("t", 4, "already split into 3 parts"),
        ("t::1", 2, "is a part and cannot be split"),
    ]:
        with pytest.raises((Refused, Invalid), match=words):
            bench.split(name, parts)
    assert bench.database.log("local").seen.offset == before
    bench.do("before")
    with pytest.raises(Refused, match="before is done"):
        bench.split("before")
    bench.add("u")
    bench.add("u::2")
    with pytest.raises(Refused, match="a task u::2 exists already"):
        bench.split("u")
    assert bench.engine.call(ClaimTask("local", "p", "u", "ann", "ann-1", 60_000)).success
    with pytest.raises(Refused, match=r"u is in progress \(ann-1\)"):
        bench.split("u")
    bench.add("x" * 126)
    with pytest.raises(Invalid, match="not a task id"):
        bench.split("x" * 126)


@pytest.mark.parametrize("swept", [False, True])
def test_a_claim_that_ran_out_before_the_split_is_history(swept: bool) -> None:
    """CLM-21: no generation is lost, and the merged result has the next one."""
    bench = Bench(tenant="acme")
    bench.add("u")
    assert bench.engine.call(ClaimTask("acme", "p", "u", "ann", "ann-1", 60_000)).success
    bench.now += 60_000
    if swept:
        bench.add("anything")
    bench.split("u", 2)
    assert bench.do("u::1")
    assert bench.do("u::2")
    history = bench.engine.call(GetClaimHistory("acme", "p", "u"))
    assert [(each.generation, each.release_reason) for each in history] == [(1, "EXPIRED"), (2, "COMPLETED")]
