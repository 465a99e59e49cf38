"""Test the rules of plans: one project on a memory store, with a clock that the test moves."""

from typing import Any

from coord.core import keys
from coord.core.identity import Caller
from coord.core.plans.commands import AddTasks, ClaimNext, GetTasks, NewTask, NextTask
from coord.core.records import decode
from coord.core.tasks.commands import ReleaseClaim, ResetTask, SubmitResult
from coord.core.tasks.schema import Track
from coord.core.tasks.types import ReleaseReason
from coord.engine.engine import SWEEP_EVERY_MS, Engine
from coord.stores.open import open_store

LEASE_MS = 60_000


class PlanHarness:
    """Agents by name; each is its own session."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000
        self.database = open_store("memory:")
        self.engine = Engine(self.database, "local", clock=lambda: self.now)

    def add(self, name: str, *depends_on: str, **fields: Any) -> None:
        self.engine.call(AddTasks("p", (NewTask(task_id=name, depends_on=depends_on, **fields),)))

    def add_all(self, tasks: dict[str, tuple[str, ...]]) -> None:
        """Add tasks with what each depends on."""
        new = [NewTask(task_id=name, depends_on=depends_on) for name, depends_on in tasks.items()]
        for at in range(0, len(new), 500):
            self.engine.call(AddTasks("p", tuple(new[at : at + 500])))

    @staticmethod
    def next_command(agent: str, **options: Any) -> ClaimNext:
        caller = Caller(agent, agent=agent)
        options = {"lease_ms": LEASE_MS, "repository": "r", **options}
        return ClaimNext(caller=caller, tenant="local", project="p", **options)

    def ask(self, agent: str = "ann", **options: Any) -> NextTask:
        reply: NextTask = self.engine.call(self.next_command(agent, **options))
        return reply

    def take(self, agent: str = "ann", **options: Any) -> str:
        """Take the next task; return its name, or which nothing there is."""
        reply = self.ask(agent, **options)
        return reply.outcome.value if reply.task is None else reply.task.task_id

    def submit(self, name: str, agent: str = "ann", generation: int = 1) -> bool:
        return bool(self.engine.call(self.submission(name, agent, generation)).accepted)

    @staticmethod
    def submission(name: str, agent: str, generation: int = 1) -> SubmitResult:
        return SubmitResult("local", "p", name, agent, generation, b"{}", "wp")

    def fail(self, name: str, agent: str = "ann", generation: int = 1, *, final: bool = False) -> None:
        reason = ReleaseReason.ERROR
        assert self.engine.call(
            ReleaseClaim("local", "p", name, agent, generation, reason, "", final)
        ).success

    def release(self, name: str, agent: str = "ann", generation: int = 1) -> None:
        reason = ReleaseReason.VOLUNTARY
        assert self.engine.call(ReleaseClaim("local", "p", name, agent, generation, reason)).success

    def reset(self, name: str) -> None:
        assert self.engine.call(ResetTask("local", "p", name)).success

    def states(self, *names: str) -> list[str]:
        return [task.state for task in self.engine.call(GetTasks("p", names)).tasks]

    def counted(self, state: str) -> int:
        return sum(task.state == state for task in self.engine.call(GetTasks("p", limit=10_000)).tasks)

    def pass_time(self, ms: int = SWEEP_EVERY_MS) -> None:
        """Let time pass, and somebody sweep."""
        self.now += ms
        command = ClaimNext(caller=Caller("clerk"), tenant="local", project="other", lease_ms=1)
        self.engine.call(command)

    def on_track(self, name: str) -> dict[str, int]:
        """Who is counted on a track."""
        key = keys.track("p", name)
        value = self.database.log("local").load([key])[key].value
        return {} if value is None else decode(value, Track, key).agents
