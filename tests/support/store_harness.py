"""A scene: one store, one clock set by hand, processes that live or die on cue, and sessions that act."""

import itertools
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from coord.core import commands
from coord.core.identity import Caller, Evidence, Life, Process
from coord.core.replies import (
    Acked,
    Beaten,
    Checked,
    Left,
    LockReply,
    LockShown,
    MessageShown,
    Outcome,
    Preempted,
    Registered,
    Released,
    Renewed,
    Sent,
    SessionShown,
)
from coord.engine.engine import Engine
from coord.stores.database import Database
from coord.stores.open import open_store

START_MS = 1_767_506_400_000
REPOSITORY = "repo"


class Scene:
    """Everything that the sessions of a story share."""

    def __init__(self, database: Database[Any], tenant: str = "local") -> None:
        self.database = database
        self.tenant = tenant
        self.store = database.log(tenant)
        self.now = START_MS
        self.life: dict[Process, Life] = {}
        self.engine = Engine(database, tenant, clock=lambda: self.now, probe=self.probe)
        self._numbers = itertools.count(1)

    def probe(self, process: Process) -> Evidence:
        life = self.life.get(process, Life.UNKNOWN)
        return Evidence(life, f"pid {process.pid} is {life}")

    def process(self, pid: int, start: int = 1) -> Process:
        """A process of this machine that is running."""
        process = Process(pid, start, "machine", "boot", "namespace")
        self.life[process] = Life.ALIVE
        return process

    def kill(self, process: Process) -> None:
        self.life[process] = Life.DEAD

    def actor(self, session: str, **described: Any) -> "Actor":
        """One who acts in the name of a session."""
        return Actor(self, Caller(session, **{"agent": session.partition("-")[0], **described}))

    def pass_seconds(self, seconds: float) -> None:
        self.now += round(seconds * 1000)

    def at(self, seconds: float) -> None:
        """Let it be so many seconds after the beginning."""
        self.now = START_MS + round(seconds * 1000)

    def number(self) -> str:
        return str(next(self._numbers))

    def call(self, command: commands.Command) -> Any:
        return self.engine.call(command)

    @property
    def head(self) -> int:
        """The offset of the newest entry."""
        self.store.load(())
        return int(self.store.seen.offset)

    def events(self, name: str = "", after: int = 0) -> list[dict[str, Any]]:
        """What the log tells, oldest first; of one name, or all."""
        return [event for entry in self.entries(after) for event in entry if name in ("", event["event"])]

    def entries(self, after: int = 0) -> list[list[dict[str, Any]]]:
        """The events of each entry of the log."""
        return [[json.loads(event) for event in entry.events] for entry in self.store.tail(after, 100_000)]

    def holders(self) -> dict[str, str]:
        """Who holds what, as anybody sees it."""
        locks: list[LockShown] = self.call(commands.ListLocks(Caller("onlooker")))
        return {lock.resource: lock.owner for lock in locks}


class Actor:
    """A session's hands: each method is one command."""

    def __init__(self, scene: Scene, caller: Caller) -> None:
        self.scene = scene
        self.caller = caller

    @property
    def session(self) -> str:
        return self.caller.session

    # Sessions.

    def register(self, **described: Any) -> Registered:
        return self.scene.call(commands.Register(caller=self.caller, **described))

    def update(self, **described: Any) -> SessionShown:
        return self.scene.call(commands.UpdateSession(caller=self.caller, **described))

    def beat(self) -> Beaten:
        return self.scene.call(commands.Heartbeat(self.caller))

    def leave(self, session: str = "") -> Left:
        return self.scene.call(commands.Deregister(self.caller, session))

    def peers(self, *, live: bool = False) -> list[SessionShown]:
        return self.scene.call(commands.ListSessions(self.caller, live))

    def show(self, session: str = "") -> SessionShown:
        return self.scene.call(commands.GetSession(self.caller, session))

    # Locks.

    def lock(
        self, *resources: str, wait_s: float = 0, repository: str = REPOSITORY, **options: Any
    ) -> LockReply:
        command = commands.AcquireLocks(
            self.caller,
            repository,
            resources,
            wait_ms=round(wait_s * 1000),
            wait_id=self.scene.number(),
            **{"leased": False, **options},
        )
        return self.scene.call(command)

    def take(self, *resources: str, **options: Any) -> LockShown:
        """Take a lock that must be free."""
        reply = self.lock(*resources, **options)
        assert reply.outcome is Outcome.GRANTED, reply
        return reply.locks[0]

    def wait_for(self, *resources: str, wait_s: float = 3600, **options: Any) -> str:
        """Get in line for something that must be held; return the place."""
        reply = self.lock(*resources, wait_s=wait_s, **options)
        assert reply.outcome is Outcome.WAITING, reply
        assert reply.wait is not None
        return reply.wait.wait_id

    def confirm(self, place: str) -> LockReply:
        return self.scene.call(commands.ConfirmWait(self.caller, place))

    def withdraw(self, place: str) -> bool:
        return self.scene.call(commands.WithdrawWait(self.caller, place))

    def unlock(self, *resources: str, fence: int = 0) -> Released:
        return self.scene.call(commands.ReleaseLocks(self.caller, REPOSITORY, resources, fence))

    def renew(self, *resources: str, fence: int = 0) -> Renewed:
        return self.scene.call(commands.RenewLocks(self.caller, REPOSITORY, resources, fence))

    def check(self, *resources: str, **options: Any) -> Checked:
        return self.scene.call(commands.CheckLocks(self.caller, REPOSITORY, resources, **options))

    def steal(self, *resources: str, **options: Any) -> LockReply:
        return self.scene.call(commands.StealLock(self.caller, REPOSITORY, resources, **options))

    def preempt(self, *resources: str, priority: int, grace_s: float, reason: str = "urgent") -> Preempted:
        command = commands.PreemptLock(
            self.caller,
            REPOSITORY,
            resources,
            priority=priority,
            grace_ms=round(grace_s * 1000),
            reason=reason,
        )
        return self.scene.call(command)

    # Messages.

    def send(self, to: str, kind: str, subject: str, **options: Any) -> Sent:
        return self.scene.call(
            commands.SendMessage(self.caller, to=to, kind=kind, subject=subject, **options)
        )

    def receive(self, *, drain: bool = True) -> list[MessageShown]:
        return self.scene.call(commands.ReceiveMessages(self.caller, drain)).messages

    def peek(self) -> list[MessageShown]:
        return self.scene.call(commands.PeekMessages(self.caller)).messages

    def acknowledge(self, *ids: str) -> Acked:
        return self.scene.call(commands.AckMessages(self.caller, ids))


@contextmanager
def opened_scene(url: str) -> Iterator[Scene]:
    """A scene over the store of a url."""
    with closing(open_store(url)) as database:
        scene = Scene(database)
        try:
            yield scene
        finally:
            scene.engine.close()
