"""Open a store by its url. This is the only module that knows every backend.

memory:                            in this process only, gone when it ends
file:///path/to/folder             a folder of log entries on one machine
sqlite:///path/to/file.db          a SQLite file on one machine
postgresql://user@host/database    a Postgres server, table-based (`install` it first)
postgresql+log://user@host/db      a Postgres server, log-structured, for a busy hub
mysql://user@host/database         a MySQL or MariaDB server (`install` it first)
redis://user@host/0                a Redis server (`install` it first)
nats://user@host/name              a NATS server with JetStream (`install` it first)
"""

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from coord.core.errors import Invalid, Unreachable, Unsupported
from coord.stores.database import Database
from coord.stores.local.backoff import back_off
from coord.stores.migration import check_not_migrating
from coord.stores.urls import is_plain, redact, scheme_of, unquoted

if TYPE_CHECKING:
    from coord.stores.migration import Migrator

Opened = TypeVar("Opened")

OPEN_TIMEOUT_S = 5.0
"""How long an unreachable server is retried if the caller passes no timeout."""
FIRST_BACKOFF_S, BACKOFF_S_MAX = 0.05, 1.0
"""The longest wait after the first failed attempt, and after any; each wait is a random part of it."""


class Kind(NamedTuple):
    """A kind of store: the form of its urls, and the classes that open and migrate it.

    A class is named `module.Class` below `coord.stores`, so that only the kind in use is imported. The module
    of a server also has `install(url)` and `grants(url)`. `extra` names the optional dependency with the
    driver. The url of a `local` store is a path on this machine.
    """

    form: str
    database: str
    migrator: str = ""
    extra: str = ""
    local: bool = False

    @property
    def server(self) -> bool:
        """Whether the store is on a server, which has to be prepared with `install`."""
        return bool(self.migrator) and not self.local


KINDS = {
    "memory": Kind("memory:", "memory.MemoryDatabase"),
    "file": Kind("file:///folder", "files.store.FilesDatabase", "files.migration.FilesMigrator", local=True),
    "sqlite": Kind(
        "sqlite:///file.db", "sqlite.store.SqliteDatabase", "sqlite.migration.SqliteMigrator", local=True
    ),
    "postgresql": Kind(
        "postgresql://user@host/database",
        "postgres.table_store.PostgresDatabase",
        "postgres.table_migration.PostgresMigrator",
        extra="postgres",
    ),
    "postgresql+log": Kind(
        "postgresql+log://user@host/database",
        "postgres.log_store.PostgresLogDatabase",
        "postgres.log_migration.PostgresLogMigrator",
        extra="postgres",
    ),
    "mysql": Kind(
        "mysql://user@host/database",
        "mysql.store.MysqlDatabase",
        "mysql.migration.MysqlMigrator",
        extra="mysql",
    ),
    "redis": Kind(
        "redis://user@host/0", "redis.store.RedisDatabase", "redis.migration.RedisMigrator", extra="redis"
    ),
    "nats": Kind("nats://user@host/name", "nats.database.NatsDatabase", "nats.migration.NatsMigrator"),
}


def open_store(
    url: str,
    *,
    migrating: bool = False,
    tenants: Mapping[str, str] | None = None,
    timeout: float = OPEN_TIMEOUT_S,
) -> Database[Any]:
    """Open a store. Memory, files and SQLite are created on first open, servers only by `install`.

    A migrated store, or an incomplete copy, opens only with `migrating`. `tenants` maps the tenants with
    their own stores to urls. An unreachable server is retried for `timeout` seconds; any other failure is
    raised at once.
    """
    if tenants:
        from coord.stores.database import RoutedDatabase
        from coord.stores.tenants import check_tenants

        check_tenants(tenants)
        return RoutedDatabase(
            open_store(url, timeout=timeout), tenants, lambda own: open_store(own, timeout=timeout)
        )
    database = retry_unreachable(lambda: _open(url), timeout)
    if not migrating:
        try:
            check_not_migrating(redact(url), database.metadata)
        except BaseException:
            database.close()
            raise
    return database


