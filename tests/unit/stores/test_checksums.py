"""Checksums of rows, totals of a log, and pages of entries without gaps."""

import pytest

from coord.core.errors import Corrupt
from coord.stores.checksums import Checksums, Totals, check_contiguous, keys_total, totals_of
from coord.stores.contract import Commit, Put, Record

OF = Checksums("store", "tenant", "here")


def test_a_digest_depends_on_everything_in_the_row() -> None:
    """Key, value, index key, store and tenant; a tombstone is not an empty value."""
    rows = [
        ("k", b"v", ""),
        ("k2", b"v", ""),
        ("k", b"w", ""),
        ("k", b"v", "i"),
        ("k", b"", ""),
        ("k", None, ""),
    ]
    others = [Checksums("store", "other", ""), Checksums("other", "tenant", "")]
    digests = [OF.digest(*row) for row in rows] + [other.digest("k", b"v", "") for other in others]
    assert len(set(digests)) == len(digests)


def test_a_row_is_valid_at_its_version_only() -> None:
    """The checksum is the digest plus the version."""
    digest = OF.digest("k", b"v", "i")
    assert OF.checked("k", 7, digest + 7, b"v", "i") == Record("k", 7, b"v", "i")
    for version in (6, 8, 7 + 2**32, None, "7"):
        with pytest.raises(Corrupt, match="'k' of here does not match"):
            OF.checked("k", version, digest + 7, b"v", "i")  # type: ignore[arg-type]


def test_a_commit_needs_the_rows_that_it_replaces() -> None:
    """An unknown row, or another version of it, has to be read first."""
    checksums = Checksums("store", "tenant", "here")
    commit = Commit({"k": 3, "gone": 0}, {"k": Put(b"new", "i")}, ["gone"])
    assert checksums.changes(commit) is None
    digest = checksums.digest("k", b"old", "")
    checksums.checked("k", 2, digest + 2, b"old", "")
    checksums.absent("gone", 0)
    assert checksums.changes(commit) is None
    checksums.checked("k", 3, digest + 3, b"old", "")
    changes = checksums.changes(commit)
    after = [Record("k", 4, b"new", "i"), Record("gone", 4, None)]
    assert changes is not None
    assert totals_of(checksums, [Record("k", 3, b"old")]).plus(changes.totals) == totals_of(checksums, after)
    checksums.forget()
    assert checksums.changes(commit) is None


@pytest.mark.parametrize(
    ("offsets", "after", "limit", "floor"),
    [
        ([1, 2, 3], 0, 10, 0),
        ([1, 2], 0, 2, 0),
        ([], 3, 10, 0),
        ([2, 3], 1, 10, 2),
        ([3], 1, 10, 2),
        ([], 0, 0, 0),
    ],
)
def test_a_page_without_gaps(offsets: list[int], after: int, limit: int, floor: int) -> None:
    """A full page may end before the head; a log may begin at its floor or after it."""
    check_contiguous("here", offsets, after, limit, 3, floor)


@pytest.mark.parametrize(
    ("offsets", "after", "missing"),
    [([2, 3], 0, 1), ([1, 3], 0, 2), ([1, 2], 0, 3), ([], 0, 1), ([1, 1, 3], 0, 2), ([3], 1, 2)],
)
def test_a_gap_is_corrupt(offsets: list[int], after: int, missing: int) -> None:
    """Nobody takes a page for whole in which an entry is missing."""
    with pytest.raises(Corrupt, match=f"entry {missing} is missing in here"):
        check_contiguous("here", offsets, after, 10, 3, 0)


def test_the_total_of_keys_is_that_of_their_rows() -> None:
    """A store computes it from the joined keys."""
    records = [Record("a", 1, b"x"), Record("ä/b", 2, None)]
    assert totals_of(OF, records).keys == keys_total("a\0ä/b")
    assert Totals().keys == keys_total(None)
