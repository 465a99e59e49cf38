"""Every act of the page, sent as a browser sends it: it works, names its person, and needs its role."""

import shlex
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from coord.core.alerts.commands import CheckAlerts
from coord.core.identity import Caller
from coord.core.page.state import PageState, apply_entry
from coord.core.sessions.commands import UpdateSession
from coord.transports.cli.parser import parse
from tests.support.hub.harness import ADDRESS, HOST, HubHarness, Reply
from tests.support.hub.page_acts import NODE, printed_acts

pytestmark = pytest.mark.skipif(not NODE, reason="node is not installed")
COOKIE = f"coord_token_{HOST.rpartition(':')[2]}"


@pytest.fixture
def hub() -> Iterator[HubHarness]:
    with HubHarness() as found:
        yield found


def send(hub: HubHarness, token: str, one: dict[str, Any], key: str = "") -> Reply:
    """Send a request with a cookie, from the hub's own page."""
    headers = {"authorization": "", "cookie": f"{COOKIE}={token}", "sec-fetch-site": "same-origin"}
    headers |= {"origin": f"http://{HOST}", "content-type": "application/json"}
    if key and not one.get("keyless"):
        headers["idempotency-key"] = key
    url = urlsplit(one["path"])
    return hub.ask(
        one.get("method", "POST"),
        url.path,
        one.get("body"),
        headers=headers,
        query=dict(parse_qsl(url.query)),
    )


def prepared(hub: HubHarness) -> dict[str, Any]:
    """Let two agents have what the acts are about; return it."""

    def ask(method: str, path: str, body: Any = None) -> Any:
        reply = hub.ask(method, path, body)
        assert reply.status < 300, reply
        return reply.body

    for name in ("ada", "bob"):
        ask("POST", "/v1/sessions", {"session": f"s-{name}", "agent": name, "project": "p"})
    files = ["file:a.py", "file:b.py", "file:c.py"]
    for file in files:
        ask("POST", "/v1/locks", {"session": "s-ada", "resources": [file]})
    tasks = [{"task_id": each, "description": each} for each in ("open", "busy")]
    ask("POST", "/v1/projects/p/tasks", {"tasks": tasks})
    ask("POST", "/v1/projects/p/tasks/busy/claim", {"session": "s-ada", "agent": "ada", "lease_ms": 60_000})
    asked = [ask("POST", "/v1/questions", {"session": "s-ada", "text": each})["id"] for each in ("x?", "y?")]
    other = ask("POST", "/v1/tokens", {"role": "view"})["info"]["id"]
    engine = hub.store.engine("local")
    engine.call(UpdateSession(caller=Caller("s-ada", agent="ada"), merge_blob={"context_percent": 95}))
    engine.call(CheckAlerts(()))
    return {
        "locks": [{"session": "s-ada", "agent": "ada", "resource": file} for file in files],
        "open_task": {"project": "p", "task": "open"},
        "busy_task": {
            "project": "p",
            "task": "busy",
            "state": "in_progress",
            "agent": "ada",
            "session": "s-ada",
        },
        "question": {"id": asked[0]},
        "other_question": {"id": asked[1]},
        "alert": {"id": "a1"},
        "token": {"id": other},
        "limit": "max_active_sessions",
    }


def test_every_act_works_and_the_log_names_its_person_and_address(hub: HubHarness) -> None:
    """AUD-21: with a cookie nobody names a session, and none of it is done in the name of an agent."""
    records = prepared(hub)
    tokens = {tenant: hub.new_token("admin", tenant) for tenant in ("local", "acme")}
    for number, act in enumerate(printed_acts(records)):
        tenant = "acme" if act["id"] == "set_limit" else "local"  # which has limits
        before = len(hub.events(tenant))
        for place, one in enumerate(act["requests"]):
            reply = send(hub, tokens[tenant], one, f"k{number}-{place}")
            assert reply.status < 300, (act["id"], reply)
        new = hub.events(tenant)[before:]
        assert new, f"{act['id']} is not in the log"
        assert {(each["origin"]["user"], each["origin"]["address"]) for each in new} == {("ida", ADDRESS)}, (
            act
        )
    ended = [each for each in hub.events() if each["event"] == "session.ended"]
    assert [(each["session"], each["evidence"]) for each in ended] == [("s-ada", "ida ended it (it is late)")]
    people = {
        each["session"]
        for each in hub.events()
        if each["event"] == "session.registered" and each.get("person")
    }
    assert len(people) == 1
    assert people.pop().startswith("ida-t-")


LATE = {"reason": "it is late"}
FIRST = {
    "enable": {"method": "PUT", "path": "/v1/projects/p/agents/bob", "body": {"enabled": False, **LATE}},
    "resume": {"method": "PUT", "path": "/v1/work-mode", "body": {"mode": "paused", **LATE}},
}
"""What has to be so before an act changes anything."""
NEW = ("offset", "at", "now_ms", "seen_ms", "since_ms", "expires_ms", "ended_ms", "fence")
"""Times and offsets, which only grow."""
LEFT = {"steal": ("reason",), "skip": ("reason",)}
"""Why it was done stays with the lock, and with the task."""


