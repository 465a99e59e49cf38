"""Connections to a Postgres server for both layouts: urls, settings, errors, installation."""

import contextlib
import re
import secrets
import select
from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from coord.core.errors import (
    CoordError,
    Corrupt,
    Invalid,
    LimitReached,
    Unavailable,
    Unknown,
    Unreachable,
    Unsupported,
)
from coord.stores.contract import FORMAT, check_format
from coord.stores.migration import not_installed_error, unavailable_error
from coord.stores.postgres.arrays import ArrayDumper, Bigints, Blobs, Texts
from coord.stores.postgres.table_statements import LIBPQ, SESSION, Statements, TableStatements
from coord.stores.urls import redact, without_parameter

SCHEMES = {"tables": "postgresql", "log": "postgresql+log"}
LAYOUT_NAMES = {"tables": "table-based", "log": "log-structured"}
SERVER_VERSION = 130000
_TLS_FAILURE = re.compile(r"certificate|does not support SSL|private key")
"""The words of libpq about TLS that cannot succeed, in English unless the program has set a locale."""
SCHEMA = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,47}")

Row = tuple[Any, ...]
Connection = psycopg.Connection[Row]


def translated(error: psycopg.Error, *, committing: bool = False) -> CoordError:
    """Return the store error for a driver error."""
    message = f"Postgres: {' '.join(str(error).split())}"
    state, severity = error.sqlstate or "", error.diag.severity_nonlocalized
    if severity in ("FATAL", "PANIC") or (not state and not isinstance(error, psycopg.DataError)):
        # The session ended: a restart, a terminated backend, the network. After FATAL the commit probably
        # did not happen, but checking the log costs little, and a guess may be wrong.
        return Unknown(message) if committing else Unreachable(message)
    # The answer was ERROR: the statement, which is its whole transaction, was rolled back.
    if not state or state.startswith("22"):  # a data exception: not Unicode, or a NUL
        return Invalid(message)
    if state.startswith("54"):  # a limit of the program
        return LimitReached(message)
    if state in ("XX001", "XX002", "P0002", "42P01", "42703", "42883", "3F000"):
        # A damaged page or index; a missing log, table, column, function or schema.
        return Corrupt(message, hint="restore the store from a copy; nothing was changed")
    # Lock or statement timeout, deadlock, serialization failure, full disk, no privilege, read-only, migrated
    return unavailable_error(message)


@contextlib.contextmanager
def using(connection: Connection, *, committing: bool = False) -> Iterator[None]:
    """Translate errors, and close the connection after any: the next call opens a new one."""
    try:
        yield
    except BaseException as error:
        connection.close()
        if isinstance(error, psycopg.Error):
            raise translated(error, committing=committing) from error
        if isinstance(error, UnicodeEncodeError):
            raise Invalid(f"{error.object!r} is not valid Unicode") from error
        raise


