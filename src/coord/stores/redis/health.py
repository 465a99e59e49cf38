"""The checks of `coord doctor` of Redis: version, access, durability, memory, clock, lost commits."""

from datetime import UTC, datetime

from redis import exceptions

from coord.stores.health import Check, clock_check
from coord.stores.local.clock import host_now_ms
from coord.stores.redis.connection import Address, ServerInfo, Wire, translated
from coord.stores.redis.scripts import keys_of

NAMED = 5
"""The number of tenants that are named with their last entry before an epoch."""

MISCONFIGURED = "look at the log of the server: its disk may be full"


def checks_of(address: Address, wire: Wire, server_info: ServerInfo, metadata: dict[str, str]) -> list[Check]:
    """Check the server of a connection."""
    return [
        Check("version", True, f"Redis {server_info.version}"),
        _access(address, wire),
        _durability(server_info),
        _memory(server_info),
        _clock(wire),
        _epoch(address, wire, metadata),
    ]


def _access(address: Address, wire: Wire) -> Check:
    """Check that the server takes a write, by one that changes nothing: its key does not exist."""
    try:
        wire.ask("ZADD", f"{keys_of(address.prefix, '')[0]}-probe", "XX", 0, "probe")
    except exceptions.ResponseError as error:
        refused = translated(error)
        return Check("access", False, refused.message, refused.hint or MISCONFIGURED, stops=True)
    return Check("access", True, "the server takes commits")


def _durability(server_info: ServerInfo) -> Check:
    if server_info.durable:
        return Check("durability", True, "appendfsync is always, and there is no replica")
    if server_info.replicas or server_info.promoted:
        what = f"{server_info.replicas} replicas" if server_info.replicas else "it was a replica itself"
        text = f"{what}: after a failover, commits that were answered may be missing"
        return Check("durability", False, text, "fences stay unique; use Postgres where nothing may be lost")
    text = f"appendfsync is {server_info.fsync}: after a crash, commits that were answered may be missing"
    return Check("durability", False, text, "set appendonly yes and appendfsync always")


def _memory(server_info: ServerInfo) -> Check:
    if server_info.eviction == "noeviction":
        return Check("memory", True, "maxmemory-policy is noeviction")
    return Check(
        "memory", False, f"maxmemory-policy is {server_info.eviction}", "set maxmemory-policy noeviction"
    )


def _clock(wire: Wire) -> Check:
    asked = host_now_ms()
    seconds, microseconds = wire.ask("TIME")
    return clock_check(int(seconds) * 1000 + int(microseconds) // 1000, asked, host_now_ms())


def _epoch(address: Address, wire: Wire, metadata: dict[str, str]) -> Check:
    if "raised" not in metadata:
        return Check("epoch", True, f"epoch {metadata['epoch']}")
    since = datetime.fromtimestamp(int(metadata["raised"]) / 1000, UTC).isoformat(timespec="seconds")
    last = []
    for tenant in sorted(name.decode() for name in wire.ask("SMEMBERS", keys_of(address.prefix, "")[1]))[
        :NAMED
    ]:
        before = ("XREVRANGE", keys_of(address.prefix, tenant)[-1], metadata["base"], "-", "COUNT", 1)
        entries = wire.ask(*before)
        last.append(f"{entries[0][0].partition(b'-')[0].decode() if entries else 'none'} of {tenant}")
    text = f"epoch {metadata['epoch']} since {since}: commits answered before then may be lost"
    kept = f"; the newest that was kept: {', '.join(last)}" if last else ""
    return Check("epoch", True, text + kept)
