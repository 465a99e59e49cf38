"""The Redis store (table-based): hashes, sorted sets and a stream below one prefix, any number of machines.

A commit is one round trip: a script that checks the versions and writes (see scripts.py). A waiter reads the
stream of entries.

A server that syncs before each answer (`appendfsync always`) and has no replicas keeps every answered commit.
Any other server may restart without its newest commits. Their offsets, and so their fences, are never issued
again: the first process that notices raises the epoch, and new offsets are above all earlier ones.

    redis://user:password@host:6379/0?prefix=coord    `prefix` is ours, the other parameters are the driver's
    rediss://…                                        the same, encrypted
"""

import contextlib
import secrets
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from coord.core.errors import Conflict, Corrupt, Invalid, Trimmed, Unavailable
from coord.core.ranges import Range
from coord.stores.checksums import Checksums, damaged
from coord.stores.contract import (
    FORMAT,
    Commit,
    Entry,
    Head,
    Limits,
    Loaded,
    RangeReader,
    ReadPoint,
    check_commit,
    check_format,
)
from coord.stores.database import EPOCH_BITS
from coord.stores.health import Check
from coord.stores.local.clock import uptime_ms
from coord.stores.migration import not_installed_error
from coord.stores.redis import scripts
from coord.stores.redis.connection import Address, ServerInfo, Wire
from coord.stores.redis.records import (
    bounds_of,
    check_page,
    entries_of,
    metadata_of,
    packed,
    records_of,
    unpacked,
)
from coord.stores.server.clock import ServerClock
from coord.stores.server.database import ServerDatabase
from coord.stores.server.listener import Subscription

COMMIT_BYTES = 16 * 1024 * 1024
VERIFY_ROWS = 1_000
"""Up to this number of records every opening looks at all of them; `verify` does it up to the next number."""
SURVEY_ROWS = 200_000
"""The server does nothing else in that time."""
BESIDE_SCRIPTS = "eval evalsha info config|get select"
AGENT = f"{scripts.COMMANDS} xread xrevrange {BESIDE_SCRIPTS}"
OWNER = f"{AGENT} hexists exists del srem"

_encode = msgspec.msgpack.Encoder().encode


def install(url: str) -> None:
    """Say that there is a store, if there is none yet; safe to call again, and at the same time."""
    address = Address(url)
    wire, server_info = address.connect()
    with contextlib.closing(wire), wire.using():
        values = (FORMAT, secrets.token_hex(16), server_info.run, int(server_info.durable))
        _check_format(address, metadata_of(wire.run(scripts.install, (address.meta,), *values)))


def grants(url: str) -> list[str]:
    """Return what an administrator says to the server: one user installs and moves, one is for agents."""
    prefix = Address(url).prefix
    users = {"coord_owner": OWNER, "coord_agent": AGENT}
    return [
        f"ACL SETUSER {name} on >PASSWORD resetkeys ~{{{prefix}}}:* resetchannels -@all +"
        + " +".join(allowed.split())
        for name, allowed in users.items()
    ]


@contextlib.contextmanager
def _encoding() -> Iterator[None]:
    try:
        yield
    except UnicodeEncodeError as error:
        raise Invalid(f"{error.object!r} is not valid Unicode") from error


def _check_format(address: Address, metadata: dict[str, str]) -> None:
    """Refuse a store that is not there or not ours to write."""
    if not metadata:
        raise not_installed_error(address.redacted)
    check_format(metadata.get("format"), address.redacted)
    if not all(metadata.get(name, "").isdecimal() for name in ("epoch", "base")):
        raise damaged(f"{address.meta} in {address.redacted} has lost its epoch")