class Address:
    """The address and layout of a store: the arguments of libpq, and the schema."""

    def __init__(self, url: str, statements: type[Statements]) -> None:
        self.redacted = redact(url)
        self.libpq: dict[str, Any] = {}
        with contextlib.suppress(ValueError, psycopg.Error):
            plain = "postgresql:" + url.partition(":")[2]  # without "+log", which libpq does not know
            rest, schemas = without_parameter(plain, "schema")
            self.libpq = {**LIBPQ, **conninfo_to_dict(rest), "client_encoding": "UTF8"}
        if not self.libpq:  # not raised from the driver's error, whose text contains the password
            raise Invalid(f"{self.redacted!r} is not a valid Postgres url")
        self.schema = ",".join(schemas) if schemas else "coord"
        if not SCHEMA.fullmatch(self.schema):
            raise Invalid(
                f"{self.schema!r} is not a valid schema",
                hint="use 1 to 48 of a-z, 0-9 and _, not starting with pg_",
            )
        self.sql = statements(self.schema)

    def connect(self) -> Connection:
        """Open a connection with the settings that the statements need."""
        connection = self._log_in()
        with using(connection):
            self._set_up(connection)
        return connection

    def _log_in(self) -> Connection:
        """Return a connection, or say whether waiting may help; libpq gives no code, and translates words."""
        for again in (True, False):
            try:
                return psycopg.connect(autocommit=True, prepare_threshold=0, **self.libpq)
            except psycopg.Error as error:
                lost = translated(error)
                if not self._server_answers(error):
                    raise lost from error
                # The server answers now: it has refused us, unless it came back after this attempt.
                asked_for_password = error.pgconn and (
                    error.pgconn.used_password or error.pgconn.needs_password
                )
                if asked_for_password or not again:
                    raise Unavailable(lost.message) from error
        raise AssertionError("the last attempt returns or raises")

    def _server_answers(self, error: psycopg.Error) -> bool:
        """Whether the server takes connections, though not this one; where TLS failed, too."""
        if isinstance(error, psycopg.errors.ConnectionTimeout):
            return False
        if _TLS_FAILURE.search(str(error)):
            return True
        asked = make_conninfo(**self.libpq).encode()
        return psycopg.pq.PGconn.ping(asked) not in (psycopg.pq.Ping.REJECT, psycopg.pq.Ping.NO_RESPONSE)

    def _set_up(self, connection: Connection) -> None:
        version = connection.info.server_version
        if version < SERVER_VERSION:
            raise Unsupported(
                f"{self.redacted} is Postgres {version // 10000}", hint="use Postgres 13 or newer"
            )
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise Unsupported(
                f"{self.redacted} stores text as {encoding}", hint="create the database with encoding UTF8"
            )
        for array in (Texts, Blobs, Bigints):
            connection.adapters.register_dumper(array, ArrayDumper)
        connection.execute(self.sql.set_up, (Texts(SESSION), Texts(SESSION.values())))


def install_at(address: Address) -> None:
    """Create the schema, tables and functions that are missing; safe to call again, even at the same time."""
    sql = address.sql
    with contextlib.closing(address.connect()) as connection, using(connection), connection.transaction():
        connection.execute(sql.lock_installation)
        has_schema, has_tables = connection.execute(sql.installed).fetchall()[0]
        if not has_tables:
            if not has_schema:
                connection.execute(sql.create_schema)
            connection.execute(sql.create, prepare=False)
            values = {
                "format": str(FORMAT),
                "store_id": secrets.token_hex(16),
                "epoch": "0",
                "layout": sql.layout,
            }
            connection.cursor().executemany(sql.put_meta, list(values.items()))
        meta_of(address, connection)  # before anything is created in a store of another layout or format
        views_wanted, views = sql.views()
        if connection.execute(views_wanted).fetchall()[0][0]:
            connection.execute(views, prepare=False)


def meta_of(address: Address, connection: Connection) -> dict[str, str]:
    """Return the metadata of the store; refuse a missing store, another format and another layout."""
    try:
        meta: dict[str, str] = dict(connection.execute(address.sql.meta).fetchall())
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as error:
        raise not_installed_error(address.redacted) from error
    check_format(meta.get("format"), address.redacted)
    _check_layout(address, meta.get("layout", TableStatements.layout))
    return meta


def _check_layout(address: Address, layout: str) -> None:
    wanted = address.sql.layout
    if layout != wanted:
        raise Invalid(
            f"{address.redacted} is {LAYOUT_NAMES.get(layout, layout)}, not {LAYOUT_NAMES[wanted]}",
            hint=f"open it as {SCHEMES.get(layout, layout)}://…, or coord migrate to another schema",
        )


def is_gone(connection: Connection) -> bool:
    """Return whether the server closed the connection; if so, close it here too."""
    socket = select.poll()
    with contextlib.suppress(psycopg.Error):
        socket.register(connection.fileno(), select.POLLIN)
        while socket.poll(0):
            connection.pgconn.consume_input()
        return False
    connection.close()
    return True
