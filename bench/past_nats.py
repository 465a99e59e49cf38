"""A long past for the NATS store."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import coord
from bench.workload import TENANT
from coord.stores.contract import Commit, Record
from coord.stores.log.snapshot import ENTRY_WEIGHT, SNAPSHOT_AFTER_BYTES
from coord.stores.nats.entries import encode_entry, new_token
from coord.stores.nats.protocol import AT_ONCE, Question
from coord.stores.nats.snapshots import Manifest, Snapshot


def lengthen_nats(url: str, sample: Commit, count: int) -> None:
    """Put past renewals of one claim into the stream, a snapshot behind them, and after it as long a tail as
    the store lets gather before it writes the next snapshot."""
    database = coord.open_store(url)
    store: Any = database.log(TENANT)
    state, sequence, before = store._state, store._sequence, store._token
    key, put = next((key, put) for key, put in sample.puts.items() if key.startswith("task/"))
    renewal = Commit({}, {key: put}, [], sample.events[:1], sample.at, b"past-renewal")
    last = state.offset + count
    for offsets in batched(range(state.offset + 1, last + 1), AT_ONCE):
        tokens = [before, *(new_token() for _ in offsets)]
        store._server.ask(
            *(
                Question(store._subject, encode_entry(tokens[n], tokens[n + 1], offset, renewal))
                for n, offset in enumerate(offsets)
            )
        )
        before = tokens[-1]
    records = {**state.records, key: Record(key, last, put.value, put.index_key)}
    where = (sequence + count, before, last, sample.at, state.floor, store._control, store._segments)
    size = store._snapshots.write(
        Snapshot(Manifest(*where, [], 0, 0, 0), records, state.tombstones), store._fits
    )
    database.close()
    with closing(coord.open_store(url)) as opened:
        log = opened.log(TENANT)
        weight = ENTRY_WEIGHT + len(encode_entry(before, before, last, renewal))
        for offset in range(last, last + max(SNAPSHOT_AFTER_BYTES, size) // weight - 1):
            log.commit(Commit({key: offset}, {key: put}, [], sample.events[:1], sample.at, b"past-renewal"))


def batched(numbers: range, size: int) -> Iterator[range]:
    """Yield so many of the numbers at a time."""
    for first in range(0, len(numbers), size):
        yield numbers[first : first + size]