def retry_unreachable(
    attempt: Callable[[], Opened],
    timeout: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    backoff: Callable[[float], object] = back_off,
) -> Opened:
    """Return the result of `attempt`; retry with growing random waits while the server is unreachable.

    No attempt starts later than `timeout` seconds after the call; its duration is up to the driver.
    `backoff` sleeps for at most the given seconds. `attempt` must change nothing when it fails.
    """
    deadline = clock() + timeout
    longest = FIRST_BACKOFF_S
    while True:
        try:
            return attempt()
        except Unreachable as error:
            left = deadline - clock()
            if left > 0:
                backoff(min(longest, left))
            if left <= 0 or clock() >= deadline:
                raise _still_unreachable(error, timeout) from error
            longest = min(longest * 2, BACKOFF_S_MAX)


def _still_unreachable(error: Unreachable, timeout: float) -> Unreachable:
    tried = f"coord tried for {timeout:g} s, COORD_CONNECT_TIMEOUT sets how long" if timeout > 0 else ""
    hint = error.hint or "is the server running, and is the url right?"
    return Unreachable(error.message, hint=f"{hint} {tried}".rstrip())


def migrator(database: Database[Any]) -> "Migrator":
    """Return the migration steps of a store."""
    kind = kind_of(database.url)
    if not kind.migrator:
        raise Invalid("a memory store cannot be migrated", hint="it ends with its process")
    made: Migrator = _import(kind, kind.migrator)(database)
    return made


def install(
    url: str,
    *,
    tenant: str = "",
    tenants: Mapping[str, str] | None = None,
    timeout: float = OPEN_TIMEOUT_S,
) -> None:
    """Prepare a store for `open_store`; a store that is prepared already stays as it is.

    With `tenant`, prepare also the store that `tenants` gives that tenant. An unreachable server is retried
    for `timeout` seconds; a retry keeps what an earlier attempt prepared.
    """
    if not tenant:
        retry_unreachable(lambda: _install(url), timeout)
        return
    from coord.stores.tenants import assign_store, check_tenants, url_of

    check_tenants(tenants or {})
    own_url = url_of(tenant, tenants or {})
    if not own_url:
        raise Invalid(f"no url for tenant {tenant}", hint="add it to coord.toml below [tenants]")
    for each in (url, own_url):
        install(each, timeout=timeout)
    with (
        closing(open_store(url, timeout=timeout)) as shared,
        closing(open_store(own_url, timeout=timeout)) as own,
    ):
        assign_store(tenant, shared, migrator(shared), own)


def grants(url: str) -> list[str]:
    """Return the commands with which an administrator grants the needed rights; empty for a local store."""
    kind = kind_of(url)
    if not kind.server:
        return []
    given: list[str] = _import(kind, kind.database.rpartition(".")[0] + ".grants")(url)
    return given


def _install(url: str) -> None:
    kind = kind_of(url)
    if kind.server:
        _import(kind, kind.database.rpartition(".")[0] + ".install")(url)
    else:
        _open(url).close()


def kind_of(url: str) -> Kind:
    """Return the kind of store of a url."""
    kind = KINDS.get(scheme_of(url))
    if kind is None or ":" not in url:
        raise Invalid(f"{redact(url)!r} is not a store url", hint=f"use {_known_forms()}")
    return kind


def _open(url: str) -> Database[Any]:
    kind = kind_of(url)
    where = (url, _path(url)) if kind.local else (url,)
    opened: Database[Any] = _import(kind, kind.database)(*where)
    if kind.migrator:
        opened.read_metadata = lambda: migrator(opened).metadata()
    return opened


def _path(url: str) -> str:
    rest = url.partition(":")[2]
    if rest.startswith("///") and is_plain(rest):
        return "/" + rest.lstrip("/")
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
    except ValueError as error:  # brackets around something that is not an IPv6 address
        raise Invalid(
            f"{redact(url)!r} is not a path on this machine", hint=f"use {_known_forms()}"
        ) from error
    path = unquoted(parts.path)
    if parts.netloc not in ("", "localhost") or not path.strip("/") or "\0" in path or parts.query:
        raise Invalid(f"{redact(url)!r} is not a path on this machine", hint=f"use {_known_forms()}")
    return "/" + path.lstrip("/") if path.startswith("/") else path


def _import(kind: Kind, name: str) -> Any:
    module, _, member = name.rpartition(".")
    try:
        return getattr(import_module(f"coord.stores.{module}"), member)
    except ImportError as error:
        raise Unsupported(
            f"the driver for {kind.form} is not installed", hint=f"pip install 'coord[{kind.extra}]'"
        ) from error


def _known_forms() -> str:
    *others, last = [kind.form for kind in KINDS.values()]
    return f"{', '.join(others)} or {last}"
