"""The text of a token: which store and tenant know it, 256 random bits, and a checksum.

`coord_<store id>_<tenant>_<secret><checksum>`. The fixed beginning lets secret scanners find tokens. The
checksum distinguishes a mistyped token from an unknown one without a search. All characters are unreserved in
URLs, so a token fits into a header, a cookie and a link. A tenant with other characters is written as `~` and
hex, because no tenant begins with `~`. Errors never quote the text: they end up in logs.
"""

import re
from binascii import crc32
from typing import NamedTuple

from coord.core.errors import Invalid
from coord.core.keys import sha256

PREFIX = "coord_"
SECRET_BYTES = 32
HASH_CHARS = 64
TEXT_CHARS_MAX = 400
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SECRET_CHARS, _CHECKSUM_CHARS = 43, 6
_STORE = r"[0-9a-z]{1,64}"
_TENANT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@+=~-]{0,127}")
_PLAIN_TENANT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_TEXT = re.compile(
    rf"{PREFIX}(?P<store>{_STORE})_(?P<tenant>[A-Za-z0-9_][A-Za-z0-9._-]{{0,127}}|~[0-9a-f]{{2,256}})"
    rf"_[0-9A-Za-z]{{{_SECRET_CHARS + _CHECKSUM_CHARS}}}"
)
_HASH = re.compile(rf"[0-9a-f]{{{HASH_CHARS}}}")


class ParsedToken(NamedTuple):
    """The store and the tenant that know a token, and the hash by which they know it; not the secret."""

    store_id: str
    tenant: str
    hash: str


def format_token(store_id: str, tenant: str, secret: bytes) -> str:
    """Return the text of a token with this secret."""
    if len(secret) != SECRET_BYTES:
        raise Invalid(f"the secret has {len(secret)} bytes", hint=f"use {SECRET_BYTES} random bytes")
    if not re.fullmatch(_STORE, store_id):
        raise Invalid(f"{store_id!r} is not the id of a store", hint="use the store_id of the database")
    if not _TENANT.fullmatch(tenant):
        raise Invalid(f"{tenant!r} is not a tenant", hint="use the tenant of the log")
    number = _base62(int.from_bytes(secret, "big"), _SECRET_CHARS)
    return _with_checksum(f"{PREFIX}{store_id}_{_tenant_part(tenant)}_{number}")


def parse_token(text: object) -> ParsedToken:
    """Return what a token names, and its hash; refuse any other text without quoting it."""
    found = _TEXT.fullmatch(text) if isinstance(text, str) and len(text) <= TEXT_CHARS_MAX else None
    tenant = _tenant(found["tenant"]) if found is not None else None
    if found is None or tenant is None:
        raise Invalid(
            "this is not a token of coord",
            hint=f"a token begins with {PREFIX}; coord token create prints one",
        )
    whole = found.string
    if _with_checksum(whole[:-_CHECKSUM_CHARS]) != whole:
        raise Invalid("the token is mistyped or cut off", hint="copy all that coord token create printed")
    return ParsedToken(found["store"], tenant, sha256(whole))


def check_hash(value: object) -> str:
    """Return the value if it is the hash of a token."""
    if isinstance(value, str) and _HASH.fullmatch(value):
        return value
    raise Invalid(
        "this is not the hash of a token",
        hint=f"use sha256 of the whole token, {HASH_CHARS} digits of 0-9a-f",
    )


def _with_checksum(text: str) -> str:
    return text + _base62(crc32(text.encode()), _CHECKSUM_CHARS)


def _base62(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))


def _tenant_part(tenant: str) -> str:
    return tenant if _PLAIN_TENANT.fullmatch(tenant) else f"~{tenant.encode().hex()}"


def _tenant(part: str) -> str | None:
    """Return the tenant that a part of a token names; None if `format_token` never writes that part."""
    if not part.startswith("~"):
        return part
    if len(part) % 2 == 0:
        return None
    tenant = bytes.fromhex(part[1:]).decode("latin-1")
    return tenant if _TENANT.fullmatch(tenant) and _tenant_part(tenant) == part else None
