"""One run: virtual time, a scheduler in one thread, processes with engines, and checks after every step.

Everything that happens follows from the seed. A store call of one process may hand the scheduler its turn;
the steps of other processes then run inside that call, on their own engines, as they would run beside it.
What the agents do and what has to be true is said by `World` (tasks) and `LockWorld` (sessions and locks).
"""

import hashlib
import random
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from coord.core.errors import Busy, Conflict, CoordError, Unavailable
from coord.core.identity import NO_EVIDENCE, Evidence
from coord.core.identity import Process as HostProcess
from coord.core.page.state import PageState
from coord.stores.contract import Commit
from coord.stores.memory import MemoryDatabase
from tests.linearizability.ledger import require
from tests.simulation.agents import Agent, Ask, Memory, Rest
from tests.simulation.faulty_store import Killed
from tests.simulation.oracles.metrics import MetricsOracle
from tests.simulation.oracles.page import check_page
from tests.simulation.process import Process
from tests.simulation.setting import CALM, Setting

START_MS = 1_700_000_000_000
DEPTH_MAX = 5
PAGE_STEPS = 50
"""How often the page is compared with the records."""
SKEWS_MS = (0, 0, 0, 0, 0, -2_000, 2_000, 2_000, -15_000, 15_000, 15_000, -40_000, 40_000, -600_000, 600_000)


class Observer(Protocol):
    """Who hears of every operation and every entry of a run, and compares."""

    counts: Any
    ops: Any
    entries: Any

    def begin(self, process: Process, ask: Ask) -> Any: ...
    def end(self, asked: Any, reply: Any) -> None: ...
    def lose(self, asked: Any) -> None: ...
    def withdraw(self, asked: Any) -> None: ...
    def pull(self) -> None: ...
    def conclude(self) -> None: ...


