"""Send spans to a collector: in a thread, in batches, at least once.

The saved offset is before the first event whose span was not accepted. So a process that is killed, and a
collector that is away, cost a repetition and never a span; the ids of a span stay the same. If the collector
refuses a batch, the runner notes why (`coord follow list`), goes back, and tries again after a longer time.
"""

import logging
import threading
from collections import deque

from coord.core.errors import CoordError
from coord.followers.follower import Follower, LogSource
from coord.followers.reactions.webhook import TIMEOUT_S, exchange
from coord.followers.traces.settings import Collector, find_collector
from coord.followers.traces.spans import Span, request_of, span_of
from coord.host.caller import find_tenant
from coord.sdk.log_reader import LoggedEvent
from coord.sdk.remote.wire import VERSION

logger = logging.getLogger("coord.followers")
BATCH_SPANS = 500
BATCH_MS = 2000
"""Spans wait this long for others before they are sent."""
POLL_MS = 100
WAITING_MAX = 10_000
"""How many spans are kept in memory; then the oldest are dropped."""


class Traces(Follower):
    """Sends a span for each claim, wait, lock and merge that ends."""

    name = "traces"
    about = "spans for the collector in [telemetry] of coord.toml"
    has_effects = True
    starts_at_present = True

    def __init__(self, source: LogSource) -> None:
        super().__init__(source)
        self._collector: Collector | None = None
        self._store = f"{source.location.store_id}/{source.tenant}"
        self._waiting: deque[Span] = deque()
        self._entry = (0, 0)
        """The offset of the newest entry with events, and the number of its newest event."""
        self._batch: list[Span] = []
        self._thread: threading.Thread | None = None
        self._error: CoordError | None = None
        self._first_ms = 0
        self._sent = True  # where it begins has to survive
        self.dropped = 0
        """How many spans were dropped since the last batch."""

    @classmethod
    def wanted(cls, source: LogSource) -> bool:
        """Whether a person named a collector; it gets the events of that person's tenant."""
        if source.tenant != find_tenant(source.environ):
            return False
        return find_collector(source).collector is not None

    @classmethod
    def problems(cls, source: LogSource) -> list[str]:
        """Return what is wrong with the table of the configuration."""
        problem = find_collector(source).problem
        return [problem] if problem else []

    def refresh(self, offset: int, now: int) -> None:
        """Take over a changed configuration."""
        del offset, now
        self._collector = find_collector(self.source).collector

    def apply(self, logged: LoggedEvent) -> None:
        """Keep the span that an event ends."""
        number = self._entry[1] + 1 if logged.offset == self._entry[0] else 0
        self._entry = (logged.offset, number)
        span = span_of(logged, number, self._store)
        if span is None:
            return
        self._waiting.append(span)
        if len(self._waiting) > WAITING_MAX and not self._batch:
            self._waiting.popleft()
            self.dropped += 1

    def dump(self) -> bytes:
        """Return no state: the offset says everything."""
        self._sent = False
        return b""

    def load(self, data: bytes) -> None:
        """Take over nothing."""

    def act(self, now: int) -> int:
        """Send what has waited for long enough; return when to look again (0: with the next event)."""
        if self._thread is not None:
            if self._thread.is_alive():
                return now + POLL_MS
            self._finish()
        if not self._waiting or self._collector is None:
            self._first_ms = 0
            return 0
        self._first_ms = self._first_ms or now
        due_ms = self._first_ms + BATCH_MS
        if now < due_ms and len(self._waiting) < BATCH_SPANS:
            return due_ms
        self._begin(self._collector)
        return now + POLL_MS

    def _begin(self, collector: Collector) -> None:
        self._batch = [self._waiting[index] for index in range(min(BATCH_SPANS, len(self._waiting)))]
        if self.dropped:
            logger.warning("traces: %d spans were dropped, because the collector is too slow", self.dropped)
            self.dropped = 0
        body = request_of(self._batch, self.source.tenant, VERSION)
        arguments = (collector, body)
        self._thread = threading.Thread(target=self._send, args=arguments, name="coord-traces", daemon=True)
        self._thread.start()

    def _send(self, collector: Collector, body: bytes) -> None:
        headers = {
            "Host": collector.parts.netloc,
            "Content-Type": "application/json",
            "User-Agent": f"coord/{VERSION}",
        }
        try:
            exchange(collector.parts, body, headers, TIMEOUT_S, collector.reach)
        except CoordError as error:
            self._error = error

    def _finish(self) -> None:
        """Take the outcome of a batch over; a failure is one of the follower."""
        self._thread, self._first_ms = None, 0
        error, self._error = self._error, None
        if error is not None:
            raise error
        for _ in self._batch:
            self._waiting.popleft()
        self._batch, self._sent = [], True

    @property
    def acted(self) -> bool:
        """Whether spans were accepted since the offset was last saved."""
        return self._sent

    @property
    def busy(self) -> bool:
        """Whether spans wait or are under way."""
        return bool(self._waiting)

    def offset_to_save(self, offset: int) -> int:
        """Return the offset before the first event whose span was not accepted."""
        return min(offset, self._waiting[0].offset - 1) if self._waiting else offset
