"""Several people act at once, records vanish, and answers get lost: nothing happens twice or silently."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from coord.core.tokens.schema import Role
from tests.support.hub.browsing import PATIENCE_MS, until
from tests.support.hub.page_site import PROJECT, fill, go, live, login_link, send, visit
from tests.support.hub.site import Site, open_site

pytestmark = pytest.mark.timeout(300)
expect.set_options(timeout=PATIENCE_MS)
FOCUSED = "document.activeElement.closest('[data-row]')?.innerText ?? ''"
FOCUS_IN_VIEW = "Boolean(document.activeElement.closest('main'))"
CODE = re.compile(r"[A-Z]{3,}_|\b[45]\d\d\b|[a-z]+_[a-z]+")
"""What no person should have to read."""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with open_site() as found:
        fill(found)
        yield found


@pytest.fixture
def token(site: Site) -> str:
    return site.token(Role.ADMIN)


def lock(site: Site, token: str, name: str, agent: str = "dan") -> None:
    body = {"session": f"s-{agent}", "resources": [f"name:{name}"]}
    taken = site.ask("POST", "/v1/locks", token, json.dumps(body).encode(), Content_Type="application/json")
    assert taken.status < 300, taken.body


def unlock(site: Site, token: str, name: str, agent: str = "dan") -> None:
    body = {"session": f"s-{agent}", "resources": [f"name:{name}"]}
    done = site.ask(
        "POST", "/v1/locks/release", token, json.dumps(body).encode(), Content_Type="application/json"
    )
    assert done.status < 300, done.body


def events(site: Site, kind: str) -> list[dict[str, Any]]:
    entries = site.database.log("local").tail(0, 10_000)
    found = [json.loads(event) for entry in entries for event in entry.events]
    return [event for event in found if event["event"] == kind]


def ask(site: Site, token: str, agent: str, text: str) -> None:
    send(site, token, "/v1/questions", session=f"s-{agent}", text=text, options=["yes", "no"])


def break_task(site: Site, token: str, task: str) -> None:
    """Let a task fail."""
    path = f"/v1/projects/{PROJECT}/tasks"
    send(site, token, path, tasks=[{"task_id": task, "description": task}])
    claim = send(site, token, f"{path}/{task}/claim", session="s-dan", lease_ms=600_000)["claim"]
    ended = {"session": "s-dan", "generation": claim["generation"]["generation"], "reason": "ERROR"}
    send(site, token, f"{path}/{task}/release", **ended, note="it broke", final=True)


def begin(page: Page, act: str, near: str = "", words: str = "") -> Locator:
    """Open the dialog of an act; return its button that sends."""
    around = page.locator("article, aside").filter(has_text=near) if near else page.locator("main")
    around.locator(f'[data-act="{act}"]').filter(has_text=words).first.click()
    reason = page.get_by_role("dialog").get_by_label("Reason", exact=True)
    if reason.count():
        reason.fill("it is late")
    return page.locator("dialog form .primary")


def at_once(pages: list[Page], buttons: list[Locator], url: str) -> list[str]:
    """Let each page send before any of them is answered; return what those read that were refused."""
    held: list[Route] = []
    for page, button in zip(pages, buttons, strict=True):
        page.route(url, lambda route: held.append(route))
        with page.expect_request(url):
            button.click()
    for route in held:
        route.continue_()
    for page in pages:
        page.unroute(url)
    said = []
    for page in pages:
        problem = page.locator("dialog .problem")
        expect(problem.or_(page.locator("body:not(:has(dialog))"))).to_be_visible()
        said += problem.all_inner_texts()
        page.keyboard.press("Escape")
    return said


def test_two_people_do_the_same_and_the_second_reads_why_not(
    browser: Browser, site: Site, token: str
) -> None:
    lock(site, token, "both")
    ask(site, token, "ada", "Twice?")
    break_task(site, token, "weak")
    with visit(browser, site) as (one, _), visit(browser, site) as (other, _):
        pages = [one, other]
        for page in pages:
            go(page, "/locks?on=name%3Aboth")
        said = at_once(pages, [begin(page, "release") for page in pages], "**/v1/locks/steal")
        assert len([each for each in events(site, "lock.released") if each["resource"] == "name:both"]) == 1
        for page in pages:
            go(page, "/now")
        buttons = [
            begin(page, "answer", "Twice?", words) for page, words in zip(pages, ("yes", "no"), strict=True)
        ]
        said += at_once(pages, buttons, "**/answer")
        said += at_once(pages, [begin(page, "retry", "weak") for page in pages], "**/retry")
        assert len(said) == 3, said
        assert "nobody else holds name:both now" in said[0]
        assert re.search(r"q\d+ was answered by .* already", said[1])
        assert "weak is ready" in said[2]
        assert [each for each in said if CODE.search(each)] == []
    assert len([each for each in events(site, "task.retried") if each["task"] == "weak"]) == 1


def test_a_late_answer_and_a_record_that_vanished_are_refused_with_words(
    browser: Browser, site: Site, token: str
) -> None:
    """The dialog stays open while what it is about goes away; closing it loses no focus."""
    ask(site, token, "cleo", "Still there?")
    lock(site, token, "brief")
    with visit(browser, site) as (page, complaints), visit(browser, site) as (other, _):
        button = begin(page, "answer", "Still there?", "yes")
        begin(other, "withdraw", "Still there?").click()
        expect(page.locator("main").get_by_text("Still there?")).to_have_count(0)
        button.click()
        expect(page.locator("dialog .problem")).to_contain_text("was withdrawn")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        until(page, FOCUS_IN_VIEW)
        go(page, "/locks?on=name%3Abrief")
        button = begin(page, "release")
        unlock(site, token, "brief")
        expect(page.get_by_text("Nobody holds it.")).to_be_visible()
        button.click()
        expect(page.locator("dialog .problem")).to_contain_text("nobody else holds name:brief now")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        until(page, FOCUS_IN_VIEW)
        assert [each for each in complaints if "409" not in each and "404" not in each] == []


def test_try_again_happens_once(browser: Browser, site: Site) -> None:
    """The hub gets a message, and its answer is lost: a second attempt repeats the form as it was."""
    with visit(browser, site) as (page, _):
        go(page, "/messages")
        before = len(events(site, "message.sent"))
        sent: list[Route] = []
        page.route("**/v1/messages", lambda route: sent.append(route))
        page.keyboard.press("c")
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Subject").fill("only once")
        with page.expect_request("**/v1/messages"):
            page.keyboard.press("Enter")
        dialog.get_by_label("Subject").fill("typed while it is under way")
        sent[0].fetch()
        sent[0].abort()
        expect(dialog.get_by_role("alert")).to_contain_text("the hub does not answer")
        assert len(events(site, "message.sent")) == before + 1
        expect(dialog.get_by_label("Subject")).to_be_disabled()
        expect(dialog.get_by_label("Subject")).to_have_value("only once")
        expect(dialog.get_by_role("button", name="Try again")).to_be_focused()
        page.unroute("**/v1/messages")
        page.keyboard.press("Enter")
        expect(dialog).to_have_count(0)
        expect(page.get_by_text("Sent", exact=True)).to_be_visible()
        assert len(events(site, "message.sent")) == before + 1


def test_pressing_twice_sends_once(browser: Browser, site: Site, token: str) -> None:
    lock(site, token, "twice")
    with visit(browser, site) as (page, complaints):
        go(page, "/locks?on=name%3Atwice")
        held: list[Route] = []
        page.route("**/v1/locks/steal", lambda route: held.append(route))
        button = begin(page, "release")
        with page.expect_request("**/v1/locks/steal"):
            button.dblclick()
        page.keyboard.press("Enter")
        page.keyboard.press("Enter")
        page.evaluate("new Promise(requestAnimationFrame)")
        assert len(held) == 1
        held[0].continue_()
        expect(page.get_by_text("Nobody holds it.")).to_be_visible()
        expect(page.get_by_role("dialog")).to_have_count(0)
        assert complaints == []


def test_a_key_that_is_held_confirms_nothing(browser: Browser, site: Site, token: str) -> None:
    """Enter opens the form, which has no field to fill in; while it repeats, nothing is sent."""
    break_task(site, token, "held")
    with visit(browser, site, path=f"/task/{PROJECT}/held") as (page, complaints):
        page.locator('main [data-act="retry"]').focus()
        for _ in range(3):
            page.keyboard.down("Enter")
        send_it = page.locator("dialog form .primary")
        expect(send_it).to_be_focused()
        assert [each for each in events(site, "task.retried") if each["task"] == "held"] == []
        page.keyboard.up("Enter")
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog")).to_have_count(0)
        assert len([each for each in events(site, "task.retried") if each["task"] == "held"]) == 1
        assert complaints == []


def test_closing_the_dialog_ends_an_act_on_many(browser: Browser, site: Site, token: str) -> None:
    """The request that is under way ends; those behind it are not sent."""
    for number in range(4):
        lock(site, token, f"some-{number}")
    with visit(browser, site, path="/locks?q=some") as (page, complaints):
        page.get_by_role("button", name="Act on 4 locks").click()
        page.keyboard.type("Release")
        page.keyboard.press("Enter")
        held: list[Route] = []
        page.route("**/v1/locks/steal", lambda route: held.append(route))
        page.get_by_role("dialog").get_by_label("Reason").fill("it is late")
        with page.expect_request("**/v1/locks/steal"):
            page.keyboard.press("Enter")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        held[0].continue_()
        expect(page.get_by_text("1 of 4 done")).to_be_visible()
        assert len(held) == 1
        assert complaints == []
    assert len([each for each in events(site, "lock.released") if "some" in each["resource"]]) == 1


def test_an_act_on_many_lists_what_was_refused_and_goes_on_after_a_break(
    browser: Browser, site: Site, token: str
) -> None:
    """One key each: those that were done before the hub was gone are not done again."""
    names = [f"many-{number}" for number in range(6)]
    for name in names:
        lock(site, token, name)
    with visit(browser, site) as (page, _):
        go(page, "/locks?q=many")
        page.get_by_role("button", name="Act on 6 locks").click()
        page.keyboard.type("Release")
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_label("These").get_by_role("listitem")).to_have_count(6)
        expect(dialog.locator("code")).to_contain_text("coord steal name:many-5 --force --release")
        unlock(site, token, names[1])
        keys: list[str] = []

        def fail_third(route: Route) -> None:
            keys.append(route.request.headers["idempotency-key"])
            if len(keys) == 3:
                route.fetch()
                route.abort()
            else:
                route.continue_()

        page.route("**/v1/locks/steal", fail_third)
        dialog.get_by_label("Reason").fill("it is late")
        page.keyboard.press("Enter")
        dialog.get_by_role("button", name="Try again").click()
        expect(dialog).to_contain_text("1 of 6 were refused")
        expect(dialog.get_by_role("listitem")).to_have_text(
            re.compile("name:many-1.*nobody else holds name:many-1 now")
        )
        assert (len(keys), len(set(keys))) == (7, 6)
        dialog.get_by_role("button", name="Close", exact=True).last.click()
    ended = [each["resource"] for each in events(site, "lock.released") if "many" in each["resource"]]
    assert sorted(ended) == [f"name:{name}" for name in names]


def test_the_focus_stays_when_others_change_the_list(browser: Browser, site: Site, token: str) -> None:
    """Rows come, go and change their order; the focus stays on its row, or on the one in its place."""
    for name in ("focus-b", "focus-c", "focus-d"):
        lock(site, token, name)
    with visit(browser, site) as (page, complaints):
        go(page, "/locks?q=focus")
        for _ in range(2):
            page.keyboard.press("j")
        assert "focus-c" in page.evaluate(FOCUSED)
        lock(site, token, "focus-a")
        expect(page.get_by_role("button", name=re.compile("focus-a"))).to_be_visible()
        unlock(site, token, "focus-b")
        expect(page.get_by_role("button", name=re.compile("focus-b"))).to_have_count(0)
        assert "focus-c" in page.evaluate(FOCUSED)
        unlock(site, token, "focus-c")
        expect(page.get_by_role("button", name=re.compile("focus-c"))).to_have_count(0)
        assert "focus-d" in page.evaluate(FOCUSED)
        go(page, "/now")
        page.get_by_role("link", name=re.compile("dan")).focus()
        ask(site, token, "dan", "Am I first now?")
        expect(page.locator(".card.agent").nth(1)).to_contain_text("dan")
        assert "Am I first now?" in page.evaluate(FOCUSED)
        assert complaints == []


def test_who_lost_the_right_is_told_and_sees_no_act(browser: Browser, site: Site, token: str) -> None:
    """The browser logged in again as a viewer; then its token is revoked: every tab shows how to log in."""
    lock(site, token, "mine")
    with visit(browser, site) as (page, _):
        go(page, "/locks?on=name%3Amine")
        button = begin(page, "release")
        viewer = site.token(Role.VIEW)
        tab = page.context.new_page()
        tab.goto(login_link(site, viewer))
        live(tab)
        button.click()
        expect(page.locator("dialog .problem")).to_contain_text(
            "this needs a token with the role operate, and this one has view"
        )
        page.keyboard.press("Escape")
        expect(page.locator("main [data-act]")).to_have_count(0)
        site.revoke(viewer)
        for each in (page, tab):
            expect(each.get_by_role("heading", name="This hub is running")).to_be_visible()
    assert [each for each in events(site, "lock.released") if each["resource"] == "name:mine"] == []


def test_logging_out_ends_every_tab_and_a_copy_of_the_cookie(browser: Browser, site: Site) -> None:
    with visit(browser, site) as (page, _):
        (cookie,) = page.context.cookies()
        tab = page.context.new_page()
        tab.goto(f"http://{site.address}/locks")
        live(tab)
        page.get_by_role("button", name=re.compile("^You: ")).click()
        page.get_by_role("button", name="Log out").click()
        for each in (page, tab):
            expect(each.get_by_role("heading", name="This hub is running")).to_be_visible()
        assert page.context.cookies() == []
        copy = f"{cookie['name']}={cookie['value']}"
        assert site.ask("GET", "/v1/page", Cookie=copy).status == 401