class Scheduler:
    """Everything that takes part, and everything that is known about it."""

    skews_ms: ClassVar[tuple[int, ...]] = SKEWS_MS

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.plan: Any = self._draw_setting()
        self.weather = self.plan.weather
        self.now_us = 0
        database = MemoryDatabase("memory:", "simulation")
        self.store = database.log(self.plan.tenant)
        self.metrics = MetricsOracle(self, database)
        self.observer: Any = self._new_observer()
        self.sessions: list[str] = []
        self.in_flight: list[Commit] = []
        self.trace: list[str] = []
        self._ids = 0
        self._server_skew_ms = 0
        self._stack: list[Process] = []
        self._steps = 0
        self._ahead = 0
        self._orphans: list[Any] = []
        self._processes_begun = 0
        self._page = PageState()
        self.processes = [self._begin_process() for _ in range(self.plan.processes)]
        for _ in range(self.plan.agents):
            self._spawn(self.chance.choice(self.processes))

    def run(self) -> None:
        """Let everybody work in bad weather, then finish in good; raise `Violation` where a rule breaks."""
        self._begin()
        while self._steps < self.plan.steps:
            if not self.step():
                self._sleep_until_somebody_wakes()
            if self._steps % PAGE_STEPS == 0:
                self._page = check_page(self.store, self._page)
        self._clear_up()
        self._finish()
        self.observer.conclude()
        self.metrics.conclude()
        check_page(self.store, self._page)

    # What a world says of itself.

    def _draw_setting(self) -> Setting:
        raise NotImplementedError

    def _new_observer(self) -> Observer:
        raise NotImplementedError

    def _begin(self) -> None:
        """What happens before the weather turns."""

    def _finish(self) -> None:
        raise NotImplementedError

    def _new_memory(self) -> Memory:
        raise NotImplementedError

    def _new_agent(self, process: Process, memory: Any) -> Agent:
        raise NotImplementedError

    def brief(self, ask: Ask) -> str:
        raise NotImplementedError

    def describe_reply(self, reply: Any) -> str:
        raise NotImplementedError

    def probe(self, _process: HostProcess) -> Evidence:
        """What can be found out about a process of the host."""
        return NO_EVIDENCE

    def note_commit(self, commit: Commit, offset: int) -> None:
        """A commit took place just now: all who watch compare."""
        self.committed(commit, offset)
        self.metrics.committed(commit, offset)

    def committed(self, commit: Commit, offset: int) -> None:
        """What the world does after a commit."""

    def digest(self) -> str:
        """A fingerprint of the whole run: trace, replies and log."""
        parts = [*self.trace, *map(repr, self.observer.ops), *map(repr, self.observer.entries)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    # Time, ids, notes.

    def pass_time(self, us: int) -> None:
        self.now_us += us

    def wall_ms(self, process: Process) -> int:
        """What the clock on the wall shows this process."""
        skew = self._server_skew_ms if self.plan.clock == "server" else process.skew_ms
        return START_MS + self.now_us // 1000 + skew

    def draw_skew(self) -> int:
        return 0 if self.weather is CALM else self.chance.choice(self.skews_ms)

    def draw_id(self) -> str:
        self._ids += 1
        return f"c{self._ids}"

    def note(self, process: Process, text: str) -> None:
        indent = "│ " * (len(self._stack) - 1)
        self.trace.append(f"{self.now_us / 1e6:11.6f} {indent}{process.name} {text}")

    def count(self, what: str) -> None:
        self.observer.counts[what] += 1

    # The scheduler.

    def step(self) -> bool:
        """One step of one process that is not in the middle of a call; False if none can."""
        self.pass_time(self.chance.randrange(0, 20_000))
        free = [process for process in self.processes if process not in self._stack and self._can(process)]
        if not free:
            return False
        self._steps += 1
        process = self.chance.choice(free)
        ready = self._ready(process)
        if process.database.work.waiting and (not ready or self.chance.random() < 0.4):
            self._inside(process, process.database.work.waiting.popleft())
        else:
            self._act(self.chance.choice(ready))
        self._change_weather()
        self.observer.pull()
        return True

    def interleave(self, steps: int) -> None:
        """Let others run inside a call."""
        if self.weather is CALM or len(self._stack) > DEPTH_MAX:
            return
        for _ in range(steps):
            if not self.step():
                break

    def _can(self, process: Process) -> bool:
        return bool(process.database.work.waiting or self._ready(process))

    def _ready(self, process: Process) -> list[Agent]:
        now = self.now_us
        return [agent for agent in process.agents if not agent.waits and agent.wake_us <= now]

    def _sleep_until_somebody_wakes(self) -> None:
        wakes = [agent.wake_us for process in self.processes for agent in process.agents]
        self.now_us = max(self.now_us, min(wakes))

    def _change_weather(self) -> None:
        """What goes wrong, or right, outside of any call."""
        roll, weather = self.chance.random, self.weather
        if roll() < weather.clock_jump:
            self._jump_clock()
        if roll() < weather.trim:
            self.store.trim(self.chance.randint(0, self.store.seen.offset + 5))
            self.count("trim")
        if self.in_flight and roll() < 0.1:
            self._land(self.in_flight.pop(self.chance.randrange(len(self.in_flight))))
        free = [process for process in self.processes if process not in self._stack]
        if not free:
            return
        process = self.chance.choice(free)
        if self._ahead > 3 and roll() < 0.2:
            self.note(process, "somebody accepts the clock")
            self._inside(process, process.engine.accept_clock)
            self._ahead = 0
        elif process.pending and roll() < 0.02:
            self._withdraw(process)
        elif roll() < weather.kill / 2:
            self._retire(process)

    def _jump_clock(self) -> None:
        self.count("clock jump")
        if self.plan.clock == "server":
            self._server_skew_ms = self.draw_skew()
        else:
            self.chance.choice(self.processes).skew_ms = self.draw_skew()

    def _land(self, commit: Commit) -> None:
        """A commit whose sender has long given up arrives."""
        try:
            self.note_commit(commit, self.store.commit(commit))
            self.count("landed late")
        except Conflict:
            self.count("came too late")

    # Processes.

    def _begin_process(self) -> Process:
        self._processes_begun += 1
        return Process(self, f"P{self._processes_begun}")

    def _inside(self, process: Process, work: Callable[[], Any]) -> Any:
        """Run something in a process; return its result or error, or None if the process dies of it."""
        self._stack.append(process)
        try:
            result = work()
        except CoordError as error:
            result = error
        except Killed:
            result = None
            process.alive = False
        finally:
            self._stack.pop()
        if process.alive:
            self._deliver(process)
        else:
            self._end_process(process)
        return result

    def _deliver(self, process: Process) -> None:
        """Hand the answers that are there to the agents that wait for them."""
        for waiting in [one for one in process.pending if one.future.done()]:
            process.pending.remove(waiting)
            error = waiting.future.exception()
            self._answered(waiting.agent, waiting.asked, waiting.future.result() if error is None else error)
        idle = not process.database.work.waiting
        require(not (idle and process.pending), "commands wait and nobody is going to run them")

    def _end_process(self, process: Process) -> None:
        """Everything in the process is gone; another takes its place, and some of its sessions come back."""
        for waiting in process.pending:
            self.observer.lose(waiting.asked)
        self._orphans += [agent.memory for agent in process.agents]
        self._replace(process)

    def _replace(self, process: Process) -> None:
        successor = self._begin_process()
        self.processes[self.processes.index(process)] = successor
        for _ in process.agents:
            self._spawn(successor)

    def _retire(self, process: Process) -> None:
        """A clean shutdown: everybody who waits is answered."""
        self.note(process, "shuts down")
        self.count("clean shutdown")
        self._inside(process, process.engine.close)
        if not process.alive:
            return
        require(not process.pending, "a shutdown left somebody without an answer")
        self._orphans += [agent.memory for agent in process.agents]
        self._replace(process)

    def _withdraw(self, process: Process) -> None:
        waiting = self.chance.choice(process.pending)
        if waiting.future.cancel():
            process.pending.remove(waiting)
            self.note(process, f"{waiting.agent.session} withdraws {self.brief(waiting.asked.ask)}")
            self.observer.withdraw(waiting.asked)
            waiting.agent.waits, waiting.agent.reply = False, Busy("withdrawn")

    # Agents.

    def _spawn(self, process: Process) -> None:
        if self._orphans and self.chance.random() < 0.5:
            memory = self._orphans.pop(self.chance.randrange(len(self._orphans)))
        else:
            memory = self._new_memory()
            self.sessions.append(memory.session)
        process.agents.append(self._new_agent(process, memory))

    def _act(self, agent: Agent) -> None:
        """Let an agent do its next thing."""
        try:
            wanted = agent.routine.send(agent.reply)
        except StopIteration:
            self.note(agent.process, f"{agent.session} crashes")
            agent.process.agents.remove(agent)
            self._orphans.append(agent.memory)
            self._spawn(self.chance.choice(self.processes))
            return
        agent.reply = None
        if isinstance(wanted, Rest):
            agent.wake_us = self.now_us + wanted.ms * 1000
        else:
            self._ask(agent, wanted)

    def _ask(self, agent: Agent, wanted: Ask) -> None:
        process, engine = agent.process, agent.process.engine
        asked = self.observer.begin(process, wanted)
        self.note(process, f"{agent.session} asks {self.brief(wanted)}")
        if self.chance.random() < self.plan.futures:
            agent.waits = True
            process.wait_for(agent, asked, engine.submit(wanted.command, command_id=wanted.command_id))
            return
        reply = self._inside(process, lambda: engine.call(wanted.command, command_id=wanted.command_id))
        if reply is None:
            self.observer.lose(asked)
        else:
            self._answered(agent, asked, reply)

    def ask_now(self, process: Process, ask: Ask) -> Any:
        """Ask without being an agent."""
        asked = self.observer.begin(process, ask)
        reply = self._inside(process, lambda: process.engine.call(ask.command))
        self.note(process, f"hears {self.describe_reply(reply)} to {self.brief(ask)}")
        self.observer.end(asked, reply)
        return reply

    def _answered(self, agent: Agent, asked: Any, reply: Any) -> None:
        self.note(
            agent.process, f"{agent.session} hears {self.describe_reply(reply)} to {self.brief(asked.ask)}"
        )
        if isinstance(reply, Unavailable) and "ahead of the clock" in reply.message:
            self._ahead += 1
        self.observer.end(asked, reply)
        agent.waits, agent.reply = False, reply

    def _clear_up(self) -> None:
        """The weather clears: clocks are set, messages arrive or are lost for good, queues run empty."""
        self.weather = CALM
        self._server_skew_ms = 0
        for commit in self.in_flight:
            if self.chance.random() < 0.5:
                self._land(commit)
        for process in self.processes:
            process.skew_ms, process.cut_off_until = 0, 0
            while process.database.work.waiting:
                self._inside(process, process.database.work.waiting.popleft())
        self.observer.conclude()
