"""Test the rules of locks on a memory store, with a clock and processes that the test moves."""

from typing import Any

import msgspec

from coord.core import keys
from coord.core.identity import Caller, Evidence, Process, ProcessState
from coord.core.lifecycle.commands import Deregister
from coord.core.locks.commands import (
    AcquireLocks,
    CheckLocks,
    ConfirmWait,
    ListLocks,
    PreemptLock,
    ReleaseLocks,
    RenewLocks,
    StealLock,
    WithdrawWait,
)
from coord.core.locks.locks import deadline_key
from coord.core.locks.resources import parse_resource
from coord.core.locks.schema import Lock, LockRef
from coord.core.messages.commands import ReceiveMessages
from coord.core.records import encode
from coord.core.sessions.commands import Heartbeat
from coord.engine.engine import Engine
from coord.stores.contract import Commit, Put, ReadPoint
from coord.stores.open import open_store

T0 = 1_700_000_000_000
REPOSITORY = "r"


class CountedStore:
    """A store that counts what is read, and remembers what was written and what was expected last."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.reads = self.questions = 0
        self.written: list[str] = []
        self.expected: set[str] = set()
        self.others_commit = False
        """Whether each load has another read point, as if others committed in between."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def load(self, keys: Any, *more: Any, **options: Any) -> Any:
        keys = list(keys)
        self.questions += 1
        found = self._store.load(keys, *more, **options)
        self.reads += len(keys) + sum(1 + len(records) for records in found.ranges)
        if self.others_commit:
            found.read_point = ReadPoint(-self.questions, 0)
        return found

    def commit(self, commit: Commit) -> int:
        self.questions += 1
        self.written += [*commit.puts, *commit.deletes]
        self.expected = set(commit.expected_versions)
        return int(self._store.commit(commit))


class CountedDatabase:
    """A database whose log is counted."""

    def __init__(self) -> None:
        self._database = open_store("memory:")
        self.store = CountedStore(self._database.log("local"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def log(self, tenant: str) -> Any:
        return self.store


class LockHarness:
    """Sessions ask by name; `pids` says in which process one lives, `life` what is known about a process."""

    def __init__(self) -> None:
        self.now = T0
        self.pids: dict[str, int] = {}
        self.parents: dict[str, str] = {}
        self.life: dict[int, ProcessState] = {}
        self.database = CountedDatabase()
        self.store = self.database.store
        self.engine = Engine(self.database, "local", clock=lambda: self.now, probe=self._probe)  # type: ignore[arg-type]
        self._waits = 0

    def _probe(self, process: Process) -> Evidence:
        return Evidence(self.life.get(process.pid, ProcessState.UNKNOWN), f"pid {process.pid}")

    def who(self, name: str) -> Caller:
        pid = self.pids.get(name)
        return Caller(name, parent=self.parents.get(name, ""), process=Process(pid, 1) if pid else None)

    def pass_time(self, ms: int) -> None:
        self.now += ms

    def lock(self, name: str, *resources: str, ttl: int = 0, **options: Any) -> Any:
        command = AcquireLocks(self.who(name), REPOSITORY, resources, ttl_ms=ttl, **options)
        return self.engine.call(command)

    def wait(self, name: str, *resources: str, wait_ms: int = 3_600_000, **options: Any) -> Any:
        """Get in line; without `leased` the request lives until its time is up."""
        self._waits += 1
        options = {"leased": False, **options}
        return self.lock(name, *resources, wait_ms=wait_ms, wait_id=f"w{self._waits:04d}", **options)

    def confirm(self, name: str, waiting: Any) -> Any:
        return self.engine.call(ConfirmWait(self.who(name), waiting.wait.wait_id))

    def withdraw(self, name: str, waiting: Any) -> Any:
        return self.engine.call(WithdrawWait(self.who(name), waiting.wait.wait_id))

    def release(self, name: str, *resources: str, fence: int = 0) -> Any:
        return self.engine.call(ReleaseLocks(self.who(name), REPOSITORY, resources, fence))

    def renew(self, name: str, *resources: str, fence: int = 0, ttl: int = 0) -> Any:
        return self.engine.call(RenewLocks(self.who(name), REPOSITORY, resources, fence, ttl))

    def check(self, name: str, *resources: str, mode: str = "", fence: int = 0) -> Any:
        return self.engine.call(CheckLocks(self.who(name), REPOSITORY, resources, mode, fence))

    def steal(self, name: str, *resources: str, **options: Any) -> Any:
        return self.engine.call(StealLock(self.who(name), REPOSITORY, resources, **options))

    def preempt(self, name: str, *resources: str, priority: int, grace_ms: int = 10_000) -> Any:
        command = PreemptLock(
            self.who(name), REPOSITORY, resources, priority=priority, grace_ms=grace_ms, reason="urgent"
        )
        return self.engine.call(command)

    def beat(self, name: str) -> Any:
        return self.engine.call(Heartbeat(self.who(name)))

    def leave(self, name: str) -> Any:
        return self.engine.call(Deregister(self.who(name)))

    def held(self) -> set[tuple[str, str]]:
        """Who holds what."""
        return {(lock.owner, lock.resource) for lock in self.engine.call(ListLocks(self.who("watcher")))}

    def told(self, name: str, kind: str) -> list[str]:
        """What the system told a session since it was asked last."""
        received = self.engine.call(ReceiveMessages(self.who(name), drain=True))
        return [message.subject for message in received.messages if message.kind == kind]

    def events(self, kind: str) -> list[dict[str, Any]]:
        entries = self.store.tail(0, 100_000)
        found = [msgspec.json.decode(event) for entry in entries for event in entry.events]
        return [event for event in found if event["event"] == kind]

    def give(self, name: str, resources: list[str]) -> None:
        """Write many holds at once, as if they had been asked for one by one."""
        puts: dict[str, Put] = {}
        for text in resources:
            (resource,) = parse_resource(text, REPOSITORY)
            key = resource.lock_key(name)
            hold = Lock(resource=text, repository=REPOSITORY, owner=name, expires_ms=self.now + 3_600_000)
            puts[key] = Put(encode(hold), deadline_key(hold))
            puts[keys.session_lock(name, key)] = Put(encode(LockRef(key=key)))
        expects = {key: record.version for key, record in self.store.load(puts).items()}
        self.store.commit(Commit(expects, puts, at=self.now))

    def written_by(self, ask: Any) -> list[str]:
        """The records that a call writes, by the kind of their keys."""
        self.store.written.clear()
        ask()
        return sorted(key.partition("/")[0] for key in self.store.written)

    def read_by(self, ask: Any) -> int:
        """How many keys and records a call loads."""
        self.store.reads = 0
        ask()
        return self.store.reads
