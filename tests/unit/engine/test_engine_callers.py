"""Who asks an engine: plain calls, futures from threads, coroutines; cancelling, closing, many tenants."""

import asyncio
import threading
from concurrent.futures import CancelledError, Future
from typing import Any

import pytest

from coord.core.errors import Refused, Unavailable
from coord.engine.engine import Engine
from coord.stores.open import open_store
from tests.support.engine_probes import Append, Look, Probes, Refuse
from tests.unit.engine.conftest import MakeStage, Stage

PATIENCE_S = 60


def text(stage: Stage, key: str) -> str:
    reply: str = stage.engine.call(Look(key))
    return reply


def test_a_plain_call_starts_no_thread(stage: Stage) -> None:
    """A lone caller runs its batch in its own thread."""
    before = threading.active_count()
    ran_in: list[threading.Thread] = []
    stage.store.before_commit.append(lambda _: ran_in.append(threading.current_thread()))
    stage.engine.call(Append("a", "x"))
    stage.engine.call_many([Append("a", "y"), Look("a")])
    assert threading.active_count() == before
    assert ran_in == [threading.current_thread()]


def test_futures_from_many_threads(stage: Stage) -> None:
    """`submit` may be called from any thread; everybody gets the answer to their own command."""
    replies: dict[str, list[str]] = {}

    def ask(name: str) -> None:
        futures = [stage.engine.submit(Append(name, str(number))) for number in range(10)]
        replies[name] = [future.result(PATIENCE_S) for future in futures]

    threads = [threading.Thread(target=ask, args=[f"k{number}"]) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = ["0123456789"[: number + 1] for number in range(10)]
    assert replies == {f"k{number}": expected for number in range(16)}


def test_plain_calls_from_many_threads_lose_nothing(stage: Stage) -> None:
    """Callers in several threads share batches and see each other's writes."""

    def count() -> None:
        for _ in range(20):
            stage.engine.call(Append("a", "x"))

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert text(stage, "a") == "x" * 160


def test_at_most_four_threads_commit(stage: Stage) -> None:
    """Committer threads belong to the database, and there are at most four."""
    before = threading.active_count()
    engines = [Engine(stage.database, f"tenant-{number}") for number in range(12)]
    futures = [engine.submit(Append("a", "x")) for engine in engines for _ in range(5)]
    assert {future.result(PATIENCE_S) for future in futures} == {"x" * number for number in range(1, 6)}
    assert threading.active_count() - before <= 4


def test_five_hundred_coroutines(stage: Stage) -> None:
    """`ask` can be awaited; hundreds of tasks share a few commits."""

    async def ask_all() -> list[Any]:
        with stage.engine._batch_lock:
            tasks = [
                asyncio.ensure_future(stage.engine.ask(Append(f"k{number}", "x"))) for number in range(512)
            ]
            await asyncio.sleep(0)
        return list(await asyncio.gather(*tasks))

    assert asyncio.run(ask_all()) == ["x"] * 512
    assert len(stage.store.written) == 1


def test_coroutines_of_two_event_loops(stage: Stage) -> None:
    """Every loop gets its own answers, also those that raise."""
    replies: dict[str, list[Any]] = {}

    async def ask_both(name: str) -> list[Any]:
        asked = [stage.engine.ask(Append(name, "x")), stage.engine.ask(Refuse(name))]
        return list(await asyncio.gather(*asked, return_exceptions=True))

    def run(name: str) -> None:
        replies[name] = asyncio.run(ask_both(name))

    threads = [threading.Thread(target=run, args=[name]) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in ("one", "two"):
        assert replies[name][0] == "x"
        assert isinstance(replies[name][1], Refused)


def test_an_event_loop_that_is_gone_harms_no_other(stage: Stage) -> None:
    """A loop that was closed while it waited gets nothing; everybody else is answered."""
    loop = asyncio.new_event_loop()

    async def ask_and_leave() -> None:
        stage.engine.ask(Append("a", "x"))

    with stage.engine._batch_lock:
        loop.run_until_complete(ask_and_leave())
        loop.close()
        other = stage.engine.submit(Append("b", "y"))
    assert other.result(PATIENCE_S) == "y"


# Cancelling.


def test_a_cancelled_future_is_not_carried_out(stage: Stage) -> None:
    """A command that is taken back before its batch began leaves no trace."""
    with stage.engine._batch_lock:
        taken_back = stage.engine.submit(Append("a", "no"))
        stays = stage.engine.submit(Append("a", "yes"))
        assert taken_back.cancel()
    assert stays.result(PATIENCE_S) == "yes"
    with pytest.raises(CancelledError):
        taken_back.result(0)
    assert text(stage, "a") == "yes"


def test_a_future_cannot_be_cancelled_once_its_batch_began(stage: Stage) -> None:
    """What may have happened is not called cancelled."""
    outcome: list[bool] = []
    future: Future[Any]
    stage.store.before_commit.append(lambda _: outcome.append(future.cancel()))
    with stage.engine._batch_lock:
        future = stage.engine.submit(Append("a", "x"))
    assert future.result(PATIENCE_S) == "x"
    assert outcome == [False]


def test_a_cancelled_coroutine_is_not_carried_out(stage: Stage) -> None:
    """The same for tasks."""

    async def ask_and_cancel() -> str:
        with stage.engine._batch_lock:
            taken_back = stage.engine.ask(Append("a", "no"))
            stays = stage.engine.ask(Append("a", "yes"))
            taken_back.cancel()
            await asyncio.sleep(0)
        reply: str = await stays
        return reply

    assert asyncio.run(ask_and_cancel()) == "yes"
    assert text(stage, "a") == "yes"


# Closing.


def test_close_answers_everyone(stage: Stage) -> None:
    """Those who wait are served before the engine closes; those who come later are refused."""
    with stage.engine._batch_lock:
        futures = [stage.engine.submit(Append("a", str(number))) for number in range(5)]
        closing = threading.Thread(target=stage.engine.close)
        closing.start()
    closing.join()
    assert [future.result(0) for future in futures][-1] == "01234"
    for ask in (stage.engine.call, stage.engine.submit):
        with pytest.raises(Unavailable):
            ask(Append("a", "late"))
    stage.engine.close()
    assert len(stage.store.written) == 1


def test_close_answers_everyone_while_the_store_is_away(stage: Stage) -> None:
    """Shutdown does not hang on a store that does not answer."""
    stage.store.away = True
    with stage.engine._batch_lock:
        futures = [stage.engine.submit(Append("a", "x")) for _ in range(3)]
    stage.engine.close()
    for future in futures:
        with pytest.raises(Unavailable):
            future.result(PATIENCE_S)


def test_a_closed_database_answers_too(stage: Stage) -> None:
    """An engine over a closed database says `Unavailable` at once, however it is asked."""
    stage.database.close()
    with pytest.raises(Unavailable):
        stage.engine.call(Append("a", "x"))
    with pytest.raises(Unavailable):
        stage.engine.submit(Append("a", "x")).result(PATIENCE_S)
    assert stage.runtime.slept == []
    stage.engine.close()


def test_closing_the_database_waits_for_its_committers(make_stage: MakeStage) -> None:
    """Futures that were handed to the committer threads are answered before the database is closed."""
    stage = make_stage()
    futures = [stage.engine.submit(Append(f"k{number}", "x")) for number in range(50)]
    stage.engine.close()
    stage.database.close()
    assert [future.result(0) for future in futures] == ["x"] * 50


# Many tenants.


def test_busy_tenants_do_not_starve_another(probes: Probes) -> None:
    """A tenant whose queue never empties gives the committer thread back after each batch."""
    database = open_store("memory:")
    busy = [Engine(database, f"busy-{number}") for number in range(6)]
    stop = threading.Event()

    def again(engine: Engine) -> None:
        if not stop.is_set():
            engine.submit(Append("a", "x")).add_done_callback(lambda _: again(engine))

    for engine in busy:
        for _ in range(2):
            again(engine)
    quiet = Engine(database, "quiet")
    try:
        assert quiet.submit(Append("a", "x")).result(PATIENCE_S) == "x"
        assert [engine.submit(Append("b", "x")).result(PATIENCE_S) for engine in busy] == ["x"] * len(busy)
    finally:
        stop.set()
        for engine in (*busy, quiet):
            engine.close()
        database.close()
