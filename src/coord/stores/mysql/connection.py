"""Connections to MySQL and MariaDB: the address of a store, the setup of a session, the driver's errors.

A session sends packets of several statements. The server runs them one after the other without waiting for
us, and stops at the first that fails. So a commit is one round trip, and a stopped process holds no lock,
unless a guard has just stopped its packet: then until it rolls back, or until MariaDB ends the idle session;
MySQL releases the lock only when the connection ends. To the server all text is bytes (`SET NAMES binary`).
Only quotes are doubled (`NO_BACKSLASH_ESCAPES`), so a literal costs one `replace`.
"""

import contextlib
import os
import re
import select
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import pymysql
from pymysql.constants import CLIENT, CR, ER

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
from coord.stores.migration import unavailable_error
from coord.stores.mysql.statements import Statements
from coord.stores.server.database import fails_by_tls
from coord.stores.urls import redact

if TYPE_CHECKING:
    Driver = pymysql.Connection[Any]
else:
    Driver = pymysql.Connection

PREFIX: Final = re.compile(r"[a-z][a-z0-9_]{0,47}")
PARAMETERS: Final = (
    "prefix", "ssl", "ssl_ca", "ssl_cert", "ssl_key", "unix_socket", "read_default_file"
)  # fmt: skip
SSL_MODES: Final = ("disabled", "required", "verify-ca", "verify-full")

TIMEOUTS: Final = {"connect_timeout": 5, "read_timeout": 30, "write_timeout": 30}
SETTINGS: Final = {
    "sql_mode": "'STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES,NO_ENGINE_SUBSTITUTION'",
    "time_zone": "'+00:00'",
    "innodb_lock_wait_timeout": "2",
    "group_concat_max_len": "16777216",
    "autocommit": "1",
}
IDLE_IN_TRANSACTION_S = 2
"""After this time MariaDB releases the locks of a stopped packet that we could not roll back."""
VARIABLES: Final = (
    "binlog_format", "innodb_doublewrite", "innodb_flush_log_at_trx_commit", "log_bin", "max_allowed_packet",
    "read_only", "sync_binlog", "version", "wsrep_on",
)  # fmt: skip

MARIADB, MYSQL = (10, 6), (8, 0)
"""The oldest supported servers."""

PACKET_ROOM: Final = 1024
GUARD: Final = ER.BAD_NULL_ERROR
"""The error of a packet that its guard stopped: see statements.py."""

NO_SUCH_TABLE: Final = ER.NO_SUCH_TABLE
RETRIED: Final = (ER.LOCK_DEADLOCK, ER.LOCK_WAIT_TIMEOUT)
_DAMAGED: Final = (NO_SUCH_TABLE, ER.BAD_FIELD_ERROR, ER.NOT_KEYFILE, ER.CRASHED_ON_USAGE, 1712, 1877)
_TOO_LARGE: Final = (ER.NET_PACKET_TOO_LARGE, ER.DATA_TOO_LONG, ER.TOO_BIG_ROWSIZE)
_LOST: Final = (CR.CR_SERVER_GONE_ERROR, CR.CR_SERVER_LOST, CR.CR_COMMANDS_OUT_OF_SYNC)
_AWAY: Final = (CR.CR_CONN_HOST_ERROR, ER.SERVER_SHUTDOWN, 1927)
"""The server cannot be reached, or ends the connection because it shuts down (1927: MariaDB)."""

Row = tuple[Any, ...]
Rows = tuple[Row, ...]


def code_of(error: BaseException) -> int:
    """Return the number of an error that the server sent, or 0 if the connection was lost."""
    code = error.args[0] if isinstance(error, pymysql.Error) and error.args else 0
    return code if isinstance(code, int) and code not in _LOST else 0


def translated(error: BaseException, *, maybe_committed: bool = False) -> CoordError:
    """Return the store error for a driver error; `maybe_committed` if the commit may have happened."""
    text = error.args[1] if isinstance(error, pymysql.Error) and len(error.args) > 1 else error
    message = f"MySQL: {' '.join(str(text).split())}"
    code = code_of(error)
    if maybe_committed:
        return Unknown(message)
    if code in _DAMAGED:  # a missing table or column, a damaged index
        return Corrupt(message, hint="restore the store from a copy; nothing was changed")
    if code in _TOO_LARGE:
        return LimitReached(message)
    away = code in (0, *_AWAY) and isinstance(error, pymysql.Error)  # otherwise a certificate file is missing
    if away and not fails_by_tls(error):
        return Unreachable(message)
    # A lock held too long, a deadlock, no space, no privilege, read-only …
    return unavailable_error(message)


