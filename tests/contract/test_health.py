"""What stores tell the doctor of the place they live in."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from coord.stores.health import Check, clock_check
from coord.stores.local.filesystem import file_system_of, location_check
from coord.stores.open import open_store
from tests.support.servers.kinds import SHARED_STORES
from tests.support.servers.postgres import SHAPES, PostgresServer

MOUNTS = r"""21 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
30 21 0:40 / /srv rw shared:2 - nfs4 files:/srv rw
31 30 0:41 / /srv/my\040disk rw - xfs /dev/sdb rw
32 21 0:42 / /over rw - ext4 /dev/sdc rw
33 32 0:43 / /over rw - cifs //files/over rw
"""


def named(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


@pytest.mark.parametrize("kind", SHARED_STORES)
def test_every_store_tells_of_its_durability(kind: str, make_url: Callable[[str], str]) -> None:
    """Issue 6: the doctor sees of every store whether it keeps what it answered; by default it is well."""
    with closing(open_store(make_url(kind))) as database:
        checks = database.checks()
    assert all(check.well and not check.hint for check in checks), checks
    assert len(named(checks)) == len(checks)
    assert "durability" in named(checks)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_postgres_server_is_looked_at(shape: str, postgres_server: PostgresServer) -> None:
    """Version, durability, connections and clock of the server; what may lose commits is named."""
    url = postgres_server.fresh_url(SHAPES[shape])
    with closing(open_store(url)) as database:
        checks = named(database.checks())
    assert checks.keys() == {"version", "access", "durability", "connections", "server clock"}
    assert checks["version"].text.startswith("Postgres 1")
    assert checks["durability"].text == "fsync is on, synchronous_commit is on, full_page_writes is on"
    with closing(open_store(f"{url}?options=-csynchronous_commit%3Doff")) as database:
        durability = named(database.checks())["durability"]
    assert not durability.well
    assert "synchronous_commit" in durability.hint


@pytest.mark.parametrize(
    ("server_ms", "well", "text"),
    [
        (10_500, True, "less than a second"),
        (9_001, True, "less than a second"),
        (12_999, True, "less than a second"),
        (13_000, False, "1.0 s ahead of ours"),
        (9_000, False, "1.0 s behind ours"),
    ],
)
def test_clocks_are_compared(server_ms: int, well: bool, text: str) -> None:
    """A server that told its clock between 10 s and 12 s is apart by what is beyond either."""
    check = clock_check(server_ms, 10_000, 12_000)
    assert (check.well, bool(check.hint)) == (well, not well)
    assert text in check.text


def test_a_network_file_system_is_noticed(tmp_path: Path) -> None:
    """SQLite and files want a disk of this machine: of mounts the innermost counts, of two the last."""
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)
    kinds = {
        "/home/x": "ext4",
        "/srv/coord": "nfs4",
        "/srv/my disk/a": "xfs",
        "/srvx": "ext4",
        "/over/a": "cifs",
    }
    assert {path: file_system_of(path, str(mounts)) for path in kinds} == kinds
    refused = location_check("/srv/coord/store.db", str(mounts))
    assert (refused.well, "coord migrate" in refused.hint) == (False, True)
    assert location_check("/home/x/store.db", str(mounts)).well
    assert file_system_of("/home/x", str(tmp_path / "none")) == ""
