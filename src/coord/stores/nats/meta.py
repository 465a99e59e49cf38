"""The metadata of a NATS store: one message, replaced only at the sequence number of the last one."""

import os

import msgspec

from coord.core.errors import Unavailable
from coord.stores.checksums import damaged
from coord.stores.contract import FORMAT, check_format
from coord.stores.migration import not_installed_error
from coord.stores.nats.address import Address
from coord.stores.nats.jetstream import NatsServer

TRIES = 100
KEPT = 8
NEEDED = {"store_id", "epoch", "durable", "replicas"}
SUBJECTS = ("meta", "tenant.*", "snapshot.>", "probe")

_decode = msgspec.json.Decoder(dict[str, str]).decode


def install(url: str) -> None:
    """Create the stream of the store if it is missing; safe to call again, even at the same time."""
    address = Address(url)
    server = NatsServer(address)
    try:
        server.create(
            address.stream, [address.subject(each) for each in SUBJECTS], int(address.replicas or 1)
        )
        if server.last(address.stream, address.subject("meta")) is None:
            identity = {"format": str(FORMAT), "store_id": os.urandom(16).hex(), "epoch": "0"}
            new = {**identity, "run": server.server_info.server_id}
            _put(server, {**new, "replicas": address.replicas or "1", "durable": address.durable or "0"}, 0)
        meta = read_meta(server)
        if address.durable not in ("", meta["durable"]):
            change(server, {"durable": address.durable})
    finally:
        server.close()


def grants(url: str) -> list[str]:
    """Return the permissions of the url's user, as lines for the configuration of the server.

    Permissions cannot name streams by prefix: users of one account can be kept from each other's subjects,
    but not from their streams. So give coord a separate account.
    """
    address = Address(url)
    asked = ("INFO", "CREATE", "PURGE", "DELETE", "MSG.GET")
    subjects = [
        f'"{address.subject(">")}"',
        *(f'"$JS.API.STREAM.{question}.*"' for question in asked),
        '"$JS.API.STREAM.NAMES"',
        '"$JS.API.DIRECT.GET.*"',
    ]
    return [
        "permissions {",
        f"  publish {{ allow: [{', '.join(subjects)}] }}",
        f'  subscribe {{ allow: ["_INBOX.>", "{address.subject("wakeup", "*")}"] }}',
        "}",
    ]


def read_meta(server: NatsServer) -> dict[str, str]:
    """Return the metadata of the store; refuse a missing store and another format."""
    return _read(server)[1]


def _read(server: NatsServer) -> tuple[int, dict[str, str]]:
    address = server.address
    found = server.last(address.stream, address.subject("meta"))
    if found is None:
        raise not_installed_error(address.redacted)
    try:
        meta = _decode(found[1])
    except msgspec.MsgspecError as error:
        raise damaged(f"the metadata of {address.redacted} cannot be read: {error}") from error
    check_format(meta.get("format"), address.redacted)
    if not (meta.keys() >= NEEDED and meta["epoch"].isdecimal() and meta["replicas"].isdecimal()):
        raise damaged(f"the metadata of {address.redacted} is not complete")
    return found[0], meta


def _put(server: NatsServer, meta: dict[str, str], after: int) -> bool:
    expected = {"Nats-Expected-Last-Subject-Sequence": str(after)}
    return server.put(server.address.subject("meta"), msgspec.json.encode(meta), expected) is not None


def change(server: NatsServer, values: dict[str, str]) -> None:
    """Change metadata; an empty value deletes the name."""
    for _ in range(TRIES):
        sequence, meta = _read(server)
        changed = {name: value for name, value in {**meta, **values}.items() if value}
        if changed == meta or _put(server, changed, sequence):
            server.purge(server.address.stream, filter=server.address.subject("meta"), keep=KEPT)
            return
    raise Unavailable("other processes keep changing the metadata", hint="try again")


def set_epoch(server: NatsServer, epoch: int) -> int:
    """Raise the epoch of the store to at least this one, and return the new epoch."""
    for _ in range(TRIES):
        sequence, meta = _read(server)
        highest = max(epoch, int(meta["epoch"]))
        if highest == int(meta["epoch"]) or _put(server, {**meta, "epoch": str(highest)}, sequence):
            return highest
    raise Unavailable("other processes keep changing the metadata", hint="try again")
