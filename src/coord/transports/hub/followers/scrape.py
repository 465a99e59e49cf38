"""`/metrics`: what Prometheus reads, from the counts that the hub keeps anyway.

A counter must never fall, or Prometheus takes it for one that began again. So after a start of the hub, or a
failure of the follower, the first answers wait until it has counted what the log had by then.
"""

import asyncio
import time
from weakref import WeakKeyDictionary

from coord.core.errors import Unavailable
from coord.core.identity import Caller
from coord.core.limits import UNLIMITED_TENANT
from coord.core.tokens.schema import Role
from coord.followers.follower import LogSource
from coord.followers.metrics.config import prefix_of
from coord.followers.metrics.follower import MetricsFollower
from coord.followers.metrics.gauges import metrics, metrics_of
from coord.followers.metrics.text import CONTENT_TYPE
from coord.sdk.log_reader import newest_offset
from coord.transports.hub.followers.run import LogFollowers
from coord.transports.hub.hub import Hub
from coord.transports.hub.identity import Identity, forbidden
from coord.transports.hub.request import Request, Response

PATH = "/metrics"
CALLER = Caller("prometheus")
"""Whoever asks sees what every session sees."""
COUNTED_S = 5.0
LOOK_S = 0.02

_counted_from: "WeakKeyDictionary[MetricsFollower, int]" = WeakKeyDictionary()
"""What each follower has to have read before its counts are shown."""


async def scrape(hub: Hub, request: Request) -> Response:
    """Answer the metrics of the tenant of a token, or of the tenant that `?tenant=` names."""
    identity: Identity = request.identity
    identity.require(Role.VIEW)
    if identity.token is not None and identity.token.project:
        raise forbidden("this shows all projects of the tenant")
    tenant = identity.check_tenant(request.query.get("tenant", "")) or UNLIMITED_TENANT
    store = identity.store or await hub.stores.of_repository(request.headers.get("coord-repository", ""))
    with store.in_use():
        engine = await hub.stores.engine(store, tenant)
        source = LogSource(engine, store.log(tenant), store.location, hub.environ)
        followers = None if hub.followers is None else hub.followers.of(store, tenant)
        counted = None if followers is None else await _counted(hub, source, followers)
        text = await hub.stores.run(_text, source, followers, counted)
    return Response(200, text.encode(), CONTENT_TYPE)


def _text(source: LogSource, followers: LogFollowers | None, counted: MetricsFollower | None) -> str:
    prefix = prefix_of(source)
    if followers is None or counted is None:
        return metrics(source, CALLER, prefix)
    lag = max(0, source.log.seen.offset - followers.runner.offset)
    return metrics_of(source, CALLER, counted.snapshot(), lag, prefix)


async def _counted(hub: Hub, source: LogSource, followers: LogFollowers) -> MetricsFollower:
    """Return the follower of a log as soon as no count can fall any more."""
    began = time.monotonic()
    while time.monotonic() - began < COUNTED_S and not hub.stopping.is_set():
        run = followers.running(MetricsFollower.name)
        if run is not None:
            follower = run.follower
            assert isinstance(follower, MetricsFollower), "the registry names it"
            if follower not in _counted_from:
                _counted_from[follower] = await hub.stores.run(newest_offset, source.log)
            if run.offset >= _counted_from[follower]:
                return follower
        followers.news.set()
        await asyncio.sleep(LOOK_S)
    raise Unavailable("the metrics are being counted", hint="coord follow list shows how far they are")
