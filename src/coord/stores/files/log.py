"""The log of a files store: one file per commit, named by its offset, a thousand to a folder.

An entry file is a header line with the SHA-256 of the body, and the body in MessagePack. It is linked to its
name after it is complete and durable, so an unreadable entry was damaged later.
"""

import contextlib
import hashlib
import re
from collections.abc import Iterator

import msgspec

from coord.core.errors import CoordError, Corrupt, LimitReached, Unknown, Unsupported
from coord.stores.contract import FORMAT, Commit, Entry, Put
from coord.stores.database import EPOCH_BITS
from coord.stores.files.folder import TenantFolder
from coord.stores.log.snapshot import Reference

SHARD = 1000
EPOCH_OFFSETS = 2**EPOCH_BITS
OPEN_SHARDS = 2
ENTRY_BYTES = 64 * 1024 * 1024
"""More than any commit within the limits can need."""

MAGIC = b"coord-entry"
HEADER_BYTES = len(MAGIC) + len(b" 1 ") + 64 + len(b"\n")
SHARD_NAME = re.compile(r"\d{10}")
ENTRY_NAME = re.compile(r"\d{16}")


class EntryFile(msgspec.Struct, frozen=True, array_like=True):
    """The body of an entry file. It starts with the fields of `Entry`, so that it can be read as one."""

    offset: int
    at: int
    id: bytes
    events: list[bytes]
    puts: dict[str, Put]
    deletes: list[str]
    large: dict[str, Put]
    """Puts whose value is in a separate file; the value here is its hash."""


_encode = msgspec.msgpack.Encoder().encode
_decode_file = msgspec.msgpack.Decoder(EntryFile).decode
_decode_entry = msgspec.msgpack.Decoder(Entry).decode


def encode_entry(offset: int, commit: Commit, *, has_references: bool) -> list[bytes]:
    """Return the parts of an entry file."""
    puts, large = commit.puts, {}
    if has_references:
        large = {
            key: Put(bytes(put.value), put.index_key)
            for key, put in puts.items()
            if isinstance(put.value, Reference)
        }
        puts = {key: put for key, put in puts.items() if key not in large}
    body = _encode(EntryFile(offset, commit.at, commit.id, commit.events, puts, commit.deletes, large))
    if len(body) + HEADER_BYTES > ENTRY_BYTES:
        raise LimitReached(f"the entry has {len(body)} bytes; the limit is {ENTRY_BYTES}")
    return [b"%s %d %s\n" % (MAGIC, FORMAT, hashlib.sha256(body).hexdigest().encode()), body]


def entry_body(data: bytes, where: str) -> memoryview:
    """Return the body of an entry file, after its checksum was checked."""
    header, body = data[:HEADER_BYTES], memoryview(data)[HEADER_BYTES:]
    if header != b"%s %d %s\n" % (MAGIC, FORMAT, hashlib.sha256(body).hexdigest().encode()):
        words = header.split(b" ")
        if words[0] == MAGIC and len(words) == 3 and words[1].isdigit() and int(words[1]) > FORMAT:
            raise Unsupported(f"{where} was written by a newer version of coord", hint="upgrade coord")
        raise damaged(where, "its checksum is wrong")
    return body


def damaged(where: str, how: str) -> CoordError:
    """Return the error for an entry that was changed after it was written."""
    return Corrupt(f"{where} is damaged: {how}", hint="restore the folder from a copy; nothing was changed")


