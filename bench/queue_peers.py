"""Other queues, each as its documentation says to use it, behind one face with ours.

Every one keeps its tasks on the same disk or server, synced as a store of coord is. None of them has a fence:
what a worker hands in late counts as if nobody had taken the task since.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.drained import Drained

SAQ_LOOK_S = 0.2
"""How long a worker of SAQ looks at an empty queue before it ends; not counted."""
LITEQUEUE_PATIENCE_S = 60.0


class HueyQueue:
    """huey on SQLite, with fsync: dequeue deletes the row, then the function runs and its result is kept."""

    rounds = 1
    one_process = False
    begins_slowly = False

    def __init__(self, url: str, _repository: Path, _session: str) -> None:
        from huey import SqliteHuey

        self._huey = SqliteHuey(filename=url, fsync=True, results=True)
        self._task: Any = self._huey.task(name="work")(_work)

    def fill(self, tasks: int) -> None:
        for number in range(tasks):
            self._task(number)

    def drain(self, workers: int) -> Drained:
        moments: list[float] = []
        while (task := self._huey.dequeue()) is not None:
            moments.append(perf_counter())
            self._huey.execute(task)
        return Drained([moments], perf_counter())

    def close(self) -> None:
        self._huey.storage.close()


def _work(number: int) -> int:
    return number


class LiteQueueQueue:
    """litequeue on SQLite: pop marks the row, done marks it again; synced, which it is not by itself."""

    rounds = 1
    one_process = False
    begins_slowly = False

    def __init__(self, url: str, _repository: Path, _session: str) -> None:
        from litequeue import LiteQueue

        self._queue = LiteQueue(url, timeout=LITEQUEUE_PATIENCE_S)
        self._queue.conn.execute("PRAGMA synchronous = FULL")

    def fill(self, tasks: int) -> None:
        with self._queue.transaction():
            for number in range(tasks):
                self._queue.put(str(number))

    def drain(self, workers: int) -> Drained:
        moments: list[float] = []
        while (message := self._queue.pop()) is not None:
            moments.append(perf_counter())
            self._queue.done(message.message_id)
        return Drained([moments], perf_counter())

    def close(self) -> None:
        self._queue.close()


class _OnLoop:
    """A queue whose library is asynchronous: one loop from its connection to its end.

    Its workers take a while to begin and to end, seconds even, which is not what is compared: their time
    counts from the first task that one of them has to the last that is finished.
    """

    rounds = 1
    one_process = False
    begins_slowly = True

    def __init__(self, url: str, _repository: Path, _session: str) -> None:
        self._moments: list[float] = []
        self._finished = 0.0
        self._loop = asyncio.Runner()
        self._loop.run(self._open(url))

    async def _open(self, url: str) -> None: ...
    async def _fill(self, tasks: int) -> None: ...
    async def _drain(self) -> None: ...
    async def _close(self) -> None: ...

    async def _work(self, *_: object, **__: object) -> None:
        self._moments.append(perf_counter())

    def fill(self, tasks: int) -> None:
        self._loop.run(self._fill(tasks))

    def drain(self, workers: int) -> Drained:
        self._loop.run(self._drain())
        return Drained([self._moments], self._finished or perf_counter())

    def close(self) -> None:
        self._loop.run(self._close())
        self._loop.close()


class ProcrastinateQueue(_OnLoop):
    """procrastinate: rows in Postgres, fetched one by one with SKIP LOCKED."""

    async def _open(self, url: str) -> None:
        from procrastinate import App, PsycopgConnector

        self._app = App(connector=PsycopgConnector(conninfo=url))
        self._task: Any = self._app.task(name="work", pass_context=False)(self._work)
        await self._app.open_async()

    async def _fill(self, tasks: int) -> None:
        await self._app.schema_manager.apply_schema_async()
        await self._task.batch_defer_async(*({"number": number} for number in range(tasks)))

    async def _drain(self) -> None:
        await self._app.run_worker_async(wait=False, install_signal_handlers=False, concurrency=1)

    async def _close(self) -> None:
        await self._app.close_async()


class PgQueuerQueue(_OnLoop):
    """pgqueuer: rows in Postgres, fetched with SKIP LOCKED, here one at a time.

    With the driver of its introduction: that of psycopg keeps the connection for up to a second while it
    waits for notices, which would make it look ten times as slow.
    """

    size = 1

    async def _open(self, url: str) -> None:
        import asyncpg
        from pgqueuer import PgQueuer
        from pgqueuer.db import AsyncpgDriver
        from pgqueuer.queries import Queries

        self._connection = await asyncpg.connect(url)
        driver = AsyncpgDriver(self._connection)
        self._queries = Queries(driver)
        self._queuer = PgQueuer(driver)
        self._queuer.entrypoint("work")(self._work)
        self._log_jobs = self._queuer.qm.queries.log_jobs
        self._queuer.qm.queries.log_jobs = self._log  # type: ignore[method-assign, assignment]

    async def _fill(self, tasks: int) -> None:
        await self._queries.install()
        await self._queries.enqueue(["work"] * tasks, [b"{}"] * tasks, [0] * tasks)

    async def _log(self, jobs: Any) -> None:
        await self._log_jobs(jobs)
        self._finished = perf_counter()

    async def _drain(self) -> None:
        from pgqueuer.types import QueueExecutionMode

        await self._queuer.run(batch_size=self.size, mode=QueueExecutionMode.drain)

    async def _close(self) -> None:
        await self._connection.close()


class PgQueuerBy10(PgQueuerQueue):
    """pgqueuer with ten at a time, its default."""

    size = 10
    rounds = 10


class PgQueuerBy100(PgQueuerQueue):
    """pgqueuer with a hundred at a time."""

    size = 100
    rounds = 10


class SaqQueue(_OnLoop):
    """SAQ: lists in Redis, one script or command for each step of a job."""

    async def _open(self, url: str) -> None:
        from saq import Queue, Worker

        self._queue: Any = Queue.from_url(url)
        await self._queue.connect()
        self._worker: Any = Worker(
            self._queue,
            functions=[("work", self._work)],
            concurrency=1,
            burst=True,
            dequeue_timeout=SAQ_LOOK_S,
            after_process=self._processed,
        )

    async def _processed(self, _context: object) -> None:
        self._finished = perf_counter()

    async def _fill(self, tasks: int) -> None:
        await self._queue.redis.flushdb()
        for number in range(tasks):
            await self._queue.enqueue("work", number=number)

    async def _drain(self) -> None:
        await self._worker.start()

    async def _close(self) -> None:
        await self._queue.disconnect()


PEERS: dict[str, Callable[[str, Path, str], Any]] = {
    "huey": HueyQueue,
    "litequeue": LiteQueueQueue,
    "procrastinate": ProcrastinateQueue,
    "pgqueuer, 1 at a time": PgQueuerQueue,
    "pgqueuer, 10 at a time": PgQueuerBy10,
    "pgqueuer, 100 at a time": PgQueuerBy100,
    "SAQ": SaqQueue,
}
