"""Every view of the page with a large store, while events arrive: how long it blocks the browser.

A view is opened, scrolled from its head to its end, and typed into where it has a filter. What counts is the
longest task that the browser itself reports after the view has loaded.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from playwright.sync_api import Page

from bench.figures import Figure
from bench.page_data import OLD_TASK, PROJECT, RICH_AGENT

TASK_MS_MAX = 100.0
BOARD = "plan as a board"
VIEWS = (
    *("now", "locks", "plan", BOARD, "activity?all=1", "activity?shape=lanes"),
    *("messages", "merges", "alerts", "numbers", f"task/{PROJECT}/{OLD_TASK}", f"agent/{RICH_AGENT}"),
)
LONG_TASKS = """() => {
  window.longest = 0;
  window.tasks ??= new PerformanceObserver((list) => {
    for (const each of list.getEntries()) window.longest = Math.max(window.longest, each.duration);
  });
  window.tasks.observe({type: "longtask"});
}"""
SCROLL = """async (steps) => {
  const targets = [document.scrollingElement, ...document.querySelectorAll("main *")].filter(
    (each) => each.scrollHeight > each.clientHeight + 40 && (each === document.scrollingElement
      || /auto|scroll/.test(getComputedStyle(each).overflowY)));
  for (const target of targets.slice(0, 8)) {
    for (let step = 0; step < steps; step += 1) {
      target.scrollTop = (step / steps) * target.scrollHeight;
      await new Promise(requestAnimationFrame);
    }
    target.scrollTop = 0;
  }
  return targets.length;
}"""
ROWS = "main :is([data-row], .card, .empty, coord-list, .calm, svg, .uplot, table, .facts)"

LANES = "main coord-plan .node"
"""The hub lays the plan out, which takes longer than anything else."""


@contextmanager
def busy(write: Callable[[], None]) -> Iterator[None]:
    """Write all the time, at a steady rate."""
    over = threading.Event()

    def run() -> None:
        while not over.is_set():
            write()

    writer = threading.Thread(target=run)
    writer.start()
    try:
        yield
    finally:
        over.set()
        writer.join()


class Pace(NamedTuple):
    """How long each view is looked at."""

    steps: int = 120
    rest_ms: int = 1500
    key_ms: int = 60
    views: int = len(VIEWS)
    """How many of the views."""


def all_views(page: Page, url: str, store: str, write: Callable[[], None], pace: Pace) -> Iterator[Figure]:
    """Yield the longest block of each view while it scrolls, and events arrive."""
    with busy(write):
        for view in VIEWS[: pace.views]:
            shape = '"board"' if view == BOARD else '"lanes"'
            page.evaluate("shape => localStorage.setItem('coord.plan.shape', shape)", shape)
            page.goto(f"{url}/{view.partition(' ')[0]}")
            page.locator(LANES if view == "plan" else ROWS).first.wait_for()
            page.wait_for_timeout(pace.rest_ms)
            page.evaluate(LONG_TASKS)
            scrolled = page.evaluate(SCROLL, pace.steps)
            yield _figure(page, store, f"{view}: longest block while it scrolls", scrolled=scrolled)
            if page.locator("main [data-filter]").count():
                page.keyboard.press("/")
                page.keyboard.type("agent 00", delay=pace.key_ms)
                page.wait_for_timeout(pace.rest_ms / 5)
                yield _figure(page, store, f"{view}: longest block while somebody filters")
        page.keyboard.press("Escape")
        page.goto(f"{url}/now")
        page.locator(ROWS).first.wait_for()
        page.wait_for_timeout(pace.rest_ms)
        page.evaluate(LONG_TASKS)
        page.keyboard.press(":")
        page.keyboard.type("d5 12", delay=pace.key_ms)
        page.wait_for_timeout(pace.rest_ms / 5)
        yield _figure(page, store, "jump to: longest block while somebody types")


def _figure(page: Page, store: str, name: str, **detail: Any) -> Figure:
    longest = page.evaluate("window.longest")
    page.evaluate("window.longest = 0")
    return Figure("page", store, name, longest, "ms", most=TASK_MS_MAX, detail=detail)
