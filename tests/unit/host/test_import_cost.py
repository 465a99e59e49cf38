"""What the host modules bring in: they are on the way of every command."""

from tests.unit.test_import_cost import imported

HEAVY = {"subprocess", "pathlib", "socket", "tomllib", "hashlib", "secrets", "sqlite3", "asyncio", "logging"}
RARE = {"coord.host.remote"}


def test_the_host_is_light() -> None:
    """Issue 3, speed: whatever only some repositories or moments need is imported then."""
    brought = imported("import coord.host.store_location, coord.host.paths, coord.host.caller")
    assert "coord.host.processes" in brought
    assert not brought & (HEAVY | RARE)
