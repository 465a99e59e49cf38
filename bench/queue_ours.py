"""Our own queue in the ways a user may drain it: by processes, through one engine, many tasks at a time."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.drained import Drained
from bench.repository import open_client
from coord.core.commands import Command
from coord.core.errors import Busy
from coord.core.identity import Caller
from coord.core.ids import work_product_ref
from coord.core.plans.commands import ClaimNext
from coord.core.tasks.commands import AsSession, SubmitResult, SubmitResults
from coord.sdk.validation.tasks import new_task

LEASE_MS = 60_000
MANY = 128
PATIENCE_S = 60.0
"""Where many processes want the same head of a line, some wait longer than a user's default."""


class CoordQueue:
    """Each worker a process of its own: `next`, then `submit`, as `coord task next` and `submit` do."""

    rounds = 1
    one_process = False
    begins_slowly = False

    def __init__(self, url: str, repository: Path, session: str) -> None:
        self._client = open_client(url, repository, session)

    def fill(self, tasks: int) -> None:
        self._client.add_tasks([new_task(f"task-{number:07d}") for number in range(tasks)])

    def drain(self, workers: int) -> Drained:
        client, moments = self._client, list[float]()
        while (reply := _persistently(client.next_task)).task is not None:
            moments.append(perf_counter())
            name, generation = reply.task.task_id, reply.claim.generation
            submitted = _persistently(lambda: client.submit_task(name, generation, {}))  # noqa: B023 - now
            assert submitted.accepted, "its claim is current"
        return Drained([moments], perf_counter())

    def _next(self, caller: Caller, limit: int = 1) -> ClaimNext:
        client = self._client
        return ClaimNext(
            caller=caller,
            tenant=client.tenant,
            project=client.project,
            lease_ms=LEASE_MS,
            repository=client.location.repository_id,
            limit=limit,
        )

    def _result(self, reply: Any) -> SubmitResult:
        """Make the submission that `Client.submit_task` makes."""
        client, task, generation = self._client, reply.task.task_id, reply.claim.generation.generation
        product = work_product_ref(task, generation, os.urandom(16).hex())
        return SubmitResult(client.tenant, client.project, task, "", generation, b"{}", product)

    def _together(self, *commands: Command) -> list[Any]:
        return self._client.engine.call_many(commands, timeout=PATIENCE_S)

    def close(self) -> None:
        self._client.close()


def _persistently(call: Callable[[], Any]) -> Any:
    """Ask until there is an answer: where too many ask at once, some are told that nothing happened."""
    while True:
        try:
            return call()
        except Busy:
            continue


class JoinedQueue(CoordQueue):
    """Each worker a process of its own that hands in and takes the next one in the same commit."""

    def drain(self, workers: int) -> Drained:
        moments: list[float] = []
        ask = self._client.caller
        (reply,) = self._together(self._next(ask))
        while reply.task is not None:
            moments.append(perf_counter())
            submitted, reply = self._together(AsSession(ask, self._result(reply)), self._next(ask))
            assert submitted.accepted, "its claim is current"
        return Drained([moments], perf_counter())


class BatchQueue(CoordQueue):
    """Each worker a process of its own that takes many at a time: one commit takes, one hands all in."""

    rounds = 10

    def drain(self, workers: int) -> Drained:
        client, moments = self._client, list[float]()
        while (reply := _persistently(lambda: client.next_task(limit=MANY))).task is not None:
            taken = [reply, *reply.more]
            moments += [perf_counter()] * len(taken)
            results = [(each.task.task_id, each.claim.generation, None) for each in taken]
            replies = _persistently(lambda: client.submit_tasks(results))  # noqa: B023 - now
            assert all(each.accepted for each in replies), "their claims are current"
        return Drained([moments], perf_counter())


class EngineQueue(CoordQueue):
    """All workers ask one engine, as those of a hub do; each hands in and asks for the next at once."""

    rounds = 10
    one_process = True
    limit = 1

    def drain(self, workers: int) -> Drained:
        moments: list[list[float]] = [[] for _ in range(workers)]

        async def run() -> None:
            await asyncio.gather(*(self._work(f"worker-{number}", own) for number, own in enumerate(moments)))

        asyncio.run(run())
        return Drained(moments, perf_counter())

    async def _work(self, session: str, moments: list[float]) -> None:
        engine, caller = self._client.engine, Caller(session)
        reply = await engine.ask(self._next(caller, self.limit), timeout=PATIENCE_S)
        while reply.task is not None:
            taken = [reply, *reply.more]
            moments += [perf_counter()] * len(taken)
            results = SubmitResults(caller, tuple(map(self._result, taken)))
            submitted = engine.ask(results, timeout=PATIENCE_S)
            following = engine.ask(self._next(caller, self.limit), timeout=PATIENCE_S)
            assert all(each.accepted for each in await submitted), "their claims are current"
            reply = await following


class EngineBatchQueue(EngineQueue):
    """All workers ask one engine, and each takes and hands in many at a time."""

    limit = MANY


PLAIN = "coord, a process each"
OURS: dict[str, type[CoordQueue]] = {
    PLAIN: CoordQueue,
    "coord, a process each, submit + next": JoinedQueue,
    "coord, a process each, 128 at a time": BatchQueue,
    "coord, one engine": EngineQueue,
    "coord, one engine, 128 at a time": EngineBatchQueue,
}
