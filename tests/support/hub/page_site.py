"""A hub of this process with a crew at work, and browsers that read its page."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Error, Page, Request, WebSocket

from coord.core.tokens.schema import Role
from coord.transports.hub.page.assets import FOLDER
from tests.support.hub.browsing import PATIENCE_MS, watched
from tests.support.hub.process import PATIENCE_S
from tests.support.hub.site import Site
from tests.support.servers.server import poll_until

PROJECT = "shop"
CREW = ("ada", "bob", "cleo", "dan")
PLACES = {
    ":project": PROJECT,
    ":task": "checkout",
    ":session": "s-ada",
    ":kind": "task",
    ":id": f"{PROJECT}%2Fcheckout",
    ":agent": "ada",
}
"""What stands for the parts of a view's address."""
TASKS = (
    ("schema", "Write the schema of the orders", ()),
    ("stock", "Keep what is in stock", ("schema",)),
    ("checkout", "Let a reader check out", ()),
    ("mail", "Send a mail for every order, also to those who wait for it a long time", ("checkout",)),
    ("search", "Find what somebody looks for", ()),
)
HEADERS = {"Content_Type": "application/json", "Coord_Repository": "shop"}
MOVED = "path => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate')); }"
WHOLE = f"""async () => {{
  const end = performance.now() + {PATIENCE_MS};
  while (document.querySelector("main .skeleton")) {{
    if (performance.now() > end) throw new Error(document.querySelector("main").innerText);
    await new Promise(requestAnimationFrame);
  }}
}}"""
"""Waits until a view has what it asks for; it looks at every frame, where `expect` looks ever more seldom."""
STATUS = """import("/static/core/store.js").then(({status, liveState, loaded}) =>
  [status.peek(), status.peek().error?.message, liveState().offset, loaded.peek()])"""
TWO_FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
_PATH = re.compile(r'\bpath: "(/[^"]*)"')


def views() -> dict[str, str]:
    """Return an address of each view by the name of its module, as the page itself lists them."""
    index = (FOLDER / "views/index.js").read_text()
    found = {}
    for name in re.findall(r'from "\./([\w-]+)\.js"', index):
        pattern = _PATH.search(Path(FOLDER, "views", f"{name}.js").read_text())
        assert pattern, f"views/{name}.js names no path"
        found[name] = "/".join(PLACES.get(part, part) for part in pattern[1].split("/"))
    assert found, "views/index.js lists no view"
    return found


def send(site: Site, token: str, path: str, **body: Any) -> dict[str, Any]:
    """Send a request of an agent; return the answer."""
    reply = site.ask("POST", path, token, json.dumps(body).encode(), **HEADERS)
    assert reply.status < 300, (path, reply.body)
    found: dict[str, Any] = reply.json()
    return found


def fill(site: Site) -> None:
    """Let a crew work: sessions, a plan, locks with waiters, questions and messages."""
    token = site.token(Role.ADMIN)
    for number, agent in enumerate(CREW):
        described = {"role": "implementer" if number else "lead", "project": PROJECT, "model": "claude-x"}
        send(site, token, "/v1/sessions", session=f"s-{agent}", agent=agent, **described)
    tasks = [
        {"task_id": task, "description": words, "depends_on": needs, "files": [f"src/{task}.py"]}
        for task, words, needs in TASKS
    ]
    send(site, token, f"/v1/projects/{PROJECT}/tasks", tasks=tasks)
    for agent, task in (("ada", "checkout"), ("bob", "schema")):
        send(
            site, token, f"/v1/projects/{PROJECT}/tasks/{task}/claim", session=f"s-{agent}", lease_ms=600_000
        )
    send(site, token, "/v1/locks", session="s-cleo", resources=["name:deploy"], reason="the release")
    send(site, token, "/v1/questions", session="s-bob", text="Use the old name?", options=["yes", "no"])
    send(site, token, "/v1/messages", session="s-ada", kind="info", subject="The schema is there", body="Go")


def login_link(site: Site, token: str) -> str:
    """Return a link that logs a browser in with a token, once."""
    code: list[str] = []
    site.thread._in_loop(lambda: code.append(site.hub.links.add(token)))
    return f"http://{site.address}/login#{code[0]}"


@contextmanager
def visit(
    browser: Browser, site: Site, role: Role = Role.ADMIN, path: str = "/", script: str = "", **options: Any
) -> Iterator[tuple[Page, list[str]]]:
    """Yield a page after a login in a new profile, once it is live, and what its console says.

    A script, if given, runs before those of the page.
    """
    with (
        closing(browser.new_context(**options)) as context,
        closing(context.new_page()) as page,
        watched(page) as complaints,
    ):
        context.set_default_timeout(PATIENCE_MS)
        if script:
            page.add_init_script(script)
        page.goto(login_link(site, site.token(role)))
        page.wait_for_url(f"http://{site.address}/")
        live(page)
        if path != "/":
            go(page, path)
        yield page, complaints


def live(page: Page) -> None:
    """Wait until the page follows the log."""
    try:
        page.get_by_text("Live", exact=True).wait_for()
    except Error as error:
        status = page.evaluate(STATUS)
        raise AssertionError(f"not live: {status}\n{page.inner_text('body')}") from error


def go(page: Page, path: str) -> None:
    """Show another view of a page, as a link does."""
    page.evaluate(MOVED, path)
    page.evaluate(WHOLE)


def show(page: Page, path: str) -> None:
    """Show another view, and wait until everything that it asks for is drawn."""
    traffic = Traffic(page)
    go(page, path)
    traffic.settle()
    traffic.end()


class Traffic:
    """The requests of a page, and its connections, as they come."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._open: set[Request] = set()
        self.requests: list[str] = []
        self.sockets: list[WebSocket] = []
        self._heard: dict[Any, Callable[[Any], None]] = {
            "request": self._begin,
            "requestfinished": lambda request: self._open.discard(request),
            "requestfailed": lambda request: self._open.discard(request),
            "websocket": lambda socket: self.sockets.append(socket),
        }
        for event, heard in self._heard.items():
            page.on(event, heard)

    def end(self) -> None:
        """Hear no more of the page."""
        for event, heard in self._heard.items():
            self._page.remove_listener(event, heard)

    def _begin(self, request: Request) -> None:
        if not request.url.endswith("/icon.svg"):  # a browser loads it when it likes, once
            self._open.add(request)
            self.requests.append(f"{request.method} {request.url}")

    def settle(self) -> None:
        """Wait until all requests are answered, and drawing the answers asks for nothing more."""
        poll_until(self._is_quiet, PATIENCE_S, "the page still asks")

    def _is_quiet(self) -> bool:
        before = len(self.requests)
        self._page.evaluate(TWO_FRAMES)
        return not self._open and len(self.requests) == before
