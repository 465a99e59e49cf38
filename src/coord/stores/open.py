"""Opening a store by its url: the only place that knows all of them.

memory:                            this process only, gone with it
file:///path/to/folder             a folder of log entries on one machine
sqlite:///path/to/file.db          a SQLite file on one machine
postgresql://user@host/database    a Postgres server (`install` it first)
"""

from typing import TYPE_CHECKING, Any

from coord.core.errors import Invalid, Unsupported
from coord.stores.database import Database
from coord.stores.moved import check_settled
from coord.stores.url import is_plain, shown, unquoted

if TYPE_CHECKING:
    from coord.stores.moving import Mover

KNOWN = "memory:, file:///folder, sqlite:///file.db or postgresql://user@host/database"


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
    scheme = _scheme(database.url)
    if scheme == "memory":
        raise Invalid("a store in memory cannot be moved", hint="it ends with its process")
    opened: Any = database
    if scheme == "file":
        from coord.stores.file_moving import FilesMover

        return FilesMover(opened.layer, opened.root)
    if scheme == "sqlite":
        from coord.stores.sqlite_moving import SqliteMover

        return SqliteMover(opened)
    from coord.stores.postgres_moving import PostgresMover

    return PostgresMover(opened)


def _open(url: str) -> Database[Any]:
    scheme = _scheme(url)
    if scheme == "memory":
        from coord.stores.memory import MemoryDatabase

        return MemoryDatabase(url, store_id="memory")
    if scheme == "file":
        from coord.stores.files import FilesDatabase

        return FilesDatabase(url, _path(url))
    if scheme == "sqlite":
        from coord.stores.sqlite import SqliteDatabase

        return SqliteDatabase(url, _path(url))
    return _postgres().PostgresDatabase(url)


def install(url: str) -> None:
    """Prepare a server for `open_store`; does nothing where it is prepared already."""
    if _scheme(url) == "postgresql":
        _postgres().install(url)
    else:
        _open(url).close()


def _scheme(url: str) -> str:
    scheme = url.partition(":")[0]
    scheme = {"postgres": "postgresql"}.get(scheme, scheme)
    if ":" not in url or scheme not in ("memory", "file", "sqlite", "postgresql"):
        raise Invalid(f"{shown(url)!r} is not the url of a store", hint=f"use {KNOWN}")
    return scheme


def _path(url: str) -> str:
    rest = url.partition(":")[2]
    if rest.startswith("///") and is_plain(rest):
        return "/" + rest.lstrip("/")
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
    except ValueError as error:  # brackets that are no address
        raise Invalid(f"{shown(url)!r} names no path on this machine", hint=f"use {KNOWN}") from error
    path = unquoted(parts.path)
    if parts.netloc not in ("", "localhost") or not path.strip("/") or "\0" in path or parts.query:
        raise Invalid(f"{shown(url)!r} names no path on this machine", hint=f"use {KNOWN}")
    return "/" + path.lstrip("/") if path.startswith("/") else path


def _postgres() -> Any:
    try:
        from coord.stores import postgres
    except ImportError as error:
        raise Unsupported(
            "the Postgres driver is not installed", hint="pip install 'coord[postgres]'"
        ) from error
    return postgres
