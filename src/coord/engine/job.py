"""A command on its way through the engine, and how its caller learns the answer."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

from coord.core.commands import Command
from coord.core.errors import Busy, CoordError


class Job:
    """One command, its deadline, and the future that waits for it (None: the caller looks for itself)."""

    __slots__ = ("answered", "begun", "command", "command_id", "deadline", "error", "reply", "waiter")

    def __init__(
        self,
        command: Command,
        deadline: float,
        command_id: str = "",
        waiter: "Future[Any] | asyncio.Future[Any] | None" = None,
    ) -> None:
        self.command = command
        self.deadline = deadline
        self.command_id = command_id
        self.waiter = waiter
        self.answered = False
        self.begun = False
        self.reply: Any = None
        self.error: CoordError | None = None

    def succeed(self, reply: Any) -> None:
        self.reply = reply
        self.answered = True

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
        waiter, begun = self.waiter, self.begun
        self.begun = True
        if isinstance(waiter, Future):
            return not begun and not waiter.set_running_or_notify_cancel()
        return waiter is not None and waiter.cancelled()

    def result(self) -> Any:
        assert self.answered, "a caller looks only after its command was answered"
        if self.error is not None:
            raise self.error
        return self.reply


def deliver(jobs: Iterable[Job]) -> None:
    """Tell the waiting callers; each event loop is woken once for all of its callers."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Job]] = defaultdict(list)
    for job in jobs:
        waiter = job.waiter
        if waiter is None:
            continue
        if isinstance(waiter, Future):
            _settle_future(waiter, job)
        else:
            by_loop[waiter.get_loop()].append(job)
    for loop, theirs in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits there any more
            loop.call_soon_threadsafe(_settle_all, theirs)


def _settle_all(jobs: list[Job]) -> None:
    for job in jobs:
        if job.waiter is not None and not job.waiter.done():
            _settle_future(job.waiter, job)


def _settle_future(waiter: "Future[Any] | asyncio.Future[Any]", job: Job) -> None:
    if job.error is not None:
        waiter.set_exception(job.error)
    else:
        waiter.set_result(job.reply)
