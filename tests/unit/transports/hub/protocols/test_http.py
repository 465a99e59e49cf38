"""Bytes that are no request, or too much of one: each is refused, and the hub serves the next client."""

import json
import logging
import select
import socket
import threading
import urllib.parse
from collections.abc import Iterator

import msgspec
import pytest

from coord.core.tokens.schema import Role
from coord.sdk.remote import wire
from coord.transports.hub import app
from coord.transports.hub.protocols import http
from coord.transports.hub.request import Response
from tests.support.hub.in_process import PATIENCE_S
from tests.support.hub.site import EventStream, Reply, Site, open_site, read_all
from tests.support.servers.server import poll_until

CALL = "/v1/call"


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with open_site() as found:
        yield found


@pytest.fixture(scope="module")
def token(site: Site) -> str:
    return site.token(Role.ADMIN)


@pytest.fixture(autouse=True)
def nobody_else_suffers(site: Site) -> Iterator[None]:
    yield
    assert site.ask("GET", "/healthz").status == 200


def statuses(data: bytes) -> list[int]:
    """Return the status of every answer on a connection."""
    return [int(part.split(b" ", 1)[0]) for part in data.split(b"HTTP/1.1 ")[1:]]


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /healthz HTTP/9.9\r\n\r\n",
        b"GET /healthz\r\n\r\n",
        b"GET  HTTP/1.1\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\n\r\n",
        b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n",
        b"GET http:// HTTP/1.1\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nBad Header: x\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nA: b\x00c\r\n\r\n",
        b"GET /healthz HTTP/1.1\nHost: x\n\n",
    ],
)
def test_what_is_no_request_is_refused(site: Site, data: bytes) -> None:
    assert statuses(site.raw(data + b"Connection: close\r\n\r\n"))[:1] in ([400], [421], [404], [])


@pytest.mark.parametrize(
    "headers",
    [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: 99999999999999999999999999\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding:\x0bchunked\r\n",
        " Transfer-Encoding: chunked\r\n",
    ],
)
def test_a_length_in_doubt_is_refused(site: Site, token: str, headers: str) -> None:
    """Two readers of such a request would disagree where it ends; the rest would be a request of its own."""
    smuggled = site.head("GET", "/healthz").decode()
    head = site.head("POST", CALL, token).decode().replace("Connection: close\r\n", headers)
    found = statuses(site.raw(f"{head}0\r\n\r\n{smuggled}".encode()))
    assert found[:1] == [400]
    assert 200 not in found


@pytest.mark.parametrize(
    "chunks", [b"5\r\nhello\r\n0\r\n\r\n", b"1\r\nh\r\n4;name=value\r\nello\r\n0\r\nTrailer: x\r\n\r\n"]
)
def test_a_body_may_come_in_chunks(site: Site, token: str, chunks: bytes) -> None:
    head = site.head("POST", CALL, token, Transfer_Encoding="chunked")
    answer = Reply(site.raw(head + chunks))
    assert (answer.status, "cannot be read" in str(answer.body)) == (400, True)


@pytest.mark.parametrize(
    "chunks", [b"zz\r\n", b"fffffffffffffffffff\r\n", b"-1\r\nx\r\n", b"5\r\nhelloX\r\n"]
)
def test_a_broken_chunk_is_refused(site: Site, token: str, chunks: bytes) -> None:
    found = site.raw(site.head("POST", CALL, token, Transfer_Encoding="chunked") + chunks)
    assert statuses(found)[:1] in ([400], [])


def endless(site: Site, start: bytes, part: bytes) -> bytes:
    """Send a part again and again until the hub has had enough; return what it says."""
    with site.open() as made:
        try:
            made.sendall(start)
            for _ in range(64 * 1024 * 1024 // len(part)):
                made.sendall(part)
        except ConnectionError:
            return read_all(made) or b"dropped"
        made.shutdown(socket.SHUT_WR)
        raise AssertionError("the hub read everything")


@pytest.mark.parametrize(
    ("start", "part"),
    [
        (b"GET /", b"a" * 8192),
        (b"GET / HTTP/1.1\r\nX: ", b"a" * 8192),
        (b"GET / HTTP/1.1\r\n", b"X: a\r\n" * 2000),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ", b"a" * 8192),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X: a\r\n" * 2000),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"a" * 8192),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 2000),
        (b"", b"\r\n" * 4096),
    ],
    ids=["url", "header", "headers", "trailer", "trailers", "chunk-extension", "tiny-chunks", "empty-lines"],
)
def test_a_head_without_an_end_is_dropped(site: Site, start: bytes, part: bytes) -> None:
    assert statuses(endless(site, start, part))[-1:] in ([400], [431], [421], [])


