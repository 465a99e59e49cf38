"""Repair a damaged SQLite store: keep what its checksums prove, in a later epoch (decision 0058).

Until it ends, no other process can write or open the file; one that has it open notices then that it was
replaced. The damaged file is set aside, whole and unchanged. A new file gets every record whose checksum is
right. Its log begins in a later epoch, so that no fence or offset of the damaged store returns: whoever held
something that is lost is refused at the next renewal or submission.
"""

import contextlib
import os
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

from coord.core.commands import Reply
from coord.core.errors import Corrupt, Invalid, Refused, Unsupported
from coord.core.records import encode
from coord.host.caller import Flags, find_tenant, shows_agent
from coord.host.store_location import StoreLocation, find_location, local_path, move_pin, store_exists
from coord.sdk.admin.lost_tasks import lost_tasks
from coord.sdk.client.open import open_location, set_aside
from coord.stores.checksums import Checksums
from coord.stores.contract import Entry, Record
from coord.stores.database import EPOCH_BITS
from coord.stores.full_check import read_everything
from coord.stores.local.exclusion import excluded
from coord.stores.local.folders import file_id
from coord.stores.open import migrator, open_store
from coord.stores.urls import scheme_of

RECORDS = "SELECT key, version, checksum, value, index_key FROM record NOT INDEXED WHERE log = ? ORDER BY key"
ENTRIES = 'SELECT "offset", checksum, at, id, events FROM entry WHERE log = ? ORDER BY "offset"'
KEPT_METADATA = ("tenant/", "copied_from")
ADD_AT_ONCE = 500


class RepairReply(Reply, frozen=True):
    """What a repair kept and lost; `lost` counts the lost records by the first part of their key."""

    url: str
    damaged_copy: str
    epoch: int
    kept: int
    lost: dict[str, int]


def repair_store(cwd: str, environ: Mapping[str, str], flags: Flags, *, tenant: str = "") -> RepairReply:
    """Replace a damaged store by its proven records; refuse an agent, and a store that is whole."""
    if shows_agent(environ) or flags.session:
        raise Refused("only a person may repair a store", hint="ask your user to run coord doctor --repair")
    location = find_location(cwd, environ)
    if not location.pinned or not store_exists(location):
        step = "coord init --new-store" if location.pinned else "coord init"
        raise Invalid("there is no store to repair", hint=f"{step} creates one")
    if scheme_of(location.url) != "sqlite":
        raise Unsupported(
            "only a SQLite store can be repaired",
            hint="restore a server's store from its backup, or run coord init --new-store",
        )
    path = local_path(location.url)
    damaged = file_id(path)
    tenants = _check_damaged(location, find_tenant(environ, tenant))
    draft = f"{path}.repairing"
    with excluded(path, damaged):
        for end in ("", "-wal", "-shm", "-fair.lock"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft + end)
        kept, lost, epoch = _rebuild(location, path, draft, tenants)
        aside = set_aside(path)
        os.rename(draft, path)
        move_pin(location, epoch=epoch)
    return RepairReply(location.url, aside, epoch, kept, dict(lost))


def _check_damaged(location: StoreLocation, tenant: str) -> list[str]:
    """Return the tenants to look for; refuse if the store opens and all of its logs are whole."""
    try:
        database, _ = open_location(location)
        with closing(database):
            for each in [tenant, *migrator(database).heads()]:
                read_everything(database.log(each))
    except Corrupt:
        return [tenant]
    raise Invalid("the store is whole; there is nothing to repair", hint="coord doctor shows all checks")


