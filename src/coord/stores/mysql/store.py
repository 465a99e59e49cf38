"""The MySQL and MariaDB store (table-based): four tables of a database, any number of machines.

A commit is one round trip (see statements.py and connection.py). A waiter is woken by commits of its process
and polls for the commits of others, because these servers send no notifications.

    mysql://user:password@host:3306/database?prefix=coord    the table names start with `prefix`
"""

import contextlib
import secrets
import threading
from collections.abc import Iterable, Iterator, Sequence

from coord.core.errors import Conflict, Corrupt, Trimmed, Unavailable, Unsupported
from coord.core.ranges import Range
from coord.stores.checksums import Changes, Checksums, Totals, check_totals, damaged
from coord.stores.contract import (
    FORMAT,
    NO_READ_POINT,
    Commit,
    Entry,
    Head,
    Limits,
    Loaded,
    RangeReader,
    ReadPoint,
    Record,
    check_commit,
    check_format,
    in_order,
)
from coord.stores.database import Reconnected
from coord.stores.health import Check, clock_check
from coord.stores.local.clock import host_now_ms, uptime_ms
from coord.stores.migration import MIGRATED_URL, migrated_error, not_installed_error
from coord.stores.mysql.connection import (
    NO_SUCH_TABLE,
    RETRIED,
    Address,
    Row,
    Rows,
    Session,
    code_of,
    is_durable,
)
from coord.stores.mysql.statements import CHECK_ANSWER, TRIM_STATEMENTS, quoted
from coord.stores.mysql.views import renew_views, view_grants
from coord.stores.server.clock import ServerClock
from coord.stores.server.database import ServerDatabase
from coord.stores.server.listener import Subscription

COMMIT_BYTES_MAX = 16 * 1024 * 1024
PACKET_BYTES_MIN = 4 * 1024 * 1024
TRIES = 3
FORGET_AT_ONCE = 10_000
VERIFY_ROWS = 5_000
"""Up to this number of rows every opening checks that none has vanished; `coord doctor` does it always."""
POLL_S_MIN = 0.005
DURABLY = "set innodb_flush_log_at_trx_commit = 1, innodb_doublewrite = ON, and sync_binlog = 1"
DURABILITY = ("innodb_flush_log_at_trx_commit", "innodb_doublewrite", "log_bin", "sync_binlog")


def install(url: str) -> None:
    """Create the tables that are missing; safe to call again, even at the same time."""
    address = Address(url)
    sql = address.sql
    with contextlib.closing(address.connect()) as session:
        session.ask(sql.lock_installation)  # released when the session ends
        if not _read_metadata(address, session):
            for statement in sql.create:
                session.ask(statement)
            values = {"format": str(FORMAT), "store_id": secrets.token_hex(16), "epoch": "0"}
            rows = [sql.put_meta % (quoted(name), quoted(value)) for name, value in values.items()]
            session.ask(b"; ".join([b"START TRANSACTION", *rows, b"COMMIT"]), commits=len(rows) + 2)
        renew_views(session, sql.prefix, _checked_metadata(address, session))


def grants(url: str) -> list[str]:
    """Return the statements with which an administrator lets the url's user install and use a store."""
    address = Address(url)
    name, prefix = address.database.replace("`", "``"), address.sql.prefix
    user = "'{}'@'%'".format(address.user.replace("'", "''"))
    of_tables = {
        "meta": "SELECT, INSERT, UPDATE, DELETE",
        "log": "SELECT, INSERT, UPDATE",
        "record": "SELECT, INSERT, UPDATE, DELETE",
        "entry": "SELECT, INSERT, DELETE",
    }
    return [
        f"CREATE DATABASE IF NOT EXISTS `{name}`",
        *(
            f"GRANT CREATE, {rights} ON `{name}`.`{prefix}_{table}` TO {user}"
            for table, rights in of_tables.items()
        ),
        *view_grants(name, prefix, user),
    ]


def _read_metadata(address: Address, session: Session) -> dict[str, str]:
    """Return the metadata of the store; empty if there is no store."""
    try:
        ((*rows,),) = session.ask(address.sql.meta)
    except Corrupt as error:
        if code_of(error.__cause__ or error) == NO_SUCH_TABLE:
            return {}
        raise
    return {name.decode(): value.decode() for name, value in rows}


