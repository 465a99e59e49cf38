"""The engine: commands are gathered, decided in order over one draft, committed once, answered each."""

import threading
from concurrent.futures import Future
from typing import Any

import pytest

from coord.core.errors import Busy, CoordError, LimitReached, Refused
from coord.core.records import encode
from coord.stores.contract import Commit, Limits
from tests.support.engine_probes import (
    Append,
    Copy,
    Explode,
    Fill,
    Look,
    LookTwice,
    Once,
    Probes,
    Refuse,
    Text,
)
from tests.support.stores.steps import everything, value, write
from tests.unit.engine.conftest import MakeStage, Stage

PATIENCE_S = 60
SMALL = Limits(commit_bytes=2000, durable=False, shared=False, record_bytes=1500)


def text(stage: Stage, key: str) -> str:
    reply: str = stage.engine.call(Look(key))
    return reply


# One commit.


def test_a_command_is_one_commit_with_its_event(stage: Stage) -> None:
    """AUD-1, CFL-22: State and its event become durable together: one command, one commit, one entry."""
    assert stage.engine.call(Append("a", "x")) == "x"
    (commit,) = stage.store.written
    assert (list(commit.puts), len(commit.events), commit.at) == (["a"], 1, stage.now)
    assert [entry.id for entry in stage.store.tail(0, 9)] == [commit.id]


def test_what_waits_is_committed_together(stage: Stage) -> None:
    """STO-33: A hundred commands that wait at one moment are one commit, and each gets its own answer."""
    with stage.engine._batch_lock:
        futures = [stage.engine.submit(Append(f"k{number}", str(number))) for number in range(100)]
    assert [future.result(PATIENCE_S) for future in futures] == [str(number) for number in range(100)]
    assert len(stage.store.written) == 1
    assert len(stage.store.written[0].puts) == len(stage.store.written[0].events) == 100


def test_what_gathers_during_a_commit_is_the_next_batch(stage: Stage) -> None:
    """No timer: whatever comes while a commit is under way is committed right after it, together."""
    entered, leave = threading.Event(), threading.Event()

    def linger(_: Commit) -> None:
        entered.set()
        assert leave.wait(PATIENCE_S)

    stage.store.before_commit.append(linger)
    first = stage.engine.submit(Append("first", "x"))
    assert entered.wait(PATIENCE_S)
    others = [stage.engine.submit(Append(f"k{number}", "x")) for number in range(50)]
    leave.set()
    assert [future.result(PATIENCE_S) for future in (first, *others)] == ["x"] * 51
    assert [len(commit.puts) for commit in stage.store.written] == [1, 50]


def test_a_batch_loads_what_its_commands_read_together(stage: Stage) -> None:
    """A read that the draft does not hold is loaded with all other missing reads of the batch."""
    stage.engine.call_many([Append(f"k{number}", "x") for number in range(50)])
    assert (stage.store.calls["load"], stage.store.calls["commit"]) == (1, 1)


def test_a_lone_rule_is_not_restarted_for_a_read(stage: Stage, probes: Probes) -> None:
    """No other command can share the load, so the rule goes on where it was."""
    stage.engine.call_many([Append("a", "b"), Append("b", "x")])
    stage.store.start_counting()
    probes.asked.clear()
    assert stage.engine.call(LookTwice("a")) == "x"
    assert (len(probes.asked), stage.store.calls["load"], stage.store.calls["verify"]) == (1, 2, 0)


def test_commands_that_need_reads_share_each_load(stage: Stage, probes: Probes) -> None:
    """Two commands with two reads each, one after the other: two loads, not four."""
    stage.engine.call_many([Append("a", "b"), Append("b", "x"), Append("c", "d"), Append("d", "y")])
    stage.store.start_counting()
    assert stage.engine.call_many([LookTwice("a"), LookTwice("c")]) == ["x", "y"]
    assert stage.store.calls["load"] == 2


def test_nobody_is_answered_before_the_commit(stage: Stage) -> None:
    """An answer means that the change is durable."""
    futures: list[Future[Any]] = []

    def look(_: Commit) -> None:
        assert [future.done() for future in futures] == [False, False]

    stage.store.before_commit.append(look)
    stage.store.after_commit.append(look)
    with stage.engine._batch_lock:
        futures += [stage.engine.submit(Append("a", "x")), stage.engine.submit(Look("a"))]
    assert [future.result(PATIENCE_S) for future in futures] == ["x", "x"]


