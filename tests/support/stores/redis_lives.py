"""Redis servers that may lose commits, and what tests do behind coord's back to lose some."""

from collections.abc import Callable

import redis

from coord.stores.checksums import Checksums
from coord.stores.contract import Put
from coord.stores.redis.records import packed
from coord.stores.redis.scripts import keys_of
from coord.stores.redis.store import RedisDatabase
from tests.support.servers.redis import SETTINGS, RedisServer
from tests.support.servers.server import poll_until

PATIENCE_S = 30


class ForgetfulServer(RedisServer):
    """Keeps only what was saved: after a crash it has the state of the last SAVE."""

    settings = {**SETTINGS, "appendonly": "no"}


def until(holds: Callable[[], object]) -> None:
    """Wait until something holds, and fail if it never does."""
    poll_until(holds, PATIENCE_S, "what was waited for did not come")


def crash(server: RedisServer) -> None:
    """Kill and start anew."""
    server.kill()
    server.restart()


def follow(replica: RedisServer, master: RedisServer) -> None:
    """Let a server be a replica of another, and wait until it has everything."""
    with replica.admin() as client, master.admin() as leader:
        leader.config_set("repl-diskless-sync-delay", 0)
        client.config_set("masterauth", client.get_connection_kwargs()["password"])
        client.replicaof(master.host, str(master.port))
        until(lambda: client.info("replication")["master_link_status"] == "up")


def stop_following(replica: RedisServer) -> None:
    """Let a replica lose its master, as when the network between them fails: what it has stays as it is."""
    with replica.admin() as client:
        client.replicaof("127.0.0.1", "1")


def promote(replica: RedisServer) -> None:
    """Make a replica the master."""
    with replica.admin() as client:
        client.replicaof("NO", "ONE")


def take_over(replica: RedisServer, master: RedisServer) -> None:
    """Let the master die, and a replica go on in its place and under its address."""
    master.kill()
    promote(replica)
    with replica.admin() as client:
        client.config_set("port", master.port)
    replica.port = master.port


def catch_up(replica: RedisServer, master: RedisServer) -> None:
    """Wait until a replica has all that its master has."""
    with replica.admin() as client, master.admin() as leader:
        wanted = leader.info("replication")["master_repl_offset"]
        until(lambda: client.info("replication")["slave_repl_offset"] >= wanted)


def keys(database: object) -> tuple[str, ...]:
    """Return the keys in which a store and its tenant `local` are."""
    assert isinstance(database, RedisDatabase)
    return keys_of(database.address.prefix, "local")


def stored(database: object, key: str, version: int, value: bytes, index_key: str = "") -> bytes:
    """Return a record as the store keeps it, with its checksum."""
    assert isinstance(database, RedisDatabase)
    checksums = Checksums(database.store_id, "local", "")
    return packed(checksums, [(key, version, Put(value, index_key))])[2]


def clients_of(admin: redis.Redis) -> list[dict[str, str]]:
    """Return the connections to a server but the one that asks."""
    mine = admin.client_id()
    return [client for client in admin.client_list() if int(client["id"]) != mine]