class Connection(Driver):
    """The driver's connection, without loading all trusted certificates if none is checked."""

    def _create_ssl_ctx(self, sslp: Any) -> Any:
        if sslp:
            return super()._create_ssl_ctx(sslp)  # type: ignore[misc]
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context


class Address:
    """The address of a store: the arguments of the driver, and the names of the tables."""

    def __init__(self, url: str) -> None:
        self.redacted = redact(url)
        parts: SplitResult | None = None
        port = 0
        with contextlib.suppress(ValueError):
            parts = urlsplit(url)
            port = parts.port or 3306
        if parts is None or not port:  # not raised from the error, whose text may contain the password
            raise Invalid(f"{self.redacted!r} is not a valid MySQL url")
        self.database, self.user = unquote(parts.path.strip("/")), unquote(parts.username or "")
        if not self.database or "/" in self.database:
            raise Invalid(f"{self.redacted!r} has no database name", hint="use mysql://user@host/database")
        chosen = self._parameters(parts.query)
        prefix = chosen.pop("prefix", "coord")
        if not PREFIX.fullmatch(prefix):
            raise Invalid(
                f"{prefix!r} is not a valid prefix",
                hint="use 1 to 48 of a-z, 0-9 and _, starting with a letter",
            )
        self.sql = Statements(prefix)
        password = unquote(parts.password) if parts.password is not None else os.environ.get("MYSQL_PWD", "")
        self._driver: dict[str, Any] = {
            **TIMEOUTS,
            "host": parts.hostname or "localhost",
            "port": port,
            "user": self.user or None,
            "password": password.encode(),
            "database": self.database,
            "charset": "utf8mb4",
            "autocommit": None,
            "client_flag": CLIENT.MULTI_STATEMENTS | CLIENT.FOUND_ROWS,
            "program_name": "coord",
        }
        self._tls = {name: chosen.pop(name) for name in list(chosen) if name.startswith("ssl")}
        self._driver |= chosen

    def _parameters(self, query: str) -> dict[str, str]:
        pairs = parse_qsl(query, keep_blank_values=True)
        chosen = dict(pairs)
        if len(chosen) < len(pairs) or not chosen.keys() <= set(PARAMETERS):
            raise Invalid(
                f"{self.redacted!r} has unknown or repeated parameters",
                hint=f"use {', '.join(PARAMETERS)}",
            )
        if chosen.get("ssl", SSL_MODES[0]) not in SSL_MODES:
            raise Invalid(f"invalid ssl mode: {chosen['ssl']!r}", hint=f"use {', '.join(SSL_MODES)}")
        return chosen

    def _ssl(self) -> dict[str, Any]:
        """Return the TLS arguments of the driver; without any, TLS is used but not checked."""
        if not self._tls:
            return {}
        mode = self._tls.get("ssl", "verify-full")
        if mode == "disabled":
            return {"ssl_disabled": True}
        import ssl

        context = ssl.create_default_context(cafile=self._tls.get("ssl_ca"))
        context.check_hostname = mode == "verify-full"
        context.verify_mode = ssl.CERT_NONE if mode == "required" else ssl.CERT_REQUIRED
        if "ssl_cert" in self._tls:
            context.load_cert_chain(self._tls["ssl_cert"], self._tls.get("ssl_key"))
        return {"ssl": context}

    def connect(self) -> "Session":
        """Open a session with the settings that the statements need."""
        try:
            connection = Connection(**self._driver, **self._ssl())
        except (pymysql.Error, OSError) as error:
            raise translated(error) from error
        except RuntimeError as error:  # MySQL's default login without TLS
            raise Unavailable(
                f"MySQL: {error}", hint="pip install cryptography, or connect with ssl=required"
            ) from error
        session = Session(connection)
        try:
            self._set_up(session)
        except BaseException:
            session.close()
            raise
        return session

    def _set_up(self, session: "Session") -> None:
        settings = ", ".join(f"{name} = {value}" for name, value in SETTINGS.items())
        settings += (
            f" /*M!, idle_transaction_timeout = {IDLE_IN_TRANSACTION_S} */"  # MySQL reads it as a comment
        )
        names = ", ".join(f"'{name}'" for name in VARIABLES)
        *_, rows = session.ask(
            f"SET NAMES binary; SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; SET {settings}; "
            f"SHOW VARIABLES WHERE Variable_name IN ({names})".encode()
        )
        session.variables = {_text(name): _text(value) for name, value in rows}
        session.longest_packet = int(session.variables["max_allowed_packet"]) - PACKET_ROOM
        self._refuse_unfit(session)

    def _refuse_unfit(self, session: "Session") -> None:
        variables = session.variables
        version = variables["version"]
        oldest = MARIADB if "mariadb" in version.lower() else MYSQL
        numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
        if numbers < oldest:
            raise Unsupported(f"{self.redacted} is {version}", hint="use MariaDB 10.6, MySQL 8.0 or newer")
        if variables.get("wsrep_on") == "ON":
            raise Unsupported(
                f"{self.redacted} is a Galera cluster, where two nodes can accept commits at once",
                hint="use a single server, or a primary with replicas",
            )
        if variables.get("log_bin") == "ON" and variables.get("binlog_format") == "STATEMENT":
            raise Unsupported(
                f"{self.redacted} writes statements to its binlog", hint="set binlog_format = ROW"
            )
        if variables["read_only"] != "OFF":
            raise Unavailable(f"{self.redacted} is read-only (a replica?)", hint="connect to the primary")


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def is_durable(variables: dict[str, str]) -> bool:
    """Return whether an answered commit is on disk: the server recovers from its log and its binlog."""
    return (
        variables["innodb_flush_log_at_trx_commit"] == "1"
        and variables["innodb_doublewrite"] not in ("OFF", "0")
        and (variables["log_bin"] != "ON" or variables["sync_binlog"] == "1")
    )


