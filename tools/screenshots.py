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
LATE = "/why/task/shop%2FD-005-user-guide"
"""A task that waits for others nearly to the end."""


def main(folder: Path = IMAGES) -> None:
    """Write a picture of each view that the documents show."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-u", "-m", "demo", "--wait"]
    with (
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as demo,
        sync_playwright() as playwright,
    ):
        assert demo.stdout is not None
        found = (re.search(r"http://\S+#\S+", line) for line in demo.stdout)
        link = next(each[0] for each in found if each)
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        with closing(browser), closing(browser.new_page(viewport=SIZE)) as page:
            page.goto(link)
            page.get_by_text("Live", exact=True).wait_for()
            assert demo.stdin is not None
            demo.stdin.write("\n")
            demo.stdin.close()
            _take(page, folder)
        for _ in demo.stdout:
            pass


def _take(page: Page, folder: Path) -> None:
    """Take the pictures while the agents work; each waits for something worth showing."""

    def shot(name: str) -> None:
        page.wait_for_timeout(250)
        page.screenshot(path=folder / f"{name}.png")

    page.keyboard.press("g")
    page.keyboard.press("p")
    page.get_by_text(re.compile(r"In progress\s*[2-9]")).wait_for(timeout=WAIT_MS)
    shot("plan")
    page.goto(re.sub(r"(http://[^/]+).*", r"\1", page.url) + LATE)
    page.locator("main ol, main ul").first.wait_for(timeout=WAIT_MS)
    shot("why")
    page.keyboard.press("g")
    page.keyboard.press("n")
    with suppress(TooLate):  # a run without a wait shows something else
        page.get_by_text("waiting for").first.wait_for(timeout=WAIT_MS)
    shot("now")
    page.keyboard.press("g")
    page.keyboard.press("l")
    shot("locks")
    page.keyboard.press("g")
    page.keyboard.press("p")
    page.keyboard.press("h")
    page.get_by_role("slider").wait_for()
    page.get_by_role("slider").fill("120")
    page.get_by_text("120 / ").wait_for()
    shot("time")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
