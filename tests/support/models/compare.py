"""The real thing and the model side by side: what happens to one happens to both, and all is compared."""

import json
from collections import Counter
from typing import Any, NamedTuple

from coord.core import keys
from coord.core.commands import Command
from coord.core.limits import Count, SetLimits
from coord.core.records import decode
from coord.core.sweep import Sweep
from coord.core.tasks.commands import (
    ClaimTask,
    ClaimTasks,
    GetClaimHistory,
    GetSessionClaims,
    GetTaskStates,
    ListExpiredClaims,
    ReleaseClaim,
    RenewLease,
    ResetTask,
    SubmitResult,
)
from coord.core.tasks.schema import Task
from coord.core.tasks.types import ClaimHistory, ClaimState, ReleaseReason, TaskState
from coord.engine.engine import Engine
from coord.stores.contract import Store
from coord.stores.open import open_store
from tests.support.models.naive_tasks import Key, Model

START_MS = 1_700_000_000_000
NEVER_MS = 2**60
TENANTS = ("local", "acme")
TASKS: list[Key] = [
    ("local", "p", "t"),
    ("local", "q", "t"),
    ("acme", "p", "t"),
    ("acme", "p", "u"),
    ("acme", "q", "t"),
]
SESSIONS = ("s1", "s2", "s3")


class Step(NamedTuple):
    """One command about one task; who speaks and which generation is named follow from the model."""

    name: str
    key: Key
    speaker: str | None = None
    offset: int = 0
    lease_ms: int = 0
    reason: str = ""
    data: int = 0


def shown_reply(reply: Any) -> tuple[object, ...]:
    """Return a reply as the model gives it."""
    match type(reply).__name__:
        case "ClaimResult":
            number = None if reply.claim is None else reply.claim.generation.generation
            return (reply.reason, number, reply.current_holder)
        case "RenewalResult":
            return (reply.reason, reply.new_expiry_ms)
        case "ReleaseResult":
            return (reply.reason,)
        case "SubmissionResult":
            return (reply.reason, reply.current_generation, reply.work_lost)
        case _:
            return (reply.reason, reply.generation)


