"""The newest offset that this machine has seen: an old copy of a store is refused."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from coord.core.errors import Corrupt
from coord.host.high_water import NAME, HighWater
from coord.host.store_location import StoreLocation
from coord.sdk.client.open import open_location
from coord.stores.open import open_store
from tests.support.stores.steps import write

TENANT = "local"


@pytest.fixture
def location(tmp_path: Path) -> StoreLocation:
    """A store that is pinned beside its marks."""
    url = f"sqlite://{tmp_path}/coord.db"
    with closing(open_store(url)) as database:
        return StoreLocation(url, "repository", None, database.store_id, 0, str(tmp_path))


def opened(location: StoreLocation) -> Any:
    return closing(open_location(location)[0])


def commits(location: StoreLocation, count: int) -> None:
    with opened(location) as database:
        for _ in range(count):
            write(database.log(TENANT), {"k": b"v"})


def refuses(location: StoreLocation) -> str:
    with opened(location) as database, pytest.raises(Corrupt) as caught:
        database.log(TENANT)
    return str(caught.value)


def test_an_old_copy_is_refused(location: StoreLocation, tmp_path: Path) -> None:
    """An old copy is whole, so only somebody who saw it later can tell."""
    commits(location, 3)
    shutil.copy(tmp_path / "coord.db", tmp_path / "old")
    commits(location, 2)
    shutil.copy(tmp_path / "old", tmp_path / "coord.db")
    assert "went back from offset 5 to 3, like an old copy" in refuses(location)
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600


def test_a_lost_write_ahead_log_is_refused(location: StoreLocation, tmp_path: Path) -> None:
    """Commits that were not yet in the file itself are gone with its write-ahead log."""
    commits(location, 3)
    with closing(sqlite3.connect(tmp_path / "coord.db")) as reader:
        reader.execute("SELECT * FROM log").fetchall()  # nobody can empty the write-ahead log
        commits(location, 2)
        kept = (tmp_path / "coord.db").read_bytes()
    for file in tmp_path.glob("coord.db*"):
        file.unlink()
    (tmp_path / "coord.db").write_bytes(kept)
    assert "went back from offset 5 to 3" in refuses(location)


def test_a_store_in_a_later_epoch_has_told_of_its_loss(location: StoreLocation, tmp_path: Path) -> None:
    """Redis and NATS raise the epoch after a crash that lost commits, and `doctor --repair` does."""
    marks = HighWater(str(tmp_path), "here")
    marks.raise_to("store", 0, {TENANT: 5})
    marks = HighWater(str(tmp_path), "here")
    with pytest.raises(Corrupt):
        marks.check("store", 0, TENANT, 4)
    marks.check("store", 1, TENANT, 4)
    marks.check("store", 0, TENANT, 5)
    marks.check("other", 0, TENANT, 1)
    marks.check("store", 0, "other", 1)


def test_a_mark_never_falls(tmp_path: Path) -> None:
    """Two processes end in any order: the higher mark stays."""
    early, late = HighWater(str(tmp_path), "here"), HighWater(str(tmp_path), "here")
    late.raise_to("store", 0, {TENANT: 9, "second": 4})
    early.raise_to("store", 0, {TENANT: 7})
    for tenant, offset in ((TENANT, 8), ("second", 3)):
        with pytest.raises(Corrupt):
            HighWater(str(tmp_path), "here").check("store", 0, tenant, offset)


def test_a_damaged_mark_refuses_nobody(tmp_path: Path) -> None:
    """The mark is a second witness: the store alone is still valid without it."""
    HighWater(str(tmp_path), "here").raise_to("store", 0, {TENANT: 5, "second": 5})
    file = tmp_path / NAME
    file.write_bytes(file.read_bytes().replace(b" 5 local", b" 9 local") + b"\xff\n\nx")
    marks = HighWater(str(tmp_path), "here")
    marks.check("store", 0, TENANT, 1)
    with pytest.raises(Corrupt):
        marks.check("store", 0, "second", 4)


def test_where_nothing_can_be_written_marks_stay(tmp_path: Path) -> None:
    """A sandbox reads only: no mark, and no error."""
    marks = HighWater(str(tmp_path / "missing"), "here")
    marks.raise_to("store", 0, {TENANT: 5})
    marks.check("store", 0, TENANT, 1)
    assert os.listdir(tmp_path) == []
