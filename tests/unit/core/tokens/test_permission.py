"""Nobody gets more rights from a new token than the caller has."""

from typing import Any

import msgspec
import pytest

from coord.core.errors import Dead, NotFound, Refused
from coord.core.identity import Caller, Process, ProcessState
from coord.core.lifecycle.commands import Register
from coord.core.sweep import Sweep
from tests.support.token_harness import ADMIN, TokenHarness

DAY = 24 * 3600 * 1000
BOB = Caller("bob")


@pytest.fixture
def harness() -> TokenHarness:
    harness = TokenHarness()
    harness.beat("bob")
    harness.engine.call(Register(caller=Caller("kid", parent="bob")))
    harness.beat("ann")
    return harness


@pytest.mark.parametrize(
    ("role", "session", "refusal"),
    [
        ("operate", "bob", ""),
        ("view", "bob", ""),
        ("operate", "kid", ""),
        ("admin", "bob", "only people"),
        ("operate", "ann", "session ann is not its own"),
        ("view", "", "all sessions is not its own"),
        ("operate", "stranger", "session stranger is not its own"),
        ("operate", "bob~2", "not its own"),
    ],
)
def test_what_an_agent_may_create(harness: TokenHarness, role: str, session: str, refusal: str) -> None:
    """Only tokens below admin, for itself or its sub-agents; the refusal names the next step."""
    if not refusal:
        assert harness.create("a", role, by=BOB, session=session).created_by == "bob"
        return
    with pytest.raises(Refused, match=refusal) as refused:
        harness.create("a", role, by=BOB, session=session)
    assert "ask a person" in refused.value.hint
    assert harness.find("a") is None


def test_a_sub_agent_is_no_way_up(harness: TokenHarness) -> None:
    """The token of a parent is not that of its sub-agent."""
    with pytest.raises(Refused, match="session bob is not its own"):
        harness.create("a", by=Caller("kid", parent="bob"), session="bob")


@pytest.mark.parametrize("act", ["rotate", "revoke"])
def test_an_agent_ends_only_its_own(harness: TokenHarness, act: str) -> None:
    """A rotation gives the new secret away, so it is a creation."""
    harness.create("a", session="bob")
    harness.create("b", session="ann")
    harness.create("c", "admin", session="bob")
    more = ("d",) if act == "rotate" else ()
    for other in ("b", "c"):
        with pytest.raises(Refused):
            getattr(harness, act)(other, *more, by=BOB)
        assert harness.find(other) is not None
    getattr(harness, act)("a", *more, by=BOB)
    assert harness.find("a") is None


def test_a_person_below_an_agent_is_an_agent(harness: TokenHarness) -> None:
    """A command that an agent runs without its variables is the agent's, whatever it calls itself."""
    process = Process(40, 1)
    harness.pids["eve"] = 40
    harness.beat("eve")
    caller = msgspec.structs.replace(ADMIN, process_ancestors=(process,), terminal=True)
    with pytest.raises(Refused, match="eve is an agent"):
        harness.create("a", "admin", by=caller)


def test_a_dead_session_creates_nothing(harness: TokenHarness) -> None:
    """A session that was declared dead has lost its rights."""
    harness.pids["eve"] = 41
    harness.beat("eve")
    harness.life[41] = ProcessState.DEAD
    harness.pass_time(3_600_000)
    harness.engine.call(Sweep("local", 32))
    with pytest.raises(Dead):
        harness.create("a", by=Caller("eve"), session="eve")


@pytest.mark.parametrize("role", ["view", "operate"])
def test_only_an_admin_manages_tokens(harness: TokenHarness, role: str) -> None:
    """A request with a lower role creates, rotates and revokes nothing, not even its own token."""
    harness.create("a", role)
    by = harness.with_token("a", "bob")
    for act in (
        lambda: harness.create("b", "view", by=by, session="bob"),
        lambda: harness.rotate("a", "b", by=by),
        lambda: harness.revoke("a", by=by),
    ):
        with pytest.raises(Refused, match=f"has role {role}; only an admin"):
            act()
    assert (harness.find("a") is None, harness.find("b")) == (False, None)


