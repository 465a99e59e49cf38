"""Preparing a NATS server, and what is refused at its door."""

import traceback
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

import coord
from coord.core.errors import CoordError, Invalid, NotFound, Unavailable, Unsupported
from coord.stores.contract import FORMAT
from coord.stores.nats.database import grants
from coord.stores.open import open_store
from tests.support.servers.nats import USER, NatsServer, admin
from tests.support.servers.server import PASSWORD, running
from tests.support.stores.steps import by_key, head, write


@pytest.fixture
def url(nats_server: NatsServer) -> str:
    """The url of a fresh store."""
    return nats_server.fresh_store_url()


def test_another_format_is_unsupported(url: str) -> None:
    """What a newer version wrote is neither opened nor installed over."""
    with admin(url) as server:
        meta = msgspec.json.encode({"format": str(FORMAT + 1), "store_id": "x", "epoch": "0"})
        server.put(server.address.subject("meta"), meta, {})
    for use in (open_store, coord.install):
        with pytest.raises(Unsupported, match=f"format {FORMAT + 1}"):
            use(url)


def test_durable_is_what_the_administrator_says(nats_server: NatsServer) -> None:
    """A client cannot see whether a server syncs: `install` is told, and all who open the store know."""
    url = nats_server.blank_url()
    for parameters, durable in (("", False), ("?durable=1", True), ("", True), ("?durable=0", False)):
        coord.install(url + parameters)
        with closing(open_store(url)) as database:
            assert database.log("local").limits.durable == durable
            checks = {check.name: check for check in database.checks()}
            assert checks["durability"].well == durable
            assert checks["server clock"].well
            assert checks["version"].text.startswith("NATS 2.")


def test_names_are_stores_apart(nats_server: NatsServer) -> None:
    """Two stores on one server, and two tenants whose names differ by a dot, see nothing of each other."""
    one, other = (open_store(nats_server.fresh_store_url()) for _ in range(2))
    with closing(one), closing(other):
        write(one.log("a.b"), {"one": b"1"})
        write(one.log("a-b"), {"dash": b"1"})
        write(other.log("a.b"), {"other": b"1"})
        assert [by_key(log) for log in (one.log("a.b"), one.log("a-b"), other.log("a.b"))] == [
            ["one"],
            ["dash"],
            ["other"],
        ]


@pytest.mark.parametrize(
    ("settings", "match"),
    [("max_payload: 500KB", "accepts messages"), ("no_jetstream", "JetStream")],
)
def test_a_server_that_will_not_do_is_unsupported(settings: str, match: str) -> None:
    """Too small messages, no JetStream: refused at the door, by install and by open, with the next step."""

    class Other(NatsServer):
        def command(self) -> list[str]:
            command = super().command()
            path = Path(command[-1])
            lines = path.read_text()
            if settings == "no_jetstream":
                lines = "\n".join(line for line in lines.splitlines() if "jetstream" not in line)
            else:
                lines += settings
            path.write_text(lines)
            return command

        def answers(self) -> bool:
            try:
                with closing(open_store(self.url("none"), timeout=0)):
                    return True
            except Unavailable:
                return False
            except CoordError:
                return True

    with running(Other) as server:
        for use in (open_store, coord.install):
            with pytest.raises(Unsupported, match=match) as refused:
                use(server.url("none"))
            assert refused.value.hint


def test_the_named_rights_are_enough_and_needed() -> None:
    """A user with what `grants` lists installs, works, waits and trims; without them nothing is done."""

    class Limited(NatsServer):
        def command(self) -> list[str]:
            command = super().command()
            path = Path(command[-1])
            rights = "\n".join(grants(self.url("mine")))
            users = (
                f"authorization {{ users: [ {{ user: {USER}, password: {PASSWORD}, {rights} }},"
                f" {{ user: nobody, password: {PASSWORD}, permissions {{ publish: none }} }} ] }}"
            )
            lines = [line for line in path.read_text().splitlines() if "authorization" not in line]
            path.write_text("\n".join([*lines, users]))
            return command

    with running(Limited) as server:
        url = server.url("mine")
        coord.install(url)
        with closing(open_store(url)) as database:
            log = database.log("local")
            write(log, {"k": b"1"})
            write(log, {"k": b"2"})
            assert log.wait(1, 60)
            log.trim(2)
            assert [check.name for check in database.checks()] == ["version", "durability", "server clock"]
        with pytest.raises(Unavailable, match="Permissions Violation"):
            coord.install(server.url("theirs"))
        with pytest.raises(Unavailable, match="Permissions Violation"):
            open_store(url.replace(f"//{USER}:", "//nobody:"))


def test_a_token_opens_the_door() -> None:
    """A server may ask for a token in place of a user."""

    class Closed(NatsServer):
        def command(self) -> list[str]:
            command = super().command()
            path = Path(command[-1])
            lines = [line for line in path.read_text().splitlines() if "authorization" not in line]
            path.write_text("\n".join([*lines, f"authorization {{ token: {PASSWORD} }}"]))
            return command

    with running(Closed) as server:
        for url in (server.url("mine").replace(f"{USER}:", before) for before in (":", "")):
            coord.install(url)
            with pytest.raises(NotFound) as refused:
                open_store(url.replace("mine", "other"))
            assert PASSWORD not in f"{refused.value} {refused.value.hint}"
        with pytest.raises(Unavailable):
            coord.install(server.url("mine"))


def test_an_encrypted_connection() -> None:
    """A server that asks for encryption gets it, and is trusted only by the certificate named in the url."""
    made = "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=tests -addext subjectAltName=IP:127.0.0.1"

    class Encrypted(NatsServer):
        def prepare(self) -> None:
            self.spawn(f"{made} -keyout {self.folder}/key.pem -out {self.folder}/ca.pem".split()).wait(60)
            self.settings = f'tls {{ cert_file: "{self.folder}/ca.pem", key_file: "{self.folder}/key.pem" }}'

    with running(Encrypted) as server:
        url = server.url("mine", f"?tls_ca={server.folder}/ca.pem")
        for each in (url, url.replace("nats:", "tls:")):
            coord.install(each)
            with closing(open_store(each)) as database:
                log = database.log("local")
                assert write(log, {"k": bytes(200_000)}) == head(log)
                assert log.wait(0, 60)
        with pytest.raises(Unavailable, match="no encrypted connection"):
            open_store(server.url("mine"))


@pytest.mark.parametrize(
    "change",
    [
        lambda url: url.replace(PASSWORD, "a-wrong-secret"),
        lambda url: url.replace("127.0.0.1:", "127.0.0.1:1"),
        lambda url: url.replace("@127.0.0.1", "@127.0.0.1:no-port:"),
        lambda url: url.replace("?durable=1", "?nonsense=1"),
        lambda url: url.replace("?durable=1", "?durable=perhaps"),
        lambda url: url.replace("?durable=1", "?replicas=7"),
        lambda url: url.replace("@127.0.0.1", "@[::1"),
        lambda url: url.replace("?", "_that_is_not_there?"),
        lambda url: url.replace("?", "-bad.name?"),
        lambda url: url.replace("nats:", "tls:"),
        lambda url: url.replace(f"{USER}:", ":"),
    ],
)
def test_the_password_is_never_shown(url: str, change: Callable[[str], str]) -> None:
    """Whatever is wrong with a url or its server, neither the error nor its causes tell the password."""
    with pytest.raises((Invalid, Unavailable, NotFound)) as raised:
        open_store(change(url), timeout=0)
    told = "".join(traceback.format_exception(raised.value)) + repr(raised.value)
    assert "secret" not in told
    assert PASSWORD not in told
    assert raised.value.hint
