"""One hub serves tenants on every level of isolation: shared tables, a store each, a server each."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from coord.stores.open import open_store
from tests.support.git_folders import made_repository
from tests.support.hub.process import PATIENCE_S, private_home, serving

TENANTS = ("acme", "bolt")
LEVELS = ("shared tables", "a file each", "a schema each", "a server each")


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    with private_home(tmp_path / "private") as home:
        yield home


def coord(folder: Path, environ: Mapping[str, str], *words: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "coord", *words],
        cwd=folder,
        env=dict(environ),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    return done.returncode, json.loads(done.stdout or done.stderr.splitlines()[-1] or "{}")


def urls_of(level: str, repository: Path, make_url: Callable[[str], str]) -> dict[str, str]:
    """Return the url of each tenant's own store; none on the first level."""
    if level == "shared tables":
        return {}
    if level == "a file each":
        return {name: f"sqlite://{repository}/.git/coord/store/{name}.db" for name in TENANTS}
    if level == "a schema each":
        return {name: make_url("postgres") for name in TENANTS}
    return {"acme": make_url("postgres"), "bolt": make_url("redis")}


def locks_in(url: str, tenant: str) -> int:
    """Return how many locks the log of a tenant in a store has granted."""
    with closing(open_store(url)) as database:
        entries = database.log(tenant).tail(0, 1000)
    events = [json.loads(event)["event"] for entry in entries for event in entry.events]
    return events.count("lock.acquired")


@pytest.mark.parametrize("level", LEVELS)
def test_tenants_share_a_hub_and_nothing_else(
    level: str, tmp_path: Path, environ: dict[str, str], make_url: Callable[[str], str]
) -> None:
    """Issue 16: the token decides, by HTTP and by the socket the same locks are seen, and no others."""
    repository, elsewhere = tmp_path / "shop", tmp_path / "elsewhere"
    made_repository(repository)
    elsewhere.mkdir()
    urls = urls_of(level, repository, make_url)
    if urls:
        lines = "".join(f"{name} = {json.dumps(url)}\n" for name, url in urls.items())
        (repository / "coord.toml").write_text(f"[tenants]\n{lines}")
        assert coord(repository, environ, "trust", "--yes")[0] == 0
    assert coord(repository, environ, "init")[0] == 0
    for name in urls:
        assert coord(repository, environ, "install", "--tenant", name)[0] == 0
    with serving(repository, environ) as hub:
        tokens = {}
        for name in TENANTS:
            code, made = coord(repository, environ, "token", "create", "--role", "operate", "--tenant", name)
            assert code == 0, made
            tokens[name] = made["token"]
        lock = ("--url", hub.url, "--session", "ada", "lock", "name:release", "--no-wait")
        for name in TENANTS:
            remote = {**environ, "COORD_HUB": "off", "COORD_TOKEN": tokens[name], "COORD_TENANT": name}
            assert coord(elsewhere, remote, *lock)[0] == 0, "the other tenant's lock is another one"
            other = next(each for each in TENANTS if each != name)
            code, refused = coord(elsewhere, {**remote, "COORD_TENANT": other}, *lock)
            assert (code != 0, f"this token is for tenant {name}" in refused["error"]["message"]) == (
                True,
                True,
            )
            seen = coord(repository, environ, "locks", "--tenant", name)[1]["locks"]
            assert [each["resource"] for each in seen] == ["name:release"]
            held = coord(repository, environ, "--session", "bob", "--tenant", name, *lock[4:])
            assert held[0] == 1, "through the socket it is the same lock"
        assert coord(repository, environ, "locks")[1]["locks"] == []
    for name, url in urls.items():
        assert locks_in(url, name) == 1, "it is where its tenant lives"
    direct = {**environ, "COORD_HUB": "off"}
    for name in TENANTS:
        assert len(coord(repository, direct, "locks", "--tenant", name)[1]["locks"]) == 1
