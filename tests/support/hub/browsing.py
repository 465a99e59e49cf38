"""A real browser in front of a real hub: for tests of the page."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.support.git_folders import made_repository
from tests.support.hub.process import PATIENCE_S, RunningHub, private_home, serving
from tests.support.servers.server import poll_until

CHROMIUM = shutil.which("chromium") or ""
PATIENCE_MS = PATIENCE_S * 1000
VIOLATION = "violates the policy:"
WATCH = f"""addEventListener("securitypolicyviolation", event =>
  console.error("{VIOLATION}", event.effectiveDirective, event.blockedURI, event.sample))"""


class Place(NamedTuple):
    """A repository with a hub, and an environment of its own for programs there."""

    hub: RunningHub
    repository: Path
    environ: dict[str, str]

    def coord(self, *words: str, agent: str = "") -> dict[str, Any]:
        """Run a command as a process of its own, for an agent or a person; return what it printed."""
        environ = {"COORD_SESSION_ID": f"s-{agent}", "COORD_AGENT": agent} if agent else {}
        done = self.run(*words, **environ)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def run(self, *words: str, **environ: str) -> "subprocess.CompletedProcess[str]":
        """Run a command, whatever its outcome."""
        return subprocess.run(
            [sys.executable, "-m", "coord", *words],
            cwd=self.repository,
            env={**self.environ, **environ},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )

    def link(self, role: str) -> str:
        """Return a link that logs a browser in, once."""
        return str(self.coord("open", "--role", role)["url"])


@contextmanager
def hub_with_page(folder: Path) -> Iterator[Place]:
    """Serve a new repository below a folder."""
    made_repository(folder / "shop")
    with private_home(folder / "private") as environ, serving(folder / "shop", environ) as hub:
        yield Place(hub, folder / "shop", environ)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run a browser without a window; root runs it, so it has no sandbox."""
    if not CHROMIUM:
        pytest.skip("chromium is not installed: tools/setup servers")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        with closing(browser):
            yield browser


def until(page: Page, script: str) -> Any:
    """Return what a script gives once that is true.

    The policy of the page lets no timer evaluate a text: `wait_for_function` fails unless it is true at once.
    """
    found: list[Any] = [None]

    def look() -> Any:
        found[0] = page.evaluate(script)
        return found[0]

    poll_until(look, PATIENCE_S, f"not true: {script}")
    return found[0]


@contextmanager
def watched(page: Page) -> Iterator[list[str]]:
    """Yield what the console of a page says; a page that violates its policy fails."""
    complaints: list[str] = []
    page.add_init_script(WATCH)
    page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    yield complaints
    if not page.is_closed():
        page.evaluate("0")  # what the page has said arrives before an answer
    violations = [each for each in complaints if VIOLATION in each]
    assert not violations, violations


@contextmanager
def logged_in(
    browser: Browser, place: Place, role: str = "admin", **options: Any
) -> Iterator[tuple[Page, list[str]]]:
    """Yield the page after a login in a new profile, once it is live, and the complaints of its console."""
    with (
        closing(browser.new_context(**options)) as context,
        closing(context.new_page()) as page,
        watched(page) as complaints,
    ):
        context.set_default_timeout(PATIENCE_MS)
        page.goto(place.link(role))
        page.wait_for_url(f"{place.hub.url}/")
        page.get_by_text("Live", exact=True).wait_for()
        yield page, complaints
