"""Tools send telemetry with a token; only counts are kept, in the store of the token."""

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from coord.core.identity import Caller
from coord.core.lifecycle.commands import Register
from coord.core.tokens.schema import Role
from coord.core.usage.commands import GetUsage, UsageBy, UsageReply
from coord.transports.hub.app import PUBLIC
from coord.transports.hub.app import routes as all_routes
from coord.transports.hub.identity import REPORT_PATHS
from coord.transports.hub.telemetry import routes
from coord.transports.hub.telemetry.routes import gatherer_of
from tests.support.hub.otlp import JSON, PROTOBUF, SECRET, claude, codex, counters, gemini, logs
from tests.support.hub.site import Site, open_site

KINDS = (JSON, PROTOBUF)


@pytest.fixture
def site() -> Iterator[Site]:
    with open_site() as found:
        yield found


def send(site: Site, path: str, body: bytes, token: str, kind: str = JSON) -> Any:
    return site.ask("POST", path, token, body, Content_Type=kind)


def written(site: Site, tenant: str = "local", per: UsageBy = UsageBy.SESSION) -> UsageReply:
    """Return what was used, after the hub has written what it has gathered."""
    work = gatherer_of(site.hub).write(all_of_them=True)
    asyncio.run_coroutine_threadsafe(work, site.thread.loop).result(60)
    found: UsageReply = site.run(GetUsage(per=per), tenant)
    return found


def tokens(found: UsageReply) -> dict[str, int]:
    return {each.name: each.amounts.tokens for each in found.totals}


@pytest.mark.parametrize("kind", KINDS)
def test_the_reports_of_three_tools_are_counted(site: Site, kind: str) -> None:
    site.run(Register(caller=Caller("s1", agent="ann", project="shop")))
    token = site.token(Role.OPERATE)
    body = logs(claude("s1"), codex("s2"), gemini("s3"), kind=kind)
    for _ in range(2):  # tools send again what they think was lost
        answer = send(site, "/v1/logs", body, token, kind)
        assert (answer.status, answer.body) == (200, b"{}" if kind == JSON else b"")
    found = written(site, per=UsageBy.AGENT)
    assert tokens(found) == {"ann": 3520, "s2": 1050, "s3": 1080}
    assert found.total.cost == 12300
    assert found.total.estimated == 850 + 1825


@pytest.mark.parametrize("kind", KINDS)
def test_counters_beside_logs_count_once(site: Site, kind: str) -> None:
    token = site.token(Role.OPERATE)
    points: list[Any] = [
        ({"session.id": "s1", "model": "claude-sonnet-4-5", "type": name}, float(value), 1, 2)
        for name, value in (("input", 100), ("output", 20), ("cacheRead", 3000), ("cacheCreation", 400))
    ]
    for temporality in (1, 2):
        send(site, "/v1/metrics", counters(*points, kind=kind, temporality=temporality), token, kind)
        send(site, "/v1/logs", logs(claude("s1"), kind=kind), token, kind)
        expected = {1: 3520, 2: 7040}[temporality]  # nobody sends both kinds: this would be two processes
        assert tokens(written(site)) == {"s1": expected}


def test_traces_are_dropped_unread(site: Site) -> None:
    token = site.token(Role.OPERATE)
    assert send(site, "/v1/traces", b"\xff" * 100, token, PROTOBUF).status == 200
    assert send(site, "/v1/traces", b"not json", token).status == 200


def test_no_text_is_kept_or_logged(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    token = site.token(Role.OPERATE)
    send(site, "/v1/logs", logs(claude("s1"), gemini("s2")), token)
    refused = send(site, "/v1/logs", b'{"resourceLogs": "' + SECRET.encode() + b'"}', token)
    assert refused.status == 400
    assert SECRET.encode() not in refused.body
    written(site)
    entries = site.database.log("local").tail(0, 1000)
    assert len(entries) > 1
    assert SECRET not in repr(entries)
    assert SECRET not in caplog.text


def test_a_viewer_and_a_stranger_report_nothing(site: Site) -> None:
    body = logs(claude("s1"))
    assert send(site, "/v1/logs", body, site.token(Role.VIEW)).status == 403
    assert send(site, "/v1/logs", body, "").status == 401
    assert status_over_the_socket(site, body) == 403
    assert site.hub.usage is None


def status_over_the_socket(site: Site, body: bytes) -> int:
    head = site.head("POST", "/v1/logs", Content_Type=JSON, Content_Length=str(len(body)))
    answer = site.raw(head + body, unix=True)
    return int(answer.split(b" ")[1])


def test_a_token_reports_within_its_limits(site: Site) -> None:
    site.run(Register(caller=Caller("s1", project="shop")))
    for limits, counted in (
        ({"session": "s2"}, {}),
        ({"project": "other"}, {}),
        ({"project": "shop"}, {"s1": 3520}),
    ):
        token = site.token(Role.OPERATE, **limits)
        assert send(site, "/v1/logs", logs(claude("s1")), token).status == 200
        assert tokens(written(site)) == counted


def test_a_tenant_sees_its_own_usage_only(site: Site) -> None:
    token = site.token(Role.OPERATE, tenant="acme")
    send(site, "/v1/logs", logs(claude("s1")), token)
    assert tokens(written(site)) == {}
    assert tokens(written(site, "acme")) == {"s1": 3520}


def test_bodies_are_limited(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    token = site.token(Role.OPERATE)
    assert send(site, "/v1/logs", b"{}", token, "text/plain").status == 415
    monkeypatch.setattr(routes, "BODY_BYTES_MAX", 100)
    assert send(site, "/v1/logs", b"{" + b" " * 100 + b"}", token).status == 413
    assert send(site, "/v1/logs", b"{}", token).status == 200


def test_a_session_with_very_many_reports_is_written_at_once(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = site.token(Role.OPERATE)
    monkeypatch.setattr("coord.transports.hub.telemetry.gather.ITEMS_MAX", 10)
    send(site, "/v1/logs", logs(*(claude("s1", number) for number in range(25))), token)
    assert sum(len(each.items) for each in site.hub.usage._waiting.values()) == 5
    assert tokens(written(site)) == {"s1": 25 * 3520}


def test_usage_is_read_over_http(site: Site) -> None:
    send(site, "/v1/logs", logs(claude("s1")), site.token(Role.OPERATE))
    written(site)
    answer = site.ask("GET", "/v1/usage?per=model", site.token(Role.VIEW))
    assert answer.status == 200
    assert answer.json()["totals"][0]["name"] == "claude-sonnet-4-5"
    assert site.ask("GET", "/v1/usage?per=nothing", site.token(Role.VIEW)).status == 400


def test_a_token_that_may_only_report_can_do_nothing_else(site: Site) -> None:
    """An agent may know it: it reads nothing, runs no command, and answers no question."""
    token = site.token(Role.REPORT)
    assert send(site, "/v1/logs", logs(claude("s1"), kind=JSON), token).status == 200
    assert send(site, "/v1/traces", b"{}", token).status == 200
    assert tokens(written(site)) == {"s1": 3520}
    others = [each for each in all_routes()._plain if each[1] not in (*REPORT_PATHS, *PUBLIC)]
    assert len(others) > 50
    for method, path in (*others, ("GET", "/v1/sessions/s1"), ("DELETE", "/api/coordination/locks/a.py")):
        answer = site.ask(method, path, token, b"{}", Content_Type=JSON)
        assert answer.status == 403, (method, path)
        assert b"may only report usage" in answer.body