@pytest.mark.parametrize(
    ("limits", "asked", "allowed"),
    [
        ({}, {}, True),
        ({}, {"role": "admin"}, True),
        ({"project": "shop"}, {"project": "shop"}, True),
        ({"project": "shop"}, {"project": "shop", "session": "ann"}, True),
        ({"project": "shop"}, {}, False),
        ({"project": "shop"}, {"project": "other"}, False),
        ({"session": "bob"}, {"session": "bob"}, True),
        ({"session": "bob"}, {}, False),
        ({"session": "bob"}, {"session": "ann"}, False),
        ({"session": "bob"}, {"session": "bob", "project": "shop"}, True),
        ({"project": "shop", "session": "bob"}, {"project": "shop"}, False),
        ({"ttl": DAY}, {"ttl": DAY}, True),
        ({"ttl": DAY}, {"ttl": DAY + 1}, False),
        ({"ttl": DAY}, {}, False),
    ],
)
def test_an_admin_stays_inside_its_limits(
    harness: TokenHarness, limits: dict[str, Any], asked: dict[str, Any], allowed: bool
) -> None:
    """Neither project nor session nor deadline of a new token goes beyond the token that made it."""
    harness.create("a", "admin", **limits)
    by = harness.with_token("a")
    asked = {"role": "view", **asked}
    if allowed:
        harness.create("b", by=by, **asked)
        (*_, event) = harness.events("token.created")
        assert (event["by_token"], event["user"], event["session"]) == (harness.id("a"), "net", "")
        assert harness.find("b").created_by == harness.id("a")  # type: ignore[union-attr]
        return
    with pytest.raises(Refused, match=harness.id("a")):
        harness.create("b", by=by, **asked)
    assert harness.find("b") is None


def test_a_rotation_gives_no_more_rights(harness: TokenHarness) -> None:
    """The secret of a token with wider limits never reaches a caller with narrower ones."""
    harness.create("a", "admin", project="shop")
    harness.create("b", "admin")
    harness.create("c", "view", project="shop")
    by = harness.with_token("a")
    for act in (lambda: harness.rotate("b", "d", by=by), lambda: harness.revoke("b", by=by)):
        with pytest.raises(Refused, match="limited to project shop"):
            act()
    assert harness.rotate("c", "d", by=by).project == "shop"


def test_a_rotation_does_not_outlive_its_caller(harness: TokenHarness) -> None:
    """A token that expires cannot make itself eternal by rotating another one."""
    harness.create("a", "admin", ttl=DAY)
    harness.create("b", "admin")
    by = harness.with_token("a")
    with pytest.raises(Refused, match="may not last longer"):
        harness.rotate("b", "c", by=by)
    assert harness.rotate("b", "c", by=by, ttl=DAY).expires_ms == harness.now + DAY
    assert harness.rotate("a", "d", by=by).expires_ms == harness.now + DAY


@pytest.mark.parametrize("ended", ["revoked", "expired"])
def test_a_token_that_ended_creates_nothing(harness: TokenHarness, ended: str) -> None:
    """A hub may have admitted the request before; the rule looks again, in the commit itself."""
    harness.create("a", "admin", ttl=DAY)
    by = harness.with_token("a")
    harness.engine._sweep_at = 2**60  # what has expired is still there
    if ended == "revoked":
        harness.revoke("a")
    else:
        harness.pass_time(DAY)
    for act in (lambda: harness.create("b", by=by, ttl=1000), lambda: harness.listed(by)):
        with pytest.raises(Refused, match="no longer counts"):
            act()
    assert harness.find("b") is None


@pytest.mark.parametrize("act", ["create", "rotate", "revoke"])
def test_the_commit_checks_the_token_of_its_caller(harness: TokenHarness, act: str) -> None:
    """If another process revokes it in between, the commit conflicts and the rule looks again."""
    harness.create("a", "admin")
    harness.create("b")
    by = harness.with_token("a")
    if act == "create":
        harness.create("c", by=by)
    elif act == "rotate":
        harness.rotate("b", "c", by=by)
    else:
        harness.revoke("b", by=by)
    assert f"token/{harness.id('a')}" in harness.store.expected


def test_a_listing_shows_what_the_token_covers(harness: TokenHarness) -> None:
    """A token of one project sees no token of another one."""
    harness.create("a", "admin", project="shop")
    harness.pass_time(1)
    harness.create("b", "view", project="shop")
    harness.create("c", "view", project="other")
    assert harness.listed(harness.with_token("a")) == [harness.id("a"), harness.id("b")]
    assert harness.listed(harness.with_token("b")) == [harness.id("b")]
    assert harness.listed() == [harness.id("a"), *sorted((harness.id("b"), harness.id("c")))]


def test_an_unknown_token_is_not_found(harness: TokenHarness) -> None:
    """The error names the command that lists those that exist."""
    with pytest.raises(NotFound, match="coord token list"):
        harness.revoke("e")
