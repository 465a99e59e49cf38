"""Opening a store by its url: the only place that knows all of them.

memory:                            this process only, gone with it
file:///path/to/folder             a folder of log entries on one machine
sqlite:///path/to/file.db          a SQLite file on one machine
postgresql://user@host/database    a Postgres server (`install` it first)
nats://user@host/name              a NATS server with JetStream (`install` it first)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from coord.core.errors import Invalid, Unsupported
from coord.stores.database import Database
from coord.stores.moved import check_settled
from coord.stores.url import is_plain, scheme_of, shown, unquoted

if TYPE_CHECKING:
    from coord.stores.moving import Mover


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


KINDS = {
    "memory": Kind("memory:", "memory.MemoryDatabase"),
    "file": Kind("file:///folder", "files.FilesDatabase", "file_moving.FilesMover", local=True),
    "sqlite": Kind("sqlite:///file.db", "sqlite.SqliteDatabase", "sqlite_moving.SqliteMover", local=True),
    "postgresql": Kind(
        "postgresql://user@host/database",
        "postgres.PostgresDatabase",
        "postgres_moving.PostgresMover",
        extra="postgres",
    ),
    "nats": Kind("nats://user@host/name", "nats.NatsDatabase", "nats_moving.NatsMover"),
}


def open_store(url: str, *, moving: bool = False) -> Database[Any]:
    """Open a store; memory, files and SQLite are made on first open, servers only by `install`.

    One that was moved, or is a copy not yet complete, opens only for who moves it.
    """
    database = _open(url)
    if not moving:
        try:
            check_settled(shown(url), database.notes)
        except BaseException:
            database.close()
            raise
    return database


def mover(database: Database[Any]) -> "Mover":
    """Return what it takes to move a store."""
    kind = kind_of(database.url)
    if not kind.mover:
        raise Invalid("a store in memory cannot be moved", hint="it ends with its process")
    made: Mover = _named(kind, kind.mover)(database)
    return made


def install(url: str) -> None:
    """Prepare a server for `open_store`; does nothing where it is prepared already."""
    kind = kind_of(url)
    if kind.mover and not kind.local:
        _named(kind, kind.database.partition(".")[0] + ".install")(url)
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
    module, _, member = name.partition(".")
    try:
        return getattr(import_module(f"coord.stores.{module}"), member)
    except ImportError as error:
        raise Unsupported(
            f"the driver for {kind.form} is not installed", hint=f"pip install 'coord[{kind.extra}]'"
        ) from error


def _known() -> str:
    *most, last = [kind.form for kind in KINDS.values()]
    return f"{', '.join(most)} or {last}"
