"""The follower that counts the log for metrics."""

import threading
import zlib

import msgspec

from coord.followers.follower import Follower, LogSource
from coord.followers.metrics.counts import Counts
from coord.sdk.log_reader import LoggedEvent

LEVEL = 6
_DECODER = msgspec.msgpack.Decoder(Counts)
_ENCODER = msgspec.msgpack.Encoder(order="sorted")


class MetricsFollower(Follower):
    """Counts claims, results, locks, overwrites and deadlocks."""

    name = "metrics"
    about = "counters and histograms for Prometheus"

    def __init__(self, source: LogSource) -> None:
        super().__init__(source)
        self.counts = Counts(source.tenant)
        self._lock = threading.Lock()

    def apply(self, logged: LoggedEvent) -> None:
        self.apply_entry([logged])

    def apply_entry(self, events: list[LoggedEvent]) -> None:
        """Count events, with one turn of the lock for all of them."""
        with self._lock:
            for logged in events:
                self.counts.apply(logged)

    def snapshot(self) -> Counts:
        """Return a copy of the counts, for another thread than the one that counts."""
        with self._lock:
            data = _ENCODER.encode(self.counts)
        return _DECODER.decode(data)

    def dump(self) -> bytes:
        return zlib.compress(_ENCODER.encode(self.counts), LEVEL)

    def load(self, data: bytes) -> None:
        self.counts = _DECODER.decode(zlib.decompress(data))