class RedisStore(RangeReader):
    """One tenant's log below a prefix of Redis."""

    def __init__(self, database: "RedisDatabase", tenant: str) -> None:
        self._database = database
        self._tenant = tenant
        self._keys = scripts.keys_of(database.address.prefix, tenant)
        self.stream = self._keys[-1]
        self.seen = Head(0, 0)
        self._checksums = Checksums(
            database.store_id, tenant, f"tenant {tenant} in {database.address.redacted}"
        )
        self._read(scripts.verify, VERIFY_ROWS)

    def verify(self) -> None:
        """Check that exactly the records that the log has written are there, and that the index has them."""
        self._read(scripts.verify, SURVEY_ROWS)

    @property
    def limits(self) -> Limits:
        return self._database.limits

    def _read(self, script: scripts.Script, *values: object) -> tuple[ReadPoint, int, list[bytes | None]]:
        """Return the read point, the version of absent keys, and the result; record the head."""
        newest = self.seen.offset
        connection, head, at, floor, absent, sizes, texts = self._database.run(script, self._keys, *values)
        if head < newest:
            raise Corrupt(
                f"the log went back from {newest} to {head}", hint="check whether an old copy was restored"
            )
        self._see(Head(head, int(at)))
        return ReadPoint(head, floor, connection), absent, list(unpacked(sizes, texts))

    def _see(self, head: Head) -> None:
        if head.offset > self.seen.offset:
            self.seen = head

    def load(self, keys: Iterable[str], ranges: Sequence[Range] = (), *, allow_stale: bool = False) -> Loaded:
        wanted = list(dict.fromkeys(keys))
        with _encoding():
            asked = [_encode(wanted), *(cell for range_ in ranges for cell in bounds_of(range_))]
        read_point, absent, found = self._read(scripts.load, *asked)
        rest = iter(found)
        records = records_of(self._checksums, wanted, islice(rest, len(wanted)), absent)
        scanned = []
        for _ in ranges:
            pairs = list(islice(rest, 2 * int(next(rest) or 0)))
            names = [(key or b"").decode() for key in pairs[::2]]
            listed = records_of(self._checksums, names, pairs[1::2], absent)
            for record in listed.values():
                if record.value is None:
                    raise damaged(f"{self._checksums.where} has lost the record {record.key!r}")
            scanned.append(list(listed.values()))
        return Loaded(records, read_point, scanned)

    def commit(self, commit: Commit) -> int:
        check_commit(commit, self.limits)
        puts, deletes, read_point, seen = commit.puts, commit.deletes, commit.read_point, self.seen.offset
        read = dict(commit.expected_versions)
        written = [*puts, *deletes]
        versions = [read.pop(key) for key in written]
        checksums, events = self._checksums, _encode(commit.events)
        sizes, lines, texts = packed(checksums, ((key, seen + 1, put) for key, put in puts.items()))
        tombstones = [checksums.digest(key, None, "") for key in deletes]
        entry_digest = checksums.entry_digest(commit.at, commit.id, events)
        _, offset, *more = self._database.run(
            scripts.commit,
            self._keys,
            _encode((written, versions, sizes, lines, tombstones, entry_digest)),
            _encode((list(read), list(read.values()))),
            texts,
            commit.at,
            commit.id,
            events,
            int(commit.writes),
            self._tenant,
            seen,
            f"{read_point.offset} {read_point.floor} {read_point.connection}",
            committing=commit.writes,
        )
        if offset < 0:
            raise Conflict(key.decode() for key in more[0])
        self._see(Head(offset, int(more[0]) if more else commit.at))
        return int(offset)

    def tail(self, after: int, limit: int) -> list[Entry]:
        read_point, _, found = self._read(scripts.tail, after + 1, limit)
        if after + 1 < read_point.floor:
            raise Trimmed(read_point.floor)
        entries = entries_of(self._checksums, found)
        offsets = [entry.offset for entry in entries]
        before = self._before(after, offsets)
        check_page(self._checksums.where, offsets, before, limit, read_point.offset, read_point.floor)
        return entries

    def _before(self, after: int, offsets: list[int]) -> int:
        """Return the offset after which a page begins: in an earlier epoch if that of `after` begins later.

        A raised epoch begins anywhere, so an offset in front of it has no entry.
        """
        base = after >> EPOCH_BITS << EPOCH_BITS
        if not base or not offsets or offsets[0] == after + 1:
            return after
        _, _, (first, *_) = self._read(scripts.tail, base, 1)
        return base - 1 if int(first or 0) > after else after

    def wait(self, after: int, timeout: float) -> bool:
        return self.seen.offset > after or self._database.wait(self._database.number_of(self), after, timeout)

    def trim(self, before: int) -> None:
        # Entries below the floor are invisible; there may be millions, so they are deleted in portions.
        while self._database.run(scripts.trim, self._keys, before, committing=True)[1]:
            pass

    def now(self) -> int:
        return self._database.clock.now()

    def close(self) -> None:
        """Do nothing: the database owns the connections."""


