"""`coord install` from end to end: the stores it creates, its messages and its refusals."""

import json
import os
from pathlib import Path

import pytest

from tests.support.cli import PROGRAM, Coord
from tests.support.consent import write_configuration
from tests.support.servers.postgres import PostgresServer
from tests.support.servers.server import PASSWORD
from tests.support.terminals import Terminal


def configure(repository: Path, text: str) -> None:
    write_configuration(repository, text, os.environ)


def test_a_server_is_prepared(coord: Coord, postgres_server: PostgresServer) -> None:
    """Issue 6: idempotent, reports its changes; `--dry-run` changes nothing; no answer has a password."""
    url = postgres_server.blank_url()
    told = [coord("ann install", url, *flags) for flags in (("--dry-run",), (), ("--dry-run",), ())]
    assert [(each.code, each.answer["made"]) for each in told] == [
        (0, True),
        (0, True),
        (0, False),
        (0, False),
    ]
    assert [bool(each.answer["store_id"]) for each in told] == [False, True, True, True]
    expected = ("would be created", "was created", "exists already", "existed already")
    for each, words in zip(told, expected, strict=True):
        assert words in each.line
        assert PASSWORD not in json.dumps(each.answer) + each.line
    assert coord("ann lock name:release --url", url).code == 0


def test_who_was_not_prepared_says_how(coord: Coord, postgres_server: PostgresServer) -> None:
    """The error of a missing store names the command that creates it, without the password."""
    said = coord("ann locks --url", postgres_server.blank_url())
    assert said.code != 0
    assert said.answer["error"]["hint"].startswith("prepare it: coord install postgresql://coord:***@")


@pytest.mark.parametrize("url", ["", "sqlite://{0}/one.db", "file://{0}/two"])
def test_stores_in_files_are_made(coord: Coord, repository: Path, url: str) -> None:
    """A store in files needs no grants; without a URL install creates the store of the repository."""
    words = [url.format(repository)] if url else []
    assert coord("ann install --dry-run", *words).answer["made"] is True
    made = coord("ann install", *words)
    assert (made.code, made.answer["made"]) == (0, True)
    again = coord("ann install", *words)
    assert (again.answer["made"], again.answer["store_id"]) == (False, made.answer["store_id"])
    assert coord("ann install --grants", *words).answer["grants"] == []


def test_a_pinned_store_that_is_lost_is_not_made_anew(coord: Coord, repository: Path) -> None:
    """install refuses to replace a lost store, because an empty one would hide the loss."""
    coord("ann lock a.py")
    for file in (repository / ".git/coord/store").glob("coord.db*"):
        file.unlink()
    said = coord("ann install")
    assert said.code == 70
    assert "coord init --new-store" in said.answer["error"]["hint"]
    assert not (repository / ".git/coord/store/coord.db").exists()


def test_grants_are_printed_as_they_are_run(coord: Coord, repository: Path) -> None:
    """Issue 6: --grants needs no server; it prints SQL on a terminal and JSON in a pipe."""
    url = "postgresql://boss:secret@nowhere.invalid/store"
    said = coord("ann install --grants", url)
    assert any("GRANT USAGE ON SCHEMA" in text for text in said.answer["grants"])
    terminal = Terminal(*PROGRAM[1:], "install", "--grants", url, cwd=str(repository))
    terminal.wait_for('GRANT CONNECT, CREATE ON DATABASE "store" TO "boss";')
    assert terminal.exit_code() == 0
    assert "secret" not in terminal.shown


def test_a_tenant_gets_the_store_that_is_configured(coord: Coord, repository: Path) -> None:
    """TEN-2: coord.toml names the store, `coord install --tenant` creates it, and commands find it."""
    configure(repository, f'[tenants]\n"*" = "sqlite://{repository}/{{tenant}}.db"\n')
    refused = coord("ann lock a.py --tenant acme")
    assert refused.answer["error"]["hint"] == "coord install --tenant acme"
    assert coord("ann install --tenant acme --dry-run").answer["made"] is True
    made = coord("ann install --tenant acme")
    assert (made.code, made.answer["tenant"], made.answer["made"]) == (0, "acme", True)
    assert coord("ann lock a.py --tenant acme").code == 0
    assert coord("bob lock a.py").code == 0, "another tenant, another lock"
    assert [lock["owner"] for lock in coord("bob locks --tenant acme").answer["locks"]] == ["s-ann"]
    assert (repository / "acme.db").exists()
    checks = [each["check"] for each in coord("ann doctor --tenant acme").answer["checks"]]
    assert checks.count("durability") == 2, "the doctor looks at both stores"
    configure(repository, "")
    lost = coord("bob locks --tenant acme")
    assert (lost.code, "[tenants]" in lost.answer["error"]["hint"]) == (69, True)


@pytest.mark.parametrize(
    ("text", "words", "says"),
    [
        ("", "--tenant acme", "has no separate store"),
        ('tenants = "x"', "--tenant acme", "is not a table"),
        ('[tenants]\nacme = "nowhere:"', "--tenant acme", "is not a store url"),
        ('[tenants]\n"*" = "file:///srv"', "--tenant acme", "lacks {tenant}"),
        ('[tenants]\nacme = "file:///srv"', "--tenant ../x", "tenant"),
        ("", "nowhere:", "is not a store url"),
        ("", "memory: --url memory:", "given twice"),
        ("", "memory: --tenant acme", "has no separate store"),
    ],
)
def test_what_is_refused(coord: Coord, repository: Path, text: str, words: str, says: str) -> None:
    """Bad names and URLs are errors with a hint, and create nothing."""
    configure(repository, text)
    said = coord(f"ann install {words}")
    assert said.code == 2
    assert says in said.answer["error"]["message"]
    assert said.answer["error"]["hint"]
    assert sorted(path.name for path in repository.iterdir()) == [".git", "coord.toml"]
    assert not (repository / ".git/coord").exists()
