"""Every act of the page by keyboard alone: no click, and no text that is not typed."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from coord.core.alerts.commands import CheckAlerts
from coord.core.identity import Caller
from coord.core.sessions.commands import UpdateSession
from coord.core.tokens.schema import Role
from tests.support.hub.browsing import PATIENCE_MS
from tests.support.hub.keyboard import Keyboard
from tests.support.hub.page_acts import NODE, printed_acts
from tests.support.hub.page_site import CREW, PROJECT, fill, live, login_link, send, visit
from tests.support.hub.site import Site, open_site

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(not NODE, reason="node is not installed"),
]
expect.set_options(timeout=PATIENCE_MS)
NOWHERE: set[str] = set()
"""Acts of the table that no view has."""
LETTER = {"reaction": "chat", "event": "task.failed", "at_ms": 1, "attempts": 3, "error": "no answer"}
WITH_FILES = (
    """() => import("/static/core/store.js").then(({hub}) => { hub.value = {...hub.value, files: true}; })"""
)
REACTIONS = {
    "reactions": [],
    "problems": [],
    "dead": [{**LETTER, "id": f"{number}.0.chat"} for number in (41, 42)],
}
EVENTS = {
    "message": "message.sent",
    "answer": "question.answered",
    "withdraw": "question.withdrawn",
    "alert_right": "alert.closed",
    "alert_wrong": "alert.closed",
    "assign": "task.assigned",
    "reassign": "task.reset",
    "preempt": "lock.preemption_asked",
    "release": "lock.released",
    "steal": "lock.acquired",
    "give_back": "lock.acquired",
    "skip": "task.skipped",
    "retry": "task.retried",
    "reset": "task.reset",
    "disable": "agent.enabled",
    "enable": "agent.enabled",
    "pause": "work.held",
    "drain": "work.held",
    "stop": "work.held",
    "resume": "work.resumed",
    "end": "session.ended",
    "set_setting": "settings.changed",
    "set_limit": "limits.set",
    "create_token": "token.created",
    "revoke_token": "token.revoked",
    "retry_reaction": "reaction.decided",
    "drop_reaction": "reaction.decided",
}
"""What the log says about each act."""
REASON = "it is late"


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with open_site() as found:
        fill(found)
        prepare(found)
        yield found


def prepare(site: Site) -> None:
    """Let there be something for each act."""
    token = site.token(Role.ADMIN)
    tasks = f"/v1/projects/{PROJECT}/tasks"
    broken = [f"broken-{number}" for number in range(5)]
    added = [*broken, "loose", "given"]
    send(site, token, tasks, tasks=[{"task_id": each, "description": each} for each in added])
    for task in broken:
        claim = send(site, token, f"{tasks}/{task}/claim", session="s-dan", lease_ms=600_000)
        ended = {
            "session": "s-dan",
            "generation": claim["claim"]["generation"]["generation"],
            "reason": "ERROR",
        }
        send(site, token, f"{tasks}/{task}/release", **ended, note="it broke", final=True)
    for agent, *names in (("dan", "one", "two", "three", "four"), ("cleo", "five")):
        for name in names:  # in the repository of the hub, which is that of a browser
            body = {"session": f"s-{agent}", "resources": [f"name:{name}"]}
            taken = site.ask(
                "POST", "/v1/locks", token, json.dumps(body).encode(), Content_Type="application/json"
            )
            assert taken.status < 300, taken.body
    send(site, token, "/v1/questions", session="s-cleo", text="Which colour?")
    send(site, token, "/v1/questions", session="s-dan", text="May I go?")
    for agent in CREW[:2]:
        full = {"context_percent": 95}
        site.run(UpdateSession(caller=Caller(f"s-{agent}", agent=agent, project=PROJECT), merge_blob=full))
    site.run(CheckAlerts(()))


class Logged(Keyboard):
    """Looks into the log after each act, and whether the page keeps the focus when it draws the entry."""

    def __init__(self, page: Page, site: Site, tenant: str = "local") -> None:
        super().__init__(page)
        self.log = site.database.log(tenant)

    def submit(self, name: str, **typed: str) -> None:
        before = self.last()
        super().submit(name, **typed)
        kind = name.removeprefix("many_")
        assert EVENTS[kind] in self.kinds(before), (name, self.kinds(before))
        self.see(self.last())

    def last(self) -> int:
        return self.log.tail(0, 10_000)[-1].offset

    def kinds(self, after: int) -> list[str]:
        entries = self.log.tail(after, 1000)
        return [json.loads(event)["event"] for entry in entries for event in entry.events]


def on_why(keys: Logged) -> None:
    """What frees a task is a button."""
    keys.jump("broken-0")
    keys.tab_until(words="Why?")
    keys.press("Enter")
    keys.act("retry")


def on_now(keys: Logged) -> None:
    """What needs somebody is settled there, and all agents are held up."""
    keys.press("g", "n")
    keys.act("answer", words="yes", near="Use the old name?")
    keys.act("answer", near="Which colour?", Answer="green")
    keys.act("withdraw", near="May I go?")
    keys.act("alert_right", near="ada")
    keys.act("alert_wrong", near="bob")
    keys.act("retry", near="broken-2")
    keys.act("skip", near="broken-1", Reason=REASON)
    keys.press("u")
    keys.submit("retry")
    keys.act("many_skip", Reason=REASON)
    for name in ("pause", "drain", "stop"):
        keys.act(name, Reason=REASON)
        keys.act("resume")
        keys.press("u")
        keys.submit(name, Reason=REASON)
        keys.press("u")
        keys.submit("resume")
    keys.choose("message", "Message", near="cleo", Subject="look")
    keys.press("/")
    keys.type("s-")
    keys.choose("many_message", "Message", words="Act on 4 agents", Subject="look")
    keys.press("Escape")


def on_the_plan(keys: Logged) -> None:
    """A ticket of the board has a menu, and so have all that match."""
    keys.press("g", "p", "v")
    keys.choose("assign", "Assign", words="Act on given", Agent="dan")
    keys.press("/")
    keys.type("broken")
    keys.choose("many_reset", "Reset", words="Act on 5 tasks", Reason=REASON)
    keys.press("/", "Control+a")
    keys.type("broken-4")
    keys.choose("skip", "Skip", words="Act on 1 task", Reason=REASON)
    keys.press("Escape")


def on_tasks(keys: Logged) -> None:
    """The page of a task."""
    keys.jump("broken-3")
    keys.act("assign", Agent="dan")
    keys.act("skip", Reason=REASON)
    keys.act("retry")
    keys.jump("schema")
    keys.act("reassign", Agent="dan", Reason=REASON)
    keys.jump("checkout")
    keys.act("message", Subject="hurry")
    keys.act("reset", Reason=REASON)


def on_locks(keys: Logged) -> None:
    """The details of a lock."""
    for name, act in (("one", "preempt"), ("two", "release"), ("three", "steal")):
        keys.jump(f"name:{name}")
        keys.act(act, Reason=REASON)
    keys.press("u")
    keys.submit("give_back")
    keys.press("/")
    keys.type("dan")
    keys.choose("many_release", "Release", words="Act on 3 locks", Reason=REASON)
    keys.press("Escape")


def on_agents(keys: Logged) -> None:
    """The page of an agent."""
    keys.jump("cleo")
    keys.choose("release", "Release", near="name:five", Reason=REASON)
    keys.act("disable", Reason=REASON)
    keys.press("u")
    keys.submit("enable")
    keys.act("disable", Reason=REASON)
    keys.act("enable")
    keys.act("end", Reason=REASON)


def on_messages(keys: Logged) -> None:
    """To everybody, to one, and as an answer."""
    keys.press("g", "m", "c")
    keys.submit("message", Subject="to everybody")
    keys.act("message", words="Write", Subject="to one", To="s-dan")


def on_alerts(keys: Logged) -> None:
    """What a closed alert was can be changed."""
    keys.press("g", "e")
    keys.act("alert_wrong", words="Was wrong")


def make_up(page: Page, url: str, answer: object) -> None:
    page.route(url, lambda route: route.fulfill(json=answer))


def on_settings(keys: Logged) -> None:
    """The failed deliveries are made up, so that no reaction has to fail; the acts on them are sent."""
    for name, answer in {"reactions": REACTIONS, "hooks": [], "mirrors": []}.items():
        make_up(keys.page, f"**/v1/{name}", answer)
    keys.page.evaluate(WITH_FILES)
    keys.press("g", "s")
    keys.act("set_setting", words="Change", near="Hung", Hung="901")
    keys.act("retry_reaction")
    keys.act("drop_reaction")
    keys.act("create_token", What_it_is_for="hall")
    keys.act("revoke_token", near="hall")


def test_every_act_is_performed_by_keyboard(browser: Browser, site: Site) -> None:
    with visit(browser, site) as (page, complaints):
        keys = Logged(page, site)
        for view in (
            on_why,
            on_now,
            on_the_plan,
            on_tasks,
            on_locks,
            on_agents,
            on_messages,
            on_alerts,
            on_settings,
        ):
            view(keys)
        assert complaints == []
        page.goto(login_link(site, site.token(Role.ADMIN, tenant="acme")))
        live(page)
        limited = Logged(page, site, "acme")
        limited.press("g", "s")
        limited.act("set_limit", words="Change", near="Most active sessions", Most="51")
        assert {each["id"] for each in printed_acts()} - {*keys.performed, *limited.performed} == NOWHERE
