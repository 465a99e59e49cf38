"""A report in a real browser: a file without a server shows every view, live text and earlier states."""

import shutil
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from coord.transports.hub.page.report import make_report
from tests.support.hub.process import PATIENCE_S
from tests.support.lock_harness import LockHarness

CHROMIUM = shutil.which("chromium") or ""
HOSTILE = "<img src=x onerror=document.title='ran'>"


@pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed: tools/setup servers")
def test_a_report_opens_without_a_server(tmp_path: Path) -> None:
    harness = LockHarness()
    for number in range(3):
        harness.pass_time(60_000)
        harness.lock(f"s{number}", f"file:src/{number}.py", reason=HOSTILE)
    (tmp_path / "run.html").write_bytes(make_report(harness.store, 0, HOSTILE))
    complaints: list[str] = []
    requests: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        with closing(browser), closing(browser.new_page()) as page:
            page.set_default_timeout(PATIENCE_S * 1000)
            page.on("console", lambda message: complaints.append(message.text))
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("request", lambda request: requests.append(request.url[:30]))
            page.goto((tmp_path / "run.html").as_uri())
            page.get_by_text("Report of").wait_for()
            page.get_by_role("link", name="Locks").click()
            page.get_by_text("2.py").wait_for()
            page.keyboard.press("h")
            for left in (2, 1):
                page.keyboard.press("[")
                page.get_by_text(f"{left} / 3").wait_for()
            assert page.get_by_text("2.py").count() == 0
            assert page.url.endswith("#/locks?at=1")
            assert page.title() != "ran"
    assert complaints == []
    assert {url[:5] for url in requests} <= {"file:", "data:"}
