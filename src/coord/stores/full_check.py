"""Read a whole log, so that every checksum in it is verified; `coord doctor` does it on every store."""

from typing import NamedTuple

from coord.core.errors import Trimmed
from coord.core.ranges import By
from coord.stores.contract import Record, Store

PAGE = 1_000


class Read(NamedTuple):
    """The number of records and entries that were read."""

    records: int
    entries: int


def read_everything(log: Store) -> Read:
    """Read all records by key and by index key, and all entries; raise `Corrupt` at the first damage."""
    verify = getattr(log, "verify", None)
    if verify is not None:
        verify()
    records = _scan(log, "key")
    _scan(log, "index_key")
    return Read(records, _tail(log))


def _scan(log: Store, by: By) -> int:
    count = 0
    last: Record | None = None
    while page := log.scan("", by=by, after=last, limit=PAGE):
        count += len(page)
        last = page[-1]
    return count


def _tail(log: Store) -> int:
    count = after = 0
    while True:
        try:
            page = log.tail(after, PAGE)
        except Trimmed as error:
            after = max(error.first - 1, after + 1)
            continue
        if not page:
            return count
        count += len(page)
        after = page[-1].offset
