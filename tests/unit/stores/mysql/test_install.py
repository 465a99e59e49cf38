"""Installing and opening a MySQL store: what is refused, what is kept apart, what is never shown."""

import ssl
import traceback
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import coord
from coord.core.errors import Invalid, NotFound, Unavailable, Unsupported
from coord.stores.mysql import connection as mysql_connection
from coord.stores.mysql import store as mysql
from coord.stores.mysql.connection import Address, is_durable
from coord.stores.open import open_store
from coord.stores.tenants import tenant_slug
from tests.support.servers.mariadb import MariadbServer
from tests.support.servers.server import PASSWORD, running
from tests.support.stores.mysql_sessions import rows
from tests.support.stores.steps import head, write


@pytest.fixture
def url(mariadb_server: MariadbServer) -> str:
    """The url of a fresh store."""
    return mariadb_server.fresh_url()


def test_an_install_that_was_interrupted_is_finished(mariadb_server: MariadbServer) -> None:
    """Tables are made one by one, and what makes them a store comes last."""
    url = mariadb_server.blank_url()
    address = Address(url)
    with closing(address.connect()) as session:
        for statement in address.sql.create:
            session.ask(statement)
    with pytest.raises(NotFound):
        open_store(url)
    coord.install(url)
    with closing(open_store(url)) as database:
        assert head(database.log("local")) == 0


def test_another_format_is_unsupported(mariadb_server: MariadbServer, url: str) -> None:
    """What a newer version wrote is neither opened nor installed over."""
    with mariadb_server.admin(url.rpartition("/")[2]) as sql:
        rows(sql, "UPDATE coord_meta SET value = '99' WHERE name = 'format'")
    for use in (open_store, coord.install):
        with pytest.raises(Unsupported, match="format 99"):
            use(url)


