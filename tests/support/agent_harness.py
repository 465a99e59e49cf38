"""Run the rules of tasks as agents who take tasks, fail and succeed."""

from typing import Any

from coord.core import keys
from coord.core.identity import Caller
from coord.core.plans.commands import AddTasks, ClaimNext, NewTask
from coord.core.tasks.commands import ReleaseClaim, SubmitResult
from coord.core.tasks.schema import AgentRecord, AgentTrackRecords, TrackRecord
from coord.core.tasks.types import ReleaseReason
from tests.support.rule_harness import T0, RuleHarness

ANN, BOB = Caller("ann-1", agent="ann"), Caller("bob-1", agent="bob")
LEASE_MS = 60_000


class AgentHarness(RuleHarness):
    """A harness with tasks that were added."""

    def __init__(self, *names: str, **fields: Any) -> None:
        super().__init__()
        self.run(AddTasks("p", tuple(NewTask(task_id=name, **fields) for name in names)))

    def next(self, caller: Caller = ANN, now: int = T0, **choice: Any) -> Any:
        command = ClaimNext(caller=caller, tenant="local", project="p", lease_ms=LEASE_MS, **choice)
        return self.run(command, now).reply

    def taken(self, caller: Caller = ANN, now: int = T0) -> tuple[str, int]:
        reply = self.next(caller, now)
        assert reply.task is not None, reply.waiting_for
        return reply.task.task_id, reply.task.generation

    def give_back(self, task: str, generation: int, *, now: int = T0, **fields: Any) -> Any:
        command = ReleaseClaim("local", "p", task, "ann-1", generation, **fields)
        return self.run(command, now)

    def fail(self, task: str, generation: int, *, now: int = T0) -> None:
        assert self.give_back(task, generation, now=now, reason=ReleaseReason.ERROR).reply.success

    def do(self, task: str, generation: int, *, now: int = T0, session: str = "ann-1") -> Any:
        outcome = self.run(SubmitResult("local", "p", task, session, generation, b"{}", "wp"), now)
        assert outcome.reply.accepted
        return outcome

    def record(self, agent: str = "ann") -> AgentRecord:
        return self.read(keys.agent("p", agent), AgentRecord)

    def track_record(self, agent: str = "ann") -> dict[str, TrackRecord]:
        return self.read(keys.track_record("p", agent, f"{agent}-1"), AgentTrackRecords).types