class RedisDatabase(ServerDatabase[RedisStore]):
    """A prefix with all its tenants; created by `install`."""

    def __init__(self, url: str) -> None:
        super().__init__(url, store_id="")
        self.address = Address(url)
        self.clock = ServerClock()
        self.limits = Limits(commit_bytes=COMMIT_BYTES, durable=False, shared=True)
        self._waited_for: list[RedisStore] = []
        self._connections = 0
        self._begin()
        with self._wire_lock:
            self._connected()

    def _begin(self) -> None:
        """Start without connections, in this process."""
        super()._begin()
        self._wire_lock = threading.RLock()
        self._wire: Wire | None = None
        self._server_info: ServerInfo

    def _open_log(self, tenant: str) -> RedisStore:
        return RedisStore(self, tenant)

    def run(
        self, script: scripts.Script, keys: tuple[str, ...], *values: object, committing: bool = False
    ) -> list[Any]:
        """Return the answer of a script, with the number of the connection in place of the server's clock."""
        self._in_this_process()
        with self._wire_lock:
            wire = self._connected()
            asked = uptime_ms()
            with wire.using(committing=committing):
                number = self._connections
                answer: list[Any] = wire.run(script, keys, self._server_info.run, self.epoch, number, *values)
        self.clock.observe(answer[0], asked)
        answer[0] = number
        return answer

    def _connected(self) -> Wire:
        """Return the connection; open a new one if it was lost, because nothing has been sent yet."""
        if self.closed:
            raise Unavailable("the database is closed")
        if self._wire is None or self._wire.gone:
            if self._wire is not None:
                self._wire.close()
            self._wire, self._server_info = self._enter()
            self._connections += 1
        return self._wire

    def _enter(self) -> tuple[Wire, ServerInfo]:
        """Connect, and raise the epoch if commits may be lost, so that no offset is issued twice."""
        address = self.address
        wire, server_info = address.connect()
        with wire.using():
            values = (server_info.run, int(server_info.durable), scripts.COMMANDS, FORMAT)
            metadata = metadata_of(wire.run(scripts.enter, (address.meta,), *values))
            if self.store_id and metadata.get("store_id") != self.store_id:
                what = "holds another store now" if metadata else "holds no store any more"
                raise Corrupt(f"{address.redacted} {what}", hint="restore it from a copy, or open it again")
            _check_format(address, metadata)
            if int(metadata["epoch"]) < self.epoch:
                raise Corrupt(
                    f"{address.redacted} went back from epoch {self.epoch} to {metadata['epoch']}",
                    hint="was an old copy restored, or an old master made master again?",
                )
        self.store_id, self.epoch, self.metadata = metadata["store_id"], int(metadata["epoch"]), metadata
        self.limits = Limits(commit_bytes=COMMIT_BYTES, durable=server_info.durable, shared=True)
        return wire, server_info

    def number_of(self, store: RedisStore) -> int:
        """Return the number of a log for the listener."""
        with self._lock:
            if store not in self._waited_for:
                self._waited_for.append(store)
            return self._waited_for.index(store)

    @contextlib.contextmanager
    def _subscribe(self) -> Iterator[Subscription]:
        heads: dict[int, int] = {}

        def listen(logs: frozenset[int], seconds: float) -> dict[int, int]:
            known = sorted(logs & heads.keys())
            if len(known) == len(logs):
                ids = [f"{heads[log]}-0" for log in known]
                streams = [self._waited_for[log].stream for log in known]
                block = max(1, int(seconds * 1000))
                wire.ask("XREAD", "COUNT", 1, "BLOCK", block, "STREAMS", *streams, *ids)
            for log in logs:
                newest = wire.ask("XREVRANGE", self._waited_for[log].stream, "+", "-", "COUNT", 1)
                heads[log] = int(newest[0][0].partition(b"-")[0]) if newest else 0
            return heads

        wire, _ = self.address.connect()
        with contextlib.closing(wire), wire.using():
            yield listen

    def checks(self) -> list[Check]:
        """Check version, durability, replicas and clock of the server, and whether commits may be lost."""
        from coord.stores.redis.health import checks_of

        self._in_this_process()
        with self._wire_lock:
            wire, server_info = self._enter()
        with contextlib.closing(wire), wire.using():
            return checks_of(self.address, wire, server_info, self.metadata)

    def close(self) -> None:
        super().close()
        with self._wire_lock:
            if self._wire is not None:
                self._wire.close()
