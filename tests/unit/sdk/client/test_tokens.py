"""Tokens through the client, on stores of every shape."""

import math
from collections.abc import Iterator
from typing import Any

import pytest

import coord
from coord.core.errors import Invalid, NotFound
from coord.core.tokens.text import format_token, parse_token
from coord.sdk.client.client import Client
from coord.sdk.client.tokens import make_token
from tests.support.hand_clock import HandClock


@pytest.fixture
def client(shape_url: str, clock: HandClock) -> Iterator[Client]:
    with coord.connect(shape_url, tenant="acme", environ={"USER": "ida"}, clock=clock) as opened:
        yield opened


def test_a_token_lives_and_ends(client: Client, clock: HandClock) -> None:
    """TEN-1: on every store it is found by its text, rotated, revoked, and expires on time."""
    first = client.create_token("admin", project="shop", expires_s=60, label="ci")
    assert parse_token(first.text)[:2] == (client.database.store_id, "acme")
    assert client.find_token(first.text) == first.info
    clock.pass_seconds(1)
    second = client.rotate_token(first.info.id, grace_s=10)
    assert [token.id for token in client.tokens()] == [first.info.id, second.info.id]
    clock.pass_seconds(10)
    assert client.find_token(first.text) is None
    assert client.find_token(second.text) == second.info
    clock.pass_seconds(49)
    assert client.find_token(second.text) is None
    client.sweep()
    third = client.create_token("view")
    client.revoke_token(third.info.id)
    assert client.tokens() == []
    with pytest.raises(NotFound):
        client.revoke_token(second.info.id)


def test_no_text_is_shown_by_accident() -> None:
    """What a program logs of a new token has no secret; two tokens are never the same."""
    with coord.connect("memory:", environ={"USER": "ida"}) as client:
        new = client.create_token("view")
        assert repr(new) == f"NewToken({new.info.id})"
        assert new.text[-49:] not in f"{new!r} {new} {new.info!r}"
        assert make_token("memory", "acme") != make_token("memory", "acme")


@pytest.mark.parametrize("role", ["", "root", "VIEW", None, 3])
def test_bad_roles(role: Any) -> None:
    """A role that does not exist is refused with those that do."""
    with coord.connect("memory:", environ={"USER": "ida"}) as client, pytest.raises(Invalid, match="operate"):
        client.create_token(role)


@pytest.mark.parametrize("seconds", [0, -1, 0.5, math.inf, math.nan, True, "5", 367 * 24 * 3600])
def test_bad_durations(seconds: Any) -> None:
    """A duration is 1 second to 366 days."""
    with coord.connect("memory:", environ={"USER": "ida"}) as client:
        with pytest.raises(Invalid, match="366 days"):
            client.create_token("view", expires_s=seconds)
        with pytest.raises(Invalid, match="366 days"):
            client.rotate_token("t-1", grace_s=seconds)


def test_a_token_of_another_store_is_unknown() -> None:
    """Only the store and the tenant that a text names know it; anywhere else it is just unknown."""
    with coord.connect("memory:", environ={"USER": "ida"}) as client:
        assert client.find_token(format_token("other", "acme", bytes(32))) is None
        with pytest.raises(Invalid, match="not a token"):
            client.find_token("hunter2")
