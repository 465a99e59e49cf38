"""MCP at `/mcp`, with the official SDK as the client, and by hand where no SDK would go."""

import json
import os
import threading
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from coord.transports.hub.mcp.definitions import TOOLS
from tests.support.hub.mcp_clients import MODES, over_http
from tests.support.hub.mcp_place import (
    INITIALIZE,
    INITIALIZED,
    SPOKEN,
    Place,
    called,
    coord,
    mcp_place,
    post,
    send,
    tool,
    tour,
)
from tests.support.hub.process import PATIENCE_S


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with mcp_place(tmp_path_factory.mktemp("mcp")) as made:
        yield made


@pytest.mark.parametrize("mode", MODES)
def test_the_sdk_uses_everything_over_http(place: Place, mode: str) -> None:
    assert over_http(place.hub.url, place.token, mode, tour) == SPOKEN[mode]


def test_the_oldest_streamable_era_by_hand(place: Place) -> None:
    """No version header after the handshake means 2025-03-26."""
    answer = post(place, INITIALIZE)
    assert answer.body["result"]["protocolVersion"] == "2025-03-26"
    done = post(place, INITIALIZED)
    assert (done.status, done.body) == (202, None)
    assert post(place, {"jsonrpc": "2.0", "id": 7, "method": "ping"}).body == {
        "jsonrpc": "2.0",
        "id": 7,
        "result": {},
    }
    assert post(place, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).body["result"]["tools"]


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_other_methods_get_405(place: Place, method: str) -> None:
    """There is no stream and no session; the specification wants exactly this status for it."""
    answer = send(place, method, None, Mcp_Session_Id="x")
    assert answer.status == 405
    assert "POST" in {name.lower(): value for name, value in answer.headers.items()}["allow"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[" * 50_000,
        b"[]",
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
        b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"lock","arguments":{"action":1e999}}}',
        b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}',
        json.dumps(tool("no such tool")).encode(),
        json.dumps(tool("lock", action="acquire", resources=["../../etc/passwd"], session="x")).encode(),
        json.dumps(tool("lock", action="acquire", resources=["a"] * 1000, session="x")).encode(),
        json.dumps(tool("lock", action="acquire", resources=["\0"], session="x")).encode(),
        json.dumps(tool("lock", action="acquire", resources=["a"], session="x y\nz")).encode(),
        json.dumps(tool("lock", action="acquire", resources=["a"], session="x", ttl_s=-1)).encode(),
        json.dumps(tool("lock", action="acquire", resources=["a"], session="x", extra=1)).encode(),
        json.dumps(tool("lock", action="acquire", resources=["a"], session="x", command_id="a b")).encode(),
        json.dumps(tool("task", action="claim", task="../x", session="x")).encode(),
        json.dumps(tool("message", action="send", to="*", subject="\x1b[2J", session="x")).encode(),
        json.dumps(tool("wait", after=-1, session="x")).encode(),
        json.dumps(tool("wait", timeout_s=61, session="x")).encode(),
        json.dumps(tool("wait", after=2**80, session="x")).encode(),
        json.dumps({**tool("lock"), "params": {"name": "lock", "arguments": {"action": {"a": []}}}}).encode(),
        json.dumps(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "resources/read",
                "params": {"uri": "coord://events?after=x"},
            }
        ).encode(),
        json.dumps(
            {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "coord://../locks"}}
        ).encode(),
    ],
)
def test_hostile_bodies_get_an_error_and_never_5xx(place: Place, body: bytes) -> None:
    answer = post(place, body)
    assert answer.status in (200, 400)
    failed = answer.body.get("error") or answer.body["result"]["structuredContent"]["error"]
    assert failed["message"]
    assert post(place, tool("status", session="x")).status == 200


def test_what_is_no_json_is_refused(place: Place) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        assert post(place, tool("status"), Content_Type=kind).status == 415


def test_a_web_page_and_a_caller_without_a_token_are_refused(place: Place) -> None:
    assert post(place, tool("status"), token="").status == 401
    assert post(place, tool("status"), Origin="http://evil.example").status == 403
    assert post(place, tool("status"), Host="evil.example").status == 421