class Session:
    """One connection. The caller holds the lock that guards it."""

    def __init__(self, connection: "pymysql.Connection[Any]") -> None:
        self._connection = connection
        self.variables: dict[str, str] = {}
        self.longest_packet = PACKET_ROOM * PACKET_ROOM

    @property
    def id(self) -> int:
        """The id of the connection on the server."""
        connection: Any = self._connection
        return int(connection.thread_id())

    def ask(self, packet: bytes, *, commits: int = 0) -> list[Rows]:
        """Return the answer of each statement; fewer if a guard stopped the packet: then nothing happened.

        `commits` is the number of statements in a packet whose last one is its commit.
        """
        if len(packet) > self.longest_packet:
            raise LimitReached(
                f"the packet has {len(packet)} bytes; the server accepts {self.longest_packet}",
                hint="raise max_allowed_packet",
            )
        answers: list[Rows] = []
        cursor: Any = self._connection.cursor()
        try:
            cursor.execute(packet)
            answers.append(cursor.fetchall())
            while cursor.nextset():
                answers.append(cursor.fetchall())
        except (pymysql.Error, OSError) as error:
            code = code_of(error)
            in_commit = commits > 0 and len(answers) >= commits - 1
            if not code:
                self.close()
            else:
                self._roll_back()
            if code == GUARD and not in_commit:
                return answers
            raise translated(error, maybe_committed=in_commit or (commits > 0 and not code)) from error
        except BaseException:  # interrupted while reading an answer
            self.close()
            raise
        return answers

    def _roll_back(self) -> None:
        """Release the locks; if that fails, the server releases them when the connection ends."""
        try:
            self._connection.rollback()
        except (pymysql.Error, OSError):
            self.close()

    def is_gone(self) -> bool:
        """Return whether the connection was closed here or by the server."""
        # The driver offers only a ping, which costs a round trip.
        socket: Any = self._connection._sock  # type: ignore[attr-defined]  # noqa: SLF001
        if socket is None:
            return True
        poll = select.poll()
        poll.register(socket.fileno(), select.POLLIN)
        if poll.poll(0):  # the server sends nothing unasked: it is closing the connection
            self.close()
            return True
        return False

    def close(self) -> None:
        with contextlib.suppress(pymysql.Error):  # closed already
            self._connection.close()
