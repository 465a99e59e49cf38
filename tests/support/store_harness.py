"""A harness for a store: sessions that send commands, a clock set by hand, processes that die on request."""

import itertools
import json
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

from coord.core.commands import Command
from coord.core.identity import Caller, Evidence, Process, ProcessState
from coord.core.lifecycle.commands import Deregister, DeregisterReply, Register, RegisterReply
from coord.core.locks.commands import (
    AcquireLocks,
    CheckLocks,
    CheckReply,
    ConfirmWait,
    ListLocks,
    LockInfo,
    LockReply,
    Outcome,
    PreemptLock,
    PreemptReply,
    ReleaseLocks,
    ReleaseReply,
    RenewLocks,
    RenewReply,
    StealLock,
    WithdrawWait,
)
from coord.core.messages.commands import (
    AckMessages,
    AckReply,
    MessageInfo,
    PeekMessages,
    ReceiveMessages,
    SendMessage,
    SendReply,
)
from coord.core.sessions.commands import (
    GetSession,
    Heartbeat,
    HeartbeatReply,
    ListSessions,
    SessionInfo,
    UpdateSession,
)
from coord.engine.engine import Engine
from coord.stores.database import Database
from coord.stores.open import open_store
from tests.support.hub.in_process import shared_hub

START_MS = 1_767_506_400_000
REPOSITORY = "repo"


class StoreHarness:
    """The store, the engine, the clock and the processes that all sessions of a test share."""

    def __init__(self, database: Database[Any], tenant: str = "local") -> None:
        self.database = database
        self.tenant = tenant
        self.store = database.log(tenant)
        self.now = START_MS
        self.life: dict[Process, ProcessState] = {}
        self.local = Engine(database, tenant, clock=lambda: self.now, probe=self.probe)
        self.engine: Any = self.local
        self._numbers = itertools.count(1)

    def probe(self, process: Process) -> Evidence:
        life = self.life.get(process, ProcessState.UNKNOWN)
        return Evidence(life, f"pid {process.pid} is {life}")

    def process(self, pid: int, start: int = 1) -> Process:
        """Return a running process of this machine."""
        process = Process(pid, start, "machine", "boot", "namespace")
        self.life[process] = ProcessState.ALIVE
        return process

    def kill(self, process: Process) -> None:
        self.life[process] = ProcessState.DEAD

    def actor(self, session: str, **described: Any) -> "Actor":
        """Return an actor for a session; its agent is the first part of the id unless given."""
        return Actor(self, Caller(session, **{"agent": session.partition("-")[0], **described}))

    def pass_seconds(self, seconds: float) -> None:
        self.now += round(seconds * 1000)

    def at(self, seconds: float) -> None:
        """Set the clock to a number of seconds after the start."""
        self.now = START_MS + round(seconds * 1000)

    def number(self) -> str:
        return str(next(self._numbers))

    def call(self, command: Command) -> Any:
        return self.engine.call(command)

    @property
    def head(self) -> int:
        """The offset of the newest entry."""
        self.store.load(())
        return int(self.store.seen.offset)

    def events(self, name: str = "", after: int = 0) -> list[dict[str, Any]]:
        """Return the events of the log, oldest first: those of one name, or all."""
        return [event for entry in self.entries(after) for event in entry if name in ("", event["event"])]

    def entries(self, after: int = 0) -> list[list[dict[str, Any]]]:
        """Return the events of each entry of the log."""
        return [[json.loads(event) for event in entry.events] for entry in self.store.tail(after, 100_000)]

    def holders(self) -> dict[str, str]:
        """Return the owner of each locked resource."""
        locks: list[LockInfo] = self.call(ListLocks(Caller("onlooker")))
        return {lock.resource: lock.owner for lock in locks}