# One order.


def test_later_commands_of_a_batch_see_what_earlier_ones_wrote(stage: Stage) -> None:
    """Commands are decided in the order they came in, each over the writes of those before it."""
    replies = stage.engine.call_many(
        [Append("a", "1"), Look("a"), Append("a", "2"), Copy("a", "b"), Append("a", "3"), Look("b")]
    )
    assert replies == ["1", "1", "12", "12", "123", "12"]
    (commit,) = stage.store.written
    assert {key: put.value for key, put in commit.puts.items()} == {
        "a": encode(Text(text="123")),
        "b": encode(Text(text="12")),
    }


def test_futures_of_one_thread_are_carried_out_in_order(stage: Stage) -> None:
    """What one thread submits is decided in that order."""
    futures = [stage.engine.submit(Append("a", str(number))) for number in range(10)]
    assert [future.result(PATIENCE_S) for future in futures][-1] == "0123456789"


def test_every_read_and_write_is_expected(stage: Stage) -> None:
    """Every read is an expectation of the commit, also those of commands that write nothing."""
    stage.engine.call(Append("held", "x"))
    stage.engine.call_many([Append("a", "1"), Once("held", "y"), Look("seen"), Copy("from", "to")])
    assert set(stage.store.written[-1].expected_versions) == {"a", "held", "seen", "from", "to"}


def test_a_question_alone_commits_nothing(stage: Stage) -> None:
    """A question that one load answers needs no commit: the load is one moment."""
    stage.engine.call(Append("a", "x"))
    stage.store.start_counting()
    assert stage.engine.call_many([Look("a"), Look("b")]) == ["x", ""]
    assert stage.store.calls == {"load": 1}


# A command that fails, fails alone.


def test_a_defect_in_one_rule_harms_no_other(stage: Stage) -> None:
    """An exception in a rule fails its command alone; what it had written is dropped."""
    with stage.engine._batch_lock:
        futures = [
            stage.engine.submit(command)
            for command in (Append("a", "1"), Explode("a", "BOOM"), Append("a", "2"), Look("a"))
        ]
    with pytest.raises(CoordError, match="a defect"):
        futures[1].result(PATIENCE_S)
    assert [futures[place].result(PATIENCE_S) for place in (0, 2, 3)] == ["1", "12", "12"]
    assert len(stage.store.written) == 1
    assert len(stage.store.written[0].events) == 2


def test_a_refusal_leaves_no_trace(stage: Stage) -> None:
    """A refused command raises its own error; none of its writes and events remains."""
    with stage.engine._batch_lock:
        futures = [stage.engine.submit(command) for command in (Refuse("a", "no"), Append("b", "yes"))]
    with pytest.raises(Refused, match="not today"):
        futures[0].result(PATIENCE_S)
    assert futures[1].result(PATIENCE_S) == "yes"
    assert list(stage.store.written[0].puts) == ["b"]
    assert text(stage, "a") == ""


def test_a_lone_failure_writes_nothing(stage: Stage) -> None:
    """Where nothing remains to be written, nothing is appended."""
    for command in (Explode("a", "x"), Refuse("a", "x")):
        with pytest.raises(CoordError):
            stage.engine.call(command)
    assert everything(stage.store) == (0, [], [], [])


def test_call_many_raises_after_all_have_run(stage: Stage) -> None:
    """The first error is raised, but the other commands were carried out."""
    with pytest.raises(Refused):
        stage.engine.call_many([Append("a", "1"), Refuse("b"), Append("c", "3")])
    assert (text(stage, "a"), text(stage, "c")) == ("1", "3")


def test_an_unreadable_record_fails_only_who_reads_it(stage: Stage) -> None:
    """A damaged record refuses the commands that rest on it; the others go on."""
    write(stage.store.real, {"bad": b"not json"})
    with stage.engine._batch_lock:
        futures = [stage.engine.submit(command) for command in (Look("bad"), Append("a", "1"))]
    with pytest.raises(CoordError):
        futures[0].result(PATIENCE_S)
    assert futures[1].result(PATIENCE_S) == "1"


# Batches are cut at what a commit can hold.


