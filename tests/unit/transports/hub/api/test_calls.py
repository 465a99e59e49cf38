"""The inner protocol over TCP: a token is no reason to trust the fields of a command."""

from typing import Any

import pytest

from coord.core.commands import Command
from coord.core.identity import Caller
from coord.core.locks.commands import AcquireLocks
from coord.core.tasks.commands import ClaimTask
from coord.sdk.remote import wire
from tests.support.hub.harness import HubHarness

LOCK = AcquireLocks(Caller("a/b"), "repo", ("file:x",))


@pytest.mark.parametrize(
    "command",
    [
        ClaimTask("local", "shop", "x/../../bank/y", "ada", "s1", 1000),
        ClaimTask("local", "shop", "A-1", "ada", "s1=x/y", 1000),
        ClaimTask("local", "shop", "A-1", "ada", "s1", -5),
        LOCK,
        AcquireLocks(Caller("s1"), "re/po", ("file:x",)),
    ],
    ids=lambda command: type(command).__name__,
)
def test_the_inner_protocol_refuses_names_that_are_no_ids(command: Command) -> None:
    """They become parts of keys: with a slash, one project could name the tasks of another."""
    with HubHarness() as hub:
        token = hub.new_token("operate")
        call = wire.Call(wire.Target(tenant="local"), [wire.raw(command)])
        answer: Any = hub.raw("POST", wire.CALL, wire.encode(call), "application/msgpack", token)
        assert answer.status == 400
        assert not [event for event in hub.events() if not event["event"].startswith("token.")]


@pytest.mark.parametrize(
    ("kind", "sender", "status"),
    [
        ("application/x-www-form-urlencoded", "bearer", 201),
        ("application/x-www-form-urlencoded", "cookie", 415),
        ("text/plain", "bearer", 415),
    ],
)
def test_curl_need_not_say_that_its_body_is_json(kind: str, sender: str, status: int) -> None:
    """`curl -d` says that it sends a form. A page of somebody else can do so, but has no bearer token."""
    with HubHarness() as hub:
        headers = {"content-type": kind}
        if sender == "cookie":
            page = {"origin": "http://127.0.0.1:7420", "sec-fetch-site": "same-origin"}
            port = hub.request("GET", "/").headers["host"].rpartition(":")[2]
            name = f"coord_token_{port}" if port.isdecimal() else "coord_token"
            headers |= {"authorization": "", "cookie": f"{name}={hub.token}", **page}
        body = {"session": "s1", "resources": ["file:a"]}
        found = hub.ask("POST", "/v1/locks", body, headers=headers)
        assert (found.status, found.body.get("code", "")) == (status, found.body.get("code", "")), found.body
        if status == 415:
            assert "-H 'Content-Type: application/json'" in found.body["hint"]
