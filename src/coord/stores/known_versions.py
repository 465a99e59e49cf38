"""What a table store has loaded as of one head and floor: while both stand, it needs no second look."""

from coord.stores.store import Record

MOST = 20_000


class KnownVersions:
    """Versions of keys as of a head and floor; `head` and `floor` of the log tell whether they still hold."""

    def __init__(self, head: int, floor: int, versions: dict[str, int]) -> None:
        self.head = head
        self.floor = floor
        self.versions = versions

    def learned(self, head: int, floor: int, records: dict[str, Record]) -> "KnownVersions":
        """Return what is known after a load: more of the same moment, or a new beginning."""
        versions = {key: record.version for key, record in records.items()}
        if (head, floor) != (self.head, self.floor) or len(self.versions) >= MOST:
            return KnownVersions(head, floor, versions)
        self.versions.update(versions)
        return self

    def cover(self, expects: dict[str, int]) -> bool:
        """Whether every expectation is what was loaded."""
        return expects.items() <= self.versions.items()
