"""Who hears of every question about a plan, and holds each answer against all that was true meanwhile."""

from collections import Counter
from typing import Any, NamedTuple

from coord.core import keys
from coord.core.errors import Busy, Conflict, CoordError, Unavailable, Unknown
from coord.core.plans.commands import ClaimNext, NextTask, Runnable
from coord.core.records import decode
from coord.core.tasks.schema import Task
from coord.stores.contract import Commit
from tests.linearizability.ledger import require
from tests.simulation.agents import Ask
from tests.simulation.oracles.plans import PlanOracle, Snapshot
from tests.simulation.plan_records import check_records
from tests.simulation.process import Process

RECORDS_EVERY = 25
"""After so many commits the records are looked at."""


class Asked(NamedTuple):
    """A question under way, and the first moment at which it may have been answered."""

    ask: Ask
    since: int


class PlanObserver:
    """Reads the log, hears the answers, compares."""

    def __init__(self, store: Any, project: str, oracle: PlanOracle) -> None:
        self.store = store
        self.project = project
        self.oracle = oracle
        self.counts: Counter[str] = Counter()
        self.ops: list[tuple[str, str]] = []
        self.entries: list[tuple[int, list[bytes]]] = []
        self._since: dict[str, int] = {}
        self._records_at = 0

    def committed(self, commit: Commit, offset: int) -> None:
        """A commit took place just now."""
        if not commit.writes:
            return
        self.entries.append((offset, list(commit.events)))
        self.oracle.read(commit.events, offset, commit.at)
        for name in [
            name for name in self.oracle.paused_until if keys.task(self.project, name) in commit.puts
        ]:
            key = keys.task(self.project, name)
            if not decode(commit.puts[key].value, Task, key).retry_ms:
                self.oracle.end_pause(name)  # no event tells
        if offset >= self._records_at:
            self._records_at = offset + RECORDS_EVERY
            check_records(self.store, self.project, self.oracle)

    def begin(self, _process: Process, ask: Ask) -> Asked:
        since = len(self.oracle.snapshots) - 1
        if ask.command_id:  # the answer may be that of an earlier time
            since = self._since.setdefault(ask.command_id, since)
        return Asked(ask, since)

    def end(self, asked: Asked, reply: Any) -> None:
        command = asked.ask.command
        name = type(command).__name__
        self.ops.append((name, repr(reply)))
        if isinstance(reply, CoordError):
            self.counts[f"error {reply.code}"] += 1
            defect = "defect" in reply.hint or isinstance(reply, Conflict)
            outage = isinstance(reply, Busy | Unavailable | Unknown)
            require(outage or not defect, "an error that nobody caused:", repr(reply), repr(reply.__cause__))
        elif isinstance(command, ClaimNext):
            self.counts[f"next {reply.outcome.value}"] += 1
            self._check_next(command, asked.since, reply)
        else:
            summary = getattr(reply, "reason", None) or getattr(reply, "outcome", "")
            self.counts[f"{name} {getattr(summary, 'value', summary)}".strip()] += 1

    def lose(self, _asked: Asked) -> None:
        self.counts["asker died"] += 1

    def withdraw(self, _asked: Asked) -> None:
        self.counts["withdrawn"] += 1

    def pull(self) -> None:
        """Everything was read when it was committed."""

    def conclude(self) -> None:
        check_records(self.store, self.project, self.oracle)

    def _check_next(self, command: ClaimNext, since: int, reply: NextTask) -> None:
        """Hold an answer against what was true all the while; what came or went meanwhile may be missed.

        A scan is no expectation of a commit: whoever is told of nothing looks again when more is written.
        Only that nothing will ever come must have been true of one moment, but for tasks just added.
        """
        oracle = self.oracle
        if reply.ok:
            require(len(reply.more) < command.limit, "more than was asked for:", reply)
            self.counts["next several"] += bool(reply.more)
            for each in (reply, *reply.more):
                self._check_turn(command, since, each)
            return
        if any("gets no task:" in why for why in reply.waiting_for):
            self.counts["next held back"] += 1
            require(oracle.failures(command.caller.agent), "held back without a failure:", command.caller)
            return
        window = oracle.snapshots[since:]
        missed = self._all_the_while(command, window)
        require(not missed, "a ready task was missed:", missed, reply)
        known = window[0].unfinished
        match reply.outcome:
            case Runnable.DONE:
                fits = not frozenset.intersection(*(snapshot.unfinished for snapshot in window))
            case Runnable.DEADLOCKED:
                fits = any(snapshot.unfinished and not snapshot.moving & known for snapshot in window)
            case Runnable.BLOCKED:
                fits = any(snapshot.unfinished for snapshot in window)
            case _:
                fits = False
        require(fits, "another nothing than there was:", reply)

    def _check_turn(self, command: ClaimNext, since: int, reply: NextTask) -> None:
        """Hold a claim against what waited all the while: nothing of an earlier turn may have."""
        oracle = self.oracle
        assert reply.task is not None
        assert reply.claim is not None
        claim = (reply.task.task_id, int(reply.claim.generation))
        require(claim in oracle.claimed_at, "a claim that is not in the log:", claim)
        until = oracle.claimed_at[claim]
        passed_over = self._all_the_while(command, oracle.snapshots[min(since, until - 1) : until])
        first = min((oracle.rank[task] for task in passed_over), default=oracle.rank[claim[0]])
        # Who met a conflict begins with any of those whose turn is in the same second.
        require(first[0] // 1000 >= oracle.rank[claim[0]][0] // 1000, first[1], "had its turn before", claim)

    def _all_the_while(self, command: ClaimNext, window: list[Snapshot]) -> set[str]:
        return set.intersection(*(self.oracle.takeable(snapshot, command) for snapshot in window))
