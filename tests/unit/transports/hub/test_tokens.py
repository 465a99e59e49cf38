"""Wrong tokens: the same answer for all, a limit on guesses, and nobody else locked out."""

import math
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from coord.core.tokens.text import format_token
from coord.transports.hub import tokens
from tests.support.hub.site import Site, open_site


@pytest.fixture
def site() -> Iterator[Site]:
    with open_site() as found:
        yield found


def wrong(site: Site, number: int, *, store: str = "", tenant: str = "local") -> str:
    return format_token(store or site.database.store_id, tenant, number.to_bytes(32, "big"))


def test_every_wrong_token_gets_the_same_answer(site: Site) -> None:
    """Nobody learns which tenants and stores there are."""
    texts = [
        wrong(site, 1),
        wrong(site, 2, tenant="other"),
        wrong(site, 3, store="nowhere"),
        "x",
        "coord_a_b_c",
    ]
    revoked = site.token()
    site.revoke(revoked)
    answers = [site.ask("GET", "/v1/stream", text) for text in (*texts, revoked)]
    assert {each.status for each in answers} == {401}
    assert len({each.body for each in answers}) == 1
    assert len({tuple(each.headers) for each in answers}) == 1


def test_guesses_are_limited_and_known_tokens_go_on(site: Site) -> None:
    good, later = site.token(), site.token()
    assert site.ask("HEAD", "/v1/stream", good).status == 200
    found = [
        site.ask("GET", "/v1/stream", wrong(site, number)).status for number in range(tokens.GUESSES + 5)
    ]
    assert (found[0], found[-1]) == (401, 429)
    refused = site.ask("GET", "/v1/stream", wrong(site, 99))
    assert int(refused.header("Retry-After")) >= 1
    assert site.ask("HEAD", "/v1/stream", good).status == 200
    site.hub.tokens.forget()
    assert site.ask("HEAD", "/v1/stream", good).status == 200
    assert site.ask("HEAD", "/v1/stream", later).status == 429


def test_guesses_at_the_same_time_are_counted(site: Site) -> None:
    """A thousand guesses that arrive together must not all be looked up before the first one counts."""
    connections = [site.open() for _ in range(200)]
    for number, each in enumerate(connections):
        each.sendall(site.head("GET", "/v1/stream", wrong(site, number)))
    found = [each.recv(12)[-3:] for each in connections]
    for each in connections:
        each.close()
    assert found.count(b"401") <= tokens.GUESSES + tokens.LOOKUPS_MAX
    assert set(found) == {b"401", b"429"}


def test_wrong_tokens_open_few_tenants(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token names its tenant, and a stranger can name any; opening one may make files."""
    monkeypatch.setattr(tokens, "EMPTY_MAX", 3)
    known = site.token(tenant="known")
    found = [site.ask("GET", "/v1/stream", wrong(site, n, tenant=f"t{n}")).status for n in range(6)]
    assert found == [401, 401, 401, 429, 429, 429]
    assert site.ask("HEAD", "/v1/stream", known).status == 200


def test_a_revoked_token_ends_within_a_second(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    token = site.token()
    assert site.ask("HEAD", "/v1/stream", token).status == 200
    site.revoke(token)
    monkeypatch.setattr(tokens, "REUSED_S", 0.0)
    assert site.ask("HEAD", "/v1/stream", token).status == 401


def test_an_expired_token_ends_without_a_look_into_its_store(site: Site) -> None:
    """What was looked up counts for a second, but never beyond the token's own end."""
    token = site.token()
    assert site.ask("HEAD", "/v1/stream", token).status == 200
    known = site.hub.tokens._known
    (key,) = known
    known[key] = known[key]._replace(info=replace(known[key].info, expires_ms=1), at_s=math.inf)
    assert site.ask("HEAD", "/v1/stream", token).status == 401


def test_a_text_that_resembles_a_known_token_is_another_one(site: Site) -> None:
    """The whole text counts: cut off, prolonged, or in other letters it is a wrong token."""
    token = site.token()
    assert site.ask("HEAD", "/v1/stream", token).status == 200
    for other in (token[:-1], f"{token}0", token.swapcase(), token * 9, f"{token},{token}"):
        assert site.ask("HEAD", "/v1/stream", other).status == 401
