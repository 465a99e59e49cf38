"""What an import brings in: hooks import coord on every tool call, so nothing heavy may come with it."""

import json
import subprocess
import sys

import pytest

HEAVY = {"asyncio", "sqlite3", "psycopg", "sortedcontainers", "msgspec", "uuid", "hashlib", "threading"}
DRIVERS = {"sqlite3", "psycopg", "pymysql", "redis", "nats"}
PRINT_MODULES = "import json, sys; print(json.dumps(sorted(sys.modules)))"


def imported(code: str) -> set[str]:
    """Return what is imported in a fresh process after this code, beyond what Python itself brings."""
    loaded = []
    for program in (PRINT_MODULES, f"{code}\n{PRINT_MODULES}"):
        done = subprocess.run(
            [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True
        )
        loaded.append(set(json.loads(done.stdout)))
    return loaded[1] - loaded[0]


def test_import_coord_is_light() -> None:
    """Issue §6: `import coord` brings neither a driver nor an event loop, nor anything else that costs."""
    brought = imported("import coord")
    assert "coord" in brought
    assert not brought & (HEAVY | DRIVERS)
    assert not {name for name in brought if name.startswith("coord.")}


def test_errors_cost_no_driver() -> None:
    """DESIGN §9: errors, ids and types can be used without any store."""
    brought = imported("from coord import ClaimKey, CoordError, TaskIdentifier")
    assert "coord.core.ids" in brought
    assert not brought & (DRIVERS | {"asyncio", "sortedcontainers"})


@pytest.mark.parametrize(
    ("url", "allowed"), [("memory:", set()), ("sqlite:///{folder}/store.db", {"sqlite3"})]
)
def test_a_store_brings_its_own_driver_only(url: str, allowed: set[str], tmp_path) -> None:
    """CFL-37, DESIGN §9: every driver is imported by its own store alone."""
    place = url.format(folder=tmp_path)
    brought = imported(f"import coord; coord.TaskCoordinator.open({place!r}).close()")
    assert brought & DRIVERS == allowed
