"""The walls around every route: name, origin, token and peer, from the table of routes."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from coord.core.tokens.schema import Role
from coord.transports.hub.app import PUBLIC, UPGRADES, routes
from coord.transports.hub.routing import Route
from tests.support.hub.site import Reply, Site, open_site

ROUTES = sorted(routes().routes)
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with open_site() as found:
        yield found


@pytest.fixture(scope="module")
def token(site: Site) -> str:
    return site.token(Role.ADMIN)


def path_of(route: Route) -> str:
    return route.path.replace("{", "").replace("}", "")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "", "127.0.0.1", "OWN.evil.example", "OWN, OWN"]
)
def test_a_foreign_host_reaches_no_route(site: Site, token: str, host: str) -> None:
    """DNS rebinding: a name of somebody else that leads to this address."""
    name = host.replace("OWN", site.address)
    for route in ROUTES:
        assert site.ask(route.method, path_of(route), token, Host=name).status == 421, route
    for path in UPGRADES:
        assert Reply(site.raw(site.head("GET", path, token, **UPGRADE, Host=name))).status == 421


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "https://OWN.evil.example", "http://evil.example#OWN", "file://", "OWN"],
)
def test_a_foreign_page_reaches_no_route(site: Site, token: str, origin: str) -> None:
    text = origin.replace("OWN", site.address)
    for route in ROUTES:
        assert site.ask(route.method, path_of(route), token, Origin=text).status == 403, route
    for path in UPGRADES:
        assert Reply(site.raw(site.head("GET", path, token, **UPGRADE, Origin=text))).status == 403


def test_no_route_but_the_public_ones_answers_without_a_token(site: Site) -> None:
    for route in ROUTES:
        status = site.ask(route.method, path_of(route)).status
        assert (status == 401) == (route.path not in PUBLIC), route
    for path in UPGRADES:
        assert Reply(site.raw(site.head("GET", path, **UPGRADE))).status == 401


def test_no_answer_allows_other_origins(site: Site, token: str) -> None:
    for route in ROUTES:
        answer = site.ask("OPTIONS", path_of(route), token, Access_Control_Request_Method=route.method)
        names = [name.lower() for name, _ in answer.headers]
        assert not [name for name in names if name.startswith("access-control")], route


def test_two_host_headers_are_refused(site: Site) -> None:
    head = site.head("GET", "/healthz").replace(b"\r\n\r\n", b"\r\nHost: evil.example\r\n\r\n")
    assert Reply(site.raw(head)).status in (400, 421)


def test_an_absolute_url_does_not_replace_the_host(site: Site, token: str) -> None:
    assert (
        Reply(site.raw(site.head("GET", f"http://{site.address}/healthz", Host="evil.example"))).status == 421
    )


@pytest.mark.skipif(os.getuid() != 0, reason="only root can run a process as somebody else")
def test_another_user_is_refused_although_the_socket_lets_it_in(site: Site) -> None:
    """The kernel says who connects; the mode of the file is not the only wall."""
    os.chmod(os.path.dirname(site.thread.path), 0o755)
    os.chmod(site.thread.path, 0o666)
    program = (
        "import os, socket, sys; os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "made = socket.socket(socket.AF_UNIX); made.connect(sys.argv[1])\n"
        "head = sys.argv[2] + '\\r\\nHost: x\\r\\nConnection: close' + sys.argv[3] + '\\r\\n\\r\\n'\n"
        "made.sendall(head.encode())\n"
        "print(made.recv(12).decode())"
    )
    upgrade = "".join(f"\r\n{name}: {value}" for name, value in UPGRADE.items() if name != "Connection")
    for line, more in [
        ("GET /v1/stream HTTP/1.1", ""),
        ("POST /v1/call HTTP/1.1", ""),
        ("GET /v1/ws HTTP/1.1", f", Upgrade{upgrade}"),
    ]:
        command = [sys.executable, "-I", "-S", "-c", program, site.thread.path, line, more]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        assert done.stdout.strip() == "HTTP/1.1 403"
    os.chmod(site.thread.path, 0o600)