def test_an_old_server_is_unsupported(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused at the door, by install and by open."""
    monkeypatch.setattr(mysql_connection, "MARIADB", (99, 0))
    for use in (open_store, coord.install):
        with pytest.raises(Unsupported, match=r"MariaDB 10\.6, MySQL 8\.0"):
            use(url)


@pytest.mark.parametrize(
    ("variables", "refusal"),
    [
        ({"wsrep_on": "ON"}, "Galera"),
        ({"version": "8.4.3", "log_bin": "ON", "binlog_format": "STATEMENT"}, "binlog"),
        ({"version": "5.7.44-log"}, "5.7.44"),
        ({"version": "10.5.1-MariaDB"}, "10.5.1"),
        ({"read_only": "ON"}, "read-only"),
    ],
)
def test_servers_that_cannot_keep_the_contract_are_refused(
    url: str, variables: dict[str, str], refusal: str
) -> None:
    """By what the server says of itself: versions, clusters that take commits twice, replicas."""
    address = Address(url)
    with closing(address.connect()) as session:
        address._refuse_unfit(session)
        session.variables |= variables
        with pytest.raises((Unsupported, Unavailable), match=refusal):
            address._refuse_unfit(session)


def test_a_replica_is_unavailable_and_durability_is_told(tmp_path: Path) -> None:
    """A read-only server is refused; `limits.durable` is false where an answer may precede the disk."""
    with running(MariadbServer, tmp_path) as server, server.admin() as admin:
        url = server.fresh_url()
        for setting, durable in (("2", False), ("1", True)):
            rows(admin, f"SET GLOBAL innodb_flush_log_at_trx_commit = {setting}")
            with closing(open_store(url)) as database:
                assert database.log("local").limits.durable is durable
                assert {check.name: check.well for check in database.checks()} == {
                    "version": True,
                    "durability": durable,
                    "server clock": True,
                }
        rows(admin, "SET GLOBAL max_allowed_packet = 1048576")
        with pytest.raises(Unsupported, match="max_allowed_packet"):
            open_store(url)
        rows(admin, "SET GLOBAL read_only = 1")
        with pytest.raises(Unavailable, match="read-only"):
            open_store(url)


def test_a_binlog_must_be_synced_too() -> None:
    """With a binlog the server recovers by it, so one that is not synced loses what was answered."""
    synced = {"innodb_flush_log_at_trx_commit": "1", "innodb_doublewrite": "ON", "log_bin": "ON"}
    assert is_durable({**synced, "sync_binlog": "1"})
    assert not is_durable({**synced, "sync_binlog": "0"})
    assert not is_durable({**synced, "sync_binlog": "1", "innodb_doublewrite": "OFF"})
    assert is_durable({**synced, "sync_binlog": "0", "log_bin": "OFF"})


def test_prefixes_are_stores_apart(mariadb_server: MariadbServer) -> None:
    """Several stores share a database, each with tables of its own."""
    url = mariadb_server.blank_url()
    urls = [f"{url}?prefix=select", url, f"{url}?prefix=coord_{tenant_slug('A long name of a tenant')}"]
    for one in urls:
        coord.install(one)
    with closing(open_store(urls[0])) as first, closing(open_store(urls[1])) as second:
        write(first.log("local"), {"k": b"1"})
        assert first.store_id != second.store_id
        assert [head(first.log("local")), head(second.log("local"))] == [1, 0]


def test_the_grants_are_enough_and_no_more(mariadb_server: MariadbServer) -> None:
    """With the rights that `grants` names a user installs a store and works with it, and with no other."""
    name = mariadb_server.blank_url().rpartition("/")[2] + "_granted"
    url = mariadb_server.url(name).replace("coord:", "narrow:", 1)
    with mariadb_server.admin() as admin:
        rows(admin, f"CREATE USER narrow@'%' IDENTIFIED BY '{PASSWORD}'".replace("%", "%%"))
        for statement in mysql.grants(url):
            with admin.cursor() as cursor:
                cursor.execute(statement)
    coord.install(url)
    with closing(open_store(url)) as database:
        store = database.log("local")
        assert write(store, {"k": b"1"}, events=[b"e"]) == 1
        assert [entry.events for entry in store.tail(0, 9)] == [[b"e"]]
        store.trim(1)
    with pytest.raises(Unavailable, match="denied"):
        coord.install(url + "?prefix=other")
    with mariadb_server.admin() as admin:
        rows(admin, f"CREATE DATABASE {name.replace('_granted', 'Xgranted')}")
    with pytest.raises(Unavailable, match="denied"):  # an underscore stands for itself
        Address(url.replace("_granted", "Xgranted")).connect()


@pytest.mark.parametrize("prefix", ["", "Coord", "a`b", "a.b", "1a", "x" * 49, "a&prefix=b"])
def test_a_bad_prefix_is_invalid(url: str, prefix: str) -> None:
    """Only a plain small identifier becomes part of a statement."""
    for use in (open_store, coord.install):
        with pytest.raises(Invalid, match=r"prefix|twice"):
            use(f"{url}?prefix={prefix}")


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
        lambda url: url.rpartition("/")[0],
        lambda url: url + "?ssl=perhaps",
        lambda url: url + "?ssl=required",
        lambda url: url + "?prefix=empty",
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


def test_the_password_may_come_from_the_environment(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """MYSQL_PWD, as for the servers' own clients, or a file of options; a url need not hold a secret."""
    bare = url.replace(f":{PASSWORD}@", "@")
    with pytest.raises(Unavailable, match="denied"):
        open_store(bare)
    monkeypatch.setenv("MYSQL_PWD", PASSWORD)
    open_store(bare).close()


class EncryptedServer(MariadbServer):
    """Offers encrypted connections, with a certificate of its own making."""

    def prepare(self) -> None:
        super().prepare()
        self.make_certificate()

    def command(self) -> list[str]:
        return [*super().command(), f"--ssl-cert={self.folder}/certificate", f"--ssl-key={self.folder}/key"]


def test_an_encrypted_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever says nothing is encrypted unchecked and loads no certificates; who wants checks gets them."""
    with running(EncryptedServer, tmp_path) as server:
        url = server.fresh_url()
        vouched = f"ssl=verify-full&ssl_ca={server.folder}/certificate"
        for choice, encrypted in (("ssl=required", True), (vouched, True), ("ssl=disabled", False)):
            assert _is_encrypted(f"{url}?{choice}") is encrypted
        with pytest.raises(Unavailable, match="certificate"):
            open_store(f"{url}?ssl=verify-full")
        monkeypatch.delattr(ssl.SSLContext, "load_default_certs")
        assert _is_encrypted(url)


def _is_encrypted(url: str) -> bool:
    with closing(Address(url).connect()) as session:
        *_, told = session.ask(b"SHOW STATUS LIKE 'Ssl_cipher'")
        return bool(told[0][1])
