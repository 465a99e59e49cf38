"""Webhooks: signed, bounded in time and size, with valid certificates, and never into our own network."""

import base64
import hashlib
import hmac
import json
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from coord.core.errors import CoordError, Invalid, Refused
from coord.followers.reactions import webhook
from coord.followers.reactions.events import Delivery, Position
from coord.followers.reactions.webhook import (
    Permanent,
    TryLater,
    Webhook,
    check_url,
    is_public,
    payload,
    post,
)

DELIVERY = Delivery(
    Position(41, 0), "task.completed", 1_767_506_400_000, {"task": "A-1", "agent": "<!channel> @everyone"}
)
NOW_S = 1_767_506_401


class Receiver:
    """A server of the test: it remembers requests, and answers as it is told."""

    def __init__(self, answer: Callable[[BaseHTTPRequestHandler], None] | int = 200) -> None:
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests.append((self.path, dict(self.headers), body))
                if callable(answer):
                    answer(self)
                    return
                self.send_response(answer)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook?a=1"


@pytest.fixture
def receivers() -> Iterator[Callable[..., Receiver]]:
    made: list[Receiver] = []

    def new(answer: Callable[[BaseHTTPRequestHandler], None] | int = 200) -> Receiver:
        made.append(Receiver(answer))
        return made[-1]

    yield new
    for each in made:
        each.server.shutdown()
        each.server.server_close()


def send(url: str, *, timeout_s: float = 5, environ: dict[str, str] | None = None, **more: Any) -> None:
    given = {"allow_private": True, **more}
    post(Webhook(url, **given), DELIVERY, "chat", environ or {}, timeout_s, NOW_S)


def test_a_delivery_is_signed_as_the_standard_says(
    receivers: Callable[..., Receiver], tmp_path: Path
) -> None:
    receiver = receivers()
    key = base64.b64encode(b"k" * 32).decode()
    send(receiver.url, secret_env="S", environ={"S": f"whsec_{key}"})
    private = tmp_path / "secret"
    private.write_text("plain text\n")
    private.chmod(0o600)
    send(receiver.url, secret_file=str(private))
    for (path, headers, body), secret in zip(receiver.requests, (b"k" * 32, b"plain text"), strict=True):
        assert path == "/hook?a=1"
        assert (headers["Webhook-Id"], headers["Webhook-Timestamp"]) == ("41.0.chat", str(NOW_S))
        signed = b"41.0.chat.%d." % NOW_S + body
        expected = base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()
        assert headers["Webhook-Signature"] == f"v1,{expected}"
        assert json.loads(body) == {
            "id": "41.0.chat",
            "type": "task.completed",
            "timestamp": DELIVERY.at_ms,
            "reaction": "chat",
            "hops": 1,
            "data": DELIVERY.details,
        }


def test_slack_and_discord_get_text_in_which_nobody_can_call_a_channel() -> None:
    text = "{task} by {agent}"
    slack = json.loads(payload(Webhook("", format="slack", text=text), DELIVERY, "chat"))
    assert slack["text"] == "A-1 by &lt;!channel&gt; @everyone"
    discord = json.loads(payload(Webhook("", format="discord", text=text), DELIVERY, "chat"))
    assert discord == {"content": "A-1 by <!channel> @everyone", "allowed_mentions": {"parse": []}}
    usual = json.loads(payload(Webhook("", format="discord"), DELIVERY, "chat"))["content"]
    assert usual == "coord: task.completed task=A-1 agent=<!channel> @everyone"


@pytest.mark.parametrize(
    ("status", "error"),
    [(200, None), (204, None), (500, TryLater), (503, TryLater), (429, TryLater), (408, TryLater)]
    + [(status, Permanent) for status in (301, 302, 307, 308, 400, 401, 404, 410)],
)
def test_each_status_is_accepted_tried_again_or_final(
    receivers: Callable[..., Receiver], status: int, error: type[CoordError] | None
) -> None:
    receiver = receivers(status)
    if error is None:
        send(receiver.url)
    else:
        with pytest.raises(error, match=str(status)):
            send(receiver.url)
    assert len(receiver.requests) == 1


def test_a_redirect_into_the_network_is_not_followed(receivers: Callable[..., Receiver]) -> None:
    inside = receivers()

    def redirect(request: BaseHTTPRequestHandler) -> None:
        request.send_response(307)
        request.send_header("Location", inside.url)
        request.end_headers()

    with pytest.raises(Permanent, match="redirects are not followed"):
        send(receivers(redirect).url)
    assert inside.requests == []


def test_a_receiver_names_a_time_within_bounds(receivers: Callable[..., Receiver]) -> None:
    def later(after: str) -> Callable[[BaseHTTPRequestHandler], None]:
        def answer(request: BaseHTTPRequestHandler) -> None:
            request.send_response(503)
            request.send_header("Retry-After", after)
            request.end_headers()

        return answer

    for after, expected in (("7", 7), ("900", 600), ("9" * 400, 0), ("Wed, 21 Oct 2026", 0), ("-1", 0)):
        with pytest.raises(TryLater) as found:
            send(receivers(later(after)).url)
        assert found.value.after_s == expected