class EntryLog:
    """The entry files of one tenant."""

    def __init__(self, folder: TenantFolder) -> None:
        self._folder = folder
        self._layer = folder.layer
        self._shards: dict[int, int] = {}

    def path(self, offset: int) -> str:
        return f"{self._folder.path}/log/{offset // SHARD:010d}/{offset:016d}"

    # Reading.

    def commit(self, offset: int) -> tuple[Commit, int] | None:
        """Return the commit at an offset and the size of its file; None if there is no entry."""
        data = self._read(offset)
        if data is None:
            return None
        try:
            entry = _decode_file(entry_body(data, self.path(offset)))
        except msgspec.MsgspecError as error:
            raise damaged(self.path(offset), str(error)) from error
        self._check_offset(entry.offset, offset)
        puts = entry.puts
        for key, put in entry.large.items():
            puts[key] = Put(Reference(put.value), put.index_key)
        return Commit({}, puts, entry.deletes, entry.events, entry.at, entry.id), len(data)

    def entry(self, offset: int) -> Entry | None:
        """Return the entry at an offset; None if there is no entry."""
        data = self._read(offset)
        if data is None:
            return None
        try:
            entry = _decode_entry(entry_body(data, self.path(offset)))
        except msgspec.MsgspecError as error:
            raise damaged(self.path(offset), str(error)) from error
        self._check_offset(entry.offset, offset)
        return entry

    def _read(self, offset: int) -> bytes | None:
        try:
            return self._layer.read_file(f"{offset:016d}", self._shard(offset // SHARD), ENTRY_BYTES)
        except FileNotFoundError:
            return None

    def _check_offset(self, found: int, offset: int) -> None:
        if found != offset:
            raise damaged(self.path(offset), f"it is the entry of offset {found}")

    def shards(self) -> list[int]:
        """Return the numbers of the existing shard folders, in order."""
        with self._folder.opened("log") as log:
            return sorted(map(int, filter(SHARD_NAME.fullmatch, self._layer.names(log))))

    def last(self) -> int:
        """Return the highest offset that has a file; 0 if there is none."""
        for shard in reversed(self.shards()):
            with contextlib.suppress(FileNotFoundError), self._opened(shard) as (folder, _):
                offsets = filter(ENTRY_NAME.fullmatch, self._layer.names(folder))
                if newest := max(offsets, default=""):
                    return int(newest)
        return 0

    # Writing.

    def append(self, offset: int, parts: list[bytes]) -> bool:
        """Make an entry durable and visible; False if the offset is taken."""
        if offset % SHARD == 0 or offset % EPOCH_OFFSETS == 1:  # the first offset of an epoch
            self.make_shard(offset // SHARD)
        shard = self._shard(offset // SHARD)
        with self._folder.written("entry", parts) as (name, _):
            try:
                self._layer.link(name, self._folder.tmp, f"{offset:016d}", shard)
            except FileExistsError:
                return False
            try:
                self._layer.sync_folder(shard)
            except OSError as error:  # another process may have read it already
                raise Unknown(f"{self.path(offset)} may or may not be durable: {error.strerror}") from error
        return True

    def make_shard(self, number: int) -> None:
        """Create a shard folder and make it durable."""
        with self._folder.opened("log") as log:
            with contextlib.suppress(FileExistsError):
                self._layer.make_folder(f"{number:010d}", log)
            self._layer.sync_folder(log)  # even if it existed: its creator may have died before this

    def sync(self, offset: int) -> None:
        """Make an entry durable that another process linked (its shard is durable already)."""
        self._layer.sync_folder(self._shard(offset // SHARD))

    def remove_below(self, floor: int, shard: int) -> None:
        """Unlink the entries of a shard below the floor, oldest first, and the shard when it is empty."""
        if shard > floor // SHARD:
            return
        with contextlib.suppress(FileNotFoundError), self._opened(shard) as (folder, log):
            for name in sorted(filter(ENTRY_NAME.fullmatch, self._layer.names(folder))):
                if int(name) < floor:
                    self._folder.remove(name, folder)
            if shard < floor // SHARD:
                with contextlib.suppress(OSError):  # it may contain foreign files
                    self._layer.remove_folder(f"{shard:010d}", log)

    # Folders.

    def _shard(self, number: int) -> int:
        shard = self._shards.get(number)
        if shard is None:
            with self._folder.opened("log") as log:
                shard = self._layer.open_folder(f"{number:010d}", log)
            if len(self._shards) >= OPEN_SHARDS:
                self._layer.close(self._shards.pop(min(self._shards)))
            self._shards[number] = shard
        return shard

    @contextlib.contextmanager
    def _opened(self, shard: int) -> Iterator[tuple[int, int]]:
        """Open a shard and its parent folder; another process may have removed it."""
        with self._folder.opened("log") as log:
            folder = self._layer.open_folder(f"{shard:010d}", log)
            try:
                yield folder, log
            finally:
                self._layer.close(folder)

    def close(self) -> None:
        while self._shards:
            self._layer.close(self._shards.popitem()[1])