def test_a_token_decides_what_a_call_may_do(place: Place) -> None:
    refused = called(place, "lock", token=place.look, action="acquire", resources=["v.py"], session="spy")
    assert refused["structuredContent"]["error"]["code"] == "forbidden"
    assert not called(place, "status", token=place.look, session="spy").get("isError")
    assert not called(place, "lock", token=place.idas, action="acquire", resources=["i.py"]).get("isError")
    other = called(place, "lock", token=place.idas, action="release", session="spy")
    assert other["structuredContent"]["error"]["code"] == "forbidden"
    seen = called(place, "wait", token=place.idas, after=0)
    assert seen["structuredContent"]["events"] == [], "the log has the events of others"


def test_a_client_over_tcp_cannot_say_who_it_is(place: Place) -> None:
    """The headers of the bridge count on the socket only."""
    spoofed = {"Coord_Caller": "e30=", "Coord_Command_Id": "x"}
    answer = post(place, tool("lock", action="acquire", resources=["t.py"], session="tom"), **spoofed)
    assert answer.body["result"]["structuredContent"]["locks"][0]["owner"] == "tom"


def test_a_token_reaches_nothing_outside_of_its_store(place: Place) -> None:
    refused = called(place, "lock", action="acquire", resources=["name:claude-config"], session="tom")
    assert refused["structuredContent"]["error"]["code"] == "forbidden"


def test_a_repeated_call_runs_once(place: Place) -> None:
    message = {"action": "send", "to": "rep", "subject": "once", "session": "sam", "command_id": "send-once"}
    called(place, "status", session="rep")
    called(place, "lock", action="acquire", resources=["rep.py"], session="rep")
    first, second = called(place, "message", **message), called(place, "message", **message)
    assert first["structuredContent"]["id"] == second["structuredContent"]["id"]
    received = called(place, "message", action="receive", session="rep")["structuredContent"]["messages"]
    assert [each["subject"] for each in received] == ["once"]
    changed = called(place, "message", **{**message, "subject": "twice"})
    assert changed["structuredContent"]["error"]["code"] == "invalid"


def test_a_wait_ends_with_the_next_event(place: Place) -> None:
    offset = called(place, "status", session="wil")["structuredContent"]["offset"]
    found: list[Any] = []
    waiter = threading.Thread(
        target=lambda: found.append(called(place, "wait", after=offset, timeout_s=60, session="wil"))
    )
    waiter.start()
    called(place, "lock", action="acquire", resources=["woken.py"], session="una")
    waiter.join(PATIENCE_S)
    (woken,) = found
    assert woken["structuredContent"]["changed"] is True
    assert "woken.py" in woken["content"][0]["text"]


def test_many_waits_block_nobody(place: Place) -> None:
    """Three times as many as the hub has threads for calls: a wait takes none."""
    offset = called(place, "status", session="wil")["structuredContent"]["offset"]
    found: list[Any] = []
    waiters = [
        threading.Thread(
            target=lambda: found.append(called(place, "wait", after=offset + 1, timeout_s=60, session="wil"))
        )
        for _ in range(48)
    ]
    for waiter in waiters:
        waiter.start()
    while called(place, "status", session="wil")["structuredContent"]["offset"] <= offset + 1:
        called(place, "lock", action="acquire", resources=["many.py"], session="mia")
        called(place, "lock", action="release", session="mia")
    for waiter in waiters:
        waiter.join(PATIENCE_S)
    assert [each["structuredContent"]["changed"] for each in found] == [True] * 48


WORDS = (
    *(
        "",
        "a.py",
        "../x",
        "/etc",
        "{a,b}",
        "[",
        "**",
        "name:x",
        "name:",
        "file:",
        "x" * 5000,
        "\u202e",
        "a\nb",
    ),
    *(
        "\0",
        "T1",
        "role:x",
        "*",
        "coord://events?after=9e9",
        "system",
        "a/" * 300,
        "{" * 70,
        ".git/config",
        "~",
    ),
)


