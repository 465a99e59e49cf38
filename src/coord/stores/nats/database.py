"""The NATS store (log shape): streams of JetStream, any number of machines.

A commit is one message, taken by the stream only if it comes right after what was decided on (see
`nats_log`). Before reading, the stream is asked for its newest message: one round trip.

A server that does not sync each message may forget acknowledged ones when its machine fails. So each log
notes which server wrote it. Whoever writes through one that was started since then raises the epoch first:
offsets, which are fences, are not issued twice.

    coord.<name>.meta                    what the store says of itself          stream <name>
    coord.<name>.tenant.<tenant>         that this tenant has a log             stream <name>
    coord.<name>.snapshot.<tenant>.…     see `nats_snapshots`                   stream <name>
    coord.<name>.log.<tenant>            the log                                stream <name>-log-<tenant>
    coord.<name>.ring.<tenant>           the newest offset, for who waits       no stream
"""

import contextlib
from collections.abc import Iterator

from coord.core.errors import Corrupt
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
EACH_ITS_OWN = "let all machines keep time: deadlines are told by each machine's own clock"


class NatsDatabase(ServerDatabase[NatsStore]):
    """The streams of a store with all its tenants; made by `install`."""

    def __init__(self, url: str) -> None:
        super().__init__(url, store_id="")
        self.address = Address(url)
        self.server = NatsServer(self.address)
        self._begin()
        self._listened: list[NatsStore] = []
        try:
            self.limits = self._meet()
        except BaseException:
            self.server.close()
            raise

    def _meet(self) -> Limits:
        self.metadata = read_meta(self.server)
        self.store_id, self.epoch = self.metadata["store_id"], int(self.metadata["epoch"])
        self.durable = self.metadata["durable"] == "1"
        room = self.server.told.max_payload - ROOM
        return Limits(min(room * 3 // 4, COMMIT_BYTES_MAX), durable=self.durable, shared=True)

    def _open_log(self, tenant: str) -> NatsStore:
        return NatsStore(self, tenant)

    def create_log(self, tenant: str) -> StreamInfo:
        """Make the stream of a tenant that never had one; what follows it may have been left undone.

        The tenant is known only after its stream is made. So the stream is looked for after that is read:
        the other way round another process may make both in between, and the stream would seem gone.
        """
        address = self.address
        known = address.subject("tenant", word_of(tenant))
        is_known = self.server.last(address.stream, known) is not None
        if is_known and self.server.info(address.log_stream(tenant)) is None:
            raise Corrupt(
                f"the stream {address.log_stream(tenant)} is gone",
                hint="restore it from a copy; nothing was changed",
            )
        replicas = int(self.metadata["replicas"])
        info = self.server.create(address.log_stream(tenant), [address.log_subject(tenant)], replicas)
        if not is_known:
            self.server.put(known, b"", {})
        metadata = read_meta(self.server)  # after it is made: who shuts the store shuts it, or is seen here
        if MIGRATED_URL in metadata:
            raise migrated_error(metadata[MIGRATED_URL])
        return info

    def raise_epoch(self, epoch: int) -> None:
        """Let the epoch be at least this one."""
        self.epoch = set_epoch(self.server, epoch)

    # Waiting.

    def listened_to(self, store: NatsStore) -> int:
        """Return the number under which the listener knows a log."""
        with self._lock:
            self._listened.append(store)
            return len(self._listened) - 1

    @contextlib.contextmanager
    def _subscribe(self) -> Iterator[Subscription]:
        subjects: dict[str, int] = {}
        with contextlib.closing(self.server.open()) as connection:

            def hear(logs: frozenset[int], seconds: float) -> dict[int, int]:
                unheard = logs.difference(subjects.values())
                for log in unheard:
                    connection.subscribe(self._listened[log].notify)
                    subjects[self._listened[log].notify] = log
                rung = None if unheard else connection.hear(seconds)
                if rung is not None and rung.payload.isdigit():
                    return {subjects[rung.subject]: int(rung.payload)}
                return {log: self._listened[log].head() for log in logs}

            try:
                yield hear
            except (Lost, Denied, OSError) as error:
                raise translated(error) from error

    def checks(self) -> list[Check]:
        """Look at the server: its version, whether it forgets, its clock."""
        address, server = self.address, self.server
        before = host_now_ms()
        theirs = server.clock_ms(address.stream, address.subject("probe"))
        after = host_now_ms()
        forgets = "may forget what it acknowledged when its machine fails"
        hint = "let it sync every message, then: coord install '<url>?durable=1'"
        return [
            Check("version", True, f"NATS {server.told.version}"),
            Check(
                "durability",
                self.durable,
                "is said to keep what it acknowledged" if self.durable else forgets,
                "" if self.durable else hint,
            ),
            clock_check(theirs, before, after, EACH_ITS_OWN),
        ]

    def close(self) -> None:
        super().close()
        self.server.close()
