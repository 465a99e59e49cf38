"""Other queues, each as its documentation says to use it, and ours, all behind one face.

Every one keeps its tasks on the same disk or server, synced as a store of coord is, and takes one at a time.
None of them has a fence: what a worker hands in late counts as if nobody had taken the task since.
"""

import asyncio
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import psycopg

from bench.repository import open_client
from coord.core.errors import Busy
from coord.sdk.new_task import new_task


class Queue(Protocol):
    """Tasks that are added once and drained by several processes."""

    def fill(self, tasks: int) -> None: ...
    def drain(self) -> int:
        """Take and finish one after the other until nothing is left; return how many."""

    def close(self) -> None: ...


class CoordQueue:
    """Our own, through the library."""

    def __init__(self, url: str, repository: Path, session: str) -> None:
        self._client = open_client(url, repository, session)

    def fill(self, tasks: int) -> None:
        self._client.add_tasks([new_task(f"task-{number:07d}") for number in range(tasks)])

    def drain(self) -> int:
        client, taken = self._client, 0
        while (reply := _persistently(client.next_task)).task is not None:
            assert reply.claim is not None, "a task comes with its claim"
            name, generation = reply.task.task_id, reply.claim.generation
            assert _persistently(lambda: client.submit_task(name, generation, {})).accepted  # noqa: B023 - now
            taken += 1
        return taken

    def close(self) -> None:
        self._client.close()


def _persistently(call: Callable[[], Any]) -> Any:
    """Ask until there is an answer: where too many ask at once, some are told that nothing happened."""
    while True:
        try:
            return call()
        except Busy:
            continue


class HueyQueue:
    """huey on SQLite, with fsync: dequeue deletes the row, then the function runs."""

    def __init__(self, url: str, _repository: Path, _session: str) -> None:
        from huey import SqliteHuey

        self._huey = SqliteHuey(filename=url.removeprefix("sqlite://") + ".huey", fsync=True, results=True)
        self._work: Any = self._huey.task(name="work")(_work)

    def fill(self, tasks: int) -> None:
        for number in range(tasks):
            self._work(number)

    def drain(self) -> int:
        taken = 0
        while (task := self._huey.dequeue()) is not None:
            self._huey.execute(task)
            taken += 1
        return taken

    def close(self) -> None:
        self._huey.storage.close()


class ProcrastinateQueue:
    """procrastinate: rows in Postgres, fetched one by one with SKIP LOCKED."""

    def __init__(self, url: str, _repository: Path, _session: str) -> None:
        from procrastinate import App, PsycopgConnector

        self._app = App(connector=PsycopgConnector(conninfo=url))
        self._taken = 0
        self._work: Any = self._app.task(name="work", pass_context=False)(self._one)

    def _one(self, number: int) -> None:
        self._taken += 1

    def fill(self, tasks: int) -> None:
        async def run() -> None:
            async with self._app.open_async():
                await self._app.schema_manager.apply_schema_async()
                await self._work.batch_defer_async(*({"number": number} for number in range(tasks)))

        asyncio.run(run())

    def drain(self) -> int:
        async def run() -> None:
            async with self._app.open_async():
                await self._app.run_worker_async(wait=False, install_signal_handlers=False, concurrency=1)

        asyncio.run(run())
        return self._taken

    def close(self) -> None:
        """Nothing is open between two calls."""


class PgQueuerQueue:
    """pgqueuer: rows in Postgres, fetched with SKIP LOCKED, here one at a time."""

    def __init__(self, url: str, _repository: Path, _session: str) -> None:
        self._url = url
        self._taken = 0

    def fill(self, tasks: int) -> None:
        from pgqueuer.queries import Queries

        async def run() -> None:
            async with await self._connect() as connection:
                queries = Queries(_driver(connection))
                await queries.install()
                await queries.enqueue(["work"] * tasks, [b"{}"] * tasks, [0] * tasks)

        asyncio.run(run())

    def drain(self) -> int:
        from pgqueuer import PgQueuer
        from pgqueuer.types import QueueExecutionMode

        async def work(_job: object) -> None:
            self._taken += 1

        async def run() -> None:
            async with await self._connect() as connection:
                queuer = PgQueuer(_driver(connection))
                queuer.entrypoint("work")(work)
                await queuer.run(batch_size=1, mode=QueueExecutionMode.drain)

        asyncio.run(run())
        return self._taken

    async def _connect(self) -> psycopg.AsyncConnection[Any]:
        return await psycopg.AsyncConnection.connect(self._url, autocommit=True)

    def close(self) -> None:
        """Nothing is open between two calls."""


def _driver(connection: psycopg.AsyncConnection[Any]) -> Any:
    from pgqueuer.db import PsycopgDriver

    return PsycopgDriver(connection)


def _work(number: int) -> int:
    return number


QUEUES: dict[str, Callable[[str, Path, str], Queue]] = {
    "coord": CoordQueue,
    "huey": HueyQueue,
    "procrastinate": ProcrastinateQueue,
    "pgqueuer": PgQueuerQueue,
}
PEERS = {"sqlite": ("huey",), "postgres": ("procrastinate", "pgqueuer")}


def peers(store: str) -> list[str]:
    """Return what stands beside a store and can be had here (pip install 'coord[bench]')."""
    return [name for name in PEERS.get(store, ()) if find_spec(name) is not None]