def test_a_body_of_a_stranger_is_not_read(site: Site) -> None:
    """The token is checked before the first byte of the body."""
    with site.open() as made:
        made.settimeout(5)
        made.sendall(site.head("POST", CALL, Content_Length=str(app.BODY_BYTES_MAX)))
        assert made.recv(12) == b"HTTP/1.1 401"


@pytest.mark.parametrize("length", [app.BODY_BYTES_MAX + 1, 10**15, 10**18])
def test_a_body_that_is_too_large_is_refused_by_its_head(site: Site, token: str, length: int) -> None:
    with site.open() as made:
        made.sendall(site.head("POST", CALL, token, Content_Length=str(length)))
        assert made.recv(12) == b"HTTP/1.1 413"


def test_a_chunked_body_is_counted(site: Site, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "BODY_BYTES_MAX", 100_000)
    chunks = (b"8000\r\n" + b"x" * 0x8000 + b"\r\n") * 8
    found = site.raw(site.head("POST", CALL, token, Transfer_Encoding="chunked") + chunks + b"0\r\n\r\n")
    assert statuses(found)[:1] == [413]


def test_all_bodies_together_are_limited(site: Site, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many requests of 16 MB each must not fill the memory; what ended counts no longer."""
    monkeypatch.setattr(app, "BODIES_BYTES_MAX", 300_000)
    head = site.head("POST", CALL, token, Content_Length="1000000")
    with site.open() as first, site.open() as second:
        first.settimeout(5)
        second.settimeout(5)
        first.sendall(head + b"x" * 250_000)
        second.sendall(head + b"x" * 250_000)
        ready, _, _ = select.select([first, second], [], [], 5)
        refused = Reply(ready[0].recv(4096))
        assert (refused.status, refused.header("Retry-After")) == (503, "1")
    found = site.raw(site.head("POST", CALL, token, Content_Length="200000") + b"x" * 200_000)
    assert statuses(found) == [400]


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "GZIP", "identity, gzip"])
def test_compressed_bodies_are_not_read(site: Site, token: str, encoding: str) -> None:
    assert site.ask("POST", CALL, token, b"x", Content_Encoding=encoding).status == 415


def test_a_slow_request_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slowloris: a head or a body of which a byte comes now and then."""
    monkeypatch.setattr(http, "REQUEST_S", 0.2)
    with open_site() as site:
        token = site.token()
        for start in (b"", site.head("POST", CALL, token, Content_Length="100000")):
            with site.open() as made:
                made.sendall(start + b"P")
                assert b"408" in read_all(made) or start


def test_a_connection_that_says_nothing_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_site() as site:
        site.thread.server.config.timeout_keep_alive = 0.2  # type: ignore[assignment]
        with site.open() as made:
            assert read_all(made) == b""


def test_a_truncated_request_leaves_nothing(site: Site, token: str) -> None:
    for cut in (10, 60, -3):
        request = site.head("POST", CALL, token, Content_Length="10") + b"123456789"
        with site.open() as made:
            made.sendall(request[:cut])
    open_ones = site.thread.server.server_state.connections
    poll_until(lambda: not any(each.transport.is_closing() for each in list(open_ones)), PATIENCE_S, "open")
    assert site.ask("GET", "/healthz").status == 200


def test_pipelined_requests_are_answered_in_order(site: Site, token: str) -> None:
    one = site.head("GET", "/healthz", Connection="keep-alive")
    other = site.head("POST", CALL, token, Connection="keep-alive", Content_Length="1") + b"x"
    assert statuses(site.raw(one + other + one + site.head("GET", "/nowhere", token))) == [200, 400, 200, 404]


def test_too_many_pipelined_requests_end_the_connection(site: Site) -> None:
    one = site.head("GET", "/healthz", Connection="keep-alive")
    found = statuses(site.raw(one * 2000))
    assert len(found) < 2000
    assert set(found) <= {200, 400}


def test_a_pipelined_request_does_not_hide_that_the_client_left(site: Site) -> None:
    """uvicorn notifies only the newest request of a connection; an older one would stream for ever."""
    stream = EventStream(site, "", site.token(), Connection="keep-alive")
    stream.until("begin")
    stream._made.sendall(site.head("GET", "/healthz"))
    stream.close()
    while site.hub.feeds.open:
        site.write(1)
    assert site.hub.feeds.open == 0


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xc1",
        b"\x91" * 100_000,
        b"\x81" * 100_000,
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\xa2\xff\xfe",
        msgspec.msgpack.encode({"target": {"root": "\0"}, "commands": [1, None, {"type": "X"}]}),
        msgspec.msgpack.encode({"target": {"tenant": "../.."}, "commands": []}),
        msgspec.msgpack.encode({"target": {}, "commands": [], "ids": ["x"]}),
        msgspec.msgpack.encode({"target": {}, "commands": [], "timeout_s": float("nan")}),
        msgspec.msgpack.encode({"target": {}, "commands": [], "timeout_s": float("inf")}),
        msgspec.msgpack.encode({"target": {}, "commands": [], "timeout_s": 2**63}),
        b"\x82\xa6target\x81\xa6tenant\xa2\xff\xfe\xa8commands\x90",
        b"\x82\xa6target\x80\xa8commands\x91\xa2\xff\xfe",
        b"\x82\xa6target\x80\xa8commands\x91\x81\xa4type\xa2\xff\xfe",
        b"\x82\xa6target\x80\xa8commands\x91" + b"\x91" * 100_000,
    ],
)
@pytest.mark.parametrize("path", [wire.HELLO, wire.CALL, wire.WAIT, wire.TAIL, wire.TRIM])
def test_bad_bodies_are_the_fault_of_the_client(site: Site, token: str, path: str, body: bytes) -> None:
    answer = site.ask("POST", path, token, body, Content_Type="application/msgpack")
    assert answer.status in (200, 400, 403), answer.body