def _checked_metadata(address: Address, session: Session) -> dict[str, str]:
    """Return the metadata of the store; refuse a missing store and another format."""
    metadata = _read_metadata(address, session)
    if not metadata:
        raise not_installed_error(address.redacted)
    check_format(metadata.get("format"), address.redacted)
    return metadata


class MysqlStore(RangeReader):
    """The log of one tenant in the tables."""

    def __init__(self, database: "MysqlDatabase", tenant: str) -> None:
        self._database = database
        self._sql = database.address.sql
        self._log = database.open_log(tenant)
        self._checksums = Checksums(
            database.store_id, tenant, f"tenant {tenant} in {database.address.redacted}"
        )
        self._known_on = 0
        self._durable_to = 0
        self._unopposed = True
        self.seen = Head(0, 0)
        _, _, ((_, counted, *_),) = self._read(self._sql.counted(self._log, VERIFY_ROWS + 1))
        if counted <= VERIFY_ROWS:
            self.verify()

    def verify(self) -> None:
        """Check that exactly the records that the log has counted are there, the index has them, and the
        newest entry exists.
        """
        head, _, ((_, _, sums, *_),) = self._read(self._sql.totals(self._log, self._checksums.seed_text))
        *totals, in_index, newest = map(int, sums.split())
        where, kept, found = self._checksums.where, Totals(*totals[:4]), Totals(*totals[4:])
        check_totals(where, kept, found)
        check_totals(where, kept, found._replace(indexed=in_index))
        if newest != head:
            raise damaged(f"the log of {where} ends at {head}, but its newest entry is {newest}")

    @property
    def limits(self) -> Limits:
        return self._database.limits

    def _read(self, statement: bytes) -> tuple[int, int, list[Row]]:
        """Return head, floor and rows of one snapshot; record the head."""
        durable_to = self._durable_to
        asked = uptime_ms()
        (rows,) = self._database.ask(statement)
        of_log = [row for row in rows if row[0] is None]
        if not of_log:
            raise Corrupt(f"log {self._log} is missing", hint="restore the store from a copy")
        _, head, rest, *_ = of_log[0]
        clock, at, floor = map(int, rest.split())
        self._database.clock.observe(clock, asked)
        if head < durable_to:
            raise Corrupt(
                f"the log went back from {durable_to} to {head}",
                hint="check whether an old copy was restored",
            )
        self._see(Head(head, at))
        return head, floor, [row for row in rows if row[0] is not None]

    def _see(self, head: Head) -> None:
        if head.offset > self.seen.offset:
            self.seen = head

    def _make_durable(self, head: int) -> None:
        """Make sure that entries up to `head` are on disk: others' commits are visible a little earlier."""
        if head > self._durable_to:
            if self.limits.durable:
                self._database.ask(self._sql.make_durable % self._log)
            self._durable_to = max(self._durable_to, head)

    def load(self, keys: Iterable[str], ranges: Sequence[Range] = (), *, allow_stale: bool = False) -> Loaded:
        wanted, session, checksums = list(keys), self._database.sessions, self._checksums
        if session != self._known_on:  # a server that failed may have reused versions
            checksums.forget()
            self._known_on = session
        checksums.limit_memory()
        head, floor, rows = self._read(self._sql.load(self._log, wanted, ranges))
        checked = checksums.checked_all(
            (_text(key), version, checksum, value, _text(index_key))
            for key, version, value, index_key, checksum, _ in rows
        )
        parts: list[list[Record]] = [[], *([] for _ in ranges)]
        for record, row in zip(checked, rows, strict=True):
            parts[row[-1]].append(record)
        found = {record.key: record for record in parts[0]}
        records = {key: found.get(key) or checksums.absent(key, floor) for key in wanted}
        scanned = [in_order(part, range_.by) for part, range_ in zip(parts[1:], ranges, strict=True)]
        return Loaded(records, ReadPoint(head, floor, session), scanned)

    def commit(self, commit: Commit) -> int:
        check_commit(commit, self.limits)
        if not commit.writes:
            head = self._read_versions(commit.expected_versions).offset
            self._make_durable(head)
            return head
        known, changes = self._prepared(commit, commit.read_point)
        unopposed = self._unopposed
        while True:
            packet, statements = self._sql.commit(
                self._log, known, commit, changes, self._checksums, unopposed=unopposed
            )
            asked = uptime_ms()
            try:
                answers = self._database.ask(packet, commits=statements, on=known.connection)
            except Reconnected:  # nothing was sent, and the server may have lost what we read before
                self._checksums.forget()
                known, changes = self._prepared(commit, NO_READ_POINT)
                continue
            ((answer,),) = answers[CHECK_ANSWER]
            clock, new_offset, floor, *rest = answer.split(b" ")
            self._database.clock.observe(int(clock), asked)
            if len(answers) == statements:
                break
            if not new_offset:
                raise Corrupt(f"log {self._log} is missing", hint="restore the store from a copy")
            sealed, changed = rest
            if int(sealed):
                raise migrated_error(self._database.current_metadata().get(MIGRATED_URL, "another store"))
            if changed:
                raise Conflict(bytes.fromhex(key.decode()).decode() for key in changed.split(b","))
            if int(floor) != known.floor:  # it has risen, and with it the version of absent keys
                known, changes = self._prepared(commit, NO_READ_POINT)
            elif not unopposed:
                raise Unavailable("MySQL: the server aborted a commit although every check passed")
            unopposed = self._unopposed = False
        offset = int(new_offset)
        self._unopposed = offset == known.offset + 1
        self._checksums.committed(commit, offset, changes)
        self._see(Head(offset, commit.at))
        self._durable_to = max(self._durable_to, offset)
        self._database.notify_listener(self._log, offset)
        return offset

    def _prepared(self, commit: Commit, known: ReadPoint) -> tuple[ReadPoint, Changes]:
        """Return a read point at which all expected versions were current, and what the commit changes."""
        expected_versions = commit.expected_versions
        changes = self._checksums.changes(commit)
        if changes is not None:
            if max(expected_versions.values(), default=0) > known.offset:  # some versions were read later
                known = self._read_versions(expected_versions)
            if known.connection == self._known_on or not changes.digests:
                return known, changes
        found = self.load(expected_versions)
        changed = [key for key, record in found.items() if record.version != expected_versions[key]]
        if changed:
            raise Conflict(changed)
        changes = self._checksums.changes(commit)
        if changes is None:
            raise damaged(f"{self._checksums.where} answers two questions about one record differently")
        return found.read_point, changes

    def _read_versions(self, expected_versions: dict[str, int]) -> ReadPoint:
        """Return the newest read point if every expected version is current there, else raise Conflict."""
        session = self._database.sessions
        head, floor, rows = self._read(self._sql.versions(self._log, [*expected_versions]))
        found = {key.decode(): version for key, version, *_ in rows}
        changed = [key for key, version in expected_versions.items() if found.get(key, floor) != version]
        if changed:
            raise Conflict(changed)
        return ReadPoint(head, floor, session)

    def tail(self, after: int, limit: int) -> list[Entry]:
        head, floor, rows = self._read(self._sql.tail(self._log, after, limit))
        if after + 1 < floor:
            raise Trimmed(floor)
        self._make_durable(head)
        page = sorted((offset, checksum, at, id_, events) for offset, at, id_, events, checksum, _ in rows)
        return self._checksums.checked_page(page, after, limit, head, floor)

    def wait(self, after: int, timeout: float) -> bool:
        return self.seen.offset > after or self._database.wait(self._log, after, timeout)

    def trim(self, before: int) -> None:
        ask, sql, log = self._database.ask, self._sql, self._log
        packet = sql.trim(log, before, self._checksums.seed_text)
        *_, ((floor,),), _ = ask(packet, commits=TRIM_STATEMENTS)
        # Entries below the floor are invisible; there may be millions, so they are deleted in portions.
        portion = forgotten = FORGET_AT_ONCE
        while forgotten == portion:
            _, ((forgotten,),) = ask(sql.forget % (log, floor, portion), commits=2)

    def now(self) -> int:
        return self._database.clock.now()

    def close(self) -> None:
        """Do nothing: the database owns the connections."""


