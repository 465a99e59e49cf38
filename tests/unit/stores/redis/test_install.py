"""Installing and opening a Redis store: what is refused, what is kept apart, what is never shown."""

import traceback
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import coord
from coord.core.errors import Invalid, NotFound, Unavailable, Unsupported
from coord.stores.contract import FORMAT
from coord.stores.open import open_store
from coord.stores.redis import connection as of_servers
from tests.support.servers.redis import SETTINGS, RedisServer
from tests.support.servers.server import PASSWORD, running
from tests.support.stores.steps import head, write


@pytest.fixture
def url(redis_server: RedisServer) -> str:
    """The url of a fresh store."""
    return redis_server.fresh_store_url()


def test_another_format_is_unsupported(redis_server: RedisServer, url: str) -> None:
    """What a newer version wrote is neither opened nor installed over, and its notes stay as they are."""
    meta = f"{{{url.partition('prefix=')[2]}}}:meta"
    with redis_server.admin() as admin:
        admin.hset(meta, mapping={"format": FORMAT + 1, "run": "another life"})
        for use in (open_store, coord.install):
            with pytest.raises(Unsupported, match=f"format {FORMAT + 1}"):
                use(url)
        assert admin.hmget(meta, "epoch", "run") == [b"0", b"another life"]


def test_an_old_server_is_unsupported(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused at the door, by install and by open."""
    monkeypatch.setattr(of_servers, "OLDEST", (99, 0))
    for use in (open_store, coord.install):
        with pytest.raises(Unsupported, match=r"7\.0 or newer"):
            use(url)


def test_a_server_that_forgets_keys_is_unsupported(tmp_path: Path) -> None:
    """Evicting a key would be losing locks without a word."""
    settings = {**SETTINGS, "maxmemory-policy": "allkeys-lru"}
    kind: type[RedisServer] = type("Evicting", (RedisServer,), {"settings": settings})
    with running(kind, tmp_path) as server:
        for use in (open_store, coord.install):
            with pytest.raises(Unsupported, match="allkeys-lru") as refused:
                use(server.blank_store_url())
            assert "noeviction" in refused.value.hint


def test_a_server_that_does_not_tell_is_not_durable(redis_server: RedisServer, url: str) -> None:
    """Whoever may not ask for its settings cannot know, and does not promise."""
    with redis_server.admin() as admin:
        admin.execute_command("ACL SETUSER curious on >curious ~* +@all -config")
    with closing(open_store(url)) as database:
        assert database.log("local").limits.durable
    with closing(open_store(url.replace(f":{PASSWORD}@", "curious:curious@"))) as database:
        assert not database.log("local").limits.durable


def test_prefixes_are_stores_apart(redis_server: RedisServer) -> None:
    """`prefix` is taken out of the url, the rest goes to the driver; without one it is `coord`."""
    urls = [f"{redis_server.blank_store_url()}&socket_timeout=9", redis_server.url]
    for one in urls:
        coord.install(one)
    with closing(open_store(urls[0])) as first, closing(open_store(urls[1])) as second:
        write(first.log("local"), {"k": b"1"})
        assert first.store_id != second.store_id
        assert [head(first.log("local")), head(second.log("local"))] == [1, 0]
    with redis_server.admin() as admin:
        assert admin.exists("{coord}:meta")
        admin.delete(*admin.scan_iter("{coord}:*"))


@pytest.mark.parametrize("prefix", ["", "a b", "{a}", "a:b", "x" * 49, "a&prefix=b"])
def test_a_bad_prefix_is_invalid(redis_server: RedisServer, prefix: str) -> None:
    """Only a plain name becomes part of keys."""
    for use in (open_store, coord.install):
        with pytest.raises(Invalid, match="prefix"):
            use(f"{redis_server.url}?prefix={prefix}")


@pytest.mark.parametrize(
    "change",
    [
        lambda url: url.replace(PASSWORD, "a-wrong-secret"),
        lambda url: url.replace("127.0.0.1:", "127.0.0.1:1"),
        lambda url: url.replace("@127.0.0.1", "@127.0.0.1:no-port:"),
        lambda url: url.replace("/0?", "/no-number?"),
        lambda url: url + "&nonsense=1",
        lambda url: url.replace("@127.0.0.1", "@[::1"),
        lambda url: url.replace(f":{PASSWORD}@", "") + f"&password={PASSWORD}&nonsense=1",
        lambda url: url + "&prefix=a:b",
        lambda url: url.partition("?")[0] + "?prefix=empty",
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


class EncryptedServer(RedisServer):
    """Takes encrypted connections only, with a certificate of its own making."""

    def prepare(self) -> None:
        self.make_certificate()

    def command(self) -> list[str]:
        files = f"--tls-cert-file {self.folder}/certificate --tls-key-file {self.folder}/key"
        words = f"--port 0 --tls-port {self.port} --tls-auth-clients no {files}"
        return [*super().command(), *words.split()]

    @property
    def url(self) -> str:
        plain = super().url.replace("redis://", "rediss://")
        return f"{plain}?ssl_ca_certs={self.folder}/certificate"


def test_an_encrypted_server(tmp_path: Path) -> None:
    """`rediss://` encrypts and checks the certificate; one that nobody vouches for is refused."""
    with running(EncryptedServer, tmp_path) as server:
        coord.install(server.url)
        with closing(open_store(server.url)) as database:
            assert write(database.log("local"), {"k": b"1"}) == 1
        with pytest.raises(Unavailable, match="certificate"):
            open_store(server.url.partition("?")[0])
