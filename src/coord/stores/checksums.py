"""Checksums of records and entries, and totals that show when a row vanished (decision 0057).

Each row keeps a checksum. Its *digest* is the CRC-32 of everything in the row except its number (the version
of a record, the offset of an entry), seeded with the store and the tenant, so that a row of another store is
refused too. The checksum is the digest plus the number: a store can complete it without computing a CRC.

A log keeps the *totals* of its records: how many rows there are, how many have an index key, and the sum of
their digests. A commit needs the digests of the rows that it replaces. Its process has read these rows, so
`Checksums` remembers them: equal versions mean equal rows.
"""

from binascii import crc32
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from coord.core.errors import Corrupt
from coord.stores.contract import Commit, Entry, Record

REPAIR = "coord doctor shows the damage; coord doctor --repair keeps what is proven; or restore a copy"
REMEMBERED_MAX = 20_000
CRC_BYTES = 4


_decode_events = msgspec.msgpack.Decoder(list[bytes]).decode


class Totals(NamedTuple):
    """The number of rows, of those with an index key, the sum of their digests, and the sum of their keys.

    The last one is the sum of the CRC-32 of each key. A store can compute it for the keys that it finds
    without reading the values; a damaged key would hide an undamaged row.
    """

    rows: int = 0
    indexed: int = 0
    digest: int = 0
    keys: int = 0

    def plus(self, change: "Totals") -> "Totals":
        """Return the totals after a change."""
        return Totals(
            self.rows + change.rows,
            self.indexed + change.indexed,
            self.digest + change.digest,
            self.keys + change.keys,
        )


class Changes(NamedTuple):
    """The digests of the puts and then the deletes of a commit, and what the commit adds to the totals.

    `live_keys` is what it adds to the sum of the CRC-32 of those keys that have a value.
    """

    digests: list[int]
    totals: Totals
    live_keys: int


Row = tuple[str, int, int, bytes | None, str]
"""The key, version, checksum, value and index key of a record."""
Known = tuple[int, int | None, bool | None]
"""A row that was read: its version, its digest (None if there is no row), and whether it has an index key
(None if it has no value)."""
_UNKNOWN: Known = (-1, None, None)


class Checksums:
    """The checksums of one tenant's rows, and the rows that this process knows."""

    def __init__(self, store_id: str, tenant: str, where: str) -> None:
        """`where` names the store in errors."""
        self.seed_text = f"{store_id}/{tenant}\0".encode()
        self._seed = crc32(self.seed_text)
        self.where = where
        self._known: dict[str, Known] = {}

    def digest(self, key: str, value: bytes | None, index_key: str) -> int:
        """Return the digest of a record; a tombstone has no value."""
        if value is None:
            return crc32(key.encode(), self._seed)
        return crc32(value, crc32(f"{key}\0{index_key}\0".encode(), self._seed))

    def text_digest(self, text: str) -> int:
        """Return the digest of other text of the tenant, such as the row of its log."""
        return crc32(text.encode(), self._seed)

    def entry_digest(self, at: int, id_: bytes, events: bytes) -> int:
        """Return the digest of an entry with its encoded events."""
        return crc32(events, crc32(b"%d %b\0" % (at, id_), self._seed))

    def checked(self, key: str, version: int, checksum: int, value: bytes | None, index_key: str) -> Record:
        """Return a record that was read; refuse it if its checksum is wrong."""
        return self.checked_all([(key, version, checksum, value, index_key)])[0]

    def checked_all(self, rows: Iterable[Row]) -> list[Record]:
        """Return the records of rows that were read; refuse a row whose checksum is wrong."""
        known, seed, records = self._known, self._seed, list[Record]()
        for key, version, checksum, value, index_key in rows:
            try:
                digest = (
                    crc32(key.encode(), seed)
                    if value is None
                    else crc32(value, crc32(f"{key}\0{index_key}\0".encode(), seed))
                )
                right = checksum - version == digest
            except (TypeError, AttributeError, UnicodeError):  # a damaged row can have cells of any type
                digest, right = 0, False
            if not right:
                raise damaged(f"the record {key!r} of {self.where} does not match its checksum")
            known[key] = (version, digest, None if value is None else index_key != "")
            records.append(Record(key, version, value, index_key))
        return records

    def absent(self, key: str, floor: int) -> Record:
        """Return the record of a key without a row."""
        self._known[key] = (floor, None, None)
        return Record(key, floor, None)

    def changes(self, commit: Commit) -> Changes | None:
        """Return what a commit changes; None if a row that it replaces is not known: then load it first."""
        known, expected, seed, digests = self._known, commit.expected_versions, self._seed, list[int]()
        rows = indexed = total = keys = live_keys = 0
        for key, put in commit.puts.items():
            version, old, was_indexed = known.get(key, _UNKNOWN)
            if version != expected[key]:
                return None
            digest = crc32(put.value, crc32(f"{key}\0{put.index_key}\0".encode(), seed))
            digests.append(digest)
            total += digest
            if put.index_key:
                indexed += 1
            if was_indexed:
                indexed -= 1
            elif was_indexed is None:
                live_keys += crc32(key.encode())
            if old is None:
                rows += 1
                keys += crc32(key.encode())
            else:
                total -= old
        for key in commit.deletes:
            version, old, was_indexed = known.get(key, _UNKNOWN)
            if version != expected[key]:
                return None
            digest = crc32(key.encode(), seed)
            digests.append(digest)
            total += digest
            if was_indexed:
                indexed -= 1
            if was_indexed is not None:
                live_keys -= crc32(key.encode())
            if old is None:
                rows += 1
                keys += crc32(key.encode())
            else:
                total -= old
        return Changes(digests, Totals(rows, indexed, total, keys), live_keys)

    def committed(self, commit: Commit, offset: int, changes: Changes) -> None:
        """Remember the rows that a commit wrote, so that the next one need not read them."""
        known = self._known
        for (key, put), digest in zip(commit.puts.items(), changes.digests, strict=False):
            known[key] = (offset, digest, put.index_key != "")
        for key, digest in zip(commit.deletes, changes.digests[len(commit.puts) :], strict=True):
            known[key] = (offset, digest, None)

    def limit_memory(self) -> None:
        """Forget everything when it is too much. Call it before a load, never between load and commit."""
        if len(self._known) > REMEMBERED_MAX:
            self._known.clear()

    def forget(self) -> None:
        """Forget all rows: a server that failed may have reused versions."""
        self._known.clear()

    def checked_entry(self, offset: int, checksum: int, at: int, id_: bytes, events: bytes) -> Entry:
        """Return an entry that was read; refuse it if its checksum is wrong."""
        try:
            if checksum - offset == self.entry_digest(at, id_, events):
                return Entry(offset, at, id_, _decode_events(events))
        except (TypeError, msgspec.MsgspecError):
            pass
        raise damaged(f"entry {offset} of {self.where} does not match its checksum")

    def checked_page(
        self,
        rows: Sequence[tuple[int, int, int, bytes, bytes]],
        after: int,
        limit: int,
        head: int,
        floor: int,
    ) -> list[Entry]:
        """Return the entries of a page of the log: offset, checksum, at, id and events of each row."""
        check_contiguous(self.where, [row[0] for row in rows], after, limit, head, floor)
        return [self.checked_entry(*row) for row in rows]


