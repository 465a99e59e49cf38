"""One tenant's log in a stream of NATS: reading it, appending to it, trimming it.

An append relies on the state that was read through one connection. After a reconnect the server may have
been restarted: then the newest message known here must still be at its sequence number.
"""

import contextlib
import logging
import threading
from collections.abc import Sequence
from typing import Protocol

from coord.core.errors import CoordError, Corrupt, Trimmed
from coord.stores.checksums import REPAIR
from coord.stores.contract import Commit, Entry, Limits, Record
from coord.stores.database import EPOCH_BITS, Reconnected
from coord.stores.local.clock import host_now_ms
from coord.stores.log.snapshot import snapshot_is_due
from coord.stores.log.state import LogState
from coord.stores.log.store import LogStore
from coord.stores.migration import migrated_error
from coord.stores.nats.address import Address, word_of
from coord.stores.nats.entries import (
    ControlMessage,
    Diverged,
    EntryMessage,
    Segment,
    damaged,
    decode,
    decode_entry,
    encode_control,
    encode_entry,
    new_token,
    segments_from,
    sequence_of,
    sequences_after,
    start_of,
)
from coord.stores.nats.jetstream import NatsServer, StreamInfo
from coord.stores.nats.snapshots import Manifest, Snapshot, Snapshots

TRIES = 5
"""So often a log is read from its beginning, if trims come between."""

logger = logging.getLogger(__name__)


class Home(Protocol):
    """The database that a log belongs to."""

    address: Address
    server: NatsServer
    limits: Limits
    durable: bool
    epoch: int
    metadata: dict[str, str]

    @property
    def base(self) -> int: ...
    def create_log(self, tenant: str) -> StreamInfo: ...
    def raise_epoch(self, epoch: int) -> None: ...
    def listened_to(self, store: "NatsStore") -> int: ...
    def wait(self, number: int, after: int, seconds: float) -> bool: ...


