"""`/v1/ws`: the same entries as messages, with the same checks as a request."""

import asyncio
import json
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection

from coord.transports.hub.protocols import websocket as protocol
from coord.transports.hub.streams import feed, websocket
from tests.support.hub.site import Site, open_site, read_all


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with open_site() as found:
        yield found


def message(connection: ClientConnection) -> Any:
    return json.loads(connection.recv(timeout=60))


def entries(connection: ClientConnection, last: int) -> list[Any]:
    """Return entries up to an offset."""
    found: list[Any] = []
    while not found or found[-1]["offset"] < last:
        each = message(connection)
        if each["type"] == "entry":
            found.append(each)
    return found


def closing(connection: ClientConnection) -> tuple[int, list[Any]]:
    """Return the code with which the hub closes a connection, and the messages before that."""
    found: list[Any] = []
    try:
        while True:
            found.append(message(connection))
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd is not None else 0, found


def refusal(site: Site, path: str = "/v1/ws", **options: Any) -> int:
    with pytest.raises(InvalidStatus) as refused:
        site.websocket(path, **options)
    return refused.value.response.status_code


def test_entries_come_in_order_without_a_gap(site: Site) -> None:
    """Events are broadcast as they happen (API-7), also to other sessions (EVT-11)."""
    token = site.token()
    first = site.write(3)
    with site.websocket(f"/v1/ws?after={first}", token) as connection:
        last = site.write(5)
        assert message(connection) == {"type": "begin", "offset": first}
        found = entries(connection, last)
    assert [each["offset"] for each in found] == list(range(first + 1, last + 1))
    assert found[-1]["events"][0]["event"] == "task.added"


def test_new_alerts_are_pushed_by_their_founding_name(site: Site) -> None:
    """ALR-9: who subscribes to `alert:new` gets the alerts that are raised, and nothing else."""
    token = site.token()
    with site.websocket("/v1/ws?types=alert:new", token) as connection:
        assert message(connection)["type"] == "begin"
        site.write(1)
        last = site.write(1, event="alert.raised", rule="stuck_agent")
        found = [event for each in entries(connection, last) for event in each["events"]]
    assert [(each["event"], each["rule"]) for each in found] == [("alert.raised", "stuck_agent")]


def test_a_client_subscribes_again_and_pings(site: Site) -> None:
    token = site.token()
    last = site.write(4)
    with site.websocket("/v1/ws", token) as connection:
        assert message(connection)["type"] == "begin"
        connection.send(json.dumps({"type": "ping", "id": 7}))
        pong = message(connection)
        assert (pong["type"], pong["id"]) == ("pong", 7)
        connection.send(json.dumps({"type": "subscribe", "after": last - 2, "types": ["task.*"]}))
        assert message(connection) == {"type": "begin", "offset": last - 2}
        assert [each["offset"] for each in entries(connection, last)] == [last - 1, last]
        connection.send(json.dumps({"type": "unsubscribe"}))
        connection.send(json.dumps({"type": "ping"}))
        assert message(connection)["type"] == "pong"


def unsubscribe(connection: ClientConnection) -> None:
    """Send the message, and wait until the hub has read it."""
    assert message(connection)["type"] == "begin"
    connection.send(json.dumps({"type": "unsubscribe"}))
    connection.send(json.dumps({"type": "ping"}))
    while message(connection)["type"] != "pong":
        pass


def test_a_socket_without_a_subscription_counts_as_a_stream(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a token could open any number of them."""
    monkeypatch.setattr(feed, "STREAMS_PER_TOKEN_MAX", 1)
    token = site.token()
    with site.websocket("/v1/ws", token) as connection:
        unsubscribe(connection)
        assert refusal(site, token=token) == 429


def test_a_socket_without_a_subscription_does_not_stay_open(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its token may have been revoked."""
    monkeypatch.setattr(websocket, "UNSUBSCRIBED_S", 0)
    with site.websocket("/v1/ws", site.token()) as connection:
        connection.send(json.dumps({"type": "unsubscribe"}))
        assert closing(connection)[0] == 1001


def test_to_unsubscribe_again_gains_no_time() -> None:
    async def unsubscribe_twice() -> None:
        target: Any = SimpleNamespace(hub=SimpleNamespace(stopping=asyncio.Event()))
        found = websocket._Socket(target, target, target)
        await found._change(None)
        task = found._task
        await found._change(None)
        assert found._task is task
        await found._stop()

    asyncio.run(unsubscribe_twice())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "[" * 5000,
        '{"type": "drop"}',
        '{"type": "ping", "more": 1}',
        '{"type": "subscribe", "after": 1.5}',
        '{"type": "subscribe", "after": -1}',
        '{"type": "subscribe", "after": 99999999999999999999999}',
        '{"type": "subscribe", "types": ["nope"]}',
        '{"type": "subscribe", "project": "secret"}',
        '{"type": "subscribe", "after": NaN}',
        '{"type": "ping", "id": "\\ud800"}',
        b"\x00\xff",
    ],
)
def test_a_bad_message_is_answered(site: Site, text: str | bytes) -> None:
    with site.websocket("/v1/ws", site.token(project="shop")) as connection:
        assert message(connection)["type"] == "begin"
        connection.send(text)
        answer = message(connection)
        assert (answer["type"], bool(answer["hint"])) == ("error", True)
        connection.send(json.dumps({"type": "ping"}))
        assert message(connection)["type"] == "pong"


