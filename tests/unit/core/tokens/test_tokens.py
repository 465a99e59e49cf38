"""Tokens: created, found by their hash, rotated, revoked and expired."""

from typing import Any

import msgspec
import pytest

from coord.core.errors import Invalid, LimitReached, NotFound, Refused
from coord.core.identity import Caller
from coord.core.sweep import Sweep
from coord.core.tokens import tokens
from coord.core.tokens.commands import CreateToken, FindToken, MarkTokenUsed, RevokeToken, TokenInfo
from coord.core.tokens.schema import Role
from tests.support.token_harness import ADMIN, TokenHarness, hash_of

DAY = 24 * 3600 * 1000


@pytest.fixture
def harness() -> TokenHarness:
    return TokenHarness()


def test_a_token_is_found_by_its_hash(harness: TokenHarness) -> None:
    """With everything that limits it; another hash finds nothing."""
    created = harness.create("a", "view", project="shop", session="s1", ttl=DAY, label="the hall")
    found = harness.find("a")
    assert found == created
    assert found == TokenInfo(
        id=harness.id("a"),
        role=Role.VIEW,
        project="shop",
        session="s1",
        label="the hall",
        created_ms=harness.now,
        created_by="ida@host:7-1",
        user="ida",
        expires_ms=harness.now + DAY,
    )
    assert harness.find("b") is None


def test_the_whole_hash_counts(harness: TokenHarness) -> None:
    """Two hashes with the same public id are two tokens: the second is neither found nor created."""
    harness.create("a")
    twin = hash_of("a")[:12] + hash_of("b")[12:]
    assert harness.engine.call(FindToken(twin)) is None
    with pytest.raises(Refused, match="exists already"):
        harness.engine.call(CreateToken(caller=ADMIN, hash=twin, role=Role.VIEW))
    assert harness.find("a") is not None


def test_each_operation_costs_one_record(harness: TokenHarness) -> None:
    """Finding a token reads one record and writes none; creating and revoking write one, rotating two."""
    harness.find("b")  # the first command also looks for what is due
    assert harness.written_by(lambda: harness.create("a")) == ["token"]
    assert harness.read_by(lambda: harness.find("a")) == 1
    assert harness.written_by(lambda: harness.find("a")) == []
    assert harness.written_by(lambda: harness.rotate("a", "b", grace=1000)) == ["token", "token"]
    assert harness.written_by(lambda: harness.revoke("b")) == ["token"]


def test_a_revoked_token_is_not_found(harness: TokenHarness) -> None:
    """It ends at once, and the log says who did it."""
    harness.create("a")
    assert harness.revoke("a").id == harness.id("a")
    assert harness.find("a") is None
    assert harness.listed() == []
    (event,) = harness.events("token.revoked")
    assert event == {"event": "token.revoked", "id": harness.id("a"), "session": ADMIN.session, "user": "ida"}
    with pytest.raises(NotFound, match="no token"):
        harness.revoke("a")
    with pytest.raises(NotFound):
        harness.rotate("a", "b")


def test_an_expired_token_never_counts(harness: TokenHarness) -> None:
    """At its deadline it is not found, listed, rotated or revoked, although no sweep has run."""
    harness.create("a", ttl=DAY)
    harness.engine._sweep_at = 2**60
    harness.pass_time(DAY - 1)
    assert harness.find("a") is not None
    harness.pass_time(1)
    assert harness.find("a") is None
    assert harness.listed() == []
    assert harness.events("token.expired") == []
    for act in (lambda: harness.revoke("a"), lambda: harness.rotate("a", "b")):
        with pytest.raises(NotFound):
            act()
    assert harness.engine.call(MarkTokenUsed(harness.id("a"))) is False


def test_the_sweep_removes_it(harness: TokenHarness) -> None:
    """Its record goes, the log says so once, and a token without a deadline stays."""
    harness.create("a", ttl=DAY)
    harness.create("b")
    harness.pass_time(DAY)
    harness.engine.call(Sweep("local", 32))
    assert [event["id"] for event in harness.events("token.expired")] == [harness.id("a")]
    assert [record["id"] for record in harness.records()] == [harness.id("b")]
    harness.pass_time(1000 * DAY)
    harness.engine.call(Sweep("local", 32))
    assert harness.find("b") is not None


def test_rotation_ends_the_old_secret(harness: TokenHarness) -> None:
    """The new token has the old one's role, limits, label and deadline, and a new id."""
    old = harness.create("a", "admin", project="shop", session="s1", label="x", ttl=DAY)
    harness.pass_time(1000)
    new = harness.rotate("a", "b")
    assert new == msgspec.structs.replace(old, id=harness.id("b"), created_ms=harness.now)
    assert (harness.find("a"), harness.find("b")) == (None, new)
    (event,) = harness.events("token.rotated")
    assert (event["id"], event["new_id"], event["ends_ms"]) == (old.id, new.id, harness.now)


def test_a_grace_period(harness: TokenHarness) -> None:
    """Both secrets count until it ends; the old one says what replaced it, and is not replaced again."""
    harness.create("a")
    harness.rotate("a", "b", grace=DAY)
    old = harness.find("a")
    assert old is not None
    assert (old.replaced_by, old.expires_ms) == (harness.id("b"), harness.now + DAY)
    with pytest.raises(Refused, match=f"replaced by {harness.id('b')}"):
        harness.rotate("a", "c")
    harness.pass_time(DAY)
    assert (harness.find("a"), harness.find("b") is not None) == (None, True)