class TaskComparison:
    """Five tasks of two tenants, on the memory store and in the model.

    An engine that does not sweep of its own accord leaves the books as far behind the clock as can be.
    """

    def __init__(self, *, sweeps_itself: bool = True) -> None:
        self.now = START_MS
        self.model = Model()
        self.model.pass_time(self.now)
        self.database = open_store("memory:")
        self.engines = {tenant: Engine(self.database, tenant, clock=lambda: self.now) for tenant in TENANTS}
        self.sweeps_itself = sweeps_itself
        self.reasons: set[object] = set()
        self.accepted: Counter[Key] = Counter()
        self.highest: Counter[Key] = Counter()
        self.touched: set[str] = set()
        self.heads = {tenant: self.database.log(tenant).seen for tenant in TENANTS}

    def close(self) -> None:
        for engine in self.engines.values():
            engine.close()
        self.database.close()

    def call(self, tenant: str, *asked: Command) -> list[Any]:
        engine = self.engines[tenant]
        self.touched.add(tenant)
        if not self.sweeps_itself:
            engine._sweep_at = NEVER_MS
        return engine.call_many(asked)

    # What can happen.

    def batch(self, steps: list[Step]) -> None:
        """One commit for all commands of a tenant; each sees what the earlier ones did."""
        for tenant in TENANTS:
            self.carry_out([step for step in steps if step.key[0] == tenant])

    def claim_many(self, session: str, lease_ms: int, wanted: list[Key]) -> None:
        """One command for several tasks of each tenant."""
        for tenant in TENANTS:
            mine = [key for key in wanted if key[0] == tenant]
            expected = [self.model.claim(key, session, lease_ms, force=False) for key in mine]
            tasks = tuple(key[1:] for key in mine)
            (replies,) = self.call(tenant, ClaimTasks(tenant, "agent", session, lease_ms, tasks))
            assert [shown_reply(reply) for reply in replies] == expected

    def time_passes(self, ms: int) -> None:
        self.now += ms
        self.model.pass_time(self.now)
        self.touched.update(TENANTS)

    def a_deadline_comes(self, past_ms: int) -> None:
        """Stop just before, at, or just after the next deadline, where everything turns."""
        deadlines = [task.last.expires_ms for task in self.model.tasks.values() if task.valid()]
        self.time_passes(max(0, min(deadlines, default=self.now) + past_ms - self.now))

    def sweep(self, tenant: str, most: int) -> None:
        self.call(tenant, Sweep(tenant, most))

    def limits_change(self, name: str, number: int) -> None:
        self.model.limits["acme"][name] = number
        self.call("acme", SetLimits("", {name: number}))

    def carry_out(self, steps: list[Step]) -> None:
        """Ask model and engine for the same; all replies must be equal."""
        if not steps:
            return
        asked, expected = [], []
        for step in steps:
            command, reply = self.ask_model(step)
            asked.append(command)
            expected.append(reply)
        replies = self.call(steps[0].key[0], *asked)
        self.reasons.update(reply[0] for reply in expected)
        assert [shown_reply(reply) for reply in replies] == expected

    def ask_model(self, step: Step) -> tuple[Command, tuple[object, ...]]:
        key, lease_ms = step.key, step.lease_ms
        task = self.model.tasks[key]
        session = step.speaker or (task.last.session if task.number else SESSIONS[0])
        number = max(0, task.number + step.offset)
        match step.name:
            case "claim" | "force":
                force = step.name == "force"
                command: Command = ClaimTask(
                    *key, "agent", session, lease_ms, force=force, reason="why" if force else ""
                )
                return command, self.model.claim(key, session, lease_ms, force=force)
            case "renew":
                return RenewLease(*key, session, number), self.model.renew(key, session, number)
            case "release":
                command = ReleaseClaim(*key, session, number, ReleaseReason(step.reason))
                return command, self.model.release(key, session, number, step.reason)
            case "submit":
                result = json.dumps({"n": step.data})
                command = SubmitResult(*key, session, number, result.encode(), f"wp-{step.data}")
                reply = self.model.submit(key, session, number, result)
                if reply[0] == "ACCEPTED":
                    self.accepted[key] += 1
                    assert number == task.number, "only the highest generation"
                return command, reply
            case _:
                self.accepted[key] = 0
                return ResetTask(*key), self.model.reset(key)

    # What must stay true (001 §2.2), after every step.

    def check(self) -> None:
        """Whatever can be asked is answered as in the model; a tenant that was not asked has not moved."""
        for tenant in TENANTS:
            log = self.database.log(tenant)
            if tenant in self.touched:
                self.check_tasks(tenant)
                self.check_books(log)
            else:
                assert log.seen == self.heads[tenant], "TEN-6: another tenant's command changes nothing here"
            self.heads[tenant] = log.seen
        self.touched.clear()

    def check_tasks(self, tenant: str) -> None:
        mine = [key for key in TASKS if key[0] == tenant]
        states, expired, *rest = self.call(
            tenant,
            GetTaskStates(tenant, tuple(key[1:] for key in mine)),
            ListExpiredClaims(tenant),
            *(GetClaimHistory(*key) for key in mine),
            *(GetSessionClaims(tenant, session) for session in SESSIONS),
        )
        for key, state, history in zip(mine, states, rest, strict=False):
            self.check_state(key, state)
            self.check_history(key, history)
        held = [
            (claim.project_id, claim.task_id, claim.session_id)
            for some in rest[len(mine) :]
            for claim in some
        ]
        assert sorted(held) == sorted(
            (*key[1:], holder) for key, holder in self.model.active(tenant).items()
        ), "CLM-23: the claims of all sessions together are the valid ones, each task at most once"
        listed = [(claim.expires_ms, (tenant, claim.project_id, claim.task_id)) for claim in expired]
        assert listed == self.model.expired(tenant), "CLM-25: listed, whether swept or not"

    def check_state(self, key: Key, state: TaskState) -> None:
        task = self.model.tasks[key]
        assert state.generation == task.number
        assert state.generation >= self.highest[key], "CLM-22: a generation only rises"
        self.highest[key] = state.generation
        if state.claim is None:
            assert task.open
        else:
            assert (state.claim.state is ClaimState.ACTIVE) is task.valid()
            shown = (state.claim.session_id, state.claim.expires_ms)
            assert shown == (task.last.session, task.last.expires_ms)
        assert state.completed is task.done
        assert (json.dumps(state.result.result_data) if state.result else "") == task.result
        assert self.accepted[key] <= 1, "CLM-62: accepted once until a reset"
        rejected: dict[tuple[str, int, str, str], tuple[int, int]] = {
            ("submit", r.generation, r.session_id, str(r.rejection_reason)): (r.submitted_ms, r.times)
            for r in state.rejected
        }
        refused: dict[tuple[str, int, str, str], tuple[int, int]] = {
            (str(r.operation), r.generation, r.session_id, r.reason): (r.refused_ms, r.times)
            for r in state.refused
        }
        assert rejected | refused == task.refused

    def check_history(self, key: Key, history: list[ClaimHistory]) -> None:
        task = self.model.tasks[key]
        ended = [
            (number, g.session, g.claimed_ms, g.end_reason, g.ended_ms, g.end_reason == "COMPLETED")
            for number, g in enumerate(task.generations, 1)
            if g.end_reason
        ]
        told = [
            (e.generation, e.session_id, e.acquired_ms, e.release_reason, e.released_ms, e.result_accepted)
            for e in history
        ]
        assert told == ended
        numbers = [entry[0] for entry in told] + [task.number] * task.valid()
        assert numbers == list(range(1, task.number + 1)), "CLM-21: gap-free with the current one"

    def check_books(self, log: Store) -> None:
        """DESIGN §3: counts and index equal the records; the due line holds exactly the active claims."""
        records = {record.key: record for record in log.scan("", by="key", limit=10_000)}
        active = Counter[str]()
        for key, record in records.items():
            if key.startswith("task/"):
                task = decode(record.value or b"", Task, key)
                held = task.claim is ClaimState.ACTIVE
                assert record.index_key == (keys.due(task.expires_ms) if held else "")
                assert (f"by-session/{task.session}/{key[5:]}" in records) is held
                active[task.session] += held
        assert sum(key.startswith("by-session/") for key in records) == active.total()
        counts = {
            key: decode(record.value or b"", Count, key).n
            for key, record in records.items()
            if key.startswith("count/")
        }
        expected = {f"count/session/{session}": n for session, n in active.items() if n}
        if counts:
            expected |= {"count/claims": active.total(), "count/sessions": len(expected)}
        assert counts == (expected if log is self.database.log("acme") else {})
        offsets = [entry.offset for entry in log.tail(0, 10_000)]
        assert offsets == list(range(1, len(offsets) + 1)), "one order without gaps"
