"""The row of a log and the metadata of a SQLite file, each with a checksum."""

import sqlite3
from binascii import crc32
from typing import NamedTuple

from coord.stores.checksums import Checksums, Totals, damaged


class LogRow(NamedTuple):
    """The row of a log: `sums` has the totals and the checksum of the row as text."""

    head: int
    at: int
    floor: int
    sums: str
    totals: Totals


NO_LOG_ROW = LogRow(-1, 0, -1, "", Totals())


def make_log_row(checksums: Checksums, head: int, at: int, floor: int, totals: Totals) -> LogRow:
    """Return the row of a log with its checksum."""
    rows, indexed, digest, keys = totals
    sums = f"{rows} {indexed} {digest} {keys}"
    checksum = checksums.text_digest(f"{head} {at} {floor} {sums}")
    return LogRow(head, at, floor, f"{sums} {checksum}", totals)


def read_log_row(checksums: Checksums, known: LogRow, found: tuple[int, int, int, str]) -> LogRow:
    """Return a row that was read; refuse it if its checksum is wrong. `known` was read before."""
    if found == known[:4]:
        return known
    head, at, floor, sums = found
    try:
        rows, indexed, digest, keys, _ = map(int, sums.split())
        row = make_log_row(checksums, head, at, floor, Totals(rows, indexed, digest, keys))
    except (ValueError, AttributeError):
        row = known
    if row[:4] != found:
        raise damaged(f"the log of {checksums.where} does not match its checksum")
    return row


def sealed_metadata(values: dict[str, str]) -> dict[str, str]:
    """Return metadata with their checksum."""
    rest = {name: value for name, value in values.items() if name != "checksum"}
    return {**rest, "checksum": f"{crc32(repr(sorted(rest.items())).encode()):08x}"}


def check_metadata(where: str, found: dict[str, str]) -> None:
    """Refuse metadata that do not match their checksum."""
    if sealed_metadata(found) != found or not found.get("logs", "").isdecimal():
        raise damaged(f"the metadata of {where} do not match their checksum")


def set_metadata(cursor: sqlite3.Cursor, values: dict[str, str]) -> None:
    """Change metadata; an empty value deletes the name."""
    found = dict(cursor.execute("SELECT name, value FROM meta"))
    new = sealed_metadata({name: value for name, value in {**found, **values}.items() if value})
    cursor.execute("DELETE FROM meta")
    cursor.executemany("INSERT INTO meta VALUES (?, ?)", new.items())
