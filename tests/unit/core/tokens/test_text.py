"""The text of a token: it comes back as it went in, and nothing else is taken for one."""

import hashlib
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coord.core.errors import Invalid
from coord.core.tokens.text import (
    SECRET_BYTES,
    TEXT_CHARS_MAX,
    ParsedToken,
    _with_checksum,
    check_hash,
    format_token,
    parse_token,
)
from coord.stores.tenants import TENANT

STORE = "0123456789abcdef0123456789abcdef"
SECRET = bytes(range(SECRET_BYTES))
TEXT = format_token(STORE, "acme", SECRET)
STORES = st.text("0123456789abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=64)
TENANTS = st.from_regex(TENANT, fullmatch=True)
SECRETS = st.binary(min_size=SECRET_BYTES, max_size=SECRET_BYTES)


@given(STORES, TENANTS, SECRETS)
@example(STORE, "_", bytes(SECRET_BYTES))
@example(STORE, "a_b__", b"\xff" * SECRET_BYTES)
@example("memory", "t@x+y=z~", SECRET)
@example("z" * 64, "a" + "~" * 127, SECRET)
def test_every_token_can_be_read(store_id: str, tenant: str, secret: bytes) -> None:
    """A token names its store and tenant, whatever characters the tenant has; it fits into a URL."""
    text = format_token(store_id, tenant, secret)
    assert re.fullmatch(r"coord_[A-Za-z0-9._~-]+", text)
    assert len(text) <= TEXT_CHARS_MAX
    assert parse_token(text) == ParsedToken(store_id, tenant, hashlib.sha256(text.encode()).hexdigest())


@given(SECRETS, SECRETS)
def test_two_secrets_are_two_texts(first: bytes, second: bytes) -> None:
    """No bit of the secret is lost on the way into the text."""
    texts = {format_token(STORE, "acme", secret) for secret in (first, second)}
    assert len(texts) == len({first, second})


@pytest.mark.parametrize("at", [6, 20, 40, 45, 60, 87, len(TEXT) - 1])
def test_a_mistyped_token_is_noticed(at: int) -> None:
    """One wrong character anywhere is an error of its own, so nobody looks for a token that never was."""
    other = "1" if TEXT[at] != "1" else "2"
    with pytest.raises(Invalid, match=r"mistyped or cut off|not a token"):
        parse_token(TEXT[:at] + other + TEXT[at + 1 :])


HOSTILE: list[object] = [
    None,
    b"coord_",
    7,
    "",
    "coord_",
    TEXT[:-1],
    TEXT + "\n",
    f" {TEXT}",
    TEXT + "0",
    TEXT.upper(),
    TEXT.replace("coord_", "coard_"),
    TEXT.replace("acme", ""),
    TEXT.replace("acme", "~"),
    TEXT.replace("acme", "~6"),
    TEXT.replace("acme", "~61636d65"),  # a plain tenant in hex: never written so
    TEXT.replace("acme", "~2f2e2e"),
    TEXT.replace("acme", "~ff40"),
    TEXT.replace("acme", "../etc"),
    TEXT.replace("acme", "a/b"),
    TEXT.replace("acme", "a\x00b"),
    TEXT.replace("acme", "\ud800"),
    TEXT.replace("acme", "acmé"),
    TEXT.replace("acme", "a" * 129),
    TEXT.replace(STORE, STORE * 3),
    TEXT.replace(STORE, "ABC"),
    TEXT[:-1] + "\u0661",  # a digit for `str.isdigit`
    "coord_" + "_" * 300,
    "coord_" + "a_" * 10_000_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_no_other_text_is_a_token(text: object) -> None:
    """Whatever a stranger sends is refused at once, and the error does not repeat it."""
    with pytest.raises(Invalid) as refused:
        parse_token(text)
    said = str(refused.value)
    assert said.isascii()
    assert not isinstance(text, str) or len(text) < 10 or text not in said
    assert TEXT[-49:] not in said


@pytest.mark.parametrize(
    ("written", "forged"),
    [
        ("acme", "~61636d65"),  # a plain tenant in hex
        ("acme", "~2f2e2e"),
        ("acme", "~7e40"),  # no tenant begins with ~
        ("acme", "~ff40"),
        ("acme", "~614"),
        ("acme", "~61400a"),
        ("acme", "~" + "61" * 127 + "4040"),
        ("acme", "a/b"),
        ("acme", ""),
        (STORE, "ABC"),
        (STORE, ""),
        ("coord_", "Coord_"),
    ],
)
def test_a_forged_text_is_refused(written: str, forged: str) -> None:
    """A checksum protects from nobody: whoever computes it gets no further."""
    text = _with_checksum(TEXT[:-6].replace(written, forged))
    with pytest.raises(Invalid, match="not a token"):
        parse_token(text)


@given(st.text(max_size=TEXT_CHARS_MAX + 10) | st.from_regex(r"coord_[a-z0-9]+_~?[a-z0-9_]+_\w{40,60}"))
def test_random_texts_are_refused(text: str) -> None:
    """Only a text that `format_token` wrote is read; a random one is refused with `Invalid`."""
    with pytest.raises(Invalid):
        parse_token(text)


@pytest.mark.parametrize(
    ("store_id", "tenant", "secret"),
    [
        ("", "acme", SECRET),
        ("a_b", "acme", SECRET),
        ("ABC", "acme", SECRET),
        (STORE, "", SECRET),
        (STORE, "~a", SECRET),
        (STORE, "a/b", SECRET),
        (STORE, "acme", SECRET[1:]),
        (STORE, "acme", b""),
    ],
)
def test_what_could_not_be_read_is_not_written(store_id: str, tenant: str, secret: bytes) -> None:
    """A token that no hub could place, or with a shorter secret, is never created."""
    with pytest.raises(Invalid):
        format_token(store_id, tenant, secret)


@pytest.mark.parametrize("value", ["", "f" * 63, "f" * 65, "F" * 64, "g" * 64, "f" * 63 + "\n", None, 5])
def test_a_hash_is_64_digits(value: object) -> None:
    """A hash becomes a part of a key, so nothing else may pass."""
    with pytest.raises(Invalid, match="not the hash"):
        check_hash(value)


def test_the_parts_show_no_secret() -> None:
    """What a program prints of a token cannot be used in its place."""
    assert TEXT[-49:-6] not in repr(parse_token(TEXT))