def _text(column: bytes) -> str:
    """Return a key; bytes that are not UTF-8 become text that no checksum fits."""
    return column.decode(errors="surrogateescape")


class MysqlDatabase(ServerDatabase[MysqlStore]):
    """The tables with all tenants; created by `install`."""

    def __init__(self, url: str) -> None:
        super().__init__(url, store_id="")
        self.address = Address(url)
        self.clock = ServerClock()
        self.limits = Limits(commit_bytes=COMMIT_BYTES_MAX, durable=True, shared=True)
        self.sessions = 0
        self._begin()
        with self._session_lock:
            self._connected()

    def _begin(self) -> None:
        """Start without sessions, in this process."""
        super()._begin()
        self._session_lock = threading.RLock()
        self._session: Session | None = None

    def _open_log(self, tenant: str) -> MysqlStore:
        return MysqlStore(self, tenant)

    def open_log(self, tenant: str) -> int:
        """Return the number of a tenant's log; create the log if it is missing."""
        find = self.address.sql.find_log % quoted(tenant)
        (rows,) = self.ask(find)
        if not rows:
            self.ask(self.address.sql.open_log(tenant), commits=5)
            (rows,) = self.ask(find)
        return int(rows[0][0])

    def ask(self, packet: bytes, *, commits: int = 0, on: int | None = None) -> list[Rows]:
        """Return the answers of a packet that is one transaction (see `Session.ask`).

        With `on`, only in that session: a crash may have undone what another session read.
        """
        self._in_this_process()
        for tries in range(1, TRIES + 1):
            with self._session_lock:
                session = self._connected()
                if on not in (None, self.sessions):
                    raise Reconnected
                try:
                    return session.ask(packet, commits=commits)
                except Unavailable as error:  # rolled back: nothing happened
                    if tries == TRIES or code_of(error.__cause__ or error) not in RETRIED:
                        raise
        raise AssertionError("the last attempt returned or raised")

    def _connected(self) -> Session:
        """Return the session; open a new one if it was lost, because nothing has been sent yet."""
        if self.closed:
            raise Unavailable("the database is closed")
        if self._session is None or self._session.is_gone():
            self._session = self._connect()
            self.sessions += 1
        return self._session

    def _connect(self) -> Session:
        session = self.address.connect()
        try:
            meta = _checked_metadata(self.address, session)
            packet = int(session.variables["max_allowed_packet"])
            if packet < PACKET_BYTES_MIN:
                raise Unsupported(
                    f"{self.address.redacted} takes packets of {packet} bytes",
                    hint="max_allowed_packet = 16M",
                )
            if self.store_id not in ("", meta["store_id"]):
                raise Corrupt(f"{self.address.redacted} is another store now", hint="open it again")
        except BaseException:
            session.close()
            raise
        self.store_id, self.epoch, self.metadata = meta["store_id"], int(meta["epoch"]), meta
        # Every quote in a packet is doubled, and it contains each key twice.
        commit_bytes = min(packet // 4, COMMIT_BYTES_MAX)
        self.limits = Limits(commit_bytes, durable=is_durable(session.variables), shared=True)
        return session

    def current_metadata(self) -> dict[str, str]:
        """Return the current metadata of the store."""
        self._in_this_process()
        with self._session_lock:
            return _checked_metadata(self.address, self._connected())

    def notify_listener(self, log: int, offset: int) -> None:
        """Wake the waiters in this process."""
        self._listener.learn({log: offset})

    @contextlib.contextmanager
    def _subscribe(self) -> Iterator[Subscription]:
        """Poll often while logs grow, and less and less often otherwise."""
        interval, known = POLL_S_MIN, dict[int, int]()

        def listen(logs: frozenset[int], seconds: float) -> dict[int, int]:
            nonlocal interval, known
            if logs <= known.keys():
                self._listener.rest(min(interval, seconds))
            (rows,) = session.ask(self.address.sql.heads % b",".join(b"%d" % log for log in logs))
            heads: dict[int, int] = dict(rows)
            interval = min(2 * interval, seconds) if heads == known else POLL_S_MIN
            known = heads
            return heads

        with contextlib.closing(self._connect()) as session:
            yield listen

    def checks(self) -> list[Check]:
        self._in_this_process()
        with self._session_lock:
            session = self._connected()
            asked = host_now_ms()
            (((server_ms,),),) = session.ask(self.address.sql.clock)
            answered = host_now_ms()
        variables = session.variables
        return [
            Check("version", well=True, text=variables["version"]),
            Check(
                "durability",
                self.limits.durable,
                ", ".join(f"{name} = {variables[name]}" for name in DURABILITY if name in variables),
                "" if self.limits.durable else DURABLY,
            ),
            clock_check(server_ms, asked, answered),
        ]

    def close(self) -> None:
        super().close()
        with self._session_lock:
            if self._session is not None:
                self._session.close()
