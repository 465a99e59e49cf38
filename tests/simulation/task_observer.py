"""Watches a run from outside: who asked for what, what was answered, what the log says; and compares."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from coord.core.errors import Busy, CoordError, Unavailable, Unknown
from coord.core.tasks import types
from coord.core.tasks.commands import ClaimTasks
from coord.stores.contract import Entry, Store
from tests.linearizability.answers import answer, operations
from tests.linearizability.explain import explain, match_all
from tests.linearizability.ledger import Ledger, after, require
from tests.linearizability.task_model import Answer, Op
from tests.simulation.agents import Ask
from tests.simulation.oracles.tasks import check_task_records
from tests.simulation.process import Process

RECORDS_EVERY = 80
"""Between two looks at all records, in entries of the log."""
PAGE = 1_000
LOST = -1
"""The end of an operation that may have happened although nobody heard of it."""


@dataclass(slots=True)
class Asked:
    """An operation under way."""

    ops: list[Op]
    ask: Ask
    process: Process
    first_reading: int


class TaskObserver:
    """Every operation and every entry of one run."""

    def __init__(self, store: Store, tenant: str) -> None:
        self.store = store
        self.tenant = tenant
        self.ledger = Ledger()
        self.entries: list[Entry] = []
        self.ops: list[Op] = []
        self.counts: Counter[str] = Counter()
        self._unheard: dict[str, list[Op]] = {}
        self._said: dict[str, Answer | None] = {}
        self._records_at = RECORDS_EVERY

    def begin(self, process: Process, ask: Ask) -> Asked:
        """Somebody asks. A command id that was asked before without an answer is the same operation still."""
        ops = self._unheard.get(ask.command_id)
        if ops is None:
            ops = operations(ask.command)
            for op in ops:
                op.begin, op.nows = self.store.seen.offset, []
            self.ops += ops
            if ask.command_id:
                self._unheard[ask.command_id] = ops
        return Asked(ops, ask, process, len(process.readings))

    def end(self, asked: Asked, reply: Any) -> None:
        """Somebody is answered: the log must explain it, now."""
        self._note_times(asked)
        self.pull()
        if isinstance(reply, CoordError):
            self._end_in_error(asked, reply)
            return
        several = isinstance(asked.ask.command, ClaimTasks)
        for op, part in zip(asked.ops, reply if several else [reply], strict=True):
            self._end_one(asked, op, part)

    def _end_one(self, asked: Asked, op: Op, reply: Any) -> None:
        op.answer = answer(reply)
        op.end = self.store.seen.offset
        self.counts[_shown(op)] += 1
        if asked.ask.command_id and self._answered_before(asked.ask.command_id, op):
            return
        explain(self.ledger, op)
        if isinstance(reply, types.TaskState):
            self._check_state(op, reply)

    def _answered_before(self, command_id: str, op: Op) -> bool:
        """Whether this id had the same answer before: then a change must not have been made once more."""
        self._unheard.pop(command_id, None)
        said, self._said[command_id] = self._said.get(command_id), op.answer
        if said is None or said != op.answer:
            return False
        if op.wrote:
            self.ops.remove(op)  # so that a second event would have no author
        self.counts["answered again"] += 1
        return True

    def lose(self, asked: Asked) -> None:
        """The asking process died: the outcome is unknown."""
        self._note_times(asked)
        self._mark_lost(asked)
        self.counts["asker died"] += 1

    def withdraw(self, asked: Asked) -> None:
        """The asker went away before the command was begun: nothing may have happened."""
        self._drop(asked)
        self.counts["withdrawn"] += 1

    def _end_in_error(self, asked: Asked, error: CoordError) -> None:
        self.counts[f"error {error.code}"] += 1
        caused = isinstance(error, (Busy, Unavailable, Unknown)) and "defect" not in error.hint
        require(caused, "an error that nobody caused:", repr(error), repr(error.__cause__))
        if isinstance(error, Unknown):
            self._mark_lost(asked)
        else:
            self._drop(asked)

    def _mark_lost(self, asked: Asked) -> None:
        for op in asked.ops:
            op.end = LOST

    def _drop(self, asked: Asked) -> None:
        """Nothing happened (this time), so nothing has to be explained; an event would have no author."""
        if asked.ops[0].end != LOST:
            for op in asked.ops:
                self.ops.remove(op)
            self._unheard.pop(asked.ask.command_id, None)

    def _note_times(self, asked: Asked) -> None:
        for op in asked.ops:
            op.nows = [*op.nows, *(now for now, _ in asked.process.readings[asked.first_reading :])]

    def _check_state(self, op: Op, reply: types.TaskState) -> None:
        """The result is the one handed in under this generation; who was turned away is listed."""
        if reply.result is not None:
            by = (reply.result.result_data or {}).get("by")
            require(str(reply.result.work_product_ref).endswith(f"-{by}"), "the result of another:", reply)
        listed = {(one.generation, one.session_id) for one in reply.rejected}
        for (kind, task, session, generation), events in self.ledger.happened.items():
            rejected = [one.position for one in events if kind == "submit" and one.answer[0] != "ACCEPTED"]
            if task == op.task and rejected:
                early, late = rejected[0] <= after(op.begin), rejected[0] > after(op.end)
                shown = (generation, session) in listed
                require(shown or not early, "a rejection is not listed:", generation, session, op)
                require(not (shown and late), "a rejection is listed before it happened:", op)

    def pull(self) -> None:
        """Read what is new in the log."""
        while entries := self.store.tail(self.ledger.head, PAGE):
            for entry in entries:
                self.ledger.add(entry)
            self.entries += entries
        if self.ledger.head >= self._records_at:
            self._records_at = self.ledger.head + RECORDS_EVERY
            check_task_records(self.store, self.ledger, self.tenant)

    def conclude(self) -> None:
        """At the end: each event has one author, each change one event, and the records are right."""
        self.pull()
        match_all(self.ledger, self.ops)
        check_task_records(self.store, self.ledger, self.tenant)


def _shown(op: Op) -> str:
    outcome = op.answer[0] if op.answer else None
    return f"{op.kind} {outcome}" if isinstance(outcome, str) else op.kind
