"""The settings of the ledger in a repository's `coord.toml`.

[ledger]
entries = 50_000    # default: 10,000; how many of the newest actions the ledger has
reads = false       # default: true; whether hooks report the files that agents read
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from coord.core.activity.actions import LEDGER_MAX
from coord.core.errors import Invalid
from coord.core.ids import short_repr

ENTRIES_MAX = 1_000_000


class LedgerSettings(NamedTuple):
    """How many actions the ledger has, and whether reads are among them."""

    entries: int = LEDGER_MAX
    reads: bool = True


def ledger_settings(tables: Mapping[str, Any], file: str) -> LedgerSettings:
    """Return the settings of a repository; raise `Invalid` for one that is not understood."""
    table = tables.get("ledger", {})
    if not isinstance(table, dict):
        raise Invalid(f"ledger in {file} is not a table", hint="write [ledger] and the settings below it")
    unknown = sorted(set(table) - set(LedgerSettings._fields))
    if unknown:
        raise Invalid(f"{file} has no setting ledger.{unknown[0]}", hint="use entries, reads")
    found = LedgerSettings(**table)
    if (
        not isinstance(found.entries, int)
        or isinstance(found.entries, bool)
        or not (1 <= found.entries <= ENTRIES_MAX)
    ):
        raise Invalid(
            f"ledger.entries in {file} is {short_repr(str(found.entries))}",
            hint=f"write entries = {LEDGER_MAX} below [ledger]; at most {ENTRIES_MAX}",
        )
    if not isinstance(found.reads, bool):
        raise Invalid(
            f"ledger.reads in {file} is {short_repr(str(found.reads))}",
            hint="write reads = true or reads = false below [ledger]",
        )
    return found
