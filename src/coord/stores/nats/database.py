"""The NATS store (log-structured): streams of JetStream, any number of machines.

A commit is one message, which the stream accepts only at the expected sequence number (see entries.py).
A read first asks the stream for its newest message: one round trip.

A server that does not sync each message may lose acknowledged messages when its machine fails. So each log
records the server that wrote it. A process that writes through a server that was restarted since then raises
the epoch first: offsets, which are fences, are never issued twice.

    coord.<name>.meta                    the metadata of the store              stream <name>
    coord.<name>.tenant.<tenant>         that this tenant has a log             stream <name>
    coord.<name>.snapshot.<tenant>.…     see snapshots.py                       stream <name>
    coord.<name>.log.<tenant>            the log                                stream <name>-log-<tenant>
    coord.<name>.wakeup.<tenant>         the newest offset, for waiters         no stream
"""

import contextlib
from collections.abc import Iterator

from coord.core.errors import Corrupt
from coord.stores.checksums import REPAIR
from coord.stores.contract import Limits
from coord.stores.health import Check, clock_check
from coord.stores.local.clock import host_now_ms
from coord.stores.migration import MIGRATED_URL, migrated_error
from coord.stores.nats.address import Address, word_of
from coord.stores.nats.jetstream import ROOM, NatsServer, StreamInfo, translated
from coord.stores.nats.meta import grants, install, read_meta, set_epoch
from coord.stores.nats.protocol import Denied, Lost
from coord.stores.nats.store import NatsStore
from coord.stores.server.database import ServerDatabase
from coord.stores.server.listener import Subscription

__all__ = ["NatsDatabase", "grants", "install"]

COMMIT_BYTES_MAX = 8 * 1024 * 1024
EACH_ITS_OWN = "set all clocks with NTP: every machine uses its clock for deadlines"


class NatsDatabase(ServerDatabase[NatsStore]):
    """The streams of a store with all its tenants; created by `install`."""

    def __init__(self, url: str) -> None:
        super().__init__(url, store_id="")
        self.address = Address(url)
        self.server = NatsServer(self.address)
        self._begin()
        self._listened: list[NatsStore] = []
        try:
            self.limits = self._read_limits()
        except BaseException:
            self.server.close()
            raise

    def _read_limits(self) -> Limits:
        self.metadata = read_meta(self.server)
        self.store_id, self.epoch = self.metadata["store_id"], int(self.metadata["epoch"])
        self.durable = self.metadata["durable"] == "1"
        room = self.server.server_info.max_payload - ROOM
        return Limits(min(room * 3 // 4, COMMIT_BYTES_MAX), durable=self.durable, shared=True)

    def _open_log(self, tenant: str) -> NatsStore:
        return NatsStore(self, tenant)

    def create_log(self, tenant: str) -> StreamInfo:
        """Create the stream of a new tenant, or complete an interrupted creation.

        The stream is created before the message that makes the tenant known. So that message is read first:
        otherwise another process could create both in between, and the stream would seem lost.
        """
        address = self.address
        known = address.subject("tenant", word_of(tenant))
        is_known = self.server.last(address.stream, known) is not None
        if is_known and self.server.info(address.log_stream(tenant)) is None:
            raise Corrupt(
                f"the stream {address.log_stream(tenant)} of tenant {tenant} is missing", hint=REPAIR
            )
        replicas = int(self.metadata["replicas"])
        info = self.server.create(address.log_stream(tenant), [address.log_subject(tenant)], replicas)
        if not is_known:
            self.server.put(known, b"", {})
        metadata = read_meta(
            self.server
        )  # after the creation: a migration seals the new stream, or is seen here
        if MIGRATED_URL in metadata:
            raise migrated_error(metadata[MIGRATED_URL])
        return info

    def raise_epoch(self, epoch: int) -> None:
        """Raise the epoch to at least this one."""
        self.epoch = set_epoch(self.server, epoch)

    # Waiting.

    def listened_to(self, store: NatsStore) -> int:
        """Return the number of a log for the listener."""
        with self._lock:
            self._listened.append(store)
            return len(self._listened) - 1

    @contextlib.contextmanager
    def _subscribe(self) -> Iterator[Subscription]:
        subjects: dict[str, int] = {}
        with contextlib.closing(self.server.open()) as connection:

            def listen(logs: frozenset[int], seconds: float) -> dict[int, int]:
                new = logs.difference(subjects.values())
                for log in new:
                    connection.subscribe(self._listened[log].wakeup_subject)
                    subjects[self._listened[log].wakeup_subject] = log
                notified = None if new else connection.hear(seconds)
                if notified is not None and notified.payload.isdigit():
                    return {subjects[notified.subject]: int(notified.payload)}
                return {log: self._listened[log].head() for log in logs}

            try:
                yield listen
            except (Lost, Denied, OSError) as error:
                raise translated(error) from error

    def checks(self) -> list[Check]:
        """Check the version, durability and clock of the server."""
        address, server = self.address, self.server
        before = host_now_ms()
        theirs = server.clock_ms(address.stream, address.subject("probe"))
        after = host_now_ms()
        forgets = "may lose acknowledged commits when its machine fails"
        hint = "make the server sync every message, then: coord install '<url>?durable=1'"
        return [
            Check("version", True, f"NATS {server.server_info.version}"),
            Check(
                "durability",
                self.durable,
                "configured as durable" if self.durable else forgets,
                "" if self.durable else hint,
            ),
            clock_check(theirs, before, after, EACH_ITS_OWN),
        ]

    def close(self) -> None:
        super().close()
        self.server.close()
