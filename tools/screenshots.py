"""`make pictures`: run the demo, and take the pictures of its page that the documents show."""

import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from playwright.sync_api import Page, ViewportSize, sync_playwright

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
SIZE = ViewportSize(width=1280, height=800)
WAIT_MS = 60_000
PACE = "6"
"""A run of this pace takes more than a minute, so that every picture finds its moment."""
LATE = "/why/task/shop%2FD-005-user-guide"
"""A task that waits for others nearly to the end: at first for one whose agent asks a person."""
CLEARED = """() => {
  for (const each of document.querySelectorAll(".toasts [aria-label=Dismiss]")) each.click();
  for (const each of [document.scrollingElement, ...document.querySelectorAll("main *")]) each.scrollTop = 0;
  return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""
"""Shows the head of a view, and no notes: they are about other things than the picture."""


def main(folder: Path = IMAGES) -> None:
    """Write a picture of each view that the documents show."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-u", "-m", "demo", "--wait", "--pace", PACE]
    with (
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as demo,
        sync_playwright() as playwright,
    ):
        assert demo.stdout is not None
        found = (re.search(r"http://\S+#\S+", line) for line in demo.stdout)
        link = next(each[0] for each in found if each)
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        with closing(browser), closing(browser.new_page(viewport=SIZE, reduced_motion="reduce")) as page:
            page.goto(link)
            page.get_by_text("Live", exact=True).wait_for()
            assert demo.stdin is not None
            demo.stdin.write("\n")
            demo.stdin.flush()
            _take(page, folder)
            demo.stdin.close()
        for _ in demo.stdout:
            pass


def _take(page: Page, folder: Path) -> None:
    """Take the pictures while the agents work; each waits for something worth showing."""

    def shot(name: str) -> None:
        page.evaluate(CLEARED)
        page.screenshot(path=folder / f"{name}.png")

    def go(key: str) -> None:
        page.keyboard.press("g")
        page.keyboard.press(key)

    page.get_by_text("asks").first.wait_for(timeout=WAIT_MS)
    page.goto(re.sub(r"(http://[^/]+).*", r"\1", page.url) + LATE)
    page.get_by_label("What frees it").get_by_text("Answer").first.wait_for(timeout=WAIT_MS)
    shot("why")
    go("l")
    page.get_by_text(re.compile(r"[2-9] locks · [1-9] wait")).wait_for(timeout=WAIT_MS)
    shot("locks")
    go("n")
    page.get_by_text(re.compile("waiting for .* behind")).first.wait_for(timeout=WAIT_MS)
    shot("now")
    go("p")
    page.get_by_text(re.compile(r"Done\s*[1-9]")).first.wait_for(timeout=WAIT_MS)
    page.get_by_text(re.compile(r"In progress\s*[3-9]")).wait_for(timeout=WAIT_MS)
    shot("plan")
    page.get_by_text(re.compile(r"Done\s*(8|9|1\d)")).first.wait_for(timeout=WAIT_MS)
    page.keyboard.press("h")
    slider = page.get_by_role("slider")
    slider.wait_for()
    middle = int(slider.get_attribute("max") or 0) // 2
    slider.fill(str(middle))
    page.get_by_text(f"{middle} / ").wait_for()
    page.locator("main coord-plan .node").first.wait_for()
    shot("time")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
