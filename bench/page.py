"""The page in a real browser: from a commit to the pixel, a large store, a long watch, and how much is sent.

An entry is on the screen when a frame has been painted after the one in which the page drew it. The clock of
the entry is that of this machine, in milliseconds.
"""

import itertools
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from bench import page_views
from bench.figures import Figure
from bench.places import Places
from bench.repository import make_repository
from bench.scale import FULL, TINY, Scale
from coord.core.identity import Caller
from coord.core.lifecycle.commands import Register
from coord.core.locks.commands import AcquireLocks
from coord.core.plans.commands import AddTasks, NewTask
from coord.engine.engine import Engine
from coord.stores.open import open_store
from coord.transports.hub.page.assets import assets
from tests.support.hub.browsing import CHROMIUM, Place
from tests.support.hub.process import private_home, serving

PIXEL_MS_MAX, BYTES_MAX, TASK_MS_MAX = 150.0, 150 * 1024, 100.0
EVENTS_PER_S = 200
AGENTS, LOCKS, TASKS = 200, 5_000, 10_000
WATCHED = 50_000
WATCHED_VIEWS = ("activity", "locks", "plan", "numbers", "messages", "now")
PROJECT, REPOSITORY = "p", "r"
SEEN = """() => {
  window.latencies = [];
  const Socket = window.WebSocket;
  window.WebSocket = class extends Socket {
    constructor(...all) {
      super(...all);
      this.addEventListener("message", ({data}) => {
        const {type, at} = JSON.parse(data);
        if (type !== "entry") return;
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
        with serving(repository, environ) as hub, filled(repository, agents, locks, tasks) as engine:
            link = Place(hub, repository, environ).link("view")
            with browsing(link, hub.url) as page:
                yield from large_store(page, hub.url, store, pace)
                write = _steadily(engine, 20 if scale is TINY else EVENTS_PER_S)
                yield from page_views.all_views(page, hub.url, store, write, pace)
                seconds = 1.0 if scale is TINY else 20.0 if scale is FULL else 8.0
                yield from to_the_pixel(page, hub.url, engine, store, seconds)
                watched, rest_ms = (200, 100) if scale is TINY else (WATCHED, 3000)
                yield long_watch(page, engine, store, watched, rest_ms)


def sent_bytes(store: str) -> Figure:
    """Return how much a first visit downloads, compressed."""
    sizes = {name: len(each.compressed or each.body) for name, each in assets().items()}
    needed = sum(size for name, size in sizes.items() if not name.endswith(".txt"))
    return Figure("page", store, "all files of the page, compressed", needed, "B", most=BYTES_MAX)


@contextmanager
def filled(repository: Path, agents: int, locks: int, tasks: int) -> Iterator[Engine]:
    """Yield an engine on the store of a repository with many agents, locks and tasks."""
    database = open_store(f"sqlite://{repository}/.git/coord/store/coord.db")
    engine = Engine(database, "local")
    try:
        names = [f"agent-{number:03}" for number in range(agents)]
        engine.call_many([Register(caller=_caller(name), model="opus", peers=False) for name in names])
        for first in range(0, tasks, 500):
            more = range(first, min(first + 500, tasks))
            plan = [
                NewTask(task_id=f"T-{each:05}", description="one of many", track=f"t{each % 8}")
                for each in more
            ]
            engine.call(AddTasks(PROJECT, tuple(plan)))
        wanted = [
            AcquireLocks(_caller(names[each % agents]), REPOSITORY, (f"file:src/d{each % 97}/{each}.py",))
            for each in range(locks)
        ]
        for first in range(0, locks, 500):
            engine.call_many(wanted[first : first + 500])
        page_views.fill(engine, database.log("local"), tasks // 5)
        yield engine
    finally:
        engine.close()
        database.close()


def _caller(name: str) -> Caller:
    return Caller(name, agent="claude", role="worker", project=PROJECT)


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


def to_the_pixel(page: Page, url: str, engine: Engine, store: str, seconds: float) -> Iterator[Figure]:
    """Yield how long an entry takes from its commit to the screen, at a steady rate."""
    page.goto(f"{url}/now")
    page.get_by_text("Live", exact=True).wait_for()
    page.evaluate("window.latencies.length = 0")
    writer = threading.Thread(target=_write, args=(engine, seconds))
    writer.start()
    page.wait_for_timeout(seconds * 1000)
    writer.join()
    page.wait_for_timeout(300)
    found = sorted(page.evaluate("window.latencies"))
    p50, p99 = found[len(found) // 2], found[int(len(found) * 0.99)]
    detail: dict[str, Any] = {"entries": len(found), "per_s": len(found) / seconds, "max": found[-1]}
    yield Figure("page", store, "commit to pixel, p50", p50, "ms", detail=detail)
    yield Figure("page", store, "commit to pixel, p99", p99, "ms", most=PIXEL_MS_MAX, detail=detail)


def _write(engine: Engine, seconds: float) -> None:
    """Commit at a steady rate, whatever a commit takes."""
    began = time.perf_counter()
    for number in range(int(seconds * EVENTS_PER_S)):
        time.sleep(max(0.0, began + number / EVENTS_PER_S - time.perf_counter()))
        _touch(engine, number)


def _steadily(engine: Engine, per_s: int) -> Callable[[], None]:
    """Return what writes one entry after the other, at most at a steady rate."""
    numbers = itertools.count()

    def write() -> None:
        time.sleep(1 / per_s)
        _touch(engine, next(numbers))

    return write


def _touch(engine: Engine, number: int) -> None:
    """Write an entry with one event: the renewal of a lock."""
    name = f"agent-{number % 5:03}"
    engine.call(AcquireLocks(_caller(name), REPOSITORY, (f"file:hot-{name}.py",)))


def long_watch(page: Page, engine: Engine, store: str, entries: int, rest_ms: int) -> Figure:
    """Return how much more memory the page has after many entries than after a tenth of them.

    It shows one view after the other meanwhile, without being loaded again, and ends where it began.
    """

    def visit(each: int) -> None:
        for view in WATCHED_VIEWS:
            page.locator(f"nav li a[href='/{view}']").click()
            for number in range(each // len(WATCHED_VIEWS)):
                _touch(engine, number)
        page.wait_for_timeout(rest_ms)

    visit(entries // 10)
    before = page.evaluate(HEAP)
    visit(entries)
    grown = (page.evaluate(HEAP) - before) / 1e6
    return Figure(
        "page", store, f"memory gained by {entries} entries in {len(WATCHED_VIEWS)} views", grown, "MB"
    )
