"""A page of another origin tries every act with the browser's cookie: nothing changes, nothing is read."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from coord.core.tokens.schema import Role
from coord.transports.hub.browser import links
from tests.support.hub.browsing import CHROMIUM, PATIENCE_MS
from tests.support.hub.page_acts import NODE, RECORDS, printed_acts
from tests.support.hub.page_site import fill, live, login_link, visit
from tests.support.hub.site import Site, open_site

pytestmark = [pytest.mark.timeout(300), pytest.mark.skipif(not NODE, reason="node is not installed")]
expect.set_options(timeout=PATIENCE_MS)
FOREIGN_NAME = "evil.example"
PAGE = b"<!doctype html><title>foreign</title><body>"
TRY_ACT = """async ([hub, {method, path, body}]) => {
  const url = hub + path, text = JSON.stringify(body ?? {}), found = [];
  const attempt = async (name, options) => {
    const said = await fetch(url, {credentials: "include", ...options}).then(
      (answer) => (answer.type === "opaque" ? "opaque" : `read ${answer.status}`), () => "blocked");
    found.push(`${name}: ${said}`);
  };
  await attempt("json", {method, body: text, headers: {"Content-Type": "application/json"}});
  if (method === "POST") {
    await attempt("plain", {method, body: text, mode: "no-cors", headers: {"Content-Type": "text/plain"}});
    await attempt("blob", {method, body: new Blob([text], {type: ""}), mode: "no-cors"});
    navigator.sendBeacon(url, new Blob([text], {type: "text/plain"}));
    const form = document.createElement("form"), field = document.createElement("input");
    Object.assign(form, {method: "post", action: url, enctype: "text/plain", target: "sink"});
    // the browser joins name and value with "="
    Object.assign(field, {name: text.slice(0, -1) + ',"x":"', value: '"}'});
    form.append(field);
    document.body.append(form);
    const loaded = new Promise((done) => { document.querySelector("iframe[name=sink]").onload = done; });
    form.submit();
    await loaded;
  }
  await attempt("get", {mode: "no-cors"});
  return found;
}"""
TRY_READ = """async (hub) => {
  const found = {};
  const embed = (tag, name, path, more = {}) => new Promise((done) => {
    const element = Object.assign(document.createElement(tag), more);
    element.onload = () => { found[name] = "loaded"; done(); };
    element.onerror = () => { found[name] = "blocked"; done(); };
    element[tag === "link" ? "href" : "src"] = hub + path;
    document.body.append(element);
  });
  for (const path of ["/v1/page", "/v1/locks", "/v1/sessions"]) {
    const asked = fetch(hub + path, {credentials: "include"});
    found[`read ${path}`] = await asked.then(() => "read", () => "blocked");
    await embed("img", `image ${path}`, path);
    await embed("script", `script ${path}`, path);
  }
  await embed("script", "our script", "/static/core/format.js", {type: "module"});
  await embed("script", "our script as of old", "/static/core/format.js");
  await embed("img", "our icon", "/static/icon.svg");
  await embed("link", "our style", "/static/style.css", {rel: "stylesheet"});
  found.socket = await new Promise((done) => {
    const socket = new WebSocket(hub.replace("http", "ws") + "/v1/ws?after=0");
    socket.onmessage = () => done("read");
    socket.onclose = () => done("blocked");
  });
  found.events = await new Promise((done) => {
    const events = new EventSource(hub + "/v1/stream?after=0", {withCredentials: true});
    events.onmessage = () => done("read");
    events.onerror = () => done("blocked");
  });
  return found;
}"""


@contextmanager
def foreign_site() -> Iterator[int]:
    """Serve an empty page on a port of this machine; yield the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(PAGE)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_port
        finally:
            server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for which a foreign name leads to this machine, as after DNS rebinding."""
    if not CHROMIUM:
        pytest.skip("chromium is not installed: tools/setup servers")
    rebound = f"--host-resolver-rules=MAP {FOREIGN_NAME} 127.0.0.1"
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", rebound])
        with closing(found):
            yield found


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with open_site() as found:
        fill(found)
        yield found


def last(site: Site) -> int:
    return site.database.log("local").tail(0, 10_000)[-1].offset


@contextmanager
def beside(page: Page, url: str) -> Iterator[Page]:
    """Yield a foreign page in the browser that is logged in."""
    with closing(page.context.new_page()) as foreign:
        foreign.goto(url)
        yield foreign


@pytest.mark.parametrize("name", ["127.0.0.1", FOREIGN_NAME])
def test_a_foreign_page_can_do_no_act(browser: Browser, site: Site, name: str) -> None:
    """From another port of the same host, for which SameSite=Strict is no help, and from another host."""
    records = {**RECORDS, "open_task": {"project": "shop", "task": "mail"}, "question": {"id": "q1"}}
    requests = [one for act in printed_acts(records) for one in act["requests"]]
    with visit(browser, site) as (page, _), foreign_site() as port:
        before, asked = last(site), site.hub.requests
        with beside(page, f"http://{name}:{port}/") as foreign:
            statuses: list[int] = []
            foreign.on("response", lambda answer: statuses.append(answer.status))
            foreign.evaluate(
                "document.body.append(Object.assign(document.createElement('iframe'), {name: 'sink'}))"
            )
            for one in requests:
                wanted = {"method": "POST", **one}
                said = foreign.evaluate(TRY_ACT, [f"http://{site.address}", wanted])
                assert [each for each in said if not each.endswith(("blocked", "opaque"))] == []
            assert len(requests) > 20
            assert site.hub.requests > asked + len(requests), "the hub has seen them, not only the browser"
            hub_said = {each for each in statuses if each != 200}
            assert hub_said <= {401, 403, 405}, "405: it has no such route"
        live(page)
        assert last(site) == before


def test_a_foreign_page_reads_nothing(browser: Browser, site: Site) -> None:
    """Neither data nor files of ours: what others could embed would tell them that a hub is here."""
    with visit(browser, site) as (page, _), foreign_site() as port:
        before = last(site)
        with beside(page, f"http://127.0.0.1:{port}/") as foreign:
            found = foreign.evaluate(TRY_READ, f"http://{site.address}")
            assert {name: said for name, said in found.items() if said != "blocked"} == {}
            assert len(found) == 15
        assert last(site) == before


def test_a_foreign_page_can_neither_frame_ours_nor_talk_to_it(browser: Browser, site: Site) -> None:
    with visit(browser, site) as (page, _), foreign_site() as port:
        before = last(site)
        with beside(page, f"http://127.0.0.1:{port}/") as foreign:
            foreign.evaluate(
                """url => new Promise((done) => {
                  const frame = Object.assign(document.createElement("iframe"), {onload: done, src: url});
                  document.body.append(frame);
                })""",
                f"http://{site.address}/locks",
            )
            assert foreign.frames[-1].url.startswith("chrome-error:")
            with foreign.context.expect_page() as opened:
                foreign.evaluate("url => { window.other = open(url); }", f"http://{site.address}/now")
            live(opened.value)
            said = foreign.evaluate(
                """() => {
                  const can = (run) => { try { return String(run()); } catch (error) { return error.name; } };
                  other.postMessage({act: "stop", type: "subscribe"}, "*");
                  return [() => other.document.title, () => other.location.href, () => other.eval("1")]
                    .map(can);
                }"""
            )
            assert said == ["SecurityError"] * 3
            opened.value.close()
        assert last(site) == before


def test_a_name_that_leads_here_reaches_nothing(browser: Browser, site: Site) -> None:
    """DNS rebinding: the browser believes that the hub is a page of the attacker."""
    port = site.address.partition(":")[2]
    with closing(browser.new_context()) as context, closing(context.new_page()) as page:
        answer = page.goto(f"http://{FOREIGN_NAME}:{port}/")
        assert answer is not None
        assert answer.status == 421
        ask = "path => fetch(path).then((answer) => answer.status, () => 'blocked')"
        for path in ("/v1/page", "/static/app.js", "/login", "/healthz"):
            assert page.evaluate(ask, path) == "blocked", "the policy of a refusal allows nothing"
            refused = page.goto(f"http://{FOREIGN_NAME}:{port}{path}")
            assert refused is not None
            assert refused.status == 421, path
        login = """once => fetch("/login", {method: "POST", body: JSON.stringify({once}),
          headers: {"Content-Type": "application/json"}}).then((answer) => answer.status, () => "blocked")"""
        code = login_link(site, site.token(Role.ADMIN)).partition("#")[2]
        assert page.evaluate(login, code) == "blocked"
        assert context.cookies() == []


def test_a_link_logs_in_one_browser_once_and_in_time(
    browser: Browser, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = login_link(site, site.token())

    def opened(url: str) -> tuple[str, int]:
        with closing(browser.new_context()) as context, closing(context.new_page()) as page:
            page.goto(url)
            page.get_by_text("Live", exact=True).or_(
                page.get_by_text("This link was used already")
            ).wait_for()
            return page.url.removeprefix(f"http://{site.address}"), len(context.cookies())

    assert opened(link) == ("/", 1)
    assert opened(link) == ("/login", 0), "another browser"
    monkeypatch.setattr(links, "LINK_S", -1.0)
    assert opened(login_link(site, site.token())) == ("/login", 0), "too late"


def test_a_violation_of_the_policy_fails_a_test(browser: Browser, site: Site) -> None:
    style = "document.body.append(Object.assign(document.createElement('style'), {textContent: 'a {}'}))"
    with pytest.raises(AssertionError, match="style-src"), visit(browser, site) as (page, _):
        page.evaluate(style)
