"""One tenant's log in a stream of NATS: reading it, appending to it, trimming it.

Who appends relies on what was read through one connection. After another was opened, the server may be one
that was restarted: then the newest message known here must still be where it was.
"""

import contextlib
import logging
import threading
from collections.abc import Sequence
from typing import Protocol

from coord.core.errors import CoordError, Corrupt, Trimmed
from coord.stores.contract import Commit, Entry, Limits, Record
from coord.stores.database import EPOCH_BITS, Reconnected
from coord.stores.local.clock import host_now_ms
from coord.stores.log.snapshot import snapshot_is_due
from coord.stores.log.state import Fold
from coord.stores.log.store import LogStore
from coord.stores.migrated import moved
from coord.stores.nats.address import Address, word_of
from coord.stores.nats.entries import (
    Chapter,
    Diverged,
    EntryMessage,
    Mark,
    chapters_from,
    damaged,
    decode,
    decode_shown,
    encode_entry,
    encode_mark,
    new_token,
    place_of,
    places_after,
    start_of,
)
from coord.stores.nats.jetstream import NatsServer, StreamInfo
from coord.stores.nats.snapshots import Image, Manifest, Snapshots

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
    notes: dict[str, str]

    @property
    def base(self) -> int: ...
    def create_log(self, tenant: str) -> StreamInfo: ...
    def raise_epoch(self, epoch: int) -> None: ...
    def listened_to(self, store: "NatsStore") -> int: ...
    def wait(self, number: int, after: int, seconds: float) -> bool: ...


