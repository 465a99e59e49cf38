"""Installing and opening a Postgres store: what is refused, what is kept apart, what is never shown."""

import traceback
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

import coord
from coord.core.errors import Invalid, NotFound, Unavailable, Unsupported
from coord.stores.open import open_store
from coord.stores.postgres import connection as postgres_connection
from tests.support.servers.postgres import PostgresServer
from tests.support.servers.server import PASSWORD, running
from tests.support.stores.steps import head, write


@pytest.fixture
def url(postgres_server: PostgresServer) -> str:
    """The url of a fresh store."""
    return postgres_server.fresh_url()


def test_another_format_is_unsupported(url: str) -> None:
    """STO-12: What a newer version wrote is neither opened nor installed over."""
    with psycopg.connect(url, autocommit=True) as sql:
        sql.execute("UPDATE coord.meta SET value = '99' WHERE name = 'format'")
    for use in (open_store, coord.install):
        with pytest.raises(Unsupported, match="format 99"):
            use(url)


def test_an_old_server_or_another_encoding_is_unsupported(
    postgres_server: PostgresServer, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused at the door, by install and by open."""
    with postgres_server.admin() as admin:
        admin.execute("CREATE DATABASE bytes TEMPLATE template0 ENCODING 'SQL_ASCII'")
    with pytest.raises(Unsupported, match="SQL_ASCII"):
        coord.install(postgres_server.url("bytes"))
    monkeypatch.setattr(postgres_connection, "SERVER_VERSION", 10**6)
    for use in (open_store, coord.install):
        with pytest.raises(Unsupported, match="13 or newer"):
            use(url)


def test_a_standby_is_unavailable(tmp_path: Path) -> None:
    """A standby may be behind: what it says must not be taken for the newest state."""
    with running(PostgresServer, tmp_path) as server:
        url = server.fresh_url()
        server.stop()
        (server.folder / "data" / "standby.signal").touch()
        server.restart()
        with pytest.raises(Unavailable, match="standby"):
            open_store(url)


def test_whether_commits_are_durable_is_told(url: str) -> None:
    """`limits.durable` is what the session has, and false where the server may answer before the disk."""
    for told, parameters in ((True, ""), (False, "?options=-csynchronous_commit%3Doff")):
        with closing(open_store(url + parameters)) as database:
            assert database.log("local").limits.durable is told


def test_schemas_are_stores_apart(postgres_server: PostgresServer) -> None:
    """`schema` is taken out of the url, the rest goes to libpq; a reserved word is a name like any other."""
    url = postgres_server.blank_url()
    urls = [f"{url}?schema=select&application_name=first", f"{url}?application_name=second"]
    for one in urls:
        coord.install(one)
    with closing(open_store(urls[0])) as first, closing(open_store(urls[1])) as second:
        write(first.log("local"), {"k": b"1"})
        assert first.store_id != second.store_id
        assert [head(first.log("local")), head(second.log("local"))] == [1, 0]
        with psycopg.connect(url) as sql:
            query = "SELECT application_name FROM pg_stat_activity WHERE datname = current_database()"
            names = {name for (name,) in sql.execute(query)}
        assert {"first", "second"} <= names


@pytest.mark.parametrize("schema", ["", "Coord", "pg_mine", 'a"b', "a.b", "1a", "x" * 49, "a&schema=b"])
def test_a_bad_schema_is_invalid(url: str, schema: str) -> None:
    """Only a plain small identifier becomes part of a statement."""
    for use in (open_store, coord.install):
        with pytest.raises(Invalid, match="schema"):
            use(f"{url}?schema={schema}")


@pytest.mark.parametrize(
    "change",
    [
        lambda url: url.replace(PASSWORD, "a-wrong-secret"),
        lambda url: url.replace("127.0.0.1:", "127.0.0.1:1"),
        lambda url: url.replace("@127.0.0.1", "@127.0.0.1:no-port:"),
        lambda url: url + "?nonsense=1",
        lambda url: url.replace("@127.0.0.1", "@[::1"),
        lambda url: url + "_that_is_not_there",
        lambda url: url.replace(f":{PASSWORD}@", "@") + f"?password={PASSWORD}&nonsense=1",
        lambda url: url + "?schema=pg_bad",
        lambda url: url + "?schema=empty",
    ],
)
def test_the_password_is_never_shown(url: str, change: Callable[[str], str]) -> None:
    """Whatever is wrong with a url or its server, neither the error nor its causes tell the password."""
    for use in (open_store, coord.install) if "empty" not in change(url) else (open_store,):
        with pytest.raises((Invalid, Unavailable, NotFound)) as raised:
            use(change(url), timeout=0)
        told = "".join(traceback.format_exception(raised.value)) + repr(raised.value)
        assert "secret" not in told
        assert PASSWORD not in told
