"""The page in a real browser: from a commit to the pixel, a large store, a long watch, and how much is sent.

An entry is on the screen when a frame has been painted after the one in which the page drew it. The clock of
the entry is that of this machine, in milliseconds.
"""

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from bench import page_views
from bench.figures import Figure
from bench.hub_whole import usage
from bench.page_data import Crew, filled
from bench.places import Places
from bench.repository import make_repository
from bench.scale import FULL, TINY, Scale
from coord.sdk.log_reader import newest_offset
from coord.transports.hub.page.assets import assets
from tests.support.hub.browsing import CHROMIUM, Place
from tests.support.hub.process import PATIENCE_S, RunningHub, private_home, serving
from tests.support.servers.server import poll_until

PIXEL_MS_MAX, BYTES_MAX, TASK_MS_MAX, GROWN_MB_MAX = 150.0, 150 * 1024, 100.0, 10.0
EVENTS_PER_S = 200
IDLE_S, IDLE_S_TINY, READS_MAX = 60.0, 2.0, 1.0
"""A hub that read its store whenever it looks for news would read 4 times a second; it reads pings, too."""
AGENTS, LOCKS, TASKS = 200, 5_000, 10_000
WATCHED, WAIT_EVERY = 50_000, 500
WATCHED_VIEWS = ("activity", "locks", "plan", "numbers", "messages", "now")
SEEN = """() => {
  window.latencies = [];
  window.received = 0;
  const Socket = window.WebSocket;
  window.WebSocket = class extends Socket {
    constructor(...all) {
      super(...all);
      this.addEventListener("message", ({data}) => {
        const {type, at} = JSON.parse(data);
        if (type !== "entry") return;
        window.received += 1;
        if (!window.latencies) return;
        requestAnimationFrame(() => requestAnimationFrame(() => window.latencies.push(Date.now() - at)));
      });
    }
  };
}"""
LONG_TASKS = """() => {
  window.longest = 0;
  new PerformanceObserver((list) => {
    for (const each of list.getEntries()) window.longest = Math.max(window.longest, each.duration);
  }).observe({type: "longtask"});
}"""
SCROLL = """async (steps) => {
  const target = document.querySelector("coord-list") ?? document.scrollingElement;
  for (let step = 0; step < steps; step += 1) {
    target.scrollTop = (step / steps) * target.scrollHeight;
    await new Promise(requestAnimationFrame);
  }
}"""
OFFSET = '() => import("/static/core/store.js").then((store) => store.liveState().offset)'
HEAP = "() => { globalThis.gc?.(); return performance.memory.usedJSHeapSize; }"


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield what the page takes with a real browser."""
    if store != "sqlite" or not CHROMIUM:
        return
    yield sent_bytes(store)
    repository = make_repository(places.folder)
    with tempfile.TemporaryDirectory() as folder, private_home(Path(folder)) as environ:
        pace = page_views.Pace(8, 50, 1, 2) if scale is TINY else page_views.Pace()
        agents, locks, tasks = (5, 20, 30) if scale is TINY else (AGENTS, LOCKS, TASKS)
        with serving(repository, environ) as hub, filled(repository, agents, locks, tasks) as crew:
            link = Place(hub, repository, environ).link("view")
            with browsing(link, hub.url) as page:
                yield from large_store(page, hub.url, store, pace)
                yield from idle(page, hub, store, IDLE_S_TINY if scale is TINY else IDLE_S)
                write = crew.steadily(20 if scale is TINY else EVENTS_PER_S)
                yield from page_views.all_views(page, hub.url, store, write, pace)
                seconds = 1.0 if scale is TINY else 20.0 if scale is FULL else 8.0
                yield from to_the_pixel(page, hub.url, crew, store, seconds)
                watched, rest_ms = (200, 100) if scale is TINY else (WATCHED, 3000)
                yield long_watch(page, crew, store, watched, rest_ms)


def sent_bytes(store: str) -> Figure:
    """Return how much a first visit downloads, compressed."""
    sizes = {name: len(each.compressed or each.body) for name, each in assets().items()}
    needed = sum(size for name, size in sizes.items() if not name.endswith(".txt"))
    return Figure("page", store, "all files of the page, compressed", needed, "B", most=BYTES_MAX)


@contextmanager
def browsing(link: str, url: str) -> Iterator[Page]:
    """Yield a page of a browser that is logged in."""
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--enable-precise-memory-info", "--js-flags=--expose-gc"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        with closing(browser), closing(browser.new_page()) as page:
            page.goto(link)
            page.wait_for_url(f"{url}/")
            page.add_init_script(f"({SEEN})()")
            yield page


def large_store(page: Page, url: str, store: str, pace: page_views.Pace) -> Iterator[Figure]:
    """Yield how long a large store takes to be shown, and how long the page blocks while it scrolls."""
    for view in ("now", "locks", "plan"):
        began = time.perf_counter()
        page.goto(f"{url}/{view}")
        page.locator("main :is([data-row], .card, .empty)").first.wait_for()
        took = (time.perf_counter() - began) * 1000
        yield Figure("page", store, f"{view}: from the address to its rows", took, "ms")
        page.wait_for_timeout(pace.rest_ms / 3)
        page.evaluate(LONG_TASKS)
        page.evaluate(SCROLL, pace.steps)
        page.wait_for_timeout(pace.rest_ms / 5)
        longest = page.evaluate("window.longest")
        yield Figure("page", store, f"{view}: longest block while scrolling", longest, "ms", most=TASK_MS_MAX)


def idle(page: Page, hub: RunningHub, store: str, seconds: float) -> Iterator[Figure]:
    """Yield what a page asks of its hub while nothing happens, and what the hub does then."""
    page.goto(f"{hub.url}/now")
    page.get_by_text("Live", exact=True).wait_for()
    page.wait_for_timeout(seconds * 100)  # until the last answers are drawn, and followers have saved
    requests: list[str] = []
    heard = lambda request: requests.append(request.url)  # noqa: E731 - to be taken back
    page.on("request", heard)
    process = Path(f"/proc/{hub.process.pid}")
    before = usage(process)
    page.wait_for_timeout(seconds * 1000)
    reads, wakeups, cpu_s = (now - then for now, then in zip(usage(process), before, strict=True))
    page.remove_listener("request", heard)
    name = f"idle for {seconds:.0f} s"
    detail = {"wakeups_per_s": wakeups / seconds, "cpu_ms_per_min": cpu_s * 60_000 / seconds}
    yield Figure("page", store, f"{name}, requests of the page", len(requests), "", most=1)
    rate = reads / seconds
    yield Figure("page", store, f"{name}, reads of the hub", rate, "/s", most=READS_MAX, detail=detail)


def to_the_pixel(page: Page, url: str, crew: Crew, store: str, seconds: float) -> Iterator[Figure]:
    """Yield how long an entry takes from its commit to the screen, at a steady rate."""
    page.goto(f"{url}/now")
    page.get_by_text("Live", exact=True).wait_for()
    page.evaluate("window.latencies.length = 0")
    writer = threading.Thread(target=_write, args=(crew, seconds))
    writer.start()
    page.wait_for_timeout(seconds * 1000)
    writer.join()
    page.wait_for_timeout(300)
    found = sorted(page.evaluate("window.latencies"))
    p50, p99 = found[len(found) // 2], found[int(len(found) * 0.99)]
    detail: dict[str, Any] = {"entries": len(found), "per_s": len(found) / seconds, "max": found[-1]}
    yield Figure("page", store, "commit to pixel, p50", p50, "ms", detail=detail)
    yield Figure("page", store, "commit to pixel, p99", p99, "ms", most=PIXEL_MS_MAX, detail=detail)


def _write(crew: Crew, seconds: float) -> None:
    """Commit at a steady rate, whatever a commit takes."""
    began = time.perf_counter()
    for number in range(int(seconds * EVENTS_PER_S)):
        time.sleep(max(0.0, began + number / EVENTS_PER_S - time.perf_counter()))
        crew.write()


def long_watch(page: Page, crew: Crew, store: str, entries: int, rest_ms: int) -> Figure:
    """Return how much more memory the page has after many entries than after a tenth of them.

    It shows one view after the other meanwhile, without being loaded again, and ends where it began. Each
    entry has to arrive: the writer waits for the page from time to time.
    """

    def visit(each: int) -> None:
        for view in WATCHED_VIEWS:
            page.locator(f"nav li a[href='/{view}']").click()
            for number in range(-(-each // len(WATCHED_VIEWS))):
                crew.write()
                if number % WAIT_EVERY == 0:
                    _catch_up(page, crew)
            _catch_up(page, crew)
        page.wait_for_timeout(rest_ms)

    page.evaluate("window.latencies = null")
    visit(entries // 10)
    before, received = page.evaluate(HEAP), page.evaluate("window.received")
    visit(entries)
    grown, received = (page.evaluate(HEAP) - before) / 1e6, page.evaluate("window.received") - received
    assert received >= entries, f"only {received} of {entries} entries arrived"
    name = f"memory gained by {entries} entries in {len(WATCHED_VIEWS)} views"
    return Figure("page", store, name, grown, "MB", most=GROWN_MB_MAX, detail={"entries": received})


def _catch_up(page: Page, crew: Crew) -> None:
    """Wait until the page has the newest entry."""
    newest = newest_offset(crew.log)
    poll_until(lambda: page.evaluate(OFFSET) >= newest, PATIENCE_S, "the page is behind the log")
