"""What a table store has loaded as of one head and floor: while both stand, it needs no second look."""

from collections.abc import Iterable

from coord.stores.store import Record

MOST = 20_000


class KnownVersions:
    """Versions of keys as of a head and floor; `head` and `floor` of the log tell whether they still hold."""

    def __init__(self, head: int, floor: int) -> None:
        self.head = head
        self.floor = floor
        self.versions: dict[str, int] = {}

    def learned(self, head: int, floor: int, records: Iterable[Record]) -> "KnownVersions":
        """Return what is known after a load: more of the same moment, or a new beginning."""
        same = (head, floor) == (self.head, self.floor) and len(self.versions) < MOST
        known = self if same else KnownVersions(head, floor)
        known.versions.update((record.key, record.version) for record in records)
        return known

    def cover(self, expects: dict[str, int]) -> bool:
        """Whether every expectation is what was loaded."""
        return expects.items() <= self.versions.items()
