"""Keeping what is held for a time: a thread renews it, and our own clock says how long it can be trusted."""

import os
import threading
import time
from collections.abc import Callable

from coord.core.errors import Busy, CoordError, Unavailable, Unknown

RENEW_AT = 0.4
"""The part of a lease after which it is renewed."""
JITTER = 0.1
"""How much sooner or later, so that many workers do not come at once."""
RETRY_S = 0.2
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

TRANSIENT = (Busy, Unavailable, Unknown)
"""What may be over soon: nothing can be concluded from it but to try again."""


def clock() -> float:
    """Return the seconds of a clock that nobody sets and that goes on while the machine sleeps."""
    return time.clock_gettime(_CLOCK)


def _jitter() -> float:
    """Return a factor near one; `random` would be the dearest import of a short command."""
    return 1 - JITTER + 2 * JITTER * os.urandom(1)[0] / 255


class Lease:
    """How long something is ours, by our own clock, and when to ask for more.

    It counts from the moment of asking: the store began the lease then or later. `margin_s` before its end
    it is trusted no more, so that whoever works under it has the time to stop.
    """

    def __init__(self, lease_s: float, *, asked: float, margin_s: float = 0.0) -> None:
        self.margin_s = margin_s
        self.renewed(lease_s, asked=asked)

    def renewed(self, lease_s: float, *, asked: float) -> None:
        """Count anew from the moment of asking."""
        self.until = asked + lease_s
        self.pause_s = lease_s * RENEW_AT
        self._misses = 0

    def missed(self, now: float) -> None:
        """Come back sooner after each try that failed, but in time for several before the end."""
        self.pause_s = max(RETRY_S / 2, min(RETRY_S * 2**self._misses, (self.until - now) / 4))
        self._misses += 1

    def trusted(self, now: float) -> bool:
        """Whether nobody else can have it yet."""
        return now < self.until - self.margin_s


class Renewal:
    """Renews a lease until it is ended or lost. `renew` returns the length of the new one, or raises."""

    def __init__(self, lease: Lease, renew: Callable[[], float]) -> None:
        self._lease = lease
        self._renew = renew
        self._ended = threading.Event()
        self._error: CoordError | None = None
        self.times = 0
        self._thread = threading.Thread(target=self._keep, name="coord-renew", daemon=True)
        self._thread.start()

    @property
    def error(self) -> CoordError | None:
        """Why it is lost: the store said so, or did not answer for too long; None while it is held."""
        if self._error is None and not self._ended.is_set() and not self._lease.trusted(clock()):
            self._error = Unavailable(
                "the lease could not be renewed in time", hint="the store did not answer; is it there?"
            )
        return self._error

    @property
    def left_s(self) -> float:
        """How long the lease lasts from now."""
        return max(0.0, self._lease.until - clock())

    def end(self) -> None:
        """Renew no more; what is lost by now stays so."""
        _ = self.error
        self._ended.set()
        self._thread.join()

    def _keep(self) -> None:
        while not self._ended.wait(self._lease.pause_s * _jitter()):
            asked = clock()
            try:
                lease_s = self._renew()
            except TRANSIENT as error:
                if self.error is not None:
                    self._error = error  # says more than that it was too late
                    return
                self._lease.missed(asked)
            except CoordError as error:
                self._error = error
                return
            else:
                if self.error is not None:
                    return  # it came too late: whoever works under it was told to stop
                self.times += 1
                self._lease.renewed(lease_s, asked=asked)
