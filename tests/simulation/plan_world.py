"""The world of plans: agents take what is ready, and at the end all is done, or stuck as a model says."""

from typing import Any

from coord.core.commands import Command
from coord.core.errors import CoordError
from coord.core.plans.commands import AddTasks, NextTask, RetryTask, Runnable, SetTrack
from coord.core.tasks.commands import SubmitResult
from coord.stores.contract import Commit
from tests.linearizability.ledger import require
from tests.simulation.agents import Ask
from tests.simulation.oracles.plans import OVER, PlanOracle
from tests.simulation.plan_agents import PlanAgent, PlanMemory, addition
from tests.simulation.plan_observer import PlanObserver
from tests.simulation.plan_setting import NEEDS, PROJECT, TYPES, PlanSetting, draw_plan_setting
from tests.simulation.process import Process
from tests.simulation.scheduler import Scheduler
from tests.simulation.setting import CALM

LEASE_MS = 60_000
CLOSING_CALLS = 5_000
ABLE = ("gpu",)
DEPTH_MAX = 2


class PlanWorld(Scheduler):
    """Agents that carry out one plan."""

    skews_ms = (0, 0, 0, 0, -2_000, 2_000, 2_000, -15_000, 15_000, -25_000, 25_000)

    def _draw_setting(self) -> PlanSetting:
        return draw_plan_setting(self.seed, self.chance)

    def _new_observer(self) -> PlanObserver:
        return PlanObserver(self.store, PROJECT, PlanOracle(self.plan.tasks, self.plan.agents_max))

    def committed(self, commit: Commit, offset: int) -> None:
        self.observer.committed(commit, offset)

    def interleave(self, steps: int) -> None:
        """Let others run inside a call: a command about work calls its store so often that few levels do."""
        if len(self._stack) <= DEPTH_MAX and self._steps < self.plan.steps:
            super().interleave(steps)

    def _new_memory(self) -> PlanMemory:
        types = tuple(sorted({self.chance.choice(TYPES), self.chance.choice(TYPES)} - {""}))
        has = tuple({self.chance.choice(NEEDS)} - {""})
        return PlanMemory(f"s{len(self.sessions):03}", types=types, has=has)

    def _new_agent(self, process: Process, memory: PlanMemory) -> PlanAgent:
        return PlanAgent(self, process, memory)

    def _begin(self) -> None:
        """A part of the plan is there from the beginning; the rest is added while others work."""
        self.weather = CALM
        process = self.processes[0]
        tasks = tuple(self.plan.tasks.values())
        for track, most in self.plan.agents_max.items():
            self.ask_now(process, Ask(SetTrack(PROJECT, track, most)))
        self.ask_now(process, Ask(AddTasks(PROJECT, tasks[: self.chance.randint(1, len(tasks))])))
        self.weather = self.plan.weather

    def addition(self) -> AddTasks:
        """Add a few more of the plan, in its order; what was added before comes along."""
        known, tasks = len(self.observer.oracle.base), tuple(self.plan.tasks.values())
        return addition(tasks[max(0, known - 2) : known + self.chance.randint(0, 3)] or tasks[:1])

    # The end.

    def _finish(self) -> None:
        """One who can do everything takes what is left; what is stuck is brought back until all is done."""
        process = Process(self, "last")
        agent = PlanAgent(self, process, PlanMemory("last", has=ABLE))
        self._call(process, addition(tuple(self.plan.tasks.values())))
        for _ in range(CLOSING_CALLS):
            reply = self._call(process, agent.next_command(LEASE_MS))
            match reply.outcome:
                case Runnable.TASK:
                    self._submit(process, reply)
                case Runnable.BLOCKED:
                    self.pass_time(max(1, reply.look_ms - self.wall_ms(process)) * 1000)
                case Runnable.DEADLOCKED:
                    self._bring_back(process)
                case _:
                    break
        states = {task: self.observer.oracle.state(task) for task in self.plan.tasks}
        require(set(states.values()) <= set(OVER), "not all was carried out:", states)
        twice = {task: n for task, n in self.observer.oracle.accepted.items() if n != 1}
        require(not twice, "done more than once:", twice)

    def _submit(self, process: Process, reply: NextTask) -> None:
        assert reply.task is not None
        assert reply.claim is not None
        names = ("local", PROJECT, reply.task.task_id, "last", int(reply.claim.generation))
        done = self._call(process, SubmitResult(*names, b"{}", f"wp-{self.draw_id()}"))
        require(done.accepted, "the only holder was refused:", done)

    def _bring_back(self, process: Process) -> None:
        """Nothing comes by itself: so there is something that failed, and it can be tried once more."""
        oracle = self.observer.oracle
        failed = [task for task, base in oracle.base.items() if base in ("failed", "errored")]
        require(failed, "stuck, and nothing failed:", oracle.base)
        for task in failed:
            self._call(process, RetryTask("local", PROJECT, task))

    def _call(self, process: Process, command: Command) -> Any:
        reply = self.ask_now(process, Ask(command))
        if isinstance(reply, CoordError) and "ahead of the clock" in reply.message:
            self._inside(process, process.engine.accept_clock)
            reply = self.ask_now(process, Ask(command))
        require(not isinstance(reply, CoordError), "refused in good weather:", command, repr(reply))
        return reply

    # What is told.

    def brief(self, ask: Ask) -> str:
        command: Any = ask.command
        fields = [getattr(command, name, "") for name in ("task", "session", "generation", "resources")]
        return " ".join(str(each) for each in (type(command).__name__, *fields, ask.command_id) if each)

    def describe_reply(self, reply: Any) -> str:
        if isinstance(reply, CoordError):
            return f"{type(reply).__name__} ({reply.message})"
        if isinstance(reply, NextTask):
            claim = (
                f"{reply.task.task_id}#{int(reply.claim.generation)}" if reply.task and reply.claim else ""
            )
            return " ".join([reply.outcome.value, claim, *reply.waiting_for[:3]])
        return str(reply)[:120]