def test_a_batch_is_cut_at_what_a_commit_can_hold(make_stage: MakeStage) -> None:
    """What does not fit goes into the next commit; all are answered, in order, none over the limit."""
    stage = make_stage(limits=SMALL)
    with stage.engine._batch_lock:
        futures = [stage.engine.submit(Fill(f"k{number:02d}", size=300)) for number in range(20)]
    assert [future.result(PATIENCE_S) for future in futures] == [f"k{number:02d}" for number in range(20)]
    assert [key for commit in stage.store.written for key in commit.puts] == [f"k{n:02d}" for n in range(20)]
    sizes = [sum(len(put.value) for put in commit.puts.values()) for commit in stage.store.written]
    assert len(sizes) > 3
    assert max(sizes) <= SMALL.commit_bytes


def test_a_large_command_behind_others_waits_for_its_own_commit(make_stage: MakeStage) -> None:
    """Two commands that fit one by one but not together are two commits."""
    stage = make_stage(limits=SMALL)
    assert stage.engine.call_many([Fill("a", size=850), Fill("b", size=1400), Append("c", "x")]) == [
        "a",
        "b",
        "x",
    ]
    for commit in stage.store.written:
        assert sum(len(put.value) for put in commit.puts.values()) <= SMALL.commit_bytes
    assert len(stage.store.written) >= 2


@pytest.mark.parametrize("size", [1600, 2100, 300_000])
def test_a_command_that_no_commit_can_hold_fails_alone(make_stage: MakeStage, size: int) -> None:
    """A command that is over the limit of a record or of a commit is refused; the others go on."""
    stage = make_stage(limits=SMALL)
    with stage.engine._batch_lock:
        futures = [
            stage.engine.submit(command) for command in (Append("a", "1"), Fill("b", size=size), Look("a"))
        ]
    with pytest.raises(LimitReached):
        futures[1].result(PATIENCE_S)
    assert [futures[0].result(PATIENCE_S), futures[2].result(PATIENCE_S)] == ["1", "1"]
    assert value(stage.store, "b") is None


def test_more_commands_than_one_batch_takes(stage: Stage) -> None:
    """Thousands of commands at once are several batches, and all are answered."""
    replies = stage.engine.call_many([Append(f"k{number % 7}", "x") for number in range(5000)])
    assert len(replies) == 5000
    assert [len(text(stage, f"k{number}")) for number in range(7)] == [715, 715, 714, 714, 714, 714, 714]
    assert len(stage.store.written) < 10


# Too much, or too late.


def test_a_full_queue_is_busy(make_stage: MakeStage) -> None:
    """The queue is bounded: what does not fit is refused at once, and nothing of it is done."""
    stage = make_stage(queue_max=3)
    with stage.engine._batch_lock:
        futures = [stage.engine.submit(Append("a", str(number))) for number in range(3)]
        for command in (Append("a", "late"), Look("a")):
            with pytest.raises(Busy):
                stage.engine.submit(command)
    assert [future.result(PATIENCE_S) for future in futures] == ["0", "01", "012"]
    assert text(stage, "a") == "012"


def test_one_call_may_be_larger_than_the_queue(make_stage: MakeStage) -> None:
    """A lone caller is not limited by a queue that is empty."""
    stage = make_stage(queue_max=3)
    assert stage.engine.call_many([Append("a", "x")] * 10)[-1] == "x" * 10


def test_a_command_whose_time_is_up_is_busy(stage: Stage) -> None:
    """Nothing is done for a caller who waits no longer; those with time left are served."""
    with stage.engine._batch_lock:
        late = stage.engine.submit(Append("a", "late"), timeout=1)
        patient = stage.engine.submit(Append("a", "patient"), timeout=100)
        stage.runtime.time += 5
    with pytest.raises(Busy):
        late.result(PATIENCE_S)
    assert patient.result(PATIENCE_S) == "patient"


def test_conflicts_without_end_are_busy(stage: Stage, probes: Probes) -> None:
    """A command that keeps meeting others is decided again until its deadline, and then given up."""

    def meddle(_: Commit) -> None:
        write(stage.store.real, {"a": encode(Text(text="theirs"))})
        stage.store.before_commit.append(meddle)

    stage.store.before_commit.append(meddle)
    with pytest.raises(Busy):
        stage.engine.call(Append("a", "mine"), timeout=2)
    stage.store.before_commit.clear()
    assert 2 <= stage.runtime.time < 4
    assert probes.completed["Append", "a"] > 10
    assert text(stage, "a") == "theirs"
