"""The changes of an entry in the log-structured layout, as bytes. Large values are in separate rows."""

import msgspec

from coord.core.errors import Corrupt
from coord.stores.checksums import REPAIR, sealed, unsealed
from coord.stores.contract import Commit, Put
from coord.stores.log.snapshot import Reference


class Body(msgspec.Struct, frozen=True, array_like=True):
    """The puts with their values, the deletes, and the index keys of puts with a separate value row."""

    puts: dict[str, Put]
    deletes: list[str]
    large: dict[str, str]


encoded = msgspec.msgpack.Encoder().encode
_decode_body = msgspec.msgpack.Decoder(Body).decode

NOTHING = sealed(encoded(Body({}, [], {})))
"""The body of an entry that changed no record."""


def commit_of(offset: int, at: int, body: bytes) -> Commit:
    """Return the commit of an entry, as the state applies it."""
    try:
        done = _decode_body(unsealed(body))
    except (ValueError, msgspec.MsgspecError) as error:
        raise Corrupt(f"entry {offset} cannot be read: {error}", hint=REPAIR) from error
    return Commit({}, with_references(done.puts, done.large), done.deletes, [], at)


def with_references(puts: dict[str, Put], large: dict[str, str]) -> dict[str, Put]:
    """Return all puts, with references in place of large values."""
    return (
        {**puts, **{key: Put(Reference(), index_key) for key, index_key in large.items()}} if large else puts
    )
