"""A command that waits for its reply, and the delivery of that reply."""

import contextlib
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from coord.core.commands import Command
from coord.core.errors import Busy, CoordError

if TYPE_CHECKING:  # slower to import than all of coord, and only needed for futures
    import asyncio
    from concurrent.futures import Future
    from types import ModuleType


class PendingCommand(msgspec.Struct, eq=False):
    """One command, its deadline, and the future that waits for it, if there is one."""

    command: Command
    deadline: float
    command_id: str = ""
    future: "Future[Any] | None" = None
    loop_future: "asyncio.Future[Any] | None" = None
    answered: bool = False
    begun: bool = False
    reply: Any = None
    error: CoordError | None = None
    origin: bytes = b""
    """Where it came from, as an encoded field for its events; empty for a process of this machine."""

    def fail(self, error: CoordError) -> None:
        self.error = error
        self.answered = True

    def fail_if_late(self, now: float) -> bool:
        """Fail a command whose deadline has passed; return whether it is answered."""
        if not self.answered and now > self.deadline:
            self.fail(Busy("the command conflicted with others until its deadline", hint="try again"))
        return self.answered

    def is_cancelled(self) -> bool:
        """Whether the caller cancelled the command before it began."""
        if self.loop_future is not None:
            return self.loop_future.cancelled()
        begun, self.begun = self.begun, True
        return self.future is not None and not begun and not self.future.set_running_or_notify_cancel()

    def result(self) -> Any:
        assert self.answered, "asked only after the command was answered"
        if self.error is not None:
            raise self.error
        return self.reply


@cache
def _asyncio() -> "ModuleType":
    import asyncio

    return asyncio


def loop_futures() -> "Callable[[], asyncio.Future[Any]]":
    """Return what makes futures of the running event loop."""
    create: Callable[[], asyncio.Future[Any]] = _asyncio().get_running_loop().create_future
    return create


async def results_of(futures: Iterable["asyncio.Future[Any]"]) -> list[Any]:
    """Return the reply to each command of `Engine.ask_many`, or its error.

    Commands of one call end together, so most are there when the first one is: `gather` would add a callback
    to each.
    """
    results: list[Any] = []
    for future in futures:
        try:
            results.append(await future)
        except CoordError as error:
            results.append(error)
    return results


def deliver(jobs: Iterable[PendingCommand]) -> None:
    """Resolve the futures of answered commands; wake each event loop once for all of its callers."""
    by_loop: dict[asyncio.AbstractEventLoop, list[PendingCommand]] = {}
    for job in jobs:
        if not job.answered:
            continue
        if (future := job.loop_future) is not None:
            loop = future.get_loop()
            if loop in by_loop:
                by_loop[loop].append(job)
            else:
                by_loop[loop] = [job]
        elif job.future is not None:
            _resolve(job.future, job)
    for loop, theirs in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed, so nobody waits
            loop.call_soon_threadsafe(_resolve_all, theirs)


def _resolve_all(jobs: list[PendingCommand]) -> None:
    for job in jobs:
        if job.loop_future is not None and not job.loop_future.done():
            _resolve(job.loop_future, job)


def _resolve(future: "Future[Any] | asyncio.Future[Any]", job: PendingCommand) -> None:
    if job.error is not None:
        future.set_exception(job.error)
    else:
        future.set_result(job.reply)