ACTIONS = (
    "acquire",
    "release",
    "renew",
    "check",
    "next",
    "claim",
    "submit",
    "show",
    "send",
    "receive",
    "ack",
)


def anything(random: Random, depth: int = 0) -> Any:
    plain: list[Any] = [None, True, 0, -1, 2**53, 2**63, 1e308, 0.5, *WORDS]
    if depth < 3 and random.random() < 0.3:
        inner = anything(random, depth + 1)
        return random.choice([[inner], {random.choice(WORDS): inner}])
    return random.choice(plain)


def test_any_arguments_get_an_answer(place: Place) -> None:
    """Neither a 5xx nor a defect, whatever a model invents."""
    for seed in range(3000 if os.environ.get("COORD_SOAK") else 150):
        random = Random(seed)
        definition = random.choice(TOOLS)
        given = {
            name: anything(random) if random.random() < 0.3 else random.choice(WORDS)
            for name in definition["inputSchema"]["properties"]
            if random.random() < 0.5
        }
        given |= {"action": random.choice(ACTIONS)} if "action" in given else {}
        given |= {name: [random.choice(WORDS)] for name in ("resources", "ids") if name in given}
        given |= {"timeout_s": 0} if definition["name"] == "wait" else {}
        answer = post(place, tool(definition["name"], **given))
        assert answer.status in (200, 400), (seed, given, answer)
        assert "defect" not in json.dumps(answer.body), (seed, given, answer)


def test_a_task_from_the_queue_to_its_result(place: Place) -> None:
    coord(place.repository, place.environ, "task", "add", "T1", "--description", "do it now")
    got = called(place, "task", action="next", session="wes")
    assert got["structuredContent"]["task"]["task_id"] == "T1"
    assert "> do it" in got["content"][0]["text"]
    assert called(place, "task", action="claim", task="T1", session="ann")["isError"]
    shown = called(place, "task", action="show", task="T1", session="ann")
    assert shown["structuredContent"]["claim"]["session_id"] == "wes"
    assert not called(place, "task", action="renew", task="T1", session="wes").get("isError")
    done = called(place, "task", action="submit", task="T1", result={"n": 1}, session="wes")
    assert done["structuredContent"]["accepted"] is True
    left = called(place, "task", action="next", session="wes")
    assert (left["isError"], left["structuredContent"]["error"]["code"]) == (True, "done")


@pytest.mark.parametrize("action", ["submit", "release", "renew"])
def test_a_repeated_call_about_a_claim_gets_the_same_answer(place: Place, action: str) -> None:
    """Also if the call names no generation, and the first one has ended the claim."""
    name = f"R-{action}"
    coord(place.repository, place.environ, "task", "add", name)
    called(place, "task", action="claim", task=name, session="rae")
    call = {"action": action, "task": name, "session": "rae", "command_id": f"once-{action}"}
    first, second = called(place, "task", **call), called(place, "task", **call)
    assert not first.get("isError"), first
    assert not second.get("isError"), second


def test_an_agent_asks_a_person(place: Place) -> None:
    """The call waits in the hub until a person answers, and the answer is not a message besides."""
    ask: dict[str, Any] = {
        "session": "asker",
        "question": "which color?",
        "options": ["a", "b"],
        "command_id": "ask-1",
    }
    results: list[dict[str, Any]] = []
    asking = threading.Thread(target=lambda: results.append(called(place, "ask_human", **ask)))
    asking.start()
    needs = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "coord://needs"}}
    found: list[str] = []
    while not found:
        assert asking.is_alive()
        listed = json.loads(post(place, needs).body["result"]["contents"][0]["text"])["needs"]
        found = [each["id"] for each in listed if each["text"] == ask["question"]]
    (name,) = found
    assert coord(place.repository, place.environ, "decide", name, "B")["ok"]
    asking.join(PATIENCE_S)
    assert results[0]["structuredContent"]["answer"] == "b"
    unread = called(place, "message", session="asker", action="receive")["structuredContent"]
    assert unread["messages"] == []
    again = called(place, "ask_human", session="asker", id=name)
    assert again["structuredContent"]["answer"] == "b"
