"""A command on its way through the engine, and how its caller learns the answer."""

import contextlib
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from coord.core.commands import Command
from coord.core.errors import Busy, CoordError

if TYPE_CHECKING:  # they take longer to import than all of coord; only who uses futures pays for them
    import asyncio
    from concurrent.futures import Future
    from types import ModuleType


class PendingCommand(msgspec.Struct, eq=False):
    """One command, its deadline, and who waits for it: a future, that of an event loop, or nobody."""

    command: Command
    deadline: float
    command_id: str = ""
    future: "Future[Any] | None" = None
    loop_future: "asyncio.Future[Any] | None" = None
    answered: bool = False
    begun: bool = False
    reply: Any = None
    error: CoordError | None = None

    def fail(self, error: CoordError) -> None:
        self.error = error
        self.answered = True

    def fail_if_late(self, now: float) -> bool:
        """Give up on a command whose caller waits no longer; return whether it is answered."""
        if not self.answered and now > self.deadline:
            self.fail(Busy("the command kept meeting others until its time was up", hint="try again"))
        return self.answered

    def withdrawn(self) -> bool:
        """Whether the caller has gone before the command was begun."""
        if self.loop_future is not None:
            return self.loop_future.cancelled()
        begun, self.begun = self.begun, True
        return self.future is not None and not begun and not self.future.set_running_or_notify_cancel()

    def result(self) -> Any:
        assert self.answered, "a caller looks only after its command was answered"
        if self.error is not None:
            raise self.error
        return self.reply


@cache
def _asyncio() -> "ModuleType":
    import asyncio

    return asyncio


def new_loop_future() -> "asyncio.Future[Any]":
    """Return a future of the event loop that this is called in."""
    future: asyncio.Future[Any] = _asyncio().get_running_loop().create_future()
    return future


def deliver(jobs: Iterable[PendingCommand]) -> None:
    """Tell the callers whose commands are answered; each event loop is woken once for all of its callers."""
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
            _settle(job.future, job)
    for loop, theirs in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits there any more
            loop.call_soon_threadsafe(_settle_all, theirs)


def _settle_all(jobs: list[PendingCommand]) -> None:
    for job in jobs:
        if job.loop_future is not None and not job.loop_future.done():
            _settle(job.loop_future, job)


def _settle(future: "Future[Any] | asyncio.Future[Any]", job: PendingCommand) -> None:
    if job.error is not None:
        future.set_exception(job.error)
    else:
        future.set_result(job.reply)
