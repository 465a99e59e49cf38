"""What all databases share: one log per tenant, a few committer threads, and a courteous turn."""

import re
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Generic, TypeVar

from coord.core.errors import Invalid, Unavailable
from coord.stores.contract import Store
from coord.stores.health import Check
from coord.stores.migrated import check_lives_here

COMMITTERS = 4
EPOCH_BITS = 40
TENANT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@+=~-]{0,127}")

AnyStore = TypeVar("AnyStore", bound=Store)


class Reconnected(Exception):
    """The connection is another than the one relied on; nothing was sent."""


class Committers:
    """A few threads that run batches, and how much is waiting for one of them."""

    def __init__(self) -> None:
        from concurrent.futures import ThreadPoolExecutor  # slow to import, and a plain call needs none

        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(COMMITTERS, thread_name_prefix="coord-commit")
        self.waiting = 0

    def submit(self, work: Callable[[], None]) -> None:
        """Run the work as soon as a thread is free."""
        with self._lock:
            try:
                self._threads.submit(self._run, work)
            except RuntimeError as error:
                raise Unavailable("the database is closed") from error
            self.waiting += 1

    def _run(self, work: Callable[[], None]) -> None:
        with self._lock:
            self.waiting -= 1
        work()

    def close(self) -> None:
        """Finish what was submitted and end the threads."""
        self._threads.shutdown(wait=True)


class Database(Generic[AnyStore]):
    """An open store url: gives each tenant its log, and owns connections and threads."""

    def __init__(self, url: str, store_id: str, epoch: int = 0) -> None:
        self.url = url
        self.store_id = store_id
        self.epoch = epoch
        self.notes: dict[str, str] = {}
        self.read_notes: Callable[[], dict[str, str]] | None = None
        self.closed = False
        self._lock = threading.RLock()
        self._logs: dict[str, AnyStore] = {}
        self._committers: Committers | None = None

    @property
    def base(self) -> int:
        """The offset that a new log begins after: those of a later epoch are above all of an earlier one."""
        return self.epoch << EPOCH_BITS

    def log(self, tenant: str) -> AnyStore:
        """Return the tenant's store; the same object each time."""
        if not TENANT.fullmatch(tenant):
            raise Invalid(f"{tenant!r} is not a tenant", hint="1 to 128 letters, digits and . _ @ + = ~ -")
        with self._lock:
            if self.closed:
                raise Unavailable("the database is closed")
            if tenant not in self._logs:
                self._logs[tenant] = self._log_of(tenant)
            return self._logs[tenant]

    def _log_of(self, tenant: str) -> AnyStore:
        check_lives_here(tenant, self.newest_notes(again=bool(self._logs)))
        return self._open_log(tenant)

    def newest_notes(self, *, again: bool) -> dict[str, str]:
        """Return what the store says of itself, read `again` where it was opened long ago, as by a hub."""
        if again and self.read_notes is not None:
            self.notes = self.read_notes()
        return self.notes

    def _open_log(self, tenant: str) -> AnyStore:
        raise AssertionError("each database opens its own kind of log")

    @property
    def committers(self) -> Committers:
        """The threads that run commits for callers who do not wait in their own thread."""
        with self._lock:
            if self.closed:
                raise Unavailable("the database is closed")
            if self._committers is None:
                self._committers = Committers()
            return self._committers

    def turn(self) -> AbstractContextManager[None]:
        """Wait politely for other processes; correctness never rests on it."""
        return nullcontext()

    def checks(self) -> list[Check]:
        """Look at the place this store lives in: version, durability, clock."""
        return []

    def close(self) -> None:
        """Close every log and thread; safe to call twice."""
        with self._lock:
            self.closed = True
            logs, self._logs = list(self._logs.values()), {}
            committers, self._committers = self._committers, None
        if committers is not None:
            committers.close()
        for log in logs:
            log.close()
