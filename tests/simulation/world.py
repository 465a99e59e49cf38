"""The world of tasks: agents claim, renew and hand in, and every task must come to one accepted result."""

from typing import Any

from coord.core.errors import CoordError
from coord.core.limits import SetLimits
from coord.core.tasks.types import ClaimResult
from tests.linearizability.answers import answer
from tests.linearizability.ledger import require
from tests.simulation.agents import Ask, Memory
from tests.simulation.finish import finish
from tests.simulation.process import Process
from tests.simulation.scheduler import Scheduler
from tests.simulation.setting import CALM, TaskSetting, draw
from tests.simulation.task_observer import TaskObserver
from tests.simulation.workers import Worker


class World(Scheduler):
    """Agents that work on tasks."""

    def _draw_setting(self) -> TaskSetting:
        return draw(self.seed, self.chance)

    def _new_observer(self) -> TaskObserver:
        self.tasks = [f"p{n % 2}/t{n}" for n in range(self.plan.tasks)]
        return TaskObserver(self.store, self.plan.tenant)

    def _new_memory(self) -> Memory:
        return Memory(f"s{len(self.sessions)}")

    def _new_agent(self, process: Process, memory: Memory) -> Worker:
        return Worker(self, process, memory)

    def _begin(self) -> None:
        if self.plan.limits:
            process = self.processes[0]
            self.weather = CALM
            limits = process.engine.call(SetLimits(limits=self.plan.limits))
            require(self.plan.limits.items() <= limits.items(), "other limits than asked for:", limits)
            self.weather = self.plan.weather

    def _finish(self) -> None:
        finish(self)

    def brief(self, ask: Ask) -> str:
        command = ask.command
        fields = [getattr(command, name, "") for name in ("task", "session", "generation")]
        return " ".join(str(each) for each in (type(command).__name__, *fields, ask.command_id) if each != "")

    def describe_reply(self, reply: Any) -> str:
        if isinstance(reply, CoordError):
            return f"{type(reply).__name__} ({reply.message})"
        if isinstance(reply, list) and reply and isinstance(reply[0], ClaimResult):
            return ", ".join(map(self.describe_reply, reply))
        return " ".join(str(part) for part in answer(reply) if part is not None) or "nothing"
