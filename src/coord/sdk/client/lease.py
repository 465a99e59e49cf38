"""Keep a lease: a thread renews it, and the local clock shows how long it can be trusted."""

import os
import threading
import time
from collections.abc import Callable

from coord.core.errors import Busy, CoordError, Unavailable, Unknown

RENEW_AT = 0.4
"""The fraction of a lease after which it is renewed."""
JITTER = 0.1
"""The fraction by which renewals are spread, so that many workers do not renew at once."""
RETRY_S = 0.2
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

TRANSIENT = (Busy, Unavailable, Unknown)
"""Errors that may pass: the caller should retry."""


def clock() -> float:
    """Return the seconds of a clock that is never set and keeps running while the machine sleeps."""
    return time.clock_gettime(_CLOCK)


def _jitter() -> float:
    """Return a factor near one, without importing `random`, which is slow to import."""
    return 1 - JITTER + 2 * JITTER * os.urandom(1)[0] / 255


class Lease:
    """How long a lease is valid by the local clock, and when to renew it.

    The lease counts from the time of the request, because the store granted it then or later. It stops being
    trusted `margin_s` before its end, so that work under it has time to stop.
    """

    def __init__(self, lease_s: float, *, asked: float, margin_s: float = 0.0) -> None:
        self.margin_s = margin_s
        self.renewed(lease_s, asked=asked)

    def renewed(self, lease_s: float, *, asked: float) -> None:
        """Restart the lease from the time of the request."""
        self.until = asked + lease_s
        self.pause_s = lease_s * RENEW_AT
        self._misses = 0

    def missed(self, now: float) -> None:
        """Back off after a failed renewal, but leave time for several more before the lease ends."""
        self.pause_s = max(RETRY_S / 2, min(RETRY_S * 2**self._misses, (self.until - now) / 4))
        self._misses += 1

    def trusted(self, now: float) -> bool:
        """Whether no other session can hold it yet."""
        return now < self.until - self.margin_s


class Renewal:
    """Renews a lease in a thread until it is ended or lost; `renew` returns the new length or raises.

    `pause` waits at most the given seconds, and raises if it learns that the lease is lost. So a lease that
    another session takes is lost at once, not at the next renewal. `on_lost` is called in the thread.
    """

    def __init__(
        self,
        lease: Lease,
        renew: Callable[[], float],
        *,
        pause: Callable[[float], None] | None = None,
        on_lost: Callable[[], None] = lambda: None,
    ) -> None:
        self._lease = lease
        self._renew = renew
        self._ended = threading.Event()
        self._pause = pause or self._ended.wait
        self._on_lost = on_lost
        self._error: CoordError | None = None
        self.times = 0
        self._thread = threading.Thread(target=self._keep, name="coord-renew", daemon=True)
        self._thread.start()

    @property
    def error(self) -> CoordError | None:
        """Why the lease is lost: the store refused, or did not answer in time; None while it is held."""
        if self._error is None and not self._ended.is_set() and not self._lease.trusted(clock()):
            self._error = Unavailable(
                "the lease could not be renewed in time", hint="check whether the store can be reached"
            )
        return self._error

    @property
    def left_s(self) -> float:
        """The seconds until the lease ends."""
        return max(0.0, self._lease.until - clock())

    def end(self) -> None:
        """Stop renewing; a lease that is already lost stays lost."""
        self.stop()
        self.join()

    def stop(self) -> None:
        """Stop renewing, but do not wait for the thread: it may be in its pause."""
        _ = self.error
        self._ended.set()

    def join(self, timeout_s: float | None = None) -> None:
        """Wait for the thread, which ends after its pause."""
        if self._thread is not threading.current_thread():
            self._thread.join(timeout_s)

    def _keep(self) -> None:
        due = self._due()
        while not self._ended.is_set() and not self._is_lost():
            asked = clock()
            try:
                if asked < due:
                    self._pause(max(0.0, min(due, self._lease.until - self._lease.margin_s) - asked))
                    continue
                lease_s = self._renew()
            except TRANSIENT as error:
                if self._is_lost():
                    self._error = error  # says more than the missed deadline
                elif asked < due:
                    self._ended.wait(RETRY_S)  # the store cannot be watched now
                else:
                    self._lease.missed(asked)
                    due = self._due()
            except CoordError as error:
                if not self._ended.is_set():
                    self._error = error
            else:
                if not self._is_lost():  # otherwise it is too late: the work is already stopping
                    self.times += 1
                    self._lease.renewed(lease_s, asked=asked)
                    due = self._due()
        if not self._ended.is_set():
            self._explain()
            self._on_lost()

    def _is_lost(self) -> bool:
        return self.error is not None

    def _explain(self) -> None:
        """Ask the store once more why the lease is lost: it knows more than the clock."""
        try:
            self._pause(0.0)
        except TRANSIENT:
            return
        except CoordError as error:
            self._error = error

    def _due(self) -> float:
        return clock() + self._lease.pause_s * _jitter()
