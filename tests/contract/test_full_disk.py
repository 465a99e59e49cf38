"""`coord doctor` on a store that cannot be written: a full or read-only disk, a server that refuses."""

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coord.stores.local.filesystem import disk_check
from coord.stores.open import open_store
from tests.support.servers.postgres import SHAPES, PostgresServer
from tests.support.servers.redis import RedisServer
from tests.support.servers.server import running

DISK = """
mount -t tmpfs -o size=1m,mode=0700 tmpfs "$PWD"
cd "$PWD"
"$0" -m coord install "$1" >&2
"$0" -m coord lock name:a --url "$1" --session ada >&2
{damage}
"$0" -m coord doctor --url "$1" --json || true
ls -A "$2" >&2
"""
"""A small disk that only this shell and its children see."""
STORES = {"sqlite": "sqlite://{}/store/coord.db", "files": "file://{}/store"}
DAMAGES = {
    "full": ("cat /dev/zero > filler || true", "disk"),
    "read-only": ('mount -o remount,ro "$PWD"', "Read-only file system"),
}


def doctor_on_disk(folder: Path, url: str, damage: str) -> dict[str, Any]:
    """Return the findings of the doctor on a store of a small disk."""
    state = {
        "HOME": f"{folder}/home",
        "XDG_STATE_HOME": f"{folder}/state",
        "XDG_RUNTIME_DIR": f"{folder}/run",
    }
    disk = folder / "disk"
    for path in (*state.values(), str(disk)):
        Path(path).mkdir(mode=0o700)
    as_root = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    script = [*as_root, "sh", "-ec", DISK.format(damage=damage), sys.executable, url, f"{disk}/store"]
    done = subprocess.run(script, cwd=disk, env={**os.environ, **state}, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"tmp" not in done.stderr.splitlines()[-1], "the probe is still there"
    return {found["check"]: found for found in json.loads(done.stdout)["checks"]}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", STORES)
def test_a_disk_that_cannot_be_written_is_bad(tmp_path: Path, kind: str, damage: str) -> None:
    """Issue 15: doctor called a files store on a full or read-only disk well."""
    command, text = DAMAGES[damage]
    found = doctor_on_disk(tmp_path, STORES[kind].format(tmp_path / "disk"), command)
    bad = [each for each in found.values() if each["state"] == "bad"]
    assert len(bad) == 1
    assert "cannot be written" in bad[0]["message"]
    assert text in bad[0]["check"] + bad[0]["message"]
    assert bad[0]["hint"]


def test_a_disk_that_is_nearly_full_is_a_warning(tmp_path: Path) -> None:
    """A disk of 1 MiB can be written, but not for long."""
    found = doctor_on_disk(tmp_path, STORES["files"].format(tmp_path / "disk"), "true")
    assert found["disk"]["state"] == "warn"
    assert "0 MiB are free" in found["disk"]["message"]


@pytest.mark.parametrize(("files", "left", "well"), [(0, 0, True), (9_999, 1_000, True), (9_999, 999, False)])
def test_a_disk_may_run_out_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int, left: int, well: bool
) -> None:
    """Space is left, inodes are not; a file system that counts none says 0."""
    disk = SimpleNamespace(f_bavail=1 << 20, f_frsize=4096, f_files=files, f_favail=left)
    monkeypatch.setattr(os, "statvfs", lambda _: disk)
    assert disk_check(str(tmp_path)).well is well
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shape", SHAPES)
def test_a_postgres_server_that_only_reads_is_bad(shape: str, postgres_server: PostgresServer) -> None:
    """The role or database may be read-only; `stops` makes it a bad finding."""
    url = postgres_server.fresh_url(SHAPES[shape])
    open_store(url).close()
    with closing(open_store(f"{url}?options=-cdefault_transaction_read_only%3Don")) as database:
        (access,) = [check for check in database.checks() if check.name == "access"]
    assert (access.well, access.stops) == (False, True)
    assert "default_transaction_read_only" in access.hint


def test_a_redis_server_without_memory_is_bad(tmp_path: Path) -> None:
    """A write that changes nothing is refused as every commit is; the server says why."""
    with (
        running(RedisServer, tmp_path) as server,
        server.admin() as admin,
        closing(open_store(server.fresh_store_url())) as database,
    ):
        assert [check.well for check in database.checks() if check.name == "access"] == [True]
        keys = admin.dbsize()
        admin.config_set("maxmemory", 1)
        (access,) = [check for check in database.checks() if check.name == "access"]
        assert (access.well, access.stops, admin.dbsize()) == (False, True, keys)
        assert "maxmemory" in access.text + access.hint
