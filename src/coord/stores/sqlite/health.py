"""The checks of `coord doctor` on a SQLite file."""

import os
import sqlite3
from typing import Any

from coord.stores.health import Check
from coord.stores.local.filesystem import disk_check, location_check

SYNCHRONOUS = {0: "off", 1: "normal", 2: "full", 3: "extra"}
FULL = 2


def check_sqlite(database: Any, path: str) -> list[Check]:
    """Check version, durability, disk and location."""
    values = {}
    with database.reading(in_one_statement=True) as cursor:
        for name in ("journal_mode", "synchronous"):
            database.execute_when_free(f"PRAGMA {name}")
            values[name] = cursor.fetchone()[0]
    mode, level = str(values["journal_mode"]), int(values["synchronous"])
    well = mode == "wal" and level >= FULL
    text = f"journal_mode is {mode}, synchronous is {SYNCHRONOUS.get(level, level)}"
    if mode != "wal" and not os.access(os.path.dirname(path), os.W_OK):  # read as immutable, without a WAL
        well, text = True, "not checked, because the file is read-only here"
    return [
        Check("version", well=True, text=f"SQLite {sqlite3.sqlite_version}"),
        Check(
            "durability",
            well,
            text,
            "" if well else "put the file on a local disk; it should be wal and full",
        ),
        disk_check(os.path.dirname(path)),
        location_check(path),
    ]
