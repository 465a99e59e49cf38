"""Results over what a record holds: in chunks, atomic, fenced, whole or not at all, and never left behind."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from coord import TaskCoordinator
from coord.core import keys
from coord.core.errors import Corrupt, Invalid, LimitReached, NotFound
from coord.core.limits import RECORD_RESULT_BYTES, RESULT_BYTES_MAX
from coord.core.plans.commands import AddTasks, NewTask, SplitTask
from coord.core.records import decode
from coord.core.tasks.chunks import CHUNK_BYTES, KEPT_MS, chunk_count
from coord.core.tasks.commands import GetChunks, PutChunk
from coord.core.tasks.schema import Blob
from coord.sdk.client import results as module
from coord.stores.contract import RECORD_BYTES, Commit, Put
from tests.conftest import SOAK
from tests.support.hand_clock import HandClock
from tests.support.programs.send_chunks import NAMES, large

TENANT = NAMES[0]


def claimed(tasks: TaskCoordinator, session: str = "ann-1", names: tuple[str, str, str] = NAMES) -> int:
    claim = tasks.claim_task(*names, "ann", session, 60).claim
    assert claim is not None
    return claim.generation.generation


def blobs(tasks: TaskCoordinator) -> dict[str, bytes]:
    """Return all that the store has of large data."""
    found = tasks.database.log(TENANT).scan("blob/", by="key", limit=1000)
    return {record.key: record.value or b"" for record in found}


def swept(tasks: TaskCoordinator, clock: HandClock, times: int = 10) -> None:
    """Let a day pass, and whoever comes by keep the books."""
    clock.ms += KEPT_MS + 1
    for _ in range(times):
        clock.ms += 1000
        claimed(tasks, names=(TENANT, "shop", f"other-{clock.ms}"))


@pytest.mark.parametrize(
    "size",
    [
        RECORD_RESULT_BYTES,
        RECORD_RESULT_BYTES + 1,
        2 * CHUNK_BYTES,
        2 * CHUNK_BYTES + 1,
        10 * 1024 * 1024,
        *([RESULT_BYTES_MAX] if SOAK else []),
    ],
)
def test_a_result_of_any_size_comes_back_whole(store_url: str, size: int) -> None:
    """DESIGN §3, TEN-12: around what a record holds, around whole chunks, at the limits of both profiles."""
    with TaskCoordinator.open(store_url) as tasks:
        tasks.set_limits(TENANT, profile="default" if size <= 10 * 1024 * 1024 else "enterprise")
        result = large(size)
        reply = tasks.submit_result(*NAMES, "ann-1", claimed(tasks), result)
        assert reply.accepted
        got = tasks.get_result(*NAMES)
        assert got.result_data == result
        assert (got.size_bytes, got.work_product_ref) == (size, reply.work_product_ref)
        in_record = size <= RECORD_RESULT_BYTES
        state = tasks.get_task_state(*NAMES).result
        assert state is not None
        assert (state.result_data is not None, state.digest == "") == (in_record, in_record)
        kept = blobs(tasks)
        assert len(kept) == (0 if in_record else 1 + chunk_count(size))
        assert max(map(len, kept.values()), default=0) <= RECORD_BYTES


def test_one_byte_over_the_limit_is_refused_and_leaves_nothing() -> None:
    """TEN-12, AMB-20: nothing of it was even sent, and the claim stays as it is."""
    with TaskCoordinator.open("memory:") as tasks:
        tasks.set_limits(TENANT, max_result_size_bytes=500_000)
        generation = claimed(tasks)
        refused = tasks.submit_result(*NAMES, "ann-1", generation, large(500_001))
        assert (refused.reason, blobs(tasks)) == ("DENIED_LIMIT_RESULT_SIZE", {})
        with pytest.raises(LimitReached, match="500001 bytes; the limit is 500000"):
            module.send(tasks.engine(TENANT), TENANT, "0" * 64, b"x" * 500_001)
        assert tasks.submit_result(*NAMES, "ann-1", generation, large(500_000)).accepted
        assert tasks.claim_task("local", "shop", "t", "ann", "ann-1").success
        over = tasks.submit_result("local", "shop", "t", "ann-1", 1, large(RESULT_BYTES_MAX + 1))
        assert over.reason == "DENIED_LIMIT_RESULT_SIZE", "tenant local has an end, too"


def test_a_zombie_is_refused_before_it_sends_anything() -> None:
    """CLM-19, CLM-73: it is told that its work is lost, and its data never comes to the store."""
    clock = HandClock()
    with TaskCoordinator.open("memory:", clock=clock) as tasks:
        old = claimed(tasks)
        clock.ms += 60_001
        claimed(tasks, "bob-1")
        refused = tasks.submit_result(*NAMES, "ann-1", old, large(3_000_000))
        assert (refused.reason, refused.work_lost, blobs(tasks)) == ("STALE_GENERATION", True, {})
        (told,) = tasks.get_task_state(*NAMES).rejected
        assert told.size_bytes == 3_000_000


def test_what_a_zombie_sent_is_swept_away(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """DESIGN §3: who loses its claim while it sends is refused; the chunks are gone a day later, no other."""
    clock = HandClock()
    with TaskCoordinator.open(store_url, clock=clock) as tasks:
        kept = (TENANT, "shop", "kept")
        assert tasks.submit_result(*kept, "bob-1", claimed(tasks, "bob-1", kept), large(400_000)).accepted
        held = blobs(tasks)
        old = claimed(tasks)
        send = module.send

        def slowly(*args: object) -> None:
            send(*args)  # type: ignore[arg-type]
            clock.ms += 60_001
            claimed(tasks, "bob-1")

        monkeypatch.setattr(module, "send", slowly)
        refused = tasks.submit_result(*NAMES, "ann-1", old, large(40 * CHUNK_BYTES))
        assert (refused.reason, len(blobs(tasks)) - len(held)) == ("STALE_GENERATION", 41)
        swept(tasks, clock)
        assert blobs(tasks) == held
        assert tasks.get_result(*kept).result_data == large(400_000)


@pytest.mark.parametrize("calls", [2, 4, 6, 7])
def test_killed_at_any_call_it_is_done_once_by_whoever_comes_again(
    calls: int, make_url: Callable[[str], str]
) -> None:
    """kill -9 between chunks, and between them and the commit: no result, then the same one, once."""
    url = make_url("sqlite")
    program = [sys.executable, "-m", "tests.support.programs.send_chunks", url, str(calls)]
    done = subprocess.run(program, cwd=Path(__file__).parents[4], timeout=60, check=False)
    assert done.returncode == (-signal.SIGKILL if calls < 7 else 0), "submit; 1, 8, 8, 4 chunks; submit"
    with TaskCoordinator.open(url) as tasks:
        if done.returncode:
            assert not tasks.get_task_state(*NAMES).completed
            with pytest.raises(NotFound, match="no result"):
                tasks.get_result(*NAMES)
        before = len(blobs(tasks))
        assert before == {2: 0, 4: 10, 6: 22, 7: 22}[calls]
        again = tasks.submit_result(*NAMES, "ann-1", 1, large(4_000_000), command_id="once")
        assert again.accepted
        assert tasks.get_result(*NAMES).result_data == large(4_000_000)
        assert len(blobs(tasks)) == 22


def test_a_damaged_chunk_is_found(shared_url: str) -> None:
    """Never a part and never something else: damage is told, by the digest of the whole."""
    with TaskCoordinator.open(shared_url) as tasks:
        tasks.submit_result(*NAMES, "ann-1", claimed(tasks), large(600_000))
        log = tasks.database.log(TENANT)
        chunk = sorted(blobs(tasks))[2]
        before = log.load([chunk])[chunk]
        assert before.value is not None
        damaged = before.value[:1000] + b"AAAA" + before.value[1004:]
        log.commit(Commit({chunk: before.version}, {chunk: Put(damaged)}, at=log.now(), id=b"damage"))
        with pytest.raises(Corrupt, match="is damaged"):
            tasks.get_result(*NAMES)
        version = log.load([chunk])[chunk].version
        log.commit(Commit({chunk: version}, {}, [chunk], at=log.now(), id=b"loss"))
        with pytest.raises(Corrupt, match="chunk 1 of"):
            tasks.get_result(*NAMES)


def test_two_results_of_the_same_data_share_it_until_the_last_is_forgotten() -> None:
    """DESIGN §3: data leaves when no record refers to it, a day later and not before."""
    clock = HandClock()
    second = (TENANT, "shop", "second")
    with TaskCoordinator.open("memory:", clock=clock) as tasks:
        tasks.set_limits(TENANT, claim_history_retention_days=2)
        for names in (NAMES, second):
            assert tasks.submit_result(*names, "ann-1", claimed(tasks, names=names), large(600_000)).accepted
        (head, *chunks) = blobs(tasks).items()
        assert decode(head[1], Blob, head[0]).references == 2
        assert len(chunks) == 4
        tasks.reset_task(*second)
        assert tasks.submit_result(*second, "ann-1", claimed(tasks, names=second), {"small": 1}).accepted
        clock.ms += KEPT_MS
        swept(tasks, clock, 2)
        assert decode(blobs(tasks)[head[0]], Blob, head[0]).references == 1, "forgotten with its generation"
        swept(tasks, clock)
        assert tasks.get_result(*NAMES).result_data == large(600_000)
        tasks.reset_task(*NAMES)
        assert tasks.submit_result(*NAMES, "ann-1", claimed(tasks), {"small": 1}).accepted
        clock.ms += KEPT_MS
        swept(tasks, clock, 2)
        assert len(blobs(tasks)) == 5, "it has another day"
        swept(tasks, clock)
        assert blobs(tasks) == {}


def test_data_that_is_asked_for_again_is_not_swept_from_under_it() -> None:
    """Whoever finds its data there has time to refer to it, also if it was there for nearly a day."""
    clock = HandClock()
    with TaskCoordinator.open("memory:", clock=clock) as tasks:
        generation = claimed(tasks)
        data = b"x" * 600_000
        module.send(tasks.engine(TENANT), TENANT, "0" * 64, data)
        clock.ms += KEPT_MS - 1
        module.send(tasks.engine(TENANT), TENANT, "0" * 64, data)
        clock.ms += KEPT_MS - 1000
        claimed(tasks, names=(TENANT, "shop", "other"))
        assert len(blobs(tasks)) == 5
        assert generation == 1


def test_chunks_come_in_order_and_of_one_length() -> None:
    """Bad input changes nothing; a chunk out of turn is answered with how many are there."""
    with TaskCoordinator.open("memory:") as tasks:
        engine, size = tasks.engine(TENANT), 2 * CHUNK_BYTES
        with pytest.raises(Invalid, match="chunk 0 does not fit into data"):
            engine.call(PutChunk(TENANT, "d", size, 0, b"short"))
        assert engine.call(PutChunk(TENANT, "d", size, 1, b"x" * CHUNK_BYTES)) == 0
        assert engine.call(PutChunk(TENANT, "d", size, 0, b"x" * CHUNK_BYTES)) == 1
        with pytest.raises(Invalid, match="chunk 1 does not fit into data"):
            engine.call(PutChunk(TENANT, "d", size + 1, 1, b"x" * CHUNK_BYTES))
        assert len(engine.call(GetChunks(TENANT, "d", 0, 1))) == 1
        assert sorted(blobs(tasks)) == [keys.blob("d"), keys.chunk("d", 0)]


def test_the_log_does_not_hold_the_data(make_url: Callable[[str], str]) -> None:
    """Decision 0021: on disk a large result lies beside the log of a files store, not in it."""
    url = make_url("files")
    with TaskCoordinator.open(url) as tasks:
        tasks.submit_result(*NAMES, "ann-1", claimed(tasks), large(2_000_000))
    root = Path(url.removeprefix("file://"))
    sizes = {path: path.stat().st_size for path in root.rglob("*") if path.is_file()}
    beside = sum(size for path, size in sizes.items() if path.parent.name == "values")
    assert beside > 2_000_000
    assert sum(sizes.values()) - beside < 20_000


def test_large_parts_are_merged_by_whoever_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """CLM-59: merging copies nothing; the whole comes out as one, or is refused where it is too much."""
    with TaskCoordinator.open("memory:") as tasks:
        engine, project = tasks.engine(TENANT), NAMES[1]
        engine.call(AddTasks(project, (NewTask(task_id=NAMES[2]),)))
        engine.call(SplitTask(*NAMES, 2))
        for number, size in ((1, 700_000), (2, 100)):
            part = (TENANT, project, f"{NAMES[2]}::{number}")
            assert tasks.submit_result(*part, "ann-1", claimed(tasks, names=part), large(size)).accepted
        whole = tasks.get_result(*NAMES)
        assert whole.result_data == {"parts": [large(700_000), large(100)]}
        assert whole.size_bytes == 700_100 + len('{"parts":[,]}')
        assert len(blobs(tasks)) == 1 + chunk_count(700_000)
        monkeypatch.setattr(module, "RESULT_BYTES_MAX", 700_000)
        with pytest.raises(LimitReached, match="in total"):
            tasks.get_result(*NAMES)