class NatsStore(LogStore):
    """One tenant's log in a stream."""

    append_is_conditional = True

    def __init__(self, database: Home, tenant: str) -> None:
        super().__init__()
        self.limits = database.limits
        self._database = database
        self._server = database.server
        self._tenant = tenant
        self._stream = database.address.log_stream(tenant)
        self._where = f"the log of tenant {tenant} in {self._stream}"
        self._subject = database.address.log_subject(tenant)
        self.wakeup_subject = database.address.subject("wakeup", word_of(tenant))
        self._snapshots = Snapshots(self._server, tenant)
        self._number = database.listened_to(self)
        self._snapshot_writer: threading.Thread | None = None
        self._begin_at(None)
        self._connection, self._leader, self._made = -1, "", ""
        self._forgotten = False
        info = self._server.info(self._stream)
        if info is None or info.state.last_seq == 0:
            info = database.create_log(tenant)
        self._load(info)

    # Where we are.

    def _begin_at(self, manifest: Manifest | None, state: LogState | None = None) -> None:
        """Start with a snapshot, or with an empty log."""
        base = self._database.base
        self._state = state or LogState(base, 0, base)
        self._sequence = manifest.sequence if manifest else 0
        self._token = manifest.token if manifest else b""
        self._control = manifest.control if manifest else None
        self._segments = list(manifest.segments) if manifest else [Segment(base + 1, 1)]
        self._head = self._state.offset
        self._base_sequence = self._sequence
        self._base_bytes = manifest.size if manifest else 0
        self._bytes_since_base = 0

    def _apply(self, sequence: int, message: EntryMessage | ControlMessage, size: int) -> None:
        """Apply the message at the next sequence number."""
        where = f"{self._where} at {sequence}"
        if message.before != self._token:
            if self._database.durable:
                raise damaged(where, "it does not follow the message before it")
            if not self._stands():
                raise Diverged
            logger.warning("%s relied on messages that the server lost: it is ignored", where)
            self._segments.append(Segment(self._state.offset + 1, sequence + 1))
            self._sequence = sequence
            return
        if not self._token:  # the first message says where the log starts
            base = message.offset if isinstance(message, ControlMessage) else message.offset - 1
            floor = message.floor if isinstance(message, ControlMessage) else base
            self._state, self._segments = LogState(base, 0, floor), [Segment(base + 1, sequence)]
        if isinstance(message, ControlMessage):
            self._state.offset = message.offset
            self._state.trim(message.floor)
            kept = segments_from(self._segments, message.floor)
            self._control, self._segments = message, [*kept, Segment(message.offset + 1, sequence + 1)]
        elif message.offset != self._state.offset + 1:
            raise damaged(where, f"it has offset {message.offset} after {self._state.offset}")
        else:
            self._state.apply(message.offset, message.commit())
        self._stand(sequence, message.token, message.offset, size)

    def _stand(self, sequence: int, token: bytes, head: int, size: int) -> None:
        """Record the last message. A signal may interrupt this or `apply`: then head and state differ, and
        everything is read again."""
        self._head, self._token, self._sequence = head, token, sequence
        self._bytes_since_base += size

    # Reading.

    def _catch_up(self) -> None:
        info = self._server.info(self._stream)
        if info is None:
            raise Corrupt(f"the stream {self._stream} of tenant {self._tenant} is missing", hint=REPAIR)
        if self._state.offset != self._head:
            self._load(info)
        known = (self._connection, self._leader, self._made)
        unverified = known != (self._server.number, info.cluster.leader, info.created)
        try:
            if (
                (unverified or info.state.last_seq < self._sequence)
                and self._sequence
                and not self._remembered(info)
            ):
                raise Diverged
            self._follow(info)
        except Diverged:
            self._went_back(info)

    def _remembered(self, info: StreamInfo) -> bool:
        """Return whether the newest message known here is still there, or was trimmed."""
        if info.state.last_seq < self._sequence:
            return False
        return info.state.first_seq > self._sequence or self._stands()

    def _stands(self) -> bool:
        """Return whether the newest message known here is still there."""
        found = self._server.get(self._stream, self._sequence) if self._sequence else None
        return not self._sequence or (found is not None and decode(found, self._where).token == self._token)

    def _went_back(self, info: StreamInfo) -> None:
        if self._database.durable:
            raise Corrupt(
                f"{self._stream} went back from {self._sequence} to {info.state.last_seq}",
                hint="if the stream was restored, open the store again",
            )
        logger.warning("%s lost messages after a failure of its server", self._stream)
        known = self._state.offset
        self._load(info)
        self._forgotten = self._state.offset <= known  # otherwise another process raised the epoch

    def _follow(self, info: StreamInfo) -> None:
        """Apply the messages that others have appended."""
        state = info.state
        if state.last_seq > self._sequence:
            if state.first_seq > self._sequence + 1:
                self._load(info)  # another process trimmed the log
                return
            if not self._replay(range(self._sequence + 1, state.last_seq + 1)):
                self._load(info)
                return
        self._rely_on(info)

    def _replay(self, sequences: Sequence[int]) -> bool:
        """Apply messages; return False if one is missing."""
        for sequence, data in zip(sequences, self._server.get_all(self._stream, sequences), strict=True):
            if data is None:
                return False
            self._apply(sequence, decode(data, f"{self._where} at {sequence}"), len(data))
        return True

    def _load(self, info: StreamInfo) -> None:
        """Load the newest snapshot that fits the log, and apply the messages after it."""
        for _ in range(TRIES):
            manifest = self._snapshots.fitting(self._fits)
            state = self._snapshots.read(manifest) if manifest else None
            if state is not None or (manifest is None and self._whole(info)):
                self._begin_at(manifest, state)
                with contextlib.suppress(Diverged):
                    if self._replay(range(self._sequence + 1, info.state.last_seq + 1)):
                        self._rely_on(info)
                        return
            info = self._server.info(self._stream) or info  # another process trimmed in between
        raise damaged(self._where, "a message in it is missing")

    def _rely_on(self, info: StreamInfo) -> None:
        """Record the connection and the leader that the state was read from."""
        self._connection, self._leader, self._made = self._server.number, info.cluster.leader, info.created

    def _fits(self, manifest: Manifest) -> bool:
        """Return whether the log still has the last message of a snapshot."""
        data = self._server.get(self._stream, manifest.sequence)
        return data is not None and decode(data, self._where).token == manifest.token

    def _whole(self, info: StreamInfo) -> bool:
        """Return whether the log can be read from its start."""
        if info.state.last_seq == 0:
            return self._snapshots.newest() is None
        first = self._server.get(self._stream, 1)
        if first is None:
            return False
        message = decode(first, self._where)
        return not (isinstance(message, ControlMessage) and message.copied)

    def _entries(self, after: int, limit: int) -> list[Entry]:
        sequences = sequences_after(self._segments, self._sequence, after, limit)
        entries = []
        for sequence, data in zip(sequences, self._server.get_all(self._stream, sequences), strict=True):
            if data is None:
                self._catch_up()
                if after + 1 < self._state.floor:
                    raise Trimmed(self._state.floor)
                raise damaged(self._where, f"the message at {sequence} is missing")
            entries.append(decode_entry(data, f"{self._where} at {sequence}"))
        return entries

    def head(self) -> int:
        """Return the newest offset."""
        with self._lock:
            self._fresh()
            return self._state.offset

    def wait(self, after: int, timeout: float) -> bool:
        return self._state.offset > after or self._database.wait(self._number, after, timeout)

    def now(self) -> int:
        return host_now_ms()

    # Writing.

    def _append(self, offset: int, commit: Commit) -> Commit | None:
        if self._control is not None and self._control.migrated_to:
            raise migrated_error(self._control.migrated_to)
        if self._state.offset != self._head:
            self._catch_up()
            return None
        if not self._trusted() and not self._raise_epoch():
            return None
        if offset != self._state.offset + 1:
            return None  # the epoch was raised
        token = new_token()
        data = encode_entry(self._token, token, offset, commit)
        if not self._put(data):
            return None
        self._stand(self._sequence + 1, token, offset, len(data))
        return commit

    def _put(self, data: bytes) -> bool:
        """Append a message after the last one known here; if there are newer ones, catch up."""
        expected = {"Nats-Expected-Last-Sequence": str(self._sequence)}
        with contextlib.suppress(Reconnected):
            if self._server.put(self._subject, data, expected, on=self._connection) is not None:
                return True
        self._catch_up()
        return False

    def _trusted(self) -> bool:
        """Return whether the server that we write to, in this run, also wrote the log last."""
        if self._database.durable:
            return True
        name, run = self._server.identity
        control = self._control
        if control is None or self._forgotten:
            return False
        return (control.leader, control.servers.get(name)) == (self._leader or name, run)

    def _raise_epoch(self) -> bool:
        """Record the server that writes from here on; raise the epoch if messages may be lost."""
        name, run = self._server.identity
        leader, control = self._leader or name, self._control
        servers = control.servers if control else {}
        if self._sequence == 0:  # the server may have lost the whole log
            certain = self._database.metadata.get("run") == run
        else:
            known = control is not None and (control.leader, servers.get(name, run)) == (leader, run)
            certain = known and not self._forgotten
        offset = self._state.offset if certain else self._raised()
        kept = {each: servers[each] for each in servers if control and control.leader == leader}
        done = self._put_control(offset=offset, leader=leader, servers={**kept, name: run})
        self._forgotten = self._forgotten and not done
        return done

    def _raised(self) -> int:
        """Return the offset before the first entry of a new epoch."""
        epoch = max(self._database.epoch, (self._state.offset >> EPOCH_BITS) + 1)
        self._database.raise_epoch(epoch)
        return start_of(epoch, host_now_ms())

    def _put_control(self, **changes: object) -> bool:
        """Append a control message with these changes; False if another message came first."""
        old = self._control
        values = {
            "offset": self._state.offset,
            "floor": self._state.floor,
            "leader": old.leader if old else "",
            "servers": old.servers if old else {},
            "migrated_to": old.migrated_to if old else "",
        }
        control = ControlMessage(before=self._token, token=new_token(), **{**values, **changes})  # type: ignore[arg-type]
        data = encode_control(control)
        if not self._put(data):
            return False
        self._apply(self._sequence + 1, control, len(data))
        return True

    def set_migrated(self, url: str) -> None:
        """Seal the log because the store migrated to this url; an empty url reopens it."""
        with self._lock:
            self._fresh()
            while not self._put_control(migrated_to=url):
                pass

    def _committed(self, offset: int) -> None:
        self._server.publish(self.wakeup_subject, b"%d" % offset)
        if self._snapshot_is_due(self._sole_writer.snapshot_delay):
            with self._lock:
                self._begin_snapshot()

    def _forget(self, floor: int) -> None:
        self._finish_snapshot()
        while floor > self._state.floor:
            if self._put_control(floor=floor):
                self._snapshots.write(self._snapshot(self._state.records, self._state.tombstones), self._fits)
        newest = self._snapshots.fitting(self._fits)
        sequence = sequence_of(self._segments, self._sequence, self._state.floor)
        if newest is not None and newest.sequence >= sequence > 1:  # 0 would mean all
            self._set_base(newest.sequence, newest.size)
            self._server.purge(self._stream, seq=sequence)

    # Snapshots.

    def _snapshot(self, records: dict[str, Record], tombstones: dict[str, int]) -> Snapshot:
        state = self._state
        where = (
            self._sequence,
            self._token,
            state.offset,
            state.at,
            state.floor,
            self._control,
            list(self._segments),
        )
        return Snapshot(Manifest(*where, [], 0, 0, 0), records, tombstones)

    def _set_base(self, sequence: int, size: int) -> None:
        self._base_sequence, self._base_bytes, self._bytes_since_base = sequence, size, 0

    def _snapshot_is_due(self, snapshot_delay: int = 1) -> bool:
        entries = self._sequence - self._base_sequence
        return snapshot_is_due(entries, self._bytes_since_base // snapshot_delay, self._base_bytes)

    def _begin_snapshot(self) -> None:
        """Write a snapshot in a separate thread. The commit is done, so a failure is only logged."""
        writing = self._snapshot_writer is not None and self._snapshot_writer.is_alive()
        if writing or self._closed or not self._snapshot_is_due():
            return
        snapshot = self._snapshot(self._state.records.copy(), self._state.tombstones.copy())
        self._set_base(self._sequence, self._base_bytes)
        with contextlib.suppress(RuntimeError):  # no thread is available
            writer = threading.Thread(target=self._write_snapshot, args=(snapshot,), name="coord-snapshot")
            writer.start()
            self._snapshot_writer = writer

    def _write_snapshot(self, snapshot: Snapshot) -> None:
        try:  # through a separate connection: otherwise commits wait for its parts
            with contextlib.closing(NatsServer(self._database.address)) as server:
                size = Snapshots(server, self._tenant).write(snapshot, self._fits)
            self._base_bytes = size or self._base_bytes
        except CoordError as error:
            logger.warning("cannot write a snapshot of %s: %s", self._stream, error)

    def _finish_snapshot(self) -> None:
        if self._snapshot_writer is not None:
            self._snapshot_writer.join()

    def close(self) -> None:
        super().close()
        self._finish_snapshot()