def test_a_time_that_is_no_number_waits_for_nothing(site: Site, token: str) -> None:
    """Not a number in a timer would disturb the order of all others."""
    wait = {"target": {}, "after": 2**40, "timeout_s": float("nan")}
    call = {"target": {}, "commands": [], "timeout_s": float("nan")}
    for path, body in ((wire.WAIT, wait), (wire.CALL, call)):
        answer = site.ask(
            "POST", path, token, msgspec.msgpack.encode(body), Content_Type="application/msgpack"
        )
        assert answer.status == 200


@pytest.mark.parametrize("field", ["after", "limit", "timeout_s"])
@pytest.mark.parametrize("value", [-1, 2**62, -(2**62), 2**63 - 1, float("nan"), float("-inf"), 1e300])
def test_extreme_numbers_are_no_defect(site: Site, token: str, field: str, value: float) -> None:
    fields = {"target": {}, "after": 0, "limit": 1, "timeout_s": 0.0}
    for path in (wire.WAIT, wire.TAIL):
        body = msgspec.msgpack.encode({**fields, field: value})
        if path == wire.WAIT and field != "timeout_s" and isinstance(value, int) and value > 0:
            body = msgspec.msgpack.encode({**fields, field: value, "timeout_s": 0.01})
        elif path == wire.WAIT and field == "timeout_s" and value > 0:
            site.write(1)
        assert site.ask("POST", path, token, body, Content_Type="application/msgpack").status < 500


@pytest.mark.parametrize(
    "path",
    [
        "/../healthz",
        "/v1/../healthz",
        "/%2e%2e/healthz",
        "/healthz/..",
        "/healthz%00",
        "/healthz%0d%0aX-Injected:%201",
        "/%ff",
        "//healthz",
        "/./healthz",
        "/healthz;x=1",
        "/HEALTHZ",
        "/healthz?" + "a=b&" * 500,
        "/%2fhealthz",
        "/healthz%2f",
        "/" + "a/" * 5000,
    ],
)
def test_odd_paths_are_not_other_routes(site: Site, token: str, path: str) -> None:
    answer = site.ask("GET", path, token)
    assert answer.status in ((200,) if path.startswith("/healthz?") else (400, 404))
    assert answer.header("X-Injected") == ""


def test_nothing_that_is_echoed_breaks_a_header(site: Site, token: str) -> None:
    """An answer quotes paths, hosts and ids only in its body, which is JSON."""
    for path, headers in [
        ("/x%0d%0aSet-Cookie:%20a=b", {}),
        ("/healthz", {"Host": "a\x0bSet-Cookie"}),
        ("/v1/stream?after=%0d%0aX", {"Last_Event_ID": "1\tX"}),
    ]:
        answer = Reply(site.raw(site.head("GET", path, token, **headers)))
        assert answer.header("Set-Cookie") == ""
        assert answer.status in (400, 404, 421)
    made = app._headers(Response(200, headers={"X-Note": "a\r\nSet-Cookie: x=1\u2028é"}))
    assert (b"x-note", b"a??Set-Cookie: x=1?\xe9") in made


