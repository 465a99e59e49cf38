"""Watches a lock run from outside: what was asked and answered, what every commit left; and compares."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from coord.core.errors import Busy, CoordError, LockLost, NotFound, NotOwner, Refused, Unavailable, Unknown
from coord.core.lifecycle.commands import Register
from coord.core.locks.commands import (
    CheckLocks,
    CheckReply,
    LockReply,
    Outcome,
    ReleaseLocks,
    ReleaseReply,
    RenewLocks,
    RenewReply,
)
from coord.core.locks.resources import parse_resources
from coord.stores.contract import Commit, Entry, Store
from tests.linearizability.ledger import require
from tests.simulation.agents import Ask
from tests.simulation.oracles.locks import Grant, LockOracle, read_request
from tests.simulation.oracles.messages import MessageOracle
from tests.simulation.process import Process
from tests.simulation.resources import overlap

ALL = 1_000_000
MAIL = ("inbox/", "mailbox/", "broadcast/", "session/")
RECORDS_EVERY = 60
"""Between two looks at all records, in entries of the log."""


@dataclass(slots=True)
class Asked:
    """A command under way."""

    ask: Ask
    process: Process
    begin: int
    first_reading: int
    again: bool

    def nows(self) -> list[int]:
        """The times at which it can have been decided."""
        return [now for now, _ in self.process.readings[self.first_reading :]]


class LockObserver:
    """Every command and every commit of one run."""

    def __init__(self, store: Store, is_dead: Callable[[dict[str, Any]], bool]) -> None:
        self.store = store
        self.oracle = LockOracle(is_dead)
        self.mail = MessageOracle()
        self.entries: list[Entry] = []
        self.ops: list[str] = []
        self.counts: Counter[str] = Counter()
        self._ids: set[str] = set()
        self._records_at = RECORDS_EVERY

    def committed(self, commit: Commit, offset: int) -> None:
        """A commit took place: everything has to be right, at once."""
        if not commit.writes or (self.entries and offset <= self.entries[-1].offset):
            return
        self.entries.append(Entry(offset, commit.at, commit.id, commit.events))
        self.oracle.add(commit, offset)
        self.mail.add(commit)

    def begin(self, process: Process, ask: Ask) -> Asked:
        again = ask.command_id in self._ids
        if ask.command_id:
            self._ids.add(ask.command_id)
        return Asked(ask, process, self.store.seen.offset, len(process.readings), again)

    def end(self, asked: Asked, reply: Any) -> None:
        """Somebody is answered: the answer must be true at some moment since it was asked."""
        self.ops.append(f"{asked.ask} {reply!r}")
        command = asked.ask.command
        name = type(command).__name__
        self.counts[name] += 1
        if isinstance(reply, CoordError):
            self._check_error(asked, reply)
        if asked.again:
            return
        if isinstance(reply, LockReply):
            self.counts[f"{name} {reply.outcome}"] += 1
            self._check_locks(asked, reply)
        elif isinstance(command, ReleaseLocks | RenewLocks | CheckLocks):
            self._check_proof(asked, command, reply)

    def lose(self, _asked: Asked) -> None:
        self.counts["asker died"] += 1

    def withdraw(self, _asked: Asked) -> None:
        self.counts["withdrawn"] += 1

    def pull(self) -> None:
        """Look at all records now and then."""
        if self.store.seen.offset >= self._records_at:
            self._records_at = self.store.seen.offset + RECORDS_EVERY
            self.check_records()

    def conclude(self) -> None:
        self.counts += self.oracle.counts + self.mail.counts
        self.oracle.counts.clear()
        self.mail.counts.clear()
        self.check_records()

    # Answers.

    def _check_error(self, asked: Asked, error: CoordError) -> None:
        self.counts[f"error {error.code}"] += 1
        caused = isinstance(error, (Busy, Unavailable, Unknown, Refused, NotFound))
        if isinstance(asked.ask.command, Register):
            caused = caused or "runs in another process" in error.message
        require(caused and "defect" not in error.hint, "an error that nobody caused:", asked.ask, repr(error))

    def _check_locks(self, asked: Asked, reply: LockReply) -> None:
        for lock in [*reply.locks, *([reply.holder] if reply.holder else [])]:
            grants = self.oracle.grants(lock.resource, lock.fence)
            fits = [held for held in grants if held.ended == 0 or held.ended > asked.begin]
            require(fits, "no such hold at that time:", asked.ask, lock, grants)
        if reply.outcome is Outcome.HELD and self._nothing_came_free_since(asked):
            require(self._is_blocked(asked.ask.command), "refused although it is free:", asked.ask, reply)

    def _nothing_came_free_since(self, asked: Asked) -> bool:
        """Whether nothing but the refusal itself can have happened to locks since it was asked for."""
        since = [entry for entry in self.entries[-2:] if entry.offset > asked.begin]
        freed = any(b'"lock.released"' in event for entry in since for event in entry.events)
        return len(since) <= 1 and not freed and not self._has_duplicate(asked.ask.command)

    def _has_duplicate(self, command: Any) -> bool:
        """Whether another process came under the caller's id: then its name alone does not say who asks."""
        return any(_names(name, command) for name in self.oracle.sessions if "~" in name)

    def _is_blocked(self, command: Any) -> bool:
        """Whether anything stands against a request now."""
        found = parse_resources(command.resources, command.repository, 64, command.exact)
        resources, exact = [one.text for one in found], [one.text for one in found if one.exact]
        fields = {"session": command.caller.session, "mode": command.mode, "profile": command.profile}
        request = read_request(
            "", {**fields, "resources": resources, "exact": exact, "denied": True, "renewed_ms": 0}
        )
        waiters = self.oracle.waiting()
        return any(map(request.conflicts_with, waiters)) or any(self.oracle.waits_for(request, waiters))

    def _check_proof(
        self,
        asked: Asked,
        command: ReleaseLocks | RenewLocks | CheckLocks,
        reply: Any,
    ) -> None:
        """Who states a fence is believed exactly as long as its hold stands."""
        if not command.fence:
            return
        grants = [
            held
            for resource in command.resources
            for held in self.oracle.grants(resource, command.fence)
            if _names(held.owner, command)
        ]
        nows = asked.nows()
        if isinstance(reply, ReleaseReply | RenewReply) or (isinstance(reply, CheckReply) and reply.free):
            self.counts[f"{type(command).__name__} proven"] += 1
            stood = [held for held in grants if held.ended == 0 or held.ended > asked.begin]
            require(stood, "an old fence was believed:", asked.ask, reply, grants)
        elif isinstance(reply, LockLost | NotFound | NotOwner | CheckReply):
            self.counts[f"{type(command).__name__} refused"] += 1
            stands = [held for held in grants if not held.ended and not _may_be_over(held, nows)]
            untouched = self.store.seen.offset == asked.begin and not isinstance(reply, CheckReply)
            duplicate = self._has_duplicate(command) or f"{command.caller.session}~" in str(
                reply
            )  # met, never written
            require(
                not (stands and untouched and not duplicate),
                "a holder was not believed:",
                asked.ask,
                reply,
                stands,
            )

    # Records.

    def check_records(self) -> None:
        """Indexes, counts and inboxes are what holds, requests and messages imply."""
        records = self.store.scan("", by="key", limit=ALL)
        self.mail.check([one for one in records if one.key.startswith(MAIL)])
        by_owner = Counter(held.owner for held in self.oracle.locks.values())
        index = Counter(one.key.split("/")[1] for one in records if one.key.startswith("held/"))
        require(by_owner == index, "locks by session differ from the locks:", by_owner, index)
        locks = {one.key for one in records if one.key.startswith("lock/")}
        require(locks == self.oracle.locks.keys(), "other locks than the log tells of")
        standing = [one for one in self.oracle.locks.values() if not one.over(self.oracle.newest_ms)]
        require(_apart(standing, self.oracle), "two holds exclude each other")


def _names(session: str, command: Any) -> bool:
    """Whether a session is the caller's, or one that a second process under its id was given."""
    caller = command.caller.session
    return session == caller or session.startswith(f"{caller}~")


def _may_be_over(held: Grant, nows: list[int]) -> bool:
    return held.preempt_ms > 0 or any(held.over(now) for now in nows)


def _apart(locks: list[Grant], oracle: LockOracle) -> bool:
    return not any(
        overlap(one.thing, other.thing)
        and not one.mode == other.mode == "read"
        and one.owner != other.owner
        and one.owner not in oracle.ancestors(other.owner)
        and other.owner not in oracle.ancestors(one.owner)
        for number, one in enumerate(locks)
        for other in locks[:number]
    )
