"""Opening a store by its url: the only place that knows all of them.

memory:                            this process only, gone with it
file:///path/to/folder             a folder of log entries on one machine
sqlite:///path/to/file.db          a SQLite file on one machine
postgresql://user@host/database    a Postgres server (`install` it first)
postgresql+log://user@host/db      the same with records in memory, for a busy hub
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
from coord.stores.local.backoff import pause
from coord.stores.migrated import check_settled
from coord.stores.urls import is_plain, scheme_of, shown, unquoted

if TYPE_CHECKING:
    from coord.stores.migration import Mover

Opened = TypeVar("Opened")

OPEN_TIMEOUT_S = 5.0
"""How long a server that cannot be reached is tried again, where the caller names no time."""
FIRST_PAUSE_S, PAUSE_S_MAX = 0.05, 1.0
"""The longest pause after the first failed attempt, and after any; each pause is a random part of it."""


class Kind(NamedTuple):
    """A kind of store: what its urls look like, and which classes open and move it.

    A class is named `module.Class` below `coord.stores`, so that only the kind in use is imported. A server's
    module also has `install(url)`; `extra` installs a driver that it needs. A local store is a path here.
    """

    form: str
    database: str
    mover: str = ""
    extra: str = ""
    local: bool = False

    @property
    def server(self) -> bool:
        """Whether it lives on a server, which has to be prepared."""
        return bool(self.mover) and not self.local


KINDS = {
    "memory": Kind("memory:", "memory.MemoryDatabase"),
    "file": Kind("file:///folder", "files.store.FilesDatabase", "files.migration.FilesMover", local=True),
    "sqlite": Kind(
        "sqlite:///file.db", "sqlite.store.SqliteDatabase", "sqlite.migration.SqliteMover", local=True
    ),
    "postgresql": Kind(
        "postgresql://user@host/database",
        "postgres.table_store.PostgresDatabase",
        "postgres.table_migration.PostgresMover",
        extra="postgres",
    ),
    "postgresql+log": Kind(
        "postgresql+log://user@host/database",
        "postgres.log_store.PostgresLogDatabase",
        "postgres.log_migration.PostgresLogMover",
        extra="postgres",
    ),
    "mysql": Kind(
        "mysql://user@host/database", "mysql.store.MysqlDatabase", "mysql.migration.MysqlMover", extra="mysql"
    ),
    "redis": Kind(
        "redis://user@host/0", "redis.store.RedisDatabase", "redis.migration.RedisMover", extra="redis"
    ),
    "nats": Kind("nats://user@host/name", "nats.database.NatsDatabase", "nats.migration.NatsMover"),
}


def open_store(
    url: str,
    *,
    moving: bool = False,
    tenants: Mapping[str, str] | None = None,
    timeout: float = OPEN_TIMEOUT_S,
) -> Database[Any]:
    """Open a store; memory, files and SQLite are made on first open, servers only by `install`.

    One that was moved, or is a copy not yet complete, opens only for who moves it. `tenants` are those that
    have stores of their own, with their urls. A server that cannot be reached is tried again for `timeout`
    seconds; any other failure is raised at once.
    """
    if tenants:
        from coord.stores.tenants import RoutedDatabase, check_tenants

        check_tenants(tenants)
        return RoutedDatabase(
            open_store(url, timeout=timeout), tenants, lambda own: open_store(own, timeout=timeout)
        )
    database = retry_unreachable(lambda: _open(url), timeout)
    if not moving:
        try:
            check_settled(shown(url), database.notes)
        except BaseException:
            database.close()
            raise
    return database


def retry_unreachable(
    attempt: Callable[[], Opened],
    timeout: float,
    *,
    clock: Callable[[], float] = time.monotonic,
    backoff: Callable[[float], object] = pause,
) -> Opened:
    """Return what `attempt` returns; retry with growing random pauses while the server is unreachable.

    No attempt begins later than `timeout` seconds after the call; how long one lasts is up to the driver.
    `backoff` lets time pass, at most the seconds it is given. `attempt` must change nothing when it fails.
    """
    deadline = clock() + timeout
    longest = FIRST_PAUSE_S
    while True:
        try:
            return attempt()
        except Unreachable as error:
            left = deadline - clock()
            if left > 0:
                backoff(min(longest, left))
            if left <= 0 or clock() >= deadline:
                raise _still_unreachable(error, timeout) from error
            longest = min(longest * 2, PAUSE_S_MAX)


def _still_unreachable(error: Unreachable, timeout: float) -> Unreachable:
    tried = f"coord tried for {timeout:g} s, COORD_CONNECT_TIMEOUT sets how long" if timeout > 0 else ""
    hint = error.hint or "is the server running, and is the url right?"
    return Unreachable(error.message, hint=f"{hint} {tried}".rstrip())


def mover(database: Database[Any]) -> "Mover":
    """Return what it takes to move a store."""
    kind = kind_of(database.url)
    if not kind.mover:
        raise Invalid("a store in memory cannot be moved", hint="it ends with its process")
    made: Mover = _named(kind, kind.mover)(database)
    return made


def install(
    url: str,
    *,
    tenant: str = "",
    tenants: Mapping[str, str] | None = None,
    timeout: float = OPEN_TIMEOUT_S,
) -> None:
    """Prepare a store for `open_store`; does nothing where it is prepared already.

    With a tenant, also the store of its own that `tenants` gives it. A server that cannot be reached is
    tried again for `timeout` seconds: what was prepared by then is found and left as it is.
    """
    if not tenant:
        retry_unreachable(lambda: _install(url), timeout)
        return
    from coord.stores.tenants import check_tenants, settle, url_of

    check_tenants(tenants or {})
    own_url = url_of(tenant, tenants or {})
    if not own_url:
        raise Invalid(f"no url is given for tenant {tenant}", hint="name it in coord.toml below [tenants]")
    for each in (url, own_url):
        install(each, timeout=timeout)
    with (
        closing(open_store(url, timeout=timeout)) as shared,
        closing(open_store(own_url, timeout=timeout)) as own,
    ):
        settle(tenant, shared, mover(shared), own)


def grants(url: str) -> list[str]:
    """Return what an administrator runs to give the rights that a store takes; none for one in files."""
    kind = kind_of(url)
    if not kind.server:
        return []
    given: list[str] = _named(kind, kind.database.rpartition(".")[0] + ".grants")(url)
    return given


def _install(url: str) -> None:
    kind = kind_of(url)
    if kind.server:
        _named(kind, kind.database.rpartition(".")[0] + ".install")(url)
    else:
        _open(url).close()


def kind_of(url: str) -> Kind:
    """Return the kind of store that a url names."""
    kind = KINDS.get(scheme_of(url))
    if kind is None or ":" not in url:
        raise Invalid(f"{shown(url)!r} is not the url of a store", hint=f"use {_known()}")
    return kind


def _open(url: str) -> Database[Any]:
    kind = kind_of(url)
    where = (url, _path(url)) if kind.local else (url,)
    opened: Database[Any] = _named(kind, kind.database)(*where)
    if kind.mover:
        opened.read_notes = lambda: mover(opened).notes()
    return opened


def _path(url: str) -> str:
    rest = url.partition(":")[2]
    if rest.startswith("///") and is_plain(rest):
        return "/" + rest.lstrip("/")
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
    except ValueError as error:  # brackets that are no address
        raise Invalid(f"{shown(url)!r} names no path on this machine", hint=f"use {_known()}") from error
    path = unquoted(parts.path)
    if parts.netloc not in ("", "localhost") or not path.strip("/") or "\0" in path or parts.query:
        raise Invalid(f"{shown(url)!r} names no path on this machine", hint=f"use {_known()}")
    return "/" + path.lstrip("/") if path.startswith("/") else path


def _named(kind: Kind, name: str) -> Any:
    module, _, member = name.rpartition(".")
    try:
        return getattr(import_module(f"coord.stores.{module}"), member)
    except ImportError as error:
        raise Unsupported(
            f"the driver for {kind.form} is not installed", hint=f"pip install 'coord[{kind.extra}]'"
        ) from error


def _known() -> str:
    *most, last = [kind.form for kind in KINDS.values()]
    return f"{', '.join(most)} or {last}"
