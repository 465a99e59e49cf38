"""A task in the hands of a worker: what its function gets, and what it may raise to end it."""

import threading
from collections.abc import Callable

from coord.core.errors import ClaimLost, CoordError
from coord.core.plans.commands import NextTask, TaskInfo
from coord.core.tasks.types import RenewalReason
from coord.sdk.client.client import Client
from coord.sdk.client.lease import TRANSIENT, Lease, Renewal, clock
from coord.sdk.validation.arguments import LINE_CHARS_MAX

PROGRESS_S = 1.0
"""How often progress is written down at most."""
LOOK_S = 0.1
"""How often somebody who waits looks whether to go on."""


class GiveBack(Exception):
    """Raised by a function that cannot go on now: the task goes back to the queue, no failure is counted."""


class RateLimited(GiveBack):
    """Raised when a provider wants a pause: the task goes to others, this agent gets nothing for a while."""

    def __init__(self, seconds: float, note: str = "rate limited") -> None:
        self.seconds = seconds
        super().__init__(note)


class WorkFailed(Exception):
    """Raised to say in one's own words what did not work; any other exception is a failure as well."""


class CannotBeDone(WorkFailed):
    """Raised when trying again is of no use: what depends on it is blocked until somebody retries it."""


class Work:
    """A claimed task while somebody works on it; the claim is renewed meanwhile."""

    def __init__(
        self,
        client: Client,
        granted: NextTask,
        *,
        asked: float,
        grace_s: float,
        stopping: threading.Event,
        tell: Callable[[str], None],
    ) -> None:
        assert granted.task is not None, "a task was granted"
        assert granted.claim is not None, "it comes with its claim"
        self.task: TaskInfo = granted.task
        self.claim = granted.claim
        self.locks = granted.locks
        self.task_id = granted.task.task_id
        self.generation = granted.claim.generation.generation
        self.lease_s = granted.claim.generation.lease_duration
        self._client = client
        self._stopping = stopping
        self._tell = tell
        self._written = clock() - PROGRESS_S
        lease = Lease(self.lease_s, asked=asked, margin_s=min(grace_s, self.lease_s / 4))
        self._renewal = Renewal(lease, self._renew)

    @property
    def lost(self) -> bool:
        """Whether the claim is gone, or can no longer be trusted: whatever is done now counts for nothing."""
        return self._renewal.error is not None

    @property
    def over(self) -> bool:
        """Whether to stop now: the claim is lost, or the worker is to end."""
        return self.lost or self._stopping.is_set()

    @property
    def left_s(self) -> float:
        """How long the lease lasts from now, if it is not renewed again."""
        return self._renewal.left_s

    def grace_s(self, wanted_s: float) -> float:
        """Return how long whoever works may take to stop: where the store is silent, until the lease ends."""
        return min(wanted_s, self.left_s) if isinstance(self._renewal.error, TRANSIENT) else wanted_s

    @property
    def renewals(self) -> int:
        """How often the lease was renewed."""
        return self._renewal.times

    @property
    def why_lost(self) -> str:
        """What the store said, or that it said nothing for too long."""
        return "" if self._renewal.error is None else self._renewal.error.message

    def check(self) -> None:
        """Raise if there is no use in going on: `ClaimLost`, or `GiveBack` where the worker is to end."""
        if self.lost:
            raise ClaimLost(self.why_lost, hint="stop: somebody else may work on it") from self._renewal.error
        if self._stopping.is_set():
            raise GiveBack("the worker was stopped")

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until the work is over; return whether to go on."""
        until = clock() + seconds
        while not self.over and (left := until - clock()) > 0:
            self._stopping.wait(min(left, LOOK_S))
        return not self.over

    def progress(self, done: float | str, text: str = "") -> None:
        """Say how far it is: a part of one, a few words, or both; others see it in the session's phase."""
        words = done if isinstance(done, str) else f"{round(100 * min(1.0, max(0.0, done)))} % {text}"
        phase = one_line(words)
        self._tell(phase)
        if clock() - self._written < PROGRESS_S:
            return
        self._written = clock()
        try:
            self._client.update(task=self.task_id, phase=phase, status="working")
        except CoordError:
            return  # it is only a courtesy; that the claim is lost is noticed elsewhere

    def end(self) -> None:
        """Renew no more."""
        self._renewal.end()

    def _renew(self) -> float:
        reply = self._client.renew_task(self.task_id, self.generation)
        if reply.reason is not RenewalReason.RENEWED:
            raise ClaimLost(f"the claim is lost: {reply.reason.value}")
        return self.lease_s


def one_line(text: str, most: int = LINE_CHARS_MAX) -> str:
    """Return a text as one printable line: its end, where it is too long, because that says why it ended."""
    words = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return words if len(words) <= most else f"…{words[1 - most :]}"