def test_a_token_of_a_project_sees_only_that_project(site: Site) -> None:
    with site.websocket("/v1/ws", site.token(project="shop")) as connection:
        assert message(connection)["type"] == "begin"
        site.write(1, project="secret")
        site.write(1, event="message.sent", project=None)
        last = site.write(1, project="shop")
        assert [each["offset"] for each in entries(connection, last)] == [last]


def test_the_same_checks_as_for_a_request(site: Site) -> None:
    token = site.token()
    assert refusal(site) == 401
    assert refusal(site, token="coord_x") == 401
    assert refusal(site, token=token, headers={"Origin": "http://evil.example"}) == 403
    assert refusal(site, token=token, headers={"Origin": "null"}) == 403
    assert refusal(site, "/v1/call", token=token) == 404
    assert refusal(site, "/v1/ws?tenant=other", token=token) == 403
    assert refusal(site, "/v1/ws?after=x", token=token) == 400
    with site.websocket("/v1/ws", token, headers={"Origin": f"http://{site.address}"}) as connection:
        assert message(connection)["type"] == "begin"
    answer = site.ask("GET", "/v1/ws", token)
    assert (answer.status, answer.json()["code"]) == (426, "upgrade_required")


def handshake(site: Site, **headers: str) -> bytes:
    """Return the head of an upgrade; `**headers` replaces some."""
    fields = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        **headers,
    }
    return site.head("GET", "/v1/ws", **fields)


def test_an_upgrade_with_a_foreign_host_is_refused(site: Site) -> None:
    """DNS rebinding: a page of evil.example whose name leads to this machine."""
    found = site.raw(handshake(site, Host="evil.example", Authorization=f"Bearer {site.token()}"))
    assert found.startswith(b"HTTP/1.1 421")


def test_a_process_of_this_user_needs_no_token(site: Site) -> None:
    with site.unix_websocket() as connection:
        assert message(connection)["type"] == "begin"


def test_messages_are_limited_in_size_and_number(site: Site) -> None:
    with site.websocket("/v1/ws", site.token()) as connection:
        connection.send("x" * (protocol.MESSAGE_BYTES_MAX + 1))
        assert closing(connection)[0] == 1009
    with site.websocket("/v1/ws", site.token()) as connection:
        for _ in range(2 * int(websocket.MESSAGES_MAX)):
            with suppress(ConnectionClosed):
                connection.send('{"type": "ping"}')
        assert closing(connection)[0] == 1008


def frame(opcode: int, payload: bytes, *, fin: bool) -> bytes:
    assert len(payload) < 126
    return bytes([(0x80 if fin else 0) | opcode, 0x80 | len(payload)]) + b"\0\0\0\0" + payload


def opened(site: Site) -> socket.socket:
    made = site.open()
    made.sendall(handshake(site, Authorization=f"Bearer {site.token()}"))
    assert made.recv(12) == b"HTTP/1.1 101"
    return made


def test_endless_fragments_end_the_connection(site: Site) -> None:
    """Empty fragments cost the sender six bytes, and must not cost the hub memory."""
    with opened(site) as made:
        made.sendall(frame(1, b"", fin=False) + frame(0, b"", fin=False) * (protocol.FRAGMENTS_MAX + 5))
        assert struct.pack("!H", 1009) in read_all(made)


def test_a_client_that_pings_and_never_reads_is_dropped(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every ping is answered, and the answers wait in memory until they are read."""
    monkeypatch.setattr(protocol, "UNREAD_BYTES_MAX", 1000)
    pings = frame(9, b"x" * 125, fin=True) * 500

    def flood(made: socket.socket) -> None:
        while True:
            made.sendall(pings)

    with opened(site) as made, pytest.raises(ConnectionError):
        flood(made)


def test_a_client_that_was_too_slow_is_told_to_resync(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets what it had before, in order; then the offset at which it has to start again."""
    monkeypatch.setattr(feed, "WINDOW_ENTRIES", 32)
    monkeypatch.setattr(feed, "PAGE_ENTRIES", 8)
    with open_site() as site:
        token = site.token()
        with site.websocket("/v1/ws", token, max_queue=1) as connection:
            assert message(connection)["type"] == "begin"
            last = 0
            for _ in range(400):  # more than the socket buffers hold
                last = site.write(1, note="x" * 50_000)
            code, found = closing(connection)
        assert code == 1013
        assert found[-1]["type"] == "resync"
        offsets = [each["offset"] for each in found if each["type"] == "entry"]
        assert offsets == list(range(offsets[0], offsets[0] + len(offsets)))
        assert offsets[-1] < found[-1]["offset"] <= last


def test_a_socket_ends_when_the_hub_stops_or_the_token_is_revoked() -> None:
    with open_site() as site:
        token, other = site.token(), site.token()
        with site.websocket("/v1/ws", token) as first, site.websocket("/v1/ws", other) as second:
            assert (message(first)["type"], message(second)["type"]) == ("begin", "begin")
            site.revoke(token)
            while (ended := message(first))["type"] != "end":
                pass
            assert "revoked" in ended["reason"]
            site.thread.stop()
            while (ended := message(second))["type"] != "end":
                pass
            assert "stopping" in ended["reason"]
