"""A report in a real browser: a file without a server shows every view, at every time, as the page does."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from coord.core.tokens.schema import Role
from coord.sdk.page.past import PastStates
from coord.transports.hub.page.report import make_report, read_run
from coord.transports.hub.page.run_facts import read_facts
from tests.support.hub.axe import axe_script, problems
from tests.support.hub.browsing import PATIENCE_MS
from tests.support.hub.page_run import STEPS, TIMES, WATCH, Step, addresses, lived, word
from tests.support.hub.page_site import PROJECT
from tests.support.hub.site import PERSON, Site, open_site

pytestmark = pytest.mark.timeout(300)
expect.set_options(timeout=PATIENCE_MS)
HOSTILE = "</script><img src=x onerror=window.ran=1><script>window.ran=1</script>\u2028<!--"
ANSWER = """async (path) => JSON.parse(JSON.stringify(
  (await import("coord/static/core/report.js")).reportOf().answer(path)))"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, list[Step], Path]]:
    """A hub with a run, and the report of it."""
    path = tmp_path_factory.mktemp("report") / "run.html"
    with open_site() as site:
        steps, log = lived(site), site.database.log("local")
        site.write(event="lock.acquired", session="s-evil", resource=HOSTILE, agent=HOSTILE, reason=HOSTILE)
        read = read_run(log, PastStates(log), 0)
        facts = read_facts(site.run, PERSON, "local", read.state, read.entries)
        path.write_bytes(make_report(read, facts, HOSTILE))
        yield site, steps, path


def show(page: Page, path: str) -> None:
    """Show another view of a report, as a link does."""
    page.evaluate(
        "path => { history.pushState(null, '', `#${path}`); dispatchEvent(new PopStateEvent('popstate')); }",
        path,
    )


def test_a_report_shows_every_view_without_a_server(
    browser: Browser, run: tuple[Site, list[Step], Path]
) -> None:
    _, steps, path = run
    script, found = axe_script(), {}
    complaints: list[str] = []
    requests: list[str] = []
    with closing(browser.new_context(offline=True)) as context, closing(context.new_page()) as page:
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url[:30]))
        page.goto(path.as_uri())
        summary = page.get_by_role("region", name="This run")
        expect(summary).to_contain_text(f"{STEPS - 1} of {STEPS} in the plan")
        page.evaluate(script)
        for address, shown in addresses(STEPS - 1):
            if "messages" not in address:
                show(page, address)
                expect(page.locator("main")).to_contain_text(shown)
            if script and "?" not in address:
                found[address] = problems(page)
        assert {address: each for address, each in found.items() if each} == {}
        show(page, "/messages")
        expect(page.locator("main")).to_contain_text("zq3z mail")
        show(page, "/locks")
        expect(page.locator("main")).to_contain_text("onerror")
        assert page.get_by_role("button", name="Release").count() == 0
        step = steps[1]
        show(page, f"/now?at={step.offset}")
        expect(page.get_by_text(f"(entry {step.offset})")).to_be_visible()
        expect(summary).to_contain_text("1 of 2 in the plan")
        page.evaluate(WATCH, "zq[2-9]z|s-evil")
        for address, shown in addresses(1):
            show(page, f"{address}{'&' if '?' in address else '?'}at={step.offset}")
            expect(page.locator("main")).to_contain_text(shown)
            assert max([*page.evaluate(TIMES), 0]) <= step.at, address
        assert page.evaluate("window.seen") == []
        page.evaluate("window.watcher.disconnect()")
        show(page, f"/plan?at={step.offset}")
        page.get_by_label("Speed").select_option("100")
        page.keyboard.press("p")
        expect(page.get_by_role("button", name="Next entry")).to_be_disabled()
        expect(page.locator("main")).to_contain_text("zq3z")
        assert page.evaluate("window.ran") is None
    assert complaints == []
    assert {url[:5] for url in requests} <= {"file:", "data:"}


def test_a_report_answers_as_the_hub_does(browser: Browser, run: tuple[Site, list[Step], Path]) -> None:
    """The state at any offset, the events, the claims of a task, and how events are told."""
    site, steps, path = run
    token = site.token(Role.VIEW)
    task = f"/v1/projects/{PROJECT}/tasks"
    with closing(browser.new_context(offline=True)) as context, closing(context.new_page()) as page:
        page.goto(path.as_uri())
        page.get_by_text("This run").wait_for()
        for offset in (0, 3, *(step.offset for step in steps), steps[-1].offset + 1):
            of_hub = site.ask("GET", f"/v1/page?at={offset}", token).json()
            of_report = page.evaluate(ANSWER, f"/v1/page?at={offset}")
            for name in ("offset", "at", "tables", "recent", "rules", "first_offset"):
                assert of_report[name] == of_hub[name], (offset, name)
        for address in (
            "/v1/events?after=7&limit=9",
            "/v1/page/sentences",
            f"{task}/{word(1)}-task/history",
            "/v1/locks/history?ended=true&limit=1000",
        ):
            assert page.evaluate(ANSWER, address) == site.ask("GET", address, token).json(), address
        for address, name in (
            (f"{task}?tasks={word(1)}-task", "tasks"),
            (f"{task}/{word(1)}-task/state", "result"),
        ):
            assert page.evaluate(ANSWER, address)[name] == site.ask("GET", address, token).json()[name]
