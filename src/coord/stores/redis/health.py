"""What `coord doctor` learns from a Redis server: version, durability, memory, clock, what may be lost."""

from datetime import UTC, datetime

from coord.stores.health import Check, clock_check
from coord.stores.local.clock import host_now_ms
from coord.stores.redis.connection import Address, Life, Wire
from coord.stores.redis.scripts import keys_of

NAMED = 5
"""So many tenants are named with their last entry from before an epoch."""


def checks_of(address: Address, wire: Wire, life: Life, metadata: dict[str, str]) -> list[Check]:
    """Look at the server behind a connection."""
    return [
        Check("version", True, f"Redis {life.version}"),
        _durability(life),
        _memory(life),
        _clock(wire),
        _epoch(address, wire, metadata),
    ]


def _durability(life: Life) -> Check:
    if life.durable:
        return Check("durability", True, "appendfsync is always, and there is no replica")
    if life.replicas or life.promoted:
        what = f"{life.replicas} replicas" if life.replicas else "it was a replica itself"
        text = f"{what}: after a failover, commits that were answered may be missing"
        return Check("durability", False, text, "fences stay unique; use Postgres where nothing may be lost")
    text = f"appendfsync is {life.fsync}: after a crash, commits that were answered may be missing"
    return Check("durability", False, text, "set appendonly yes and appendfsync always")


def _memory(life: Life) -> Check:
    if life.eviction == "noeviction":
        return Check("memory", True, "maxmemory-policy is noeviction")
    return Check("memory", False, f"maxmemory-policy is {life.eviction}", "set maxmemory-policy noeviction")


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
