"""A run in steps: every name and text of a step has a word that no other step has, so a test can tell when a
view shows something too early.
"""

import json
from collections.abc import Iterator
from typing import NamedTuple

from coord.core.tokens.schema import Role
from tests.support.hub.page_site import HEADERS, PROJECT, send, views
from tests.support.hub.site import Site

STEPS = 4
WATCH = """later => {
  const pattern = new RegExp(later), root = document.getElementById("page");
  window.seen = [];
  const look = () => {
    const found = pattern.exec(root.innerHTML);
    if (found) window.seen.push(`${location.pathname}${location.search}: ${found[0]}`);
  };
  window.watcher?.disconnect();
  window.watcher = new MutationObserver(look);
  window.watcher.observe(root, {subtree: true, childList: true, characterData: true, attributes: true});
}"""
"""Looks at every change of the page for names that belong to a later time."""
TIMES = """() => [...document.querySelectorAll("main time:not(.axis *)")].map(
  (each) => Date.parse(each.dateTime))"""


class Step(NamedTuple):
    """A part of the run: its last entry, the time of that, and the locks that were granted by then."""

    name: str
    offset: int
    at: int
    locks: int


def word(number: int) -> str:
    """Return what is in every name and text of a step, and in no other."""
    return f"zq{number}z"


def live(site: Site, token: str, number: int) -> None:
    """Let an agent work: each kind of thing that a view shows, and the end of what the step before began."""
    name, before = word(number), word(number - 1)
    session, earlier = f"s-{name}", f"s-{before}"
    tasks = f"/v1/projects/{PROJECT}/tasks"
    send(site, token, "/v1/sessions", session=session, agent=f"{name}-agent", project=PROJECT, role="worker")
    added = {
        "task_id": f"{name}-task",
        "description": f"{name} description",
        "track": f"{name}-track",
        "depends_on": [f"{before}-task"] if number else [],
    }
    if number:
        result = {"data": {"note": f"{name} result"}}
        for _ in range(2):  # the second one is late
            body = {"session": earlier, "generation": 1, "result": result}
            path = f"{tasks}/{before}-task/submit"
            reply = site.ask("POST", path, token, json.dumps(body).encode(), **HEADERS)
            assert reply.status in (200, 409), reply.body
        site.write(
            event="alert.closed", id=before, rule=f"{before}-rule", outcome="true", note=f"{name} note"
        )
    send(site, token, tasks, tasks=[added])
    send(site, token, f"{tasks}/{name}-task/claim", session=session, lease_ms=600_000)
    send(site, token, "/v1/locks", session=session, resources=[f"name:{name}-lock"], reason=f"{name} reason")
    if number:
        reply = site.ask("DELETE", f"/v1/sessions/{earlier}?reason={name}", token, b"", **HEADERS)
        assert reply.status < 300, reply.body
    mail = {"kind": "info", "subject": f"{name} mail", "body": f"{name} text"}
    send(site, token, "/v1/messages", session=session, **mail)
    send(site, token, "/v1/questions", session=session, text=f"{name}?", options=[f"{name}-yes"])
    site.write(
        event="git.merged", branch=f"{name}-branch", into="main", session=session, files=[f"{name}.py"]
    )
    site.write(
        event="git.merge_refused", branch=f"{name}-bad", into="main", session=session, status="conflict"
    )
    site.write(event="git.committed", subject=f"{name} subject", session=session, commit=f"{number}" * 40)
    site.write(
        event="alert.raised", id=name, rule=f"{name}-rule", severity="warning", subject=f"{name} alert"
    )


def lived(site: Site) -> list[Step]:
    """Let the agents of all steps work; return where each step ended."""
    token, steps = site.token(Role.ADMIN), []
    for number in range(STEPS):
        live(site, token, number)
        page = site.ask("GET", "/v1/page?at=999999&nearest=true", token).json()
        events = site.ask("GET", "/v1/events?limit=1000", token).json()["events"]
        locks = sum(each["event"] == "lock.acquired" for each in events)
        steps.append(Step(word(number), page["offset"], page["at"], locks))
    return steps


def addresses(number: int) -> Iterator[tuple[str, str]]:
    """Yield addresses of every view, and of the details that a step has, each with a word that it shows."""
    name, before = word(number), word(number - 1)
    places = {
        "task": f"/task/{PROJECT}/{name}-task",
        "agent": f"/agent/s-{name}",
        "why": f"/why/task/{PROJECT}%2F{name}-task",
    }
    for view, path in views().items():
        if view != "settings":  # those of the present
            yield places.get(view, path), "denied" if view == "numbers" else name
    yield from ((path, name) for path in ("/activity?shape=lanes", "/merges?show=commit"))
    yield from ((f"/{path}-lock", name) for path in (f"locks?on=name%3A{name}", f"why/lock/name%3A{name}"))
    yield from (("/numbers?span=all", "denied"), (f"/why/agent/s-{name}", name))
    if number:
        yield from ((path, before) for path in (f"/task/{PROJECT}/{before}-task", f"/agent/s-{before}"))
