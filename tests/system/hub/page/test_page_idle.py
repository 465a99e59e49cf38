"""A page that nobody touches asks for nothing but a sign of life, and costs the store nothing."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from coord.transports.hub.streams import feed
from tests.support.hub.browsing import chromium
from tests.support.hub.page_site import Traffic, fill, go, live, views, visit
from tests.support.hub.process import PATIENCE_S
from tests.support.hub.site import Site, open_site
from tests.support.servers.server import poll_until

pytestmark = pytest.mark.timeout(300)
READS = ("load", "tail", "get", "scan", "history")
PING_MS, MOMENT_MS, PINGS = 25_000, 5_000, 3  # the page looks whether to ping every five seconds
PING = '{"type":"ping","id":1}'


class CountedReads:
    """Counts every read of a log."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, site: Site) -> None:
        self.made: list[str] = []
        log = site.database.log("local")
        names = [name for name in READS if hasattr(log, name)]
        assert {"load", "tail"} <= set(names)
        for name in names:
            monkeypatch.setattr(log, name, self._counted(name, getattr(log, name)))

    def _counted(self, name: str, read: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **named: Any) -> Any:
            self.made.append(name)
            return read(*given, **named)

        return counted


@pytest.fixture
def site() -> Iterator[Site]:
    """A hub whose reader of the log wakes all the time, and reads only if there is news."""
    with pytest.MonkeyPatch.context() as patched, open_site() as found:
        patched.setattr(feed, "WAIT_S", 0.05)
        fill(found)
        yield found


def test_an_idle_minute(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the clock of the browser a minute further: pings and their answers, nothing else, in any view.

    A commit at the end is read, and that is counted.
    """
    with chromium() as browser, visit(browser, site) as (page, complaints):
        traffic = Traffic(page)
        page.clock.install()
        page.reload()
        live(page)
        (socket,) = traffic.sockets
        sent: list[Any] = []
        socket.on("framesent", lambda text: sent.append(text))
        for number, path in enumerate(views().values()):
            go(page, path)
            traffic.settle()
            traffic.requests.clear()
            sent.clear()
            reads = CountedReads(monkeypatch, site)
            if number:
                page.clock.run_for(MOMENT_MS)
            else:
                for _ in range(PINGS):
                    with socket.expect_event("framereceived", lambda text: '"pong"' in str(text)):
                        page.clock.run_for(PING_MS + MOMENT_MS)
                assert sent == [PING] * PINGS
            assert traffic.requests == [], path
            assert reads.made == [], path
            assert set(sent) <= {PING}, path
            monkeypatch.undo()
        reads = CountedReads(monkeypatch, site)
        site.write()
        poll_until(lambda: "tail" in reads.made, PATIENCE_S, "no read was counted")
        assert traffic.sockets == [socket]
        assert complaints == []
