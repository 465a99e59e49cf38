"""The task that a worker's function gets, and the exceptions with which it may end."""

import threading
from collections.abc import Callable

from coord.core.errors import ClaimLost, CoordError
from coord.core.plans.commands import NextTask, TaskInfo
from coord.core.tasks.types import RenewalReason
from coord.sdk.client.client import Client
from coord.sdk.client.lease import TRANSIENT, Lease, Renewal, clock
from coord.sdk.validation.arguments import LINE_CHARS_MAX

PROGRESS_S = 1.0
"""The shortest time between two recorded reports of progress."""
LOOK_S = 0.1
"""How often a wait checks whether to continue."""
HUNG_S = 60.0
"""How long after its time limit a claim is still renewed: work that does not stop loses it."""


class GiveBack(Exception):
    """Raised by a function that cannot continue now: the task is released without a failure."""


class RateLimited(GiveBack):
    """Raised when a provider limits the rate: the task is released, and this agent gets none for a time."""

    def __init__(self, seconds: float, note: str = "rate limited") -> None:
        self.seconds = seconds
        super().__init__(note)


class WorkFailed(Exception):
    """Raised to report a failure with a message; any other exception is a failure as well."""


class CannotBeDone(WorkFailed):
    """Raised when a retry is useless: dependents stay blocked until a person retries the task."""


class Work:
    """A claimed task while a function works on it; a thread renews the claim."""

    def __init__(
        self,
        client: Client,
        granted: NextTask,
        *,
        asked: float,
        grace_s: float,
        stopping: threading.Event,
        on_progress: Callable[[str], None],
        time_limit_s: float | None = None,
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
        self._on_progress = on_progress
        self._written = clock() - PROGRESS_S
        self._time_limit_s = time_limit_s
        self._moved = clock()
        lease = Lease(self.lease_s, asked=asked, margin_s=min(grace_s, self.lease_s / 4))
        self._renewal = Renewal(lease, self._renew)

    @property
    def lost(self) -> bool:
        """Whether the claim is lost or can no longer be trusted: a result would be rejected."""
        return self._renewal.error is not None

    @property
    def over(self) -> bool:
        """Whether to stop: the claim is lost, the worker was stopped, or there is no progress."""
        return self.lost or self._stopping.is_set() or self.hung

    @property
    def hung(self) -> bool:
        """Whether nothing reported progress for the time limit."""
        return self._time_limit_s is not None and clock() - self._moved >= self._time_limit_s

    @property
    def left_s(self) -> float:
        """The seconds until the lease ends if it is not renewed."""
        return self._renewal.left_s

    def grace_s(self, wanted_s: float) -> float:
        """Return how long the work may take to stop; if the store is silent, until the lease ends."""
        return min(wanted_s, self.left_s) if isinstance(self._renewal.error, TRANSIENT) else wanted_s

    @property
    def renewals(self) -> int:
        """The number of renewals."""
        return self._renewal.times

    @property
    def why_lost(self) -> str:
        """Why the claim is lost; empty while it is held."""
        return "" if self._renewal.error is None else self._renewal.error.message

    def check(self) -> None:
        """Raise `ClaimLost` if the claim is lost, `GiveBack` if the worker was stopped.

        Without progress for the time limit, raise `WorkFailed`.
        """
        if self.lost:
            raise ClaimLost(self.why_lost, hint="stop: another agent may work on it") from self._renewal.error
        if self._stopping.is_set():
            raise GiveBack("the worker was stopped")
        if self.hung:
            raise WorkFailed(f"no progress for {self._time_limit_s:g} s")

    def wait(self, seconds: float) -> bool:
        """Wait for `seconds` or until the work is over; return whether to continue."""
        until = clock() + seconds
        while not self.over and (left := until - clock()) > 0:
            self._stopping.wait(min(left, LOOK_S))
        return not self.over

    def note_progress(self) -> None:
        """Restart the time limit."""
        self._moved = clock()

    def progress(self, done: float | str, text: str = "") -> None:
        """Report progress as a fraction, a text, or both; others see it in the session's phase."""
        self.note_progress()
        words = done if isinstance(done, str) else f"{round(100 * min(1.0, max(0.0, done)))} % {text}"
        phase = fit_one_line(words)
        self._on_progress(phase)
        if clock() - self._written < PROGRESS_S:
            return
        self._written = clock()
        try:
            self._client.update(task=self.task_id, phase=phase, status="working")
        except CoordError:
            return  # progress is optional; a lost claim is noticed elsewhere

    def end(self) -> None:
        """Stop renewing."""
        self._renewal.end()

    def _renew(self) -> float:
        if self._time_limit_s is not None and clock() - self._moved >= self._time_limit_s + HUNG_S:
            raise ClaimLost(f"no progress for {self._time_limit_s:g} s, and the work did not stop")
        reply = self._client.renew_task(self.task_id, self.generation)
        if reply.reason is not RenewalReason.RENEWED:
            raise ClaimLost(f"the claim is lost: {reply.reason.value}")
        return self.lease_s


def fit_one_line(text: str, limit: int = LINE_CHARS_MAX) -> str:
    """Return a text as one printable line; a long text keeps its end, which gives the cause."""
    words = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return words if len(words) <= limit else f"…{words[1 - limit :]}"