class Actor:
    """A session of a test; each method sends one command."""

    def __init__(self, harness: StoreHarness, caller: Caller) -> None:
        self.harness = harness
        self.caller = caller

    @property
    def session(self) -> str:
        return self.caller.session

    # Sessions.

    def register(self, **described: Any) -> RegisterReply:
        return self.harness.call(Register(caller=self.caller, **described))

    def update(self, **described: Any) -> SessionInfo:
        return self.harness.call(UpdateSession(caller=self.caller, **described))

    def beat(self) -> HeartbeatReply:
        return self.harness.call(Heartbeat(self.caller))

    def leave(self, session: str = "") -> DeregisterReply:
        return self.harness.call(Deregister(self.caller, session))

    def peers(self, *, live: bool = False) -> list[SessionInfo]:
        return self.harness.call(ListSessions(self.caller, live))

    def show(self, session: str = "") -> SessionInfo:
        return self.harness.call(GetSession(self.caller, session))

    # Locks.

    def lock(
        self, *resources: str, wait_s: float = 0, repository: str = REPOSITORY, **options: Any
    ) -> LockReply:
        command = AcquireLocks(
            self.caller,
            repository,
            resources,
            wait_ms=round(wait_s * 1000),
            wait_id=self.harness.number(),
            **{"leased": False, **options},
        )
        return self.harness.call(command)

    def take(self, *resources: str, **options: Any) -> LockInfo:
        """Acquire a lock that must be free."""
        reply = self.lock(*resources, **options)
        assert reply.outcome is Outcome.GRANTED, reply
        return reply.locks[0]

    def wait_for(self, *resources: str, wait_s: float = 3600, **options: Any) -> str:
        """Queue for a resource that must be locked; return the wait id."""
        reply = self.lock(*resources, wait_s=wait_s, **options)
        assert reply.outcome is Outcome.WAITING, reply
        assert reply.wait is not None
        return reply.wait.wait_id

    def confirm(self, wait_id: str) -> LockReply:
        return self.harness.call(ConfirmWait(self.caller, wait_id))

    def withdraw(self, wait_id: str) -> bool:
        return self.harness.call(WithdrawWait(self.caller, wait_id))

    def unlock(self, *resources: str, fence: int = 0) -> ReleaseReply:
        return self.harness.call(ReleaseLocks(self.caller, REPOSITORY, resources, fence))

    def renew(self, *resources: str, fence: int = 0) -> RenewReply:
        return self.harness.call(RenewLocks(self.caller, REPOSITORY, resources, fence))

    def check(self, *resources: str, **options: Any) -> CheckReply:
        return self.harness.call(CheckLocks(self.caller, REPOSITORY, resources, **options))

    def steal(self, *resources: str, **options: Any) -> LockReply:
        return self.harness.call(StealLock(self.caller, REPOSITORY, resources, **options))

    def preempt(self, *resources: str, priority: int, grace_s: float, reason: str = "urgent") -> PreemptReply:
        command = PreemptLock(
            self.caller,
            REPOSITORY,
            resources,
            priority=priority,
            grace_ms=round(grace_s * 1000),
            reason=reason,
        )
        return self.harness.call(command)

    # Messages.

    def send(self, to: str, kind: str, subject: str, **options: Any) -> SendReply:
        return self.harness.call(SendMessage(self.caller, to=to, kind=kind, subject=subject, **options))

    def receive(self, *, drain: bool = True) -> list[MessageInfo]:
        return self.harness.call(ReceiveMessages(self.caller, drain)).messages

    def peek(self) -> list[MessageInfo]:
        return self.harness.call(PeekMessages(self.caller)).messages

    def acknowledge(self, *ids: str) -> AckReply:
        return self.harness.call(AckMessages(self.caller, ids))


@contextmanager
def open_store_harness(url: str, transport: str = "") -> Iterator[StoreHarness]:
    """Open the store of a URL with a fresh harness, whose commands may go through a hub."""
    with closing(open_store(url)) as database, ExitStack() as stack:
        harness = StoreHarness(database)
        if transport:
            serving = shared_hub().serving(database, transport, lambda _database, _tenant: harness.local)
            harness.engine = stack.enter_context(serving).engine(harness.tenant)
        try:
            yield harness
        finally:
            harness.engine.close()