def check_contiguous(
    where: str, offsets: Sequence[int], after: int, limit: int, head: int, floor: int
) -> None:
    """Refuse a page of the log in which an entry is missing.

    The log has every entry after the floor, and the one at the floor unless the log began there.
    """
    if limit <= 0:
        return
    if any(type(offset) is not int for offset in offsets):
        raise damaged(f"the log in {where} has entries without an offset")
    first = offsets[0] if offsets else head + 1
    begins = after + 1 if after + 1 > floor or first == floor else floor + 1
    ends = offsets[-1] if len(offsets) >= limit else head
    if list(offsets) != list(range(begins, ends + 1)):
        present = set(offsets)
        missing = next((n for n in range(begins, ends + 1) if n not in present), first)
        raise damaged(f"entry {missing} is missing in {where}")


def check_totals(where: str, kept: Totals, found: Totals) -> None:
    """Refuse rows that are not those which the log has counted."""
    if kept == found:
        return
    if found.rows != kept.rows:
        raise damaged(f"{where} has {found.rows} records; its log counted {kept.rows}")
    if found.indexed != kept.indexed:
        raise damaged(f"{where} has {found.indexed} records in its index; its log counted {kept.indexed}")
    raise damaged(f"{where} has records that its log did not write, or older ones")


def totals_of(checksums: Checksums, records: Iterable[Record]) -> Totals:
    """Return the totals of records, tombstones included."""
    totals = Totals()
    for record in records:
        digest = checksums.digest(record.key, record.value, record.index_key)
        totals = totals.plus(Totals(1, int(bool(record.index_key)), digest, crc32(record.key.encode())))
    return totals


def keys_total(joined: str | bytes | None) -> int:
    """Return the sum of the CRC-32 of keys that are joined by a zero character, which no key has."""
    if isinstance(joined, str):
        joined = joined.encode()
    return sum(map(crc32, joined.split(b"\0"))) if joined is not None else 0


def sealed(data: bytes) -> bytes:
    """Return data after their CRC-32, for what is stored as one piece."""
    return crc32(data).to_bytes(CRC_BYTES) + data


def unsealed(data: bytes) -> bytes:
    """Return sealed data; raise ValueError if they were changed."""
    body = data[CRC_BYTES:]
    if data[:CRC_BYTES] != crc32(body).to_bytes(CRC_BYTES):
        raise ValueError("it does not match its checksum")
    return body


def damaged(message: str) -> Corrupt:
    """Return the error for damaged data; nothing was changed."""
    return Corrupt(message, hint=REPAIR)
