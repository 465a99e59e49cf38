"""Opening a store by its url: the only place that knows all of them.

memory:                            this process only, gone with it
file:///path/to/folder             a folder of log entries on one machine
sqlite:///path/to/file.db          a SQLite file on one machine
postgresql://user@host/database    a Postgres server (`install` it first)
"""

from typing import Any
from urllib.parse import unquote, urlsplit

from coord.core.errors import Invalid, Unsupported
from coord.stores.database import Database
from coord.stores.url import shown

KNOWN = "memory:, file:///folder, sqlite:///file.db or postgresql://user@host/database"


def open_store(url: str) -> Database[Any]:
    """Open a store; memory, files and SQLite are made on first open, servers only by `install`."""
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
        open_store(url).close()


def _scheme(url: str) -> str:
    scheme = url.partition(":")[0]
    scheme = {"postgres": "postgresql"}.get(scheme, scheme)
    if ":" not in url or scheme not in ("memory", "file", "sqlite", "postgresql"):
        raise Invalid(f"{shown(url)!r} is not the url of a store", hint=f"use {KNOWN}")
    return scheme


def _path(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError as error:  # brackets that are no address
        raise Invalid(f"{shown(url)!r} names no path on this machine", hint=f"use {KNOWN}") from error
    path = unquote(parts.path)
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
