"""A store behind a hub: the same engines and logs as an open database, without opening it.

A client on the hub's machine can open the store itself, and does so as soon as the hub does not answer. It
uses the hub again when that is back. A client of `http://` cannot: it tries again until its timeout.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from coord.core.errors import CoordError, Unavailable, Unreachable, Unsupported
from coord.engine.engine import TIMEOUT_S, Engine
from coord.sdk.remote import wire
from coord.sdk.remote.channel import Broken, Channel
from coord.sdk.remote.direct import PROBE_S, DirectStore, NewEngine, Probing
from coord.sdk.remote.engine import RemoteEngine
from coord.sdk.remote.wire import VERSION
from coord.stores.contract import Entry, Head, Limits
from coord.stores.database import Database
from coord.stores.health import Check

Body = TypeVar("Body")
OK = 200
POLL_S = 0.05
WAIT_S = 30.0
"""How long one request waits: a hub that is cut off without a word is noticed a little later."""
GRACE_S = 5.0
"""How much longer a client waits than it gave the hub."""
HELLO_S = 2.0
"""A hub that does not answer within this time is not used."""


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
        with self._database.directly() as direct:
            if direct is not None:
                return direct.log(self._tenant).seen
        return Head(self._head.offset, self._head.at)

    def saw(self, head: wire.LogHead) -> None:
        """Take the head that an answer states; an older answer may come later."""
        if head.offset >= self._head.offset:
            self._head, self._heard = head, time.monotonic()

    def now(self) -> int:
        with self._database.directly() as direct:
            if direct is not None:
                return direct.log(self._tenant).now()
        return self._head.now + round((time.monotonic() - self._heard) * 1000)

    def wait(self, after: int, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while self.seen.offset <= after:
            left = deadline - time.monotonic()
            with self._database.directly() as direct:
                if direct is not None and direct.log(self._tenant).wait(after, max(0.0, min(left, PROBE_S))):
                    return True
            if left <= 0:
                return False
            if direct is not None:  # the hub may be back
                continue
            some = min(left, WAIT_S)
            try:
                body = wire.Wait(self._database.target(self._tenant), after, some)
                self.saw(self._database.post(wire.WAIT, body, wire.LogHead, some, waits=True))
            except (Unreachable, Broken):
                if not self._database.fall_back():
                    time.sleep(min(POLL_S, left))  # noqa: TID251 - a hub that starts again announces it to nobody
        return True

    def load(self, keys: Iterable[str]) -> None:
        """Ask for the newest head; records are for the hub to read."""
        if set(keys) - {"head"}:
            raise Unsupported("a client of a hub reads no records", hint="use a command")
        body = wire.Wait(self._database.target(self._tenant), 0, 0.0)

        def look(direct: DirectStore) -> wire.LogHead:
            direct.log(self._tenant).load(["head"])
            return head_of(direct, self._tenant)

        self.saw(self._database.ask(wire.WAIT, body, wire.LogHead, look))

    def tail(self, after: int, limit: int) -> list[Entry]:
        body = wire.Tail(self._database.target(self._tenant), after, limit)

        def read(direct: DirectStore) -> wire.Entries:
            entries = direct.log(self._tenant).tail(after, limit)
            return wire.Entries(head_of(direct, self._tenant), entries)

        found = self._database.ask(wire.TAIL, body, wire.Entries, read)
        self.saw(found.head)
        return found.entries

    def close(self) -> None: ...


def head_of(direct: DirectStore, tenant: str) -> wire.LogHead:
    """Return the newest entry of a log in the store itself."""
    log = direct.log(tenant)
    return wire.LogHead(*log.seen, log.now())


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
        self.repository_id = welcome.repository_id
        self._root = root
        self._channel = channel
        self._open_direct = open_direct
        self._direct: DirectStore | None = None
        self._fallback_lock = threading.Lock()
        self._probing: Probing | None = None
        self.new_engine: NewEngine = Engine

    def target(self, tenant: str) -> wire.Target:
        """Return the log of a tenant as the hub finds it."""
        return wire.Target(self._root, tenant, self.store_id, VERSION)

    def engine(self, tenant: str, hops: int = 0) -> RemoteEngine:
        """Return the engine of a tenant."""
        self.log(tenant)
        return RemoteEngine(self, tenant, hops)

    def _open_log(self, tenant: str) -> RemoteLog:
        if tenant == self.welcome.tenant:
            return RemoteLog(self, tenant, self.welcome)
        hello = wire.Hello(self.target(tenant), version=VERSION)

        def read(direct: DirectStore) -> wire.Welcome:
            limits = direct.log(tenant).limits
            return msgspec.structs.replace(self.welcome, limits=limits, head=head_of(direct, tenant))

        return RemoteLog(self, tenant, self.ask(wire.HELLO, hello, wire.Welcome, read))

    def saw(self, tenant: str, head: wire.LogHead) -> None:
        """Let the log of a tenant know the newest head."""
        self.log(tenant).saw(head)

    def post(self, path: str, body: Any, kind: type[Body], timeout_s: float, *, waits: bool = False) -> Body:
        """Send a request and return its answer; `waits` as channels have it."""
        if self.closed:
            raise Unavailable("the database is closed")
        status, data = self._channel.post(path, wire.encode(body), timeout_s + GRACE_S, waits=waits)
        return decode_answer(status, data, kind, self._channel.where, begun=True)

    def ask(self, path: str, body: Any, kind: type[Body], read: Callable[[DirectStore], Body]) -> Body:
        """Ask a question of the hub, or `read` the store itself if the hub is gone; try again for a while."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            with self.directly() as direct:
                if direct is not None:
                    return read(direct)
            try:
                return self.post(path, body, kind, TIMEOUT_S)
            except (Unreachable, Broken):
                if self.fall_back():
                    continue
                if time.monotonic() + POLL_S >= deadline:
                    raise
                time.sleep(POLL_S)  # noqa: TID251 - a hub that starts again announces it to nobody

    # Without the hub.

    def fall_back(self) -> bool:
        """Open the store itself, because the hub is gone; False if that is not possible here."""
        if self._open_direct is None:
            return False
        with self._fallback_lock:
            if self.closed:
                raise Unavailable("the database is closed")
            if self._direct is None:
                self._direct = DirectStore(self._open_direct(), self.new_engine)
                self._probing = Probing(self.return_to_hub)
        return True

    @contextmanager
    def directly(self) -> Iterator[DirectStore | None]:
        """Keep the store itself open if it is used in place of the hub; None while the hub is used."""
        direct, probing = self._direct, self._probing
        if direct is not None and probing is not None:
            probing.if_due()
        while direct is not None and not direct.enter():
            direct = self._direct
        try:
            yield direct
        finally:
            if direct is not None:
                direct.leave()

    def return_to_hub(self) -> bool:
        """Use the hub again if it answers and has the same store; what has begun ends in the store itself."""
        try:
            welcome = say_hello(self._channel, self._root, self.welcome.tenant, HELLO_S)
            with self._fallback_lock:
                direct = self._direct
                if direct is None or self.closed:
                    return True
                if (welcome.store_id, welcome.epoch) != (direct.database.store_id, direct.database.epoch):
                    return False
                for tenant, log in list(self._logs.items()):
                    log.saw(head_of(direct, tenant))  # what this client has seen stays seen
                self._direct = self._probing = None
            direct.retire()
        except CoordError:
            return False
        return True

    def checks(self) -> list[Check]:
        with self.directly() as direct:
            return [] if direct is None else direct.database.checks()

    def close(self) -> None:
        super().close()
        with self._fallback_lock:  # one that falls back now has opened its store, or finds this closed
            direct = self._direct
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