def state_of(hub: HubHarness, tenant: str, token: str, left: tuple[str, ...]) -> Any:
    """Return the state of the page, the settings and the limits, without what only grows."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(each) for name, each in value.items() if name not in (*NEW, *left)}
        return value

    page = PageState()
    for entry in hub.database.log(tenant).tail(0, 10_000):
        apply_entry(page, entry.offset, entry.at, entry.events)
    told = {
        **page.tables,
        "sessions": {name: each for name, each in page.tables["sessions"].items() if "person" not in each},
        "agents": {name: each for name, each in page.tables["agents"].items() if "disabled" in each},
    }
    asked = ({"path": "/v1/settings?project=p"}, {"path": "/v1/limits"})
    others = [send(hub, token, {"method": "GET", **each}) for each in asked]
    assert {each.status for each in others} == {200}
    return plain(told), [plain(each.body) for each in others]


def test_undo_leads_back_to_the_state_before() -> None:
    undone = []
    for number in [number for number, act in enumerate(printed_acts()) if "undo" in act]:
        with HubHarness() as hub:
            act = printed_acts(prepared(hub))[number]
            tenant = "acme" if act["id"] == "set_limit" else "local"
            token = hub.new_token("admin", tenant)
            greeting = {
                "path": "/v1/messages",
                "body": {"kind": "warn", "subject": "x"},
            }  # so it has a session
            for one in (greeting, *([FIRST[act["id"]]] if act["id"] in FIRST else [])):
                assert send(hub, token, one).status < 300
            left = LEFT.get(act["id"], ())
            states = [state_of(hub, tenant, token, left)]
            for one in (*act["requests"], *act["undo"]["requests"]):
                assert send(hub, token, one).status < 300, one
                states.append(state_of(hub, tenant, token, left))
            before, done, after = states
            assert before != done, act["id"]
            assert before == after, act["id"]
            undone.append(act["id"])
    assert {"steal", "skip", "disable", "enable", "pause", "drain", "stop", "resume", "set_setting"} <= set(
        undone
    )
    assert "set_limit" in undone


def test_a_repeated_act_happens_once(hub: HubHarness) -> None:
    records = prepared(hub)
    token = hub.new_token("operate")
    message = printed_acts(records)[0]["requests"][0]
    first, again = (send(hub, token, message, "same") for _ in range(2))
    assert first.body == again.body
    assert len([each for each in hub.events() if each["event"] == "message.sent"]) == 1


def test_a_role_below_is_refused_each_act(hub: HubHarness) -> None:
    """What the page does not draw, the hub refuses as well; nothing is logged."""
    acts = printed_acts(prepared(hub))
    tokens = {role: hub.new_token(role) for role in ("view", "operate")}
    before = len(hub.events())
    for act in acts:
        for role, token in tokens.items():
            if role == "operate" and act["role"] == "operate":
                continue
            refused = send(hub, token, act["requests"][0])
            assert refused.body["code"] in ("forbidden", "refused"), (act["id"], role, refused)
    assert len(hub.events()) == before
    assert {act["role"] for act in acts} == {"operate", "admin"}


def test_a_token_of_a_session_is_no_person(hub: HubHarness) -> None:
    """An agent that sends its token as a cookie stays the agent: it can hold up and end nobody."""
    prepared(hub)
    token = hub.new_token("admin", session="s-bob")
    sent = send(hub, token, {"path": "/v1/messages", "body": {"kind": "warn", "subject": "x"}})
    assert sent.status < 300
    assert hub.events()[-1]["session"] == "s-bob"
    ended = send(hub, token, {"method": "DELETE", "path": "/v1/sessions/s-ada?force=true&reason=x"})
    assert ended.status == 403
    held = send(hub, token, {"method": "PUT", "path": "/v1/work-mode", "body": {"mode": "paused"}})
    assert held.status == 403


def test_every_command_can_be_typed(hub: HubHarness) -> None:
    """The program reads each line as a command with these arguments."""
    for act in printed_acts(prepared(hub)):
        for line in act["command"].split(" && "):
            words = shlex.split(line)
            assert words[0] == "coord"
            assert parse(words[1:]).command is not None, line


def test_the_page_knows_what_its_own_person_does(hub: HubHarness) -> None:
    """By the token and the session of its events; what a program does with a token has no session here."""
    prepared(hub)
    token = hub.new_token("operate")
    who = send(hub, token, {"method": "GET", "path": "/v1/page"}).body["who"]
    assert send(hub, token, {"path": "/v1/messages", "body": {"kind": "warn", "subject": "x"}}).status < 300
    sent = next(each for each in hub.events() if each["event"] == "message.sent")
    assert (sent["origin"]["token"], sent["session"]) == (who["token"], who["session"])
    assert hub.ask("GET", "/v1/page").body["who"]["session"] == ""
