"""`python -m tools.screenshots`: run the demo, and take the pictures of its page that the documents show."""

import re
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

from playwright.sync_api import Page, ViewportSize, sync_playwright
from playwright.sync_api import TimeoutError as TooLate

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
SIZE = ViewportSize(width=1280, height=800)
WAIT_MS = 20_000


def main(folder: Path = IMAGES) -> None:
    """Write a picture of each view that the documents show."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "demo"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        link = next(
            found[0] for line in demo.stdout if (found := re.search(r"http://\S+", line)) and "#" in line
        )
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            with closing(browser), closing(browser.new_page(viewport=SIZE, device_scale_factor=1)) as page:
                page.goto(link)
                page.get_by_text("Live", exact=True).wait_for()
                _take(page, folder)
        demo.communicate()


def _take(page: Page, folder: Path) -> None:
    with suppress(TooLate):  # a run without a wait shows something else
        page.get_by_text("waiting for").first.wait_for(timeout=WAIT_MS)
    shots = {"now": "/now", "locks": "/locks", "plan": "/plan", "why": _why(page)}
    for name, path in shots.items():
        page.goto(_at(page, path))
        page.wait_for_timeout(600)
        page.screenshot(path=folder / f"{name}.png")
    page.goto(_at(page, "/plan"))
    page.get_by_text("Live", exact=True).wait_for()
    page.keyboard.press("h")
    for _ in range(5):
        page.keyboard.press("[")
        page.wait_for_timeout(150)
    page.wait_for_timeout(400)
    page.screenshot(path=folder / "time.png")


def _at(page: Page, path: str) -> str:
    return re.sub(r"(http://[^/]+).*", r"\1", page.url) + path


def _why(page: Page) -> str:
    """Return the address of the first "why" that the page offers."""
    found = page.locator('a[href^="/why/"]').first
    return (found.get_attribute("href") if found.count() else None) or "/now"


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
