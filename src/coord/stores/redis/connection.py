"""Connections to a Redis server: the address of a store, the state of the server, its errors."""

import contextlib
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from redis import exceptions
from redis.connection import Connection, parse_url

from coord.core.errors import CoordError, Corrupt, Invalid, Unavailable, Unknown, Unreachable, Unsupported
from coord.stores.checksums import REPAIR, damaged
from coord.stores.migration import unavailable_error
from coord.stores.redis.scripts import DAMAGE, TERM, Script
from coord.stores.server.database import fails_by_tls
from coord.stores.urls import redact, without_parameter

OLDEST: Final = (7, 0)
PREFIX: Final = re.compile(r"[A-Za-z0-9_.-]{1,48}")
MOVES: Final = 5

# Defaults for what the url leaves open, and what it cannot change: values are bytes, nothing is tried twice.
DEFAULTS: Final = {"socket_connect_timeout": 5.0, "socket_timeout": 30.0, "socket_keepalive": True}
FIXED: Final[dict[str, Any]] = {
    "decode_responses": False,
    "protocol": 2,
    "driver_info": None,
    "retry_on_timeout": False,
    "retry_on_error": [],
    "health_check_interval": 0,
}

ANSWERS: Final = (
    exceptions.ResponseError,
    exceptions.AuthenticationError,
    exceptions.AuthorizationError,
    exceptions.BusyLoadingError,
)
"""Errors that the server has answered with: the command was refused."""

HINTS: Final = (
    (exceptions.OutOfMemoryError, "give the server more memory (maxmemory), or trim the log"),
    (exceptions.ReadOnlyError, "connect to the master: this is a replica"),
    (exceptions.NoPermissionError, "docs/how-to/use-redis.md lists what coord has to be allowed"),
    (exceptions.AuthenticationError, "look at user and password in the url"),
)


def translated(error: exceptions.RedisError, *, committing: bool = False) -> CoordError:
    """Return the store error for a driver error."""
    message = f"Redis: {' '.join(str(error).split())}"
    if isinstance(error, exceptions.DataError):
        return Invalid(message)
    if not isinstance(error, ANSWERS):  # the connection broke, or the answer did not come in time
        if committing:
            return Unknown(message)
        return Unavailable(message) if fails_by_tls(error) else Unreachable(message)
    if isinstance(error, exceptions.BusyLoadingError):
        return Unreachable(message)
    for kind, hint in HINTS:
        if isinstance(error, kind):
            return Unavailable(message, hint=hint)
    if TERM in message:
        return Unavailable(message, hint="try again: the next call reconnects")
    if DAMAGE in message:
        return damaged(message.partition(DAMAGE)[2].strip())
    stopped = "SCRIPT KILL" in message  # possible only before a script has written anything
    unknown = "user_script" in message and not stopped  # it found something that it does not know
    if unknown or "WRONGTYPE" in message:
        return Corrupt(message, hint=REPAIR)
    # BUSY, MISCONF, MASTERDOWN, CLUSTERDOWN, MOVED, TRYAGAIN, NOREPLICAS, a migrated store …
    return unavailable_error(message)


def _packed(words: tuple[Any, ...]) -> bytes:
    """Return a command as it is sent; the driver's own way takes several times as long."""
    cells = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(cells) + b"".join([b"$%d\r\n%b\r\n" % (len(cell), cell) for cell in cells])


class Wire:
    """One connection. After any error it is closed, and the next call opens a new one."""

    def __init__(self, settings: dict[str, Any]) -> None:
        kind = settings.pop("connection_class", Connection)
        try:
            self._connection: Connection = kind(**settings)
        except (TypeError, ValueError, exceptions.RedisError):
            self._connection = None  # type: ignore[assignment]
        if self._connection is None:  # not raised from the driver's error, whose text contains the password
            raise Invalid("the url has parameters that the Redis driver does not understand")
        with self.using():
            self._connection.connect()

    @contextlib.contextmanager
    def using(self, *, committing: bool = False) -> Iterator[None]:
        """Translate errors, and close the connection after one."""
        try:
            yield
        except BaseException as error:
            self.close()
            if isinstance(error, exceptions.RedisError):
                raise translated(error, committing=committing) from error
            raise

    def ask(self, *words: Any) -> Any:
        """Return the answer to a command."""
        self._connection.send_packed_command([_packed(words)])
        return self._connection.read_response()

    def run(self, script: Script, keys: tuple[str, ...], *values: Any) -> Any:
        """Return what a script returns, which is sent whole if the server does not know it yet."""
        try:
            return self.ask("EVALSHA", script.sha, len(keys), *keys, *values)
        except exceptions.NoScriptError:
            return self.ask("EVAL", script.text, len(keys), *keys, *values)

    @property
    def gone(self) -> bool:
        """Whether the server closed the connection."""
        with contextlib.suppress(exceptions.RedisError):
            return not self._connection.is_connected or self._connection.can_read()
        return True

    def close(self) -> None:
        """Close the connection."""
        self._connection.disconnect()