def _rebuild(
    location: StoreLocation, path: str, draft: str, tenants: list[str]
) -> tuple[int, Counter[str], int]:
    """Write the proven records into a new file; return their number, the lost ones, and the epoch."""
    lost: Counter[str] = Counter()
    kept = 0
    with _copy(path) as copy:
        metadata = dict(_tolerant(copy, "SELECT name, value FROM meta"))
        epoch = max(location.epoch, _number(metadata.get("epoch"))) + 1
        rows = list(_tolerant(copy, "SELECT id, tenant, sums FROM log NOT INDEXED"))
        if not metadata and not rows:
            raise Corrupt(
                f"nothing in {path} can be read", hint="start with an empty one: coord init --new-store"
            )
        logs = {str(name): (id_, _number(str(sums).partition(" ")[0])) for id_, name, sums in rows}
        for name in tenants:
            logs.setdefault(name, (len(logs) + 1, 0))
        _create(draft, location.store_id, metadata)
        with closing(open_store(f"sqlite://{draft}", migrating=True)) as database:
            new = migrator(database)
            new.set_epoch(epoch)
            for name, (log, counted) in logs.items():
                checksums = Checksums(location.store_id, name, path)
                records = _proven(copy, checksums, log, counted, lost)
                kept += len(records)
                records += _lost_tasks(copy, checksums, log, records)
                new.clear(name)
                for at in range(0, len(records), ADD_AT_ONCE):
                    new.add(name, records[at : at + ADD_AT_ONCE])
                entry = Entry((epoch << EPOCH_BITS) + 1, int(time.time() * 1000), os.urandom(12), [])
                new.begin(name, entry)
    return kept, lost, epoch


def _create(draft: str, store_id: str, metadata: Mapping[str, Any]) -> None:
    """Create the new file under the id of the damaged store."""
    kept = {name: str(value) for name, value in metadata.items() if str(name).startswith(KEPT_METADATA)}
    with closing(open_store(f"sqlite://{draft}")) as database:
        migrator(database).set_metadata(store_id=store_id, **kept)


def _proven(
    copy: sqlite3.Connection, checksums: Checksums, log: int, counted: int, lost: Counter[str]
) -> list[Record]:
    """Return the live records whose checksum is right, read from both ends towards the damage."""
    found: dict[str, Record] = {}
    bad: set[str] = set()
    for order in ("ASC", "DESC"):
        for row in _tolerant(copy, f"{RECORDS} {order}", (log,)):
            try:
                record = checksums.checked(*row)
            except Corrupt:
                bad.add(str(row[0]))
            else:
                found[record.key] = record
    bad -= found.keys()
    lost.update(key.partition("/")[0] for key in bad)
    vanished = counted - len(found) - len(bad)
    if vanished > 0:
        lost["unknown"] += vanished
    return [record for record in found.values() if record.value is not None]


def _lost_tasks(
    copy: sqlite3.Connection, checksums: Checksums, log: int, records: list[Record]
) -> list[Record]:
    """Return new records of lost tasks, at the newest generation that a proven record or entry names."""
    events: list[bytes] = []
    for order in ("ASC", "DESC"):
        for row in _tolerant(copy, f"{ENTRIES} {order}", (log,)):
            with contextlib.suppress(Corrupt):
                events += checksums.checked_entry(*row).events
    tasks = lost_tasks((record.key for record in records), events)
    return [Record(key, 0, encode(task), "") for key, task in tasks.items()]


def _tolerant(
    copy: sqlite3.Connection, statement: str, values: tuple[object, ...] = ()
) -> Iterator[tuple[Any, ...]]:
    """Yield rows until the damage."""
    with contextlib.suppress(sqlite3.Error, UnicodeDecodeError):
        yield from copy.execute(statement, values)


def _number(text: object) -> int:
    return int(text) if isinstance(text, str) and text.isdecimal() and len(text) < 10 else 0


@contextlib.contextmanager
def _copy(path: str) -> Iterator[sqlite3.Connection]:
    """Open a copy of a damaged file, so that nothing is written into the file itself."""
    copy = f"{path}.reading-{os.getpid()}"
    try:
        for end in ("", "-wal"):
            with contextlib.suppress(FileNotFoundError):
                os.close(os.open(copy + end, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
                shutil.copyfile(path + end, copy + end)
        with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            connection.execute("PRAGMA writable_schema = ON")  # a damaged part of the schema is passed over
            connection.text_factory = lambda data: data.decode(errors="replace")
            yield connection
    except sqlite3.Error as error:
        raise Corrupt(
            f"nothing in {path} can be read: {error}", hint="start with an empty one: coord init --new-store"
        ) from error
    finally:
        for end in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(copy + end)