class NatsStore(LogStore):
    """One tenant's log in a stream."""

    _foresees = True

    def __init__(self, database: Home, tenant: str) -> None:
        super().__init__()
        self.limits = database.limits
        self._database = database
        self._server = database.server
        self._tenant = tenant
        self._stream = database.address.log_stream(tenant)
        self._subject = database.address.log_subject(tenant)
        self.ring = database.address.subject("ring", word_of(tenant))
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

    def _begin_at(self, manifest: Manifest | None, fold: Fold | None = None) -> None:
        """Become what a snapshot says, or an empty log."""
        base = self._database.base
        self._fold = fold or Fold(base, 0, base)
        self._place = manifest.place if manifest else 0
        self._token = manifest.token if manifest else b""
        self._mark = manifest.mark if manifest else None
        self._chapters = list(manifest.chapters) if manifest else [Chapter(base + 1, 1)]
        self._head = self._fold.offset
        self._base_place = self._place
        self._base_bytes = manifest.size if manifest else 0
        self._bytes_since_base = 0

    def _apply(self, place: int, message: EntryMessage | Mark, size: int) -> None:
        """Become the state after the message at the next place."""
        where = f"{self._stream} at {place}"
        if message.before != self._token:
            if self._database.durable:
                raise damaged(where, "it does not follow what is before it")
            if not self._stands():
                raise Diverged
            logger.warning("%s was decided on what the server has forgotten: it is void", where)
            self._chapters.append(Chapter(self._fold.offset + 1, place + 1))
            self._place = place
            return
        if not self._token:  # the first of all says where the log begins
            base = message.offset if isinstance(message, Mark) else message.offset - 1
            floor = message.floor if isinstance(message, Mark) else base
            self._fold, self._chapters = Fold(base, 0, floor), [Chapter(base + 1, place)]
        if isinstance(message, Mark):
            self._fold.offset = message.offset
            self._fold.trim(message.floor)
            kept = chapters_from(self._chapters, message.floor)
            self._mark, self._chapters = message, [*kept, Chapter(message.offset + 1, place + 1)]
        elif message.offset != self._fold.offset + 1:
            raise damaged(where, f"it has offset {message.offset} after {self._fold.offset}")
        else:
            self._fold.apply(message.offset, message.commit())
        self._stand(place, message.token, message.offset, size)

    def _stand(self, place: int, token: bytes, head: int, size: int) -> None:
        """Note which message was the last. A signal may end this, or what is done to the fold, in the middle:
        then head and fold disagree, and everything is read again."""
        self._head, self._token, self._place = head, token, place
        self._bytes_since_base += size

    # Reading.

    def _catch_up(self) -> None:
        info = self._server.info(self._stream)
        if info is None:
            raise Corrupt(
                f"the stream {self._stream} is gone", hint="restore it from a copy; nothing was changed"
            )
        if self._fold.offset != self._head:
            self._load(info)
        known = (self._connection, self._leader, self._made)
        unverified = known != (self._server.number, info.cluster.leader, info.created)
        try:
            if (
                (unverified or info.state.last_seq < self._place)
                and self._place
                and not self._remembered(info)
            ):
                raise Diverged
            self._follow(info)
        except Diverged:
            self._went_back(info)

    def _remembered(self, info: StreamInfo) -> bool:
        """Whether the newest message known here is still where it was, or was trimmed since then."""
        if info.state.last_seq < self._place:
            return False
        return info.state.first_seq > self._place or self._stands()

    def _stands(self) -> bool:
        """Whether the newest message known here is where it was."""
        found = self._server.get(self._stream, self._place) if self._place else None
        return not self._place or (found is not None and decode(found, self._stream).token == self._token)

    def _went_back(self, info: StreamInfo) -> None:
        if self._database.durable:
            raise Corrupt(
                f"{self._stream} went back from {self._place} to {info.state.last_seq}",
                hint="was the stream restored? Open the store again",
            )
        logger.warning("%s has forgotten messages after a failure of its server", self._stream)
        known = self._fold.offset
        self._load(info)
        self._forgotten = self._fold.offset <= known  # otherwise somebody else has raised the epoch

    def _follow(self, info: StreamInfo) -> None:
        """Fold in what others have appended."""
        state = info.state
        if state.last_seq > self._place:
            if state.first_seq > self._place + 1:
                self._load(info)  # the log was trimmed beneath us
                return
            if not self._replay(range(self._place + 1, state.last_seq + 1)):
                self._load(info)
                return
        self._rely_on(info)

    def _replay(self, places: Sequence[int]) -> bool:
        """Fold in messages; return False if one is gone."""
        for place, data in zip(places, self._server.get_all(self._stream, places), strict=True):
            if data is None:
                return False
            self._apply(place, decode(data, f"{self._stream} at {place}"), len(data))
        return True

    def _load(self, info: StreamInfo) -> None:
        """Become the newest snapshot that fits the log, and what came after it."""
        for _ in range(TRIES):
            manifest = self._snapshots.fitting(self._fits)
            fold = self._snapshots.read(manifest) if manifest else None
            if fold is not None or (manifest is None and self._whole(info)):
                self._begin_at(manifest, fold)
                with contextlib.suppress(Diverged):
                    if self._replay(range(self._place + 1, info.state.last_seq + 1)):
                        self._rely_on(info)
                        return
            info = self._server.info(self._stream) or info  # a trim came between
        raise damaged(self._stream, "something in it is missing")

    def _rely_on(self, info: StreamInfo) -> None:
        """Note through which connection, and from whom, we know all this."""
        self._connection, self._leader, self._made = self._server.number, info.cluster.leader, info.created

    def _fits(self, manifest: Manifest) -> bool:
        """Whether the log still holds the message that a snapshot was made after."""
        data = self._server.get(self._stream, manifest.place)
        return data is not None and decode(data, self._stream).token == manifest.token

    def _whole(self, info: StreamInfo) -> bool:
        """Whether the log can be read from its beginning."""
        if info.state.last_seq == 0:
            return self._snapshots.newest() is None
        first = self._server.get(self._stream, 1)
        if first is None:
            return False
        message = decode(first, self._stream)
        return not (isinstance(message, Mark) and message.copied)

    def _entries(self, after: int, limit: int) -> list[Entry]:
        places = places_after(self._chapters, self._place, after, limit)
        entries = []
        for place, data in zip(places, self._server.get_all(self._stream, places), strict=True):
            if data is None:
                self._catch_up()
                if after + 1 < self._fold.floor:
                    raise Trimmed(self._fold.floor)
                raise damaged(self._stream, f"the message at {place} is missing")
            entries.append(decode_shown(data, f"{self._stream} at {place}"))
        return entries

    def head(self) -> int:
        """Return the newest offset."""
        with self._lock:
            self._fresh()
            return self._fold.offset

    def wait(self, after: int, timeout: float) -> bool:
        return self._fold.offset > after or self._database.wait(self._number, after, timeout)

    def now(self) -> int:
        return host_now_ms()

    # Writing.

    def _append(self, offset: int, commit: Commit) -> Commit | None:
        if self._mark is not None and self._mark.moved:
            raise moved(self._mark.moved)
        if self._fold.offset != self._head:
            self._catch_up()
            return None
        if not self._trusted() and not self._raise_epoch():
            return None
        if offset != self._fold.offset + 1:
            return None  # the epoch was raised
        token = new_token()
        data = encode_entry(self._token, token, offset, commit)
        if not self._put(data):
            return None
        self._stand(self._place + 1, token, offset, len(data))
        return commit

    def _put(self, data: bytes) -> bool:
        """Append a message right after the last one known; if that is another one now, catch up."""
        expected = {"Nats-Expected-Last-Sequence": str(self._place)}
        with contextlib.suppress(Reconnected):
            if self._server.put(self._subject, data, expected, on=self._connection) is not None:
                return True
        self._catch_up()
        return False

    def _trusted(self) -> bool:
        """Whether the log was last written through the server that we write to, in the same run of it."""
        if self._database.durable:
            return True
        name, run = self._server.identity
        mark = self._mark
        if mark is None or self._forgotten:
            return False
        return (mark.leader, mark.servers.get(name)) == (self._leader or name, run)

    def _raise_epoch(self) -> bool:
        """Note who writes from here on; where messages may be forgotten, under a new epoch."""
        name, run = self._server.identity
        leader, mark = self._leader or name, self._mark
        servers = mark.servers if mark else {}
        if self._place == 0:  # there may have been a log that the server has forgotten altogether
            certain = self._database.notes.get("run") == run
        else:
            known = mark is not None and (mark.leader, servers.get(name, run)) == (leader, run)
            certain = known and not self._forgotten
        offset = self._fold.offset if certain else self._raised()
        kept = {each: servers[each] for each in servers if mark and mark.leader == leader}
        done = self._put_mark(offset=offset, leader=leader, servers={**kept, name: run})
        self._forgotten = self._forgotten and not done
        return done

    def _raised(self) -> int:
        """Return the offset that an epoch above all earlier ones begins after."""
        epoch = max(self._database.epoch, (self._fold.offset >> EPOCH_BITS) + 1)
        self._database.raise_epoch(epoch)
        return start_of(epoch, host_now_ms())

    def _put_mark(self, **changes: object) -> bool:
        """Append a mark that differs from the last one; False if something else came first."""
        old = self._mark
        values = {
            "offset": self._fold.offset,
            "floor": self._fold.floor,
            "leader": old.leader if old else "",
            "servers": old.servers if old else {},
            "moved": old.moved if old else "",
        }
        mark = Mark(before=self._token, token=new_token(), **{**values, **changes})  # type: ignore[arg-type]
        data = encode_mark(mark)
        if not self._put(data):
            return False
        self._apply(self._place + 1, mark, len(data))
        return True

    def mark_moved(self, url: str) -> None:
        """Refuse every commit from now on, since the store went to this url; none: take them again."""
        with self._lock:
            self._fresh()
            while not self._put_mark(moved=url):
                pass

    def _committed(self, offset: int) -> None:
        self._server.tell(self.ring, b"%d" % offset)
        if self._snapshot_is_due(self._burst.patience):
            with self._lock:
                self._begin_snapshot()

    def _forget(self, floor: int) -> None:
        self._finish_snapshot()
        while floor > self._fold.floor:
            if self._put_mark(floor=floor):
                self._snapshots.write(self._image(self._fold.records, self._fold.tombstones), self._fits)
        newest = self._snapshots.fitting(self._fits)
        place = place_of(self._chapters, self._place, self._fold.floor)
        if newest is not None and newest.place >= place > 1:  # below 1 would mean all
            self._set_base(newest.place, newest.size)
            self._server.purge(self._stream, seq=place)

    # Snapshots.

    def _image(self, records: dict[str, Record], tombstones: dict[str, int]) -> Image:
        fold = self._fold
        where = (self._place, self._token, fold.offset, fold.at, fold.floor, self._mark, list(self._chapters))
        return Image(Manifest(*where, [], 0, 0, 0), records, tombstones)

    def _set_base(self, place: int, size: int) -> None:
        self._base_place, self._base_bytes, self._bytes_since_base = place, size, 0

    def _snapshot_is_due(self, patience: int = 1) -> bool:
        entries = self._place - self._base_place
        return snapshot_is_due(entries, self._bytes_since_base // patience, self._base_bytes)

    def _begin_snapshot(self) -> None:
        """Write a snapshot in a thread of its own; the commit has happened, so failing here is no failure."""
        writing = self._snapshot_writer is not None and self._snapshot_writer.is_alive()
        if writing or self._closed or not self._snapshot_is_due():
            return
        image = self._image(self._fold.records.copy(), self._fold.tombstones.copy())
        self._set_base(self._place, self._base_bytes)
        with contextlib.suppress(RuntimeError):  # no thread can be had
            writer = threading.Thread(target=self._write_snapshot, args=(image,), name="coord-snapshot")
            writer.start()
            self._snapshot_writer = writer

    def _write_snapshot(self, image: Image) -> None:
        try:  # through a connection of its own: otherwise commits wait for its parts
            with contextlib.closing(NatsServer(self._database.address)) as server:
                size = Snapshots(server, self._tenant).write(image, self._fits)
            self._base_bytes = size or self._base_bytes
        except CoordError as error:
            logger.warning("no snapshot of %s could be written: %s", self._stream, error)

    def _finish_snapshot(self) -> None:
        if self._snapshot_writer is not None:
            self._snapshot_writer.join()

    def close(self) -> None:
        super().close()
        self._finish_snapshot()
