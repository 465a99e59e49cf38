"""A link works once and briefly; its cookie works for this page only."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from coord.core.tokens.schema import Role
from coord.sdk.remote import wire
from coord.transports.hub.browser import links, pages
from coord.transports.hub.browser.routes import LOGIN_LINK
from tests.support.hub.site import Reply, Site, open_site


@pytest.fixture
def site() -> Iterator[Site]:
    with open_site() as found:
        yield found


def code_of(site: Site, token: str) -> str:
    """Ask for a link as `coord open` does."""
    body = wire.encode({"target": wire.Target(), "token": token})
    head = site.head("POST", LOGIN_LINK, Content_Type="application/msgpack", Content_Length=str(len(body)))
    answer = Reply(site.raw(head + body, unix=True))
    assert answer.status == 200, answer.body
    return str(msgspec.msgpack.decode(answer.body)["once"])


def log_in(site: Site, code: str, **headers: str) -> Reply:
    headers = {"Content_Type": "application/json", "Origin": f"http://{site.address}", **headers}
    return site.ask("POST", "/login", "", json.dumps({"once": code}).encode(), **headers)


def cookie_of(site: Site, token: str) -> str:
    return log_in(site, code_of(site, token)).header("Set-Cookie").partition(";")[0]


def test_a_link_becomes_a_cookie_once(site: Site) -> None:
    token = site.token()
    code = code_of(site, token)
    assert code not in token
    answer = log_in(site, code)
    cookie, *attributes = answer.header("Set-Cookie").split("; ")
    assert (answer.status, answer.body) == (204, b"")
    assert cookie == f"coord_token_{site.address.partition(':')[2]}={token}"
    assert set(attributes) == {"Path=/", "HttpOnly", "SameSite=Strict"}
    assert site.ask("HEAD", "/v1/stream", Cookie=f"other=1; {cookie}").status == 200
    again = log_in(site, code)
    assert (again.status, again.header("Set-Cookie")) == (401, "")


def test_a_cookie_is_secure_where_clients_use_tls(site: Site) -> None:
    site.hub.is_secure = True
    assert "; Secure" in log_in(site, code_of(site, site.token())).header("Set-Cookie")


def test_a_link_ends_after_a_short_time(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "LINK_S", -1.0)
    assert log_in(site, code_of(site, site.token())).status == 401


def test_links_do_not_pile_up() -> None:
    kept = links.LoginLinks()
    codes = [kept.add(f"t{number}") for number in range(links.LINKS_MAX + 1)]
    assert kept.take(codes[0]) == ""
    assert kept.take(codes[-1]) == f"t{links.LINKS_MAX}"
    assert kept.take("\ud800") == ""


def test_a_link_is_made_by_processes_of_this_user_only(site: Site) -> None:
    token = site.token(Role.ADMIN)
    body = wire.encode({"target": wire.Target(), "token": token})
    answer = site.ask("POST", LOGIN_LINK, token, body, Content_Type="application/msgpack")
    assert answer.status == 403
    head = site.head("POST", LOGIN_LINK, Content_Type="application/msgpack")
    wrong = wire.encode({"target": wire.Target(), "token": token[:-2] + "xx"})
    refused = site.raw(
        head.replace(b"\r\n\r\n", b"\r\nContent-Length: %d\r\n\r\n" % len(wrong)) + wrong, unix=True
    )
    assert Reply(refused).status == 400


def test_a_foreign_page_cannot_log_a_browser_in(site: Site) -> None:
    """Otherwise somebody could make you work in a session of theirs."""
    code = code_of(site, site.token())
    assert log_in(site, code, Origin="http://evil.example").status == 403
    assert log_in(site, code, Host="evil.example").status == 421
    assert log_in(site, code, Content_Type="text/plain").status == 400
    assert log_in(site, code).status == 204


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("POST", {}, 403),
        ("POST", {"Origin": "http://evil.example"}, 403),
        ("POST", {"Origin": "null"}, 403),
        ("POST", {"Sec_Fetch_Site": "same-site"}, 403),
        ("POST", {"Sec_Fetch_Site": "cross-site", "Origin": "OWN"}, 403),
        ("POST", {"Sec_Fetch_Site": "none"}, 403),
        ("POST", {"Sec_Fetch_Site": "same-origin"}, 204),
        ("POST", {"Origin": "OWN"}, 204),
        ("POST", {"Origin": "evil://OWN"}, 403),
        ("GET", {"Sec_Fetch_Site": "cross-site"}, 403),
        ("GET", {"Sec_Fetch_Site": "same-site"}, 403),
        ("GET", {"Sec_Fetch_Site": "none"}, 426),
        ("GET", {}, 426),
    ],
)
def test_a_cookie_alone_proves_no_page(site: Site, method: str, headers: dict[str, str], status: int) -> None:
    """CSRF: browsers add the cookie to what foreign pages ask for, also to those of another port."""
    own = headers.get("Origin", "").replace("OWN", site.address)
    own = f"http://{own}" if headers.get("Origin") == "OWN" else own
    path = "/logout" if method == "POST" else "/v1/ws"
    given = {**headers, "Origin": own, "Cookie": cookie_of(site, site.token())}
    assert Reply(site.raw(site.head(method, path, **given))).status == status


def test_an_upgrade_with_a_cookie_needs_an_origin(site: Site) -> None:
    cookie = {"Cookie": cookie_of(site, site.token())}
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    refused = site.raw(site.head("GET", "/v1/ws", **upgrade, **cookie))
    assert Reply(refused).status == 403
    with site.websocket("/v1/ws", headers={**cookie, "Origin": f"http://{site.address}"}) as connection:
        assert "begin" in str(connection.recv(timeout=60))


@pytest.mark.parametrize("limits", [{}, {"session": "s-ada"}, {"project": "shop", "role": Role.ADMIN}])
def test_logging_out_ends_the_cookie(site: Site, limits: dict[str, Any]) -> None:
    cookie = cookie_of(site, site.token(**limits))
    answer = site.ask("POST", "/logout", "", Cookie=cookie, Origin=f"http://{site.address}")
    assert (answer.status, "Max-Age=0" in answer.header("Set-Cookie")) == (204, True)
    assert site.ask("GET", "/v1/locks", "", Cookie=cookie).status == 401, "a copy of it still counts"


def test_a_token_without_a_cookie_survives_a_logout(site: Site) -> None:
    """A program that sends its token itself has nothing to forget."""
    token = site.token(Role.ADMIN)
    assert site.ask("POST", "/logout", token).status == 204
    assert site.ask("GET", "/v1/locks", token).status == 200


def test_the_cookie_of_another_port_is_not_ours(site: Site) -> None:
    cookie = cookie_of(site, site.token())
    other = cookie.replace(site.address.partition(":")[2], "1")
    assert site.ask("GET", "/v1/ws", "", Cookie=other).status == 401


@pytest.mark.parametrize("path", ["/login", "/login.js"])
def test_pages_hold_nothing_and_load_nothing(site: Site, path: str) -> None:
    """They need no token, so they must not depend on one."""
    site.write(3, task="secret-task")
    plain, known = site.ask("GET", path), site.ask("GET", path, site.token())
    assert (plain.status, plain.body) == (200, known.body)
    policy = plain.header("content-security-policy")
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert plain.header("referrer-policy") == "no-referrer"
    assert plain.header("cache-control") == "no-store"


def test_the_page_takes_the_secret_out_of_the_history() -> None:
    script = pages.LOGIN_SCRIPT
    assert script.index("location.hash") < script.index("history.replaceState") < script.index("fetch(")
    assert "<script>" not in pages.LOGIN
    assert "style=" not in pages.LOGIN


def test_a_stranger_sends_only_a_small_body(site: Site) -> None:
    large = json.dumps({"once": "x" * 5000}).encode()
    assert site.ask("POST", "/login", "", large, Content_Type="application/json").status == 413
    chunked = site.head("POST", "/login", Transfer_Encoding="chunked", Content_Type="application/json")
    found = Reply(site.raw(chunked + b"2000\r\n" + b"x" * 0x2000 + b"\r\n0\r\n\r\n"))
    assert found.status == 413


def test_guessing_links_is_limited(site: Site) -> None:
    found = {log_in(site, f"guess{number}").status for number in range(30)}
    assert found == {401, 429}


def test_the_code_is_not_logged(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        code = code_of(site, site.token())
        log_in(site, code)
        log_in(site, code)
    assert code not in caplog.text
