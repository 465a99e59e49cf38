"""`POST /v1/logs`, `/v1/metrics` and `/v1/traces`: where agent tools send their telemetry.

The token of the request names the store. Bodies are read in a thread, reduced to counts, and forgotten;
traces are not even read. Nothing of a body is written to the log of the hub.
"""

from collections.abc import Callable
from typing import Any

from coord.core.tokens.schema import Role
from coord.transports.hub.hub import Hub
from coord.transports.hub.identity import REPORT_PATHS, Identity
from coord.transports.hub.problems import HttpError
from coord.transports.hub.protocols.plain_json import check_values
from coord.transports.hub.request import JSON, Request, Response
from coord.transports.hub.routing import Router
from coord.transports.hub.telemetry import json_form, protobuf_form
from coord.transports.hub.telemetry.gather import Gatherer, Target
from coord.transports.hub.telemetry.otlp import Record
from coord.transports.hub.telemetry.reports import Prices, Report, of_point, of_record

PROTOBUF = "application/x-protobuf"
BODY_BYTES_MAX = 4 * 1024 * 1024
Read = Callable[[bytes], list[Any]]
READERS: dict[str, tuple[Read, Read]] = {
    JSON: (json_form.read_logs, json_form.read_metrics),
    PROTOBUF: (protobuf_form.read_logs, protobuf_form.read_metrics),
}
"""What reads log records and points, by content type."""


def add_routes(router: Router[Any]) -> None:
    """Add the routes of OTLP."""
    for path, handler in zip(REPORT_PATHS, (logs, metrics, traces), strict=True):
        router.add("POST", path, handler)


async def logs(hub: Hub, request: Request) -> Response:
    """Count the requests to models that log records report."""
    return await _receive(hub, request, 0)


async def metrics(hub: Hub, request: Request) -> Response:
    """Count the tokens and the money that counters report."""
    return await _receive(hub, request, 1)


async def traces(_hub: Hub, request: Request) -> Response:
    """Accept traces, so that a tool does not send them again, and drop them unread."""
    _check(request)
    return _accepted(request)


async def _receive(hub: Hub, request: Request, which: int) -> Response:
    identity = _check(request)
    if len(request.body) > BODY_BYTES_MAX:
        raise HttpError(413, "too_large", f"the body is larger than {BODY_BYTES_MAX} bytes")
    kind = _content_type(request)
    if kind == JSON:
        check_values(request.body)
    assert identity.store is not None, "a token names its store"
    project = identity.token.project if identity.token is not None else ""
    gatherer, target = gatherer_of(hub), Target(identity.store, identity.tenant, project)
    prices = (await gatherer.rules(target)).prices
    for report in await hub.stores.run(_reports, READERS[kind][which], request.body, prices):
        if _covers(identity, report):
            gatherer.add(target, report, identity.origin)
            if gatherer.is_full(target, report.session):
                await gatherer.write_session(target, report.session)
    gatherer.schedule()
    return _accepted(request)


def _reports(read: Read, body: bytes, prices: Prices) -> list[Report]:
    """Return what a body reports; this takes a while for a large one, so it runs in a thread."""
    read_one = (
        of_record(each, prices) if isinstance(each, Record) else of_point(each) for each in read(body)
    )
    return [report for report in read_one if report is not None]


def _covers(identity: Identity, report: Report) -> bool:
    token = identity.token
    return token is None or token.covers_session(report.session)


def _check(request: Request) -> Identity:
    identity: Identity = request.identity
    if identity.role is not Role.REPORT:
        identity.require(Role.OPERATE)
    if identity.store is None:
        raise HttpError(
            403, "forbidden", "telemetry needs a token", hint="send it to the TCP address of the hub"
        )
    if _content_type(request) not in READERS:
        raise HttpError(415, "invalid", "telemetry is JSON or protobuf", hint=f"use {JSON} or {PROTOBUF}")
    return identity


def _content_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _accepted(request: Request) -> Response:
    kind = _content_type(request)
    return Response(200, b"{}" if kind == JSON else b"", kind)


def gatherer_of(hub: Hub) -> Gatherer:
    """Return what gathers reports, made for the first one."""
    if hub.usage is None:
        hub.usage = Gatherer(hub.stores)
        hub.on_close.append(hub.usage.close)
    gatherer: Gatherer = hub.usage
    return gatherer
