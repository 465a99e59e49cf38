"""An open store: one log per tenant, the committer threads, and the routing to tenants' own stores."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Generic, Protocol, TypeVar

from coord.core.errors import Corrupt, NotFound, Unavailable
from coord.stores.contract import Store
from coord.stores.health import Check
from coord.stores.tenants import check_in_shared_store, check_tenant, store_id_key, url_of
from coord.stores.urls import redact

COMMITTERS = 4
EPOCH_BITS = 40


class Marks(Protocol):
    """The newest offsets that this machine has seen, outside of the store (`host/high_water.py`)."""

    def check(self, store_id: str, epoch: int, tenant: str, offset: int) -> None:
        """Refuse a log that ends before an offset that was seen."""

    def raise_to(self, store_id: str, epoch: int, offsets: Mapping[str, int]) -> None:
        """Remember the newest offsets."""


AnyStore = TypeVar("AnyStore", bound=Store)


class Reconnected(Exception):
    """The connection is not the one that the caller relied on; nothing was sent."""


class Committers:
    """A few threads that run batches, and the number of batches that wait for a thread."""

    def __init__(self) -> None:
        from concurrent.futures import ThreadPoolExecutor  # slow to import; a plain call needs no threads

        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(COMMITTERS, thread_name_prefix="coord-commit")
        self.waiting = 0

    def submit(self, work: Callable[[], None]) -> None:
        """Run `work` as soon as a thread is free."""
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
        """Finish all submitted work and end the threads."""
        self._threads.shutdown(wait=True)


class Database(ABC, Generic[AnyStore]):
    """An open store url: it returns the log of each tenant and owns connections and threads."""

    is_remote = False
    """Whether a hub runs the commands, and not an engine of this process."""
    repository_id = ""
    """The id of the repository that a hub serves; empty for a store."""

    def __init__(self, url: str, store_id: str, epoch: int = 0) -> None:
        self.url = url
        self.store_id = store_id
        self.epoch = epoch
        self.metadata: dict[str, str] = {}
        self.read_metadata: Callable[[], dict[str, str]] | None = None
        self.marks: Marks | None = None
        self.notice = ""
        """What a person should know about the way in which it was opened; empty if nothing."""
        self.closed = False
        self._lock = threading.RLock()
        self._logs: dict[str, AnyStore] = {}
        self._committers: Committers | None = None

    @property
    def base(self) -> int:
        """The offset before the first entry of a new log; a later epoch has higher offsets."""
        return self.epoch << EPOCH_BITS

    def log(self, tenant: str) -> AnyStore:
        """Return the store of a tenant; the same object each time."""
        check_tenant(tenant)
        with self._lock:
            if self.closed:
                raise Unavailable("the database is closed")
            if tenant not in self._logs:
                log = self._log_of(tenant)
                self._check_mark(tenant, log)
                self._logs[tenant] = log
            return self._logs[tenant]

    def _check_mark(self, tenant: str, log: AnyStore) -> None:
        """Refuse a log that went back since this machine saw it."""
        if self.marks is None:
            return
        try:
            self.marks.check(self.store_id, self.epoch, tenant, log.seen.offset)
        except Corrupt:
            log.load(())  # some stores learn their head only now
            self.marks.check(self.store_id, self.epoch, tenant, log.seen.offset)

    def _log_of(self, tenant: str) -> AnyStore:
        check_in_shared_store(tenant, self.newest_metadata(reread=bool(self._logs)))
        return self._open_log(tenant)

    def newest_metadata(self, *, reread: bool) -> dict[str, str]:
        """Return the store's metadata; `reread` asks the store, which a hub may have opened long ago."""
        if reread and self.read_metadata is not None:
            self.metadata = self.read_metadata()
        return self.metadata

    @abstractmethod
    def _open_log(self, tenant: str) -> AnyStore:
        """Open the log of a tenant."""

    @property
    def committers(self) -> Committers:
        """The threads that run commits for callers that do not block their own thread."""
        with self._lock:
            if self.closed:
                raise Unavailable("the database is closed")
            if self._committers is None:
                self._committers = Committers()
            return self._committers

    def fair_lock(self) -> AbstractContextManager[None]:
        """Take turns with other processes; correctness never depends on it."""
        return nullcontext()

    def checks(self) -> list[Check]:
        """Check the version, durability, location and clock of the store."""
        return []

    def install_views(self) -> None:
        """Create SQL views that a store gets only if somebody asks for them; most stores have none."""
        return

    def close(self) -> None:
        """Close every log and thread; a second call does nothing."""
        with self._lock:
            self.closed = True
            logs, self._logs = self._logs, {}
            committers, self._committers = self._committers, None
        if committers is not None:
            committers.close()
        if self.marks is not None and logs:
            self.marks.raise_to(
                self.store_id, self.epoch, {tenant: log.seen.offset for tenant, log in logs.items()}
            )
        for log in logs.values():
            log.close()


class RoutedDatabase(Database[Any]):
    """A shared store and the stores of single tenants; each is opened on first use."""

    def __init__(
        self, shared: Database[Any], urls: Mapping[str, str], open_url: Callable[[str], Database[Any]]
    ) -> None:
        super().__init__(shared.url, shared.store_id, shared.epoch)
        self.metadata = shared.metadata
        self._shared = shared
        self._urls = dict(urls)
        self._open_url = open_url
        self._own: dict[str, Database[Any]] = {}

    def _check_mark(self, tenant: str, log: Any) -> None:
        """Do nothing: the store that has the log did it."""

    def _log_of(self, tenant: str) -> Any:
        if not url_of(tenant, self._urls):
            check_in_shared_store(tenant, self._shared.newest_metadata(reread=bool(self._logs)))
            self._shared.marks = self.marks
            return self._shared.log(tenant)
        return self._open_log(tenant)

    def _open_log(self, tenant: str) -> Any:
        url, metadata = url_of(tenant, self._urls), self._shared.newest_metadata(reread=bool(self._logs))
        if store_id_key(tenant) not in metadata:
            raise NotFound(
                f"the store of tenant {tenant} is not installed", hint=f"coord install --tenant {tenant}"
            )
        if url not in self._own:
            self._own[url] = self._open(tenant, url)
        self._own[url].marks = self.marks
        return self._own[url].log(tenant)

    def _open(self, tenant: str, url: str) -> Database[Any]:
        own, assigned = self._open_url(url), self._shared.metadata[store_id_key(tenant)]
        if own.store_id != assigned:
            own.close()
            raise Corrupt(
                f"{redact(url)} is not the store of tenant {tenant}: it is {own.store_id}, not {assigned}",
                hint="restore it, or correct its url in coord.toml below [tenants]",
            )
        return own

    def fair_lock(self) -> AbstractContextManager[None]:
        return self._shared.fair_lock()

    def checks(self) -> list[Check]:
        return [check for database in (self._shared, *self._own.values()) for check in database.checks()]

    def close(self) -> None:
        self.marks = None
        super().close()
        for database in (*self._own.values(), self._shared):
            database.close()
