"""A real browser follows the link of `coord open`: it works once, for its own page, and under the policy."""

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, sync_playwright

from tests.support.git_folders import made_repository
from tests.support.hub.process import PATIENCE_S, RunningHub, private_home, serving

CHROMIUM = shutil.which("chromium") or ""
PATIENCE_MS = PATIENCE_S * 1000
FOREIGN = b"<!doctype html><title>foreign</title>"
SOCKET_ENDS = """url => new Promise(done => {
  const socket = new WebSocket(url);
  socket.onopen = () => done("open");
  socket.onclose = () => done("refused");
})"""


@pytest.fixture(scope="module")
def context() -> Iterator[BrowserContext]:
    """A browser without any cookie; root runs it, so it has no sandbox."""
    if not CHROMIUM:
        pytest.skip("chromium is not installed: tools/setup servers")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        with closing(browser), closing(browser.new_context()) as found:
            found.set_default_timeout(PATIENCE_MS)
            yield found


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningHub, Path, dict[str, str]]]:
    folder = tmp_path_factory.mktemp("browser")
    made_repository(folder / "shop")
    with (
        private_home(folder / "private") as environ,
        serving(folder / "shop", environ) as hub,
    ):
        yield hub, folder / "shop", environ


def new_link(served: tuple[RunningHub, Path, dict[str, str]]) -> str:
    _, repository, environ = served
    done = subprocess.run(
        [sys.executable, "-m", "coord", "open", "--role", "operate"],
        cwd=repository,
        env=environ,
        capture_output=True,
        check=True,
        timeout=PATIENCE_S,
    )
    return str(json.loads(done.stdout)["url"])


@contextmanager
def opened(context: BrowserContext, url: str) -> Iterator[tuple[Page, list[str]]]:
    """Yield a page and what its console complained about."""
    complaints: list[str] = []
    with closing(context.new_page()) as page:
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.goto(url)
        yield page, complaints


@contextmanager
def foreign_site() -> Iterator[str]:
    """Yield the address of a page that is not the hub's, on another port of the same machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(FOREIGN)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def asked(page: Page, path: str, **options: Any) -> Any:
    """Return the status that a script of the page gets, or "blocked"."""
    script = (
        "([path, options]) => fetch(path, options)"
        ".then(answer => answer.type === 'opaque' ? 'opaque' : answer.status, () => 'blocked')"
    )
    return page.evaluate(script, [path, options])


def test_a_link_logs_a_browser_in_once(
    context: BrowserContext, served: tuple[RunningHub, Path, dict[str, str]]
) -> None:
    """Issue 16: no script sees the cookie, the address keeps no secret, and a second use says why."""
    hub, link = served[0], new_link(served)
    context.clear_cookies()
    with opened(context, link) as (page, complaints):
        page.wait_for_url(f"{hub.url}/")
        (cookie,) = context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")
        assert page.evaluate("document.cookie") == ""
        assert asked(page, "/v1/locks") == 200
        page.go_back()
        assert link.partition("#")[2] not in page.url, "the history has the secret"
        assert complaints == []
    context.clear_cookies()
    with opened(context, link) as (page, complaints):
        page.get_by_text("This link was used already").wait_for()
        assert page.url == f"{hub.url}/login"
        assert (context.cookies(), asked(page, "/v1/locks")) == ([], 401)
        assert [each for each in complaints if "401" not in each] == []


def test_the_policy_holds_in_a_browser(
    context: BrowserContext, served: tuple[RunningHub, Path, dict[str, str]]
) -> None:
    """Text that gets into the page runs nothing and sends nothing."""
    with opened(context, f"{served[0].url}/login") as (page, complaints), foreign_site() as foreign:
        assert complaints == []
        page.evaluate("""() => {
          window.ran = [];
          window.refused = [];
          const attempt = (name, run) => {
            try { run(); } catch (error) { window.refused.push(name); }
          };
          const script = document.createElement("script");
          attempt("text", () => { script.textContent = "window.ran.push('script')"; });
          script.append("window.ran.push('script')");
          document.body.append(script);
          const handler = `<img src="x" onerror="window.ran.push('handler')">`;
          attempt("html", () => document.body.insertAdjacentHTML("beforeend", handler));
          attempt("inner", () => { document.body.innerHTML = handler; });
          attempt("policy", () => trustedTypes.createPolicy("own", {createHTML: text => text}));
          attempt("handler", () => document.body.setAttribute("onclick", "window.ran.push('click')"));
          document.body.click();
        }""")
        assert asked(page, f"http://{foreign}/", mode="no-cors") == "blocked"
        assert page.evaluate("window.ran") == []
        assert page.evaluate("window.refused") == ["text", "html", "inner", "policy", "handler"]
        assert sum("Content Security Policy" in each for each in complaints) >= 2, "script and fetch"


def test_a_foreign_page_cannot_use_the_cookie(
    context: BrowserContext, served: tuple[RunningHub, Path, dict[str, str]]
) -> None:
    """Another port of this machine is the same site for SameSite, so the hub itself refuses."""
    hub = served[0]
    with opened(context, new_link(served)) as (page, _):
        page.wait_for_url(f"{hub.url}/")
        assert asked(page, "/v1/locks") == 200
        assert page.evaluate(SOCKET_ENDS, f"ws{hub.url[4:]}/v1/ws") == "open"
    answers: list[int] = []
    with foreign_site() as foreign, opened(context, f"http://{foreign}/") as (page, _):
        page.on("response", lambda answer: answers.append(answer.status))
        assert asked(page, f"{hub.url}/v1/locks", credentials="include") == "blocked"
        body = '{"resources": ["a.py"], "session": "evil"}'
        for more in ({"mode": "no-cors"}, {"mode": "cors"}):
            told = asked(page, f"{hub.url}/v1/locks", method="POST", body=body, credentials="include", **more)
            assert told in ("opaque", "blocked")
        assert page.evaluate(SOCKET_ENDS, f"ws{hub.url[4:]}/v1/ws") == "refused"
        page.evaluate(
            """url => new Promise(done => {
              const frame = document.createElement("iframe");
              frame.onload = done;
              frame.src = url;
              document.body.append(frame);
            })""",
            f"{hub.url}/",
        )
        assert page.frames[1].url.startswith("chrome-error:"), "the hub's page is in a frame of a foreign one"
    assert set(answers) <= {200, 403}, "200 is the page that stays out of the frame"
    with opened(context, f"{hub.url}/") as (page, _):
        assert page.evaluate("fetch('/v1/locks').then(answer => answer.json())")["locks"] == []
