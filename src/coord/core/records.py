"""Records as typed JSON: `schema` in each, unknown fields kept, newer schemas refused.

Several versions of coord may share a store. A field that this version does not know survives a rewrite
(SCM-6). A record of a newer schema is refused, never skipped. The strict decoder is the fast path; only a
record that it refuses is decoded field by field.
"""

from typing import Any, TypeVar

import msgspec

from coord.core.errors import Corrupt, Unsupported


class Stored(
    msgspec.Struct,
    frozen=True,
    gc=False,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field="schema",
):
    """The base of every record; a subclass gives its schema number as `tag=`."""

    unknown: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict, name="_unknown")


AnyStored = TypeVar("AnyStored", bound=Stored)

_encoder = msgspec.json.Encoder()
encode_known = _encoder.encode
"""`encode` for a record without unknown fields, which is nearly every one."""
_decoders: dict[type[Stored], msgspec.json.Decoder[Any]] = {}
_BEGINNING = b'{"schema":'
_UNREADABLE = (msgspec.MsgspecError, UnicodeError, RecursionError)


def encode(record: Stored) -> bytes:
    """Return the record as JSON, including unknown fields."""
    if not record.unknown:
        return _encoder.encode(record)
    plain = _encoder.encode(msgspec.structs.replace(record, unknown={}))
    fields = msgspec.json.decode(plain, type=dict[str, msgspec.Raw])
    return _encoder.encode({"schema": fields["schema"], **record.unknown, **fields})


def decode(data: bytes, kind: type[AnyStored], key: str) -> AnyStored:
    """Return the record behind the JSON; the key names it in errors."""
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    if data.startswith(_BEGINNING):  # the decoder alone would accept a record without a schema
        try:
            record: AnyStored = decoder.decode(data)
        except _UNREADABLE:
            pass
        else:
            return record
    return _decode_slowly(data, kind, key)


def _decode_slowly(data: bytes, kind: type[AnyStored], key: str) -> AnyStored:
    known = {*kind.__struct_encode_fields__, "schema"}
    supported = kind.__struct_config__.tag
    try:
        fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        schema = msgspec.json.decode(fields["schema"], type=int)
        if isinstance(supported, int) and schema > supported:
            raise Unsupported(
                f"record {key!r} has schema {schema}; this version of coord knows {supported}",
                hint="upgrade coord on this machine",
            )
        plain = _encoder.encode({name: raw for name, raw in fields.items() if name in known})
        record = msgspec.json.decode(plain, type=kind)
    except (*_UNREADABLE, KeyError) as error:
        raise Corrupt(f"record {key!r} cannot be read: {error}") from error
    return msgspec.structs.replace(
        record, unknown={name: raw for name, raw in fields.items() if name not in known}
    )


class Marker(Stored, frozen=True, tag=1):
    """An empty record that only marks a key as present (an index entry)."""


MARKER = Marker()