class ServerInfo(NamedTuple):
    """The state of a server process."""

    run: str
    """It changes with each start, and when a replica becomes the master."""
    durable: bool
    """Answered commits are on disk, and no replica without them can take over."""
    version: str
    fsync: str
    """When the server syncs its log: always, everysec, no; off without a log; or unknown."""
    replicas: int
    promoted: bool
    eviction: str


def read_server_info(wire: Wire) -> ServerInfo:
    """Read the state of a server; without the settings it counts as not durable."""
    said = wire.ask("INFO", "server", "replication", "persistence", "memory").decode("utf-8", "replace")
    facts = dict(line.split(":", 1) for line in said.splitlines() if ":" in line)
    try:
        words = [
            word.decode() for word in wire.ask("CONFIG", "GET", "appendfsync", "no-appendfsync-on-rewrite")
        ]
        settings = dict(zip(words[::2], words[1::2], strict=True))
    except exceptions.ResponseError:  # not allowed, or hidden by the operator
        settings = {}
    fsync = settings.get("appendfsync", "unknown") if facts.get("aof_enabled") == "1" else "off"
    if settings.get("no-appendfsync-on-rewrite") == "yes":
        fsync = f"{fsync}, but not while it rewrites its log"
    replicas, promoted = int(facts.get("connected_slaves", 0)), facts.get("second_repl_offset", "-1") != "-1"
    if facts.get("role") != "master":
        raise Unavailable("Redis: this is a replica, and may be behind", hint="connect to the master")
    durable = fsync == "always" and not replicas and not promoted
    version, policy = facts.get("redis_version", "0"), facts.get("maxmemory_policy", "unknown")
    run = f"{facts['run_id']} {facts.get('master_replid')}" if promoted else facts["run_id"]
    return ServerInfo(run, durable, version, fsync, replicas, promoted, policy)


class Address:
    """The address of a store: the arguments of the driver, and the prefix of its keys."""

    def __init__(self, url: str) -> None:
        self.redacted = redact(url)
        self._settings: dict[str, Any] = {}
        prefixes: list[str] = []
        with contextlib.suppress(ValueError):
            rest, prefixes = without_parameter(url, "prefix")
            if re.search(r"://[^/?]+(/\d*)?(\?|$)", rest):
                self._settings = {**DEFAULTS, **parse_url(rest), **FIXED}
        if not self._settings:  # not raised from the driver's error, whose text contains the password
            raise Invalid(
                f"{self.redacted!r} is not a valid Redis url",
                hint="redis://user:password@host:6379/0",
            )
        self.prefix = ",".join(prefixes) if prefixes else "coord"
        if not PREFIX.fullmatch(self.prefix):
            raise Invalid(
                f"{self.prefix!r} is not a valid prefix", hint="use 1 to 48 letters, digits and _ . -"
            )
        self.meta = f"{{{self.prefix}}}:meta"

    def connect(self) -> tuple[Wire, ServerInfo]:
        """Open a connection to the server that has the keys of this store, and ask it about itself."""
        settings = dict(self._settings)
        for _ in range(MOVES):
            wire = Wire(dict(settings))
            with wire.using():
                elsewhere = self._elsewhere(wire)
                if elsewhere is None:
                    return wire, self._checked(read_server_info(wire))
            wire.close()
            settings["host"], settings["port"] = elsewhere[0] or settings.get("host"), elsewhere[1]
        raise Unavailable(f"{self.redacted}: the nodes of the cluster redirect in a cycle")

    def _elsewhere(self, wire: Wire) -> tuple[str, int] | None:
        """Return the node of a cluster that has our keys, if it is another one."""
        try:
            wire.ask("HGET", self.meta, "format")
        except exceptions.MovedError as migrated_error:
            return migrated_error.host, migrated_error.port
        return None

    def _checked(self, server_info: ServerInfo) -> ServerInfo:
        if tuple(int(part) for part in re.findall(r"\d+", server_info.version)[:2]) < OLDEST:
            raise Unsupported(
                f"{self.redacted} is Redis {server_info.version}", hint="use Redis 7.0 or newer"
            )
        if server_info.eviction.startswith("allkeys"):
            raise Unsupported(
                f"{self.redacted} evicts keys when memory is full (maxmemory-policy {server_info.eviction})",
                hint="set maxmemory-policy noeviction",
            )
        return server_info
