"""The store itself, which a client opens when its hub is gone, and leaves when the hub is back."""

import threading
import time
from collections.abc import Callable
from typing import Any

from coord.engine.engine import Engine
from coord.stores.contract import Store
from coord.stores.database import Database

PROBE_S, PROBE_S_MAX = 5.0, 60.0
"""How long after the loss of a hub a client looks for it again; each failure doubles the time."""

NewEngine = Callable[[Database[Any], str], Engine]


class DirectStore:
    """An open store with its engines; its last user closes it after it was retired."""

    def __init__(self, database: Database[Any], new_engine: NewEngine) -> None:
        self.database = database
        self._new_engine = new_engine
        self._engines: dict[str, Engine] = {}
        self._lock = threading.Lock()
        self._users = 0
        self._retired = False

    def enter(self) -> bool:
        """Begin to use it; False if it was retired."""
        with self._lock:
            self._users += not self._retired
            return not self._retired

    def leave(self) -> None:
        """End the use that `enter` began."""
        with self._lock:
            self._users -= 1
            is_last = self._retired and not self._users
        if is_last:
            self.close()

    def retire(self) -> None:
        """Give it to nobody any more, and close it as soon as nobody uses it."""
        with self._lock:
            self._retired = True
            unused = not self._users
        if unused:
            self.close()

    def engine(self, tenant: str) -> Engine:
        """Return the engine of a tenant."""
        with self._lock:
            if tenant not in self._engines:
                self._engines[tenant] = self._new_engine(self.database, tenant)
            return self._engines[tenant]

    def log(self, tenant: str) -> Store:
        """Return the log of a tenant."""
        log: Store = self.database.log(tenant)
        return log

    def close(self) -> None:
        """Answer the commands that wait, and close the store."""
        for engine in list(self._engines.values()):
            engine.close()
        self.database.close()


class Probing:
    """Looks now and then whether a lost hub is back, in a thread: a frozen hub keeps nobody waiting."""

    def __init__(self, look: Callable[[], bool]) -> None:
        """`look` says whether the hub is back."""
        self._look = look
        self._lock = threading.Lock()
        self._interval_s = PROBE_S
        self._due_s = time.monotonic() + PROBE_S
        self.thread: threading.Thread | None = None

    def if_due(self) -> None:
        """Look for the hub if it is time to."""
        if time.monotonic() < self._due_s:
            return
        with self._lock:
            if time.monotonic() < self._due_s or (self.thread is not None and self.thread.is_alive()):
                return
            self._due_s = time.monotonic() + self._interval_s
            self.thread = threading.Thread(target=self._probe, name="coord-hub-probe", daemon=True)
            self.thread.start()

    def _probe(self) -> None:
        if not self._look():
            self._interval_s = min(2 * self._interval_s, PROBE_S_MAX)
            self._due_s = time.monotonic() + self._interval_s