def test_a_grace_period_does_not_prolong(harness: TokenHarness) -> None:
    """A token that expires earlier than the grace period ends still expires then."""
    harness.create("a", ttl=1000)
    harness.rotate("a", "b", grace=DAY, ttl=2 * DAY)
    harness.pass_time(1000)
    assert harness.find("a") is None
    new = harness.find("b")
    assert new is not None
    assert new.expires_ms == harness.now - 1000 + 2 * DAY


def test_use_is_remembered_by_the_hour(harness: TokenHarness) -> None:
    """A token that is used a thousand times a second costs one commit in an hour."""
    harness.create("a", ttl=DAY)
    mark = MarkTokenUsed(harness.id("a"))
    first = harness.now
    assert harness.engine.call(mark) is True
    harness.pass_time(tokens.USED_QUIET_MS - 1)
    assert harness.written_by(lambda: harness.engine.call(mark)) == []
    found = harness.find("a")
    assert found is not None
    assert (found.used_ms, found.expires_ms) == (first, first + DAY)
    harness.pass_time(1)
    assert harness.engine.call(mark) is True
    assert harness.engine.call(MarkTokenUsed(harness.id("b"))) is False


def test_no_event_and_no_reply_holds_a_hash(harness: TokenHarness) -> None:
    """The log names tokens by their public ids; only the record has the hash."""
    replies = [harness.create("a", label="x"), harness.rotate("a", "b", grace=1000), harness.revoke("b")]
    entries = harness.store.tail(0, 100)
    events = b"".join(event for entry in entries for event in entry.events)
    assert b"token.created" in events
    for name in ("a", "b"):
        assert hash_of(name)[12:].encode() not in events
        assert hash_of(name)[12:] not in repr(replies)


def test_the_number_of_tokens_is_bounded(harness: TokenHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents cannot use up what people need: the last ones are kept for people."""
    monkeypatch.setattr(tokens, "TOKENS_MAX", 3)
    monkeypatch.setattr(tokens, "KEPT_FOR_PEOPLE", 2)
    bob = Caller("bob")
    harness.create("a", by=bob, session="bob")
    with pytest.raises(LimitReached, match="1 tokens"):
        harness.create("b", by=bob, session="bob")
    harness.create("b")
    harness.create("c")
    with pytest.raises(LimitReached, match="coord token list"):
        harness.create("d")


@pytest.mark.parametrize(
    "fields",
    [
        {"hash": "x"},
        {"hash": "f" * 11 + "/" + "f" * 52},
        {"project": "a/b"},
        {"session": "../x"},
        {"session": "\ud800"},
        {"ttl_ms": 999},
        {"ttl_ms": -1},
        {"ttl_ms": 10**13},
        {"label": "two\nlines"},
        {"label": "x" * 201},
        {"label": "\x1b[31m"},
    ],
    ids=str,
)
def test_bad_input_creates_nothing(harness: TokenHarness, fields: dict[str, Any]) -> None:
    """A hub hands over what strangers send, so the rule itself checks it."""
    asked = {"caller": ADMIN, "hash": hash_of("a"), "role": Role.VIEW, **fields}
    with pytest.raises(Invalid):
        harness.engine.call(CreateToken(**asked))
    assert harness.records() == []


@pytest.mark.parametrize("token_id", ["", "a/b", "t-\n", "../limits"])
def test_a_bad_id_is_refused(harness: TokenHarness, token_id: str) -> None:
    """An id becomes a part of a key."""
    with pytest.raises(Invalid):
        harness.engine.call(RevokeToken(caller=ADMIN, id=token_id))
    with pytest.raises(Invalid):
        harness.engine.call(MarkTokenUsed(token_id))


def test_roles_are_ordered_by_what_they_allow() -> None:
    """By letters, a viewer would stand above an admin."""
    assert sorted(Role) == [Role.REPORT, Role.VIEW, Role.OPERATE, Role.ADMIN]
    assert [Role.OPERATE.allows(needed) for needed in Role] == [True, True, True, False]
    for low, high in ((Role.REPORT, Role.VIEW), (Role.VIEW, Role.OPERATE), (Role.OPERATE, Role.ADMIN)):
        assert (low < high, low <= high, low > high, low >= high) == (True, True, False, False)
        assert (high < low, high <= low, high > low, high >= low) == (False, False, True, True)
        assert (low <= low, low >= low, low < low) == (True, True, False)


@pytest.mark.parametrize(
    ("limit", "asked", "covered"),
    [
        ("", "shop", True),
        ("", "", True),
        ("shop", "shop", True),
        ("shop", "shop2", False),
        ("shop", "", False),
    ],
)
def test_projects_that_a_token_covers(limit: str, asked: str, covered: bool) -> None:
    """A token of one project is for that project only, and never for all."""
    assert TokenInfo("t-1", Role.VIEW, project=limit).covers_project(asked) is covered


@pytest.mark.parametrize(
    ("limit", "asked", "covered"),
    [
        ("", "bob", True),
        ("bob", "bob", True),
        ("bob", "bob~2", True),
        ("bob", "bobby", False),
        ("bob", "bob.kid", False),
        ("bob", "", False),
        ("bob~2", "bob", False),
        ("bob~2", "bob~3", False),
    ],
)
def test_sessions_that_a_token_covers(limit: str, asked: str, covered: bool) -> None:
    """A session that was resumed twice is the same one; a longer name is another one."""
    assert TokenInfo("t-1", Role.VIEW, session=limit).covers_session(asked) is covered


def test_a_kept_token_still_expires() -> None:
    """Somebody who keeps a token for several requests can ask whether it still counts."""
    assert not TokenInfo("t-1", Role.VIEW).is_expired(2**60)
    assert not TokenInfo("t-1", Role.VIEW, expires_ms=5).is_expired(4)
    assert TokenInfo("t-1", Role.VIEW, expires_ms=5).is_expired(5)