def test_a_huge_answer_is_not_read(receivers: Callable[..., Receiver]) -> None:
    sent: list[int] = []

    def endless(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        try:
            while True:
                request.wfile.write(b"x" * 65536)
                sent.append(65536)
        except OSError:
            return

    send(receivers(endless).url)
    assert sum(sent) < 50_000_000


@pytest.mark.parametrize("part", [b"HTTP/1.1 200 OK\r\nX: ", b""])
def test_a_receiver_that_drips_is_cut_off(part: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then keeps a socket's timeout from passing, but not the limit of the whole exchange."""
    released = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(part)
                try:
                    while not released.wait(0.02):
                        connection.sendall(b"x" if part else b"")
                except OSError:
                    return

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        monkeypatch.setattr(webhook, "TIMEOUT_S", 0.2)
        try:
            with pytest.raises(TryLater, match=r"no whole answer within" if part else "timed out|no whole"):
                send(f"http://127.0.0.1:{server.getsockname()[1]}/")
        finally:
            released.set()
            thread.join(10)


def test_a_certificate_has_to_be_valid(tmp_path: Path) -> None:
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", f"{tmp_path}/key", "-out", f"{tmp_path}/cert"]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *subject, *files],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{tmp_path}/cert", f"{tmp_path}/key")
    receiver = Receiver()
    receiver.server.socket = context.wrap_socket(receiver.server.socket, server_side=True)
    try:
        with pytest.raises(Permanent, match="self-signed"):
            send(f"https://localhost:{receiver.server.server_port}/")
        assert receiver.requests == []
    finally:
        receiver.server.shutdown()
        receiver.server.server_close()


INSIDE = (
    *("127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"),
    *(
        "0.0.0.0",
        "255.255.255.255",
        "224.0.0.1",
        "::1",
        "::",
        "fe80::1",
        "fe80::1%eth0",
        "fc00::1",
        "fd12::1",
    ),
    *("::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::"),
    *("ff02::1", "::7f00:1", "::10.0.0.1", "fec0::1", "192.0.2.1", "198.18.0.1", "240.0.0.1", "2001:db8::1"),
)


@pytest.mark.parametrize("address", INSIDE)
def test_addresses_inside_the_network_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_addresses_of_the_internet_are(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1", "127.1", "[::ffff:127.0.0.1]"]
)
def test_no_spelling_of_a_host_reaches_the_network(receivers: Callable[..., Receiver], host: str) -> None:
    receiver = receivers()
    with pytest.raises(Permanent, match="inside the network"):
        send(f"http://{host}:{receiver.server.server_port}/", allow_private=False)
    assert receiver.requests == []


def test_the_address_that_was_checked_is_the_one_connected_to(
    receivers: Callable[..., Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that means another address the second time (DNS rebinding) is asked once."""
    receiver = receivers()
    asked: list[str] = []

    def rebinding(host: str, port: int, **_: Any) -> list[tuple[Any, ...]]:
        asked.append(host)
        address = "203.0.113.7" if len(asked) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    with pytest.raises(Permanent, match="inside the network"):  # a documentation address is not public
        send(f"http://rebind.example:{receiver.server.server_port}/", allow_private=False)
    assert (asked, receiver.requests) == (["rebind.example"], [])


def test_a_secret_is_private_or_refused(tmp_path: Path) -> None:
    for mode in (0o644, 0o640, 0o604):
        file = tmp_path / f"secret{mode}"
        file.write_text("x")
        file.chmod(mode)
        with pytest.raises(Refused, match="can be read by others"):
            send("http://127.0.0.1:1/", secret_file=str(file))
    empty = tmp_path / "empty"
    empty.touch(0o600)
    bad: list[tuple[dict[str, Any], str]] = [
        ({"secret_file": str(empty)}, "is empty"),
        ({"secret_file": f"{tmp_path}/gone"}, "cannot be read"),
        ({"secret_env": "GONE"}, "GONE is not set"),
    ]
    for more, problem in bad:
        with pytest.raises(Refused, match=problem):
            send("http://127.0.0.1:1/", **more)
    with pytest.raises(Permanent, match="not base64"):
        send("http://127.0.0.1:1/", secret_env="S", environ={"S": "whsec_%%"})


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "file:///etc/passwd",
        "https://",
        "http://a:99999/",
        "http://a:0/",
        "https://a/\r\nX: y",
        "https://a b/",
    ],
)
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(Invalid):
        check_url(url)


def test_the_url_may_be_a_secret_that_no_error_repeats(receivers: Callable[..., Receiver]) -> None:
    receiver = receivers(404)
    with pytest.raises(Permanent) as found:
        post(
            Webhook("", "CHAT_URL", allow_private=True), DELIVERY, "chat",
            {"CHAT_URL": receiver.url.replace("hook", "T0/B0/topsecret")}, 5, NOW_S,
        )  # fmt: skip
    assert receiver.requests[0][0].startswith("/T0/B0/topsecret")
    assert "topsecret" not in f"{found.value.message}{found.value.hint}"


def test_a_receiver_that_is_away_is_tried_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(TryLater, match="cannot be reached"):
        send(f"http://127.0.0.1:{port}/")