def test_a_defect_says_nothing_about_the_inside(
    site: Site, token: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has the traceback; the client learns that there is one."""

    async def broken(*_: object) -> None:
        raise RuntimeError("secret of the inside")

    def find(*_: object) -> tuple[object, dict[str, str]]:
        return broken, {}

    with open_site() as other:
        app_ = other.thread.server.config.loaded_app
        monkeypatch.setattr(app_.router, "find", find)
        with caplog.at_level(logging.ERROR):
            answer = other.ask("GET", "/v1/stream", other.token())
    assert answer.status == 500
    assert b"secret" not in answer.body
    assert "secret of the inside" in caplog.text


def test_secrets_never_reach_the_log(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever is asked, and however it fails: neither a token nor a cookie is logged."""
    with caplog.at_level(logging.DEBUG):
        token = site.token()
        wrong = token[:-4] + "zzzz"
        for secret in (token, wrong):
            site.ask("GET", f"/v1/stream?after=x&token={secret}", secret)
            site.ask("GET", "/v1/stream?after=x", Cookie=f"coord_token={secret}")
            site.ask("GET", f"/{secret}", secret)
            site.raw(f"GET / HTTP/1.1\r\nAuthorization: Bearer {secret}\r\nBad Header\r\n\r\n".encode())
            site.raw(
                site.head("GET", f"/v1/ws?token={secret}", secret, Upgrade="websocket", Connection="Upgrade")
            )
    assert token[-20:] not in caplog.text
    assert wrong[-20:] not in caplog.text


def test_many_idle_connections_do_not_stop_others(site: Site, token: str) -> None:
    """Those that say nothing, and those that have said half of a request."""
    idle = [site.open() for _ in range(400)]
    for each in idle[::2]:
        each.sendall(b"GET / HTTP/1.1\r\n")
    answers: list[int] = []
    threads = [
        threading.Thread(target=lambda: answers.append(site.ask("HEAD", "/v1/stream", token).status))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in idle:
        each.close()
    assert answers == [200] * 8


def test_connections_beyond_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of this machine still get in, and so does everybody once others have left."""
    with open_site() as site:
        monkeypatch.setattr(http.HubProtocol, "tcp_max", 3)
        first = [site.open() for _ in range(3)]
        for each in first:
            each.sendall(b"G")
        connections = site.thread.server.server_state.connections
        poll_until(lambda: len(connections) >= 3, PATIENCE_S, "not three connections")
        refused = Reply(site.raw(b""))
        assert (refused.status, refused.header("retry-after")) == (503, "5")
        assert Reply(site.raw(site.head("GET", "/healthz"), unix=True)).status == 200
        for each in first:
            each.close()
        poll_until(lambda: not connections, PATIENCE_S, "connections stay")
        assert site.ask("GET", "/healthz").status == 200


def test_an_upgrade_to_something_else_is_a_plain_request(site: Site) -> None:
    head = site.head("GET", "/healthz", Connection="Upgrade, HTTP2-Settings", Upgrade="h2c")
    with site.open() as made:
        made.sendall(head)
        assert made.recv(12) == b"HTTP/1.1 200"


def test_quoted_ids_are_one_segment(site: Site, token: str) -> None:
    for text in ("a/b", "..", "a\0b", "a\nb", "é" * 3000):
        quoted = urllib.parse.quote(text, safe="")
        assert site.ask("GET", f"/v1/{quoted}/{quoted}", token).status in (400, 404)


def test_problem_details_are_json(site: Site, token: str) -> None:
    answer = site.ask("GET", "/nowhere", token)
    assert answer.header("content-type") == "application/problem+json"
    assert json.loads(answer.body)["status"] == 404
    assert answer.header("content-security-policy").startswith("default-src 'none'")


def test_a_sign_of_life_comes_only_before_a_late_answer(site: Site, token: str) -> None:
    """Hooks ask for it: a hub that answers at once has answered, and one that takes time is not frozen."""
    assert statuses(site.raw(site.head("GET", "/healthz", Expect="100-continue"))) == [200]
    waits = f"/v1/events?after={site.write()}&wait=30s"
    with site.open() as made:
        made.sendall(site.head("GET", waits, token, Expect="100-continue"))
        assert made.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        site.write()
        assert statuses(read_all(made)) == [200]
