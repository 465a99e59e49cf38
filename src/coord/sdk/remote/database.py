"""A store behind a hub: the same engines and logs as an open database, without opening it.

A client on the hub's machine can open the store itself, and does so as soon as the hub does not answer. A
client of `http://` cannot: it tries again until its timeout.
"""

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from coord.core.errors import CoordError, Unavailable, Unreachable, Unsupported
from coord.engine.engine import TIMEOUT_S, Engine
from coord.sdk.remote import wire
from coord.sdk.remote.channel import Broken, Channel
from coord.sdk.remote.engine import RemoteEngine
from coord.sdk.remote.wire import VERSION
from coord.stores.contract import Entry, Head, Limits, Store
from coord.stores.database import Database
from coord.stores.health import Check

Body = TypeVar("Body")
OK = 200
POLL_S = 0.05
WAIT_S = 30.0
"""How long one request waits: a hub that is cut off without a word is noticed a little later."""
GRACE_S = 5.0
"""How much longer a client waits than it gave the hub."""


class RemoteLog:
    """The log of a tenant behind a hub: what a client reads of a `Store`."""

    def __init__(self, database: "RemoteDatabase", tenant: str, welcome: wire.Welcome) -> None:
        self.limits: Limits = welcome.limits
        self._database = database
        self._tenant = tenant
        self._head = welcome.head
        self._heard = time.monotonic()

    @property
    def seen(self) -> Head:
        direct = self._direct()
        return Head(self._head.offset, self._head.at) if direct is None else direct.seen

    def saw(self, head: wire.LogHead) -> None:
        """Take the head that an answer states; an older answer may come later."""
        if head.offset >= self._head.offset:
            self._head, self._heard = head, time.monotonic()

    def now(self) -> int:
        direct = self._direct()
        if direct is not None:
            return direct.now()
        return self._head.now + round((time.monotonic() - self._heard) * 1000)

    def wait(self, after: int, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while self.seen.offset <= after:
            left = deadline - time.monotonic()
            if (direct := self._direct()) is not None:
                return direct.wait(after, max(0.0, left))
            if left <= 0:
                return False
            some = min(left, WAIT_S)
            try:
                body = wire.Wait(self._database.target(self._tenant), after, some)
                self.saw(self._database.post(wire.WAIT, body, wire.LogHead, some))
            except (Unreachable, Broken):
                if not self._database.fall_back():
                    time.sleep(min(POLL_S, left))  # noqa: TID251 - a hub that starts again announces it to nobody
        return True

    def load(self, keys: Iterable[str]) -> None:
        """Ask for the newest head; records are for the hub to read."""
        if set(keys) - {"head"}:
            raise Unsupported("a client of a hub reads no records", hint="use a command")
        body = wire.Wait(self._database.target(self._tenant), 0, 0.0)

        def look() -> wire.LogHead:
            log = self._known_direct()
            log.load(["head"])
            return wire.LogHead(*log.seen, log.now())

        self.saw(self._database.ask(self._tenant, wire.WAIT, body, wire.LogHead, look))

    def tail(self, after: int, limit: int) -> list[Entry]:
        body = wire.Tail(self._database.target(self._tenant), after, limit)

        def read() -> wire.Entries:
            log = self._known_direct()
            return wire.Entries(wire.LogHead(*log.seen, log.now()), log.tail(after, limit))

        found = self._database.ask(self._tenant, wire.TAIL, body, wire.Entries, read)
        self.saw(found.head)
        return found.entries

    def _direct(self) -> Store | None:
        return self._database.direct_log(self._tenant)

    def _known_direct(self) -> Store:
        direct = self._direct()
        assert direct is not None, "the store was opened instead of the hub"
        return direct

    def close(self) -> None: ...


class RemoteDatabase(Database[Any]):
    """A store behind a hub."""

    is_remote = True

    def __init__(
        self,
        url: str,
        root: str,
        channel: Channel,
        welcome: wire.Welcome,
        open_direct: Callable[[], Database[Any]] | None,
    ) -> None:
        """`open_direct` opens the store itself; None if this machine cannot."""
        super().__init__(url, welcome.store_id, welcome.epoch)
        self.welcome = welcome
        self._root = root
        self._channel = channel
        self._open_direct = open_direct
        self._direct: Database[Any] | None = None
        self._engines: dict[str, Engine] = {}
        self._fallback_lock = threading.Lock()
        self.new_engine: Callable[[Database[Any], str], Engine] = Engine

    def target(self, tenant: str) -> wire.Target:
        """Return the log of a tenant as the hub finds it."""
        return wire.Target(self._root, tenant, self.store_id, VERSION)

    def engine(self, tenant: str) -> RemoteEngine:
        """Return the engine of a tenant."""
        self.log(tenant)
        return RemoteEngine(self, tenant)

    def _open_log(self, tenant: str) -> RemoteLog:
        if tenant == self.welcome.tenant:
            return RemoteLog(self, tenant, self.welcome)
        hello = wire.Hello(self.target(tenant), version=VERSION)

        def read() -> wire.Welcome:
            log = self.direct_log(tenant)
            assert log is not None, "the store was opened instead of the hub"
            head = wire.LogHead(*log.seen, log.now())
            return msgspec.structs.replace(self.welcome, limits=log.limits, head=head)

        return RemoteLog(self, tenant, self.ask(tenant, wire.HELLO, hello, wire.Welcome, read))

    def saw(self, tenant: str, head: wire.LogHead) -> None:
        """Let the log of a tenant know the newest head."""
        self.log(tenant).saw(head)

    def post(self, path: str, body: Any, kind: type[Body], timeout_s: float) -> Body:
        """Send a request and return its answer."""
        status, data = self._channel.post(path, wire.encode(body), timeout_s + GRACE_S)
        return decode_answer(status, data, kind, self._channel.where, begun=True)

    def ask(self, tenant: str, path: str, body: Any, kind: type[Body], directly: Callable[[], Body]) -> Body:
        """Ask a question of the hub, or of the store itself if the hub is gone; try again for a while."""
        deadline = time.monotonic() + TIMEOUT_S
        while self._direct is None:
            try:
                return self.post(path, body, kind, TIMEOUT_S)
            except (Unreachable, Broken):
                if self.fall_back():
                    break
                if time.monotonic() + POLL_S >= deadline:
                    raise
                time.sleep(POLL_S)  # noqa: TID251 - a hub that starts again announces it to nobody
        return directly()

    # Without the hub.

    def fall_back(self) -> bool:
        """Open the store itself, because the hub is gone; False if that is not possible here."""
        if self._open_direct is None:
            return False
        with self._fallback_lock:
            if self.closed:
                raise Unavailable("the database is closed")
            if self._direct is None:
                self._direct = self._open_direct()
        return True

    def direct(self, tenant: str) -> Engine | None:
        """Return an engine on the store itself after the hub is gone; None while it is used."""
        if self._direct is None:
            return None
        with self._fallback_lock:
            if tenant not in self._engines:
                self._engines[tenant] = self.new_engine(self._direct, tenant)
            return self._engines[tenant]

    def direct_log(self, tenant: str) -> Store | None:
        """Return the log of the store itself after the hub is gone."""
        log: Store | None = None if self._direct is None else self._direct.log(tenant)
        return log

    def checks(self) -> list[Check]:
        return [] if self._direct is None else self._direct.checks()

    def close(self) -> None:
        super().close()
        with self._fallback_lock:  # one that falls back now has opened its store, or finds this closed
            engines, direct = list(self._engines.values()), self._direct
        for engine in engines:
            engine.close()
        if direct is not None:
            direct.close()
        self._channel.close()


def say_hello(channel: Channel, root: str, tenant: str, timeout_s: float) -> wire.Welcome:
    """Begin to talk to a hub; raises Unsupported if it speaks another version."""
    hello = wire.Hello(wire.Target(root, tenant), version=VERSION)
    status, data = channel.post(wire.HELLO, wire.encode(hello), timeout_s)
    welcome = decode_answer(status, data, wire.Welcome, channel.where)
    if (welcome.protocol, welcome.version) != (wire.PROTOCOL, VERSION):
        raise Unsupported(
            f"the hub at {channel.where} has version {welcome.version}, this coord {VERSION}",
            hint="coord serve --stop, then start it again",
        )
    return welcome


def decode_answer(status: int, data: bytes, kind: type[Body], where: str, *, begun: bool = False) -> Body:
    """Return the body of an answer, or raise the error that it has.

    If a hub has answered before (`begun`), what cannot be read may be a proxy's word about a lost answer.
    """
    try:
        if status == OK:
            return msgspec.msgpack.decode(data, type=kind)
        error: CoordError = wire.error_of(msgspec.msgpack.decode(data, type=wire.ErrorData))
    except msgspec.MsgspecError as damage:
        problem = Broken if begun else Unavailable
        raise problem(
            f"{where} is no hub of coord: it answered {status}", hint="check the address"
        ) from damage
    raise error
