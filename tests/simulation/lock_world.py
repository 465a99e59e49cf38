"""The world of sessions, locks and messages; at its end everything must have come free."""

from typing import Any

from coord.core.commands import Command
from coord.core.errors import CoordError, NotFound, NotStealable
from coord.core.identity import Caller, Evidence, ProcessState
from coord.core.identity import Process as HostProcess
from coord.core.locks.commands import AcquireLocks, LockReply, ReleaseLocks, StealLock
from coord.core.sessions.commands import Heartbeat
from coord.stores.contract import Commit
from tests.linearizability.ledger import require
from tests.simulation.agents import Agent, Ask
from tests.simulation.lock_agents import LockAgent, LockMemory
from tests.simulation.lock_observer import LockObserver
from tests.simulation.lock_setting import LockSetting, draw_lock_setting
from tests.simulation.process import Process
from tests.simulation.resources import REPOSITORY, RESOURCES
from tests.simulation.scheduler import Scheduler
from tests.simulation.setting import CALM

FAR = "far"
"""A machine whose processes nobody here can look at."""
CLOSING_STEPS = 4_000
CLOSING_MS = 3_600_000


class LockWorld(Scheduler):
    """Agents with sessions and the processes these live in."""

    skews_ms = (0, 0, 0, 0, -2_000, 2_000, 2_000, -15_000, 15_000, -25_000, 25_000)

    def __init__(self, seed: int) -> None:
        self.closing = False
        self._hosts = 0
        self._dead: set[int] = set()
        self._names = 0
        super().__init__(seed)

    def _draw_setting(self) -> LockSetting:
        return draw_lock_setting(self.chance)

    def _new_observer(self) -> LockObserver:
        return LockObserver(self.store, self._is_seen_dead)

    def _is_seen_dead(self, process: dict[str, Any]) -> bool:
        return process["pid"] in self._dead and process["machine"] != FAR

    def committed(self, commit: Commit, offset: int) -> None:
        self.observer.committed(commit, offset)

    # Processes of the host.

    def begin_host(self, machine: str = "here") -> HostProcess:
        """A process for a session to live in, or for a command that waits."""
        self._hosts += 1
        return HostProcess(self._hosts, self._hosts, machine)

    def end_host(self, host: HostProcess | None) -> None:
        if host is not None:
            self._dead.add(host.pid)

    def probe(self, process: HostProcess) -> Evidence:
        if process.machine == FAR:
            return Evidence(ProcessState.UNKNOWN, "on another machine")
        life = ProcessState.DEAD if process.pid in self._dead else ProcessState.ALIVE
        return Evidence(life, f"pid {process.pid} is {life}")

    # Agents.

    def new_name(self) -> str:
        self._names += 1
        name = f"s{self._names:03}"
        self.sessions.append(name)
        return name

    def draw_resource(self) -> str:
        return self.chance.choice(RESOURCES)

    def _new_memory(self) -> LockMemory:
        self._names += 1
        where = self.chance.choice(("here", "here", FAR, ""))
        return LockMemory(f"s{self._names:03}", host=self.begin_host(where) if where else None)

    def _new_agent(self, process: Process, memory: LockMemory) -> Agent:
        gone = memory.host is not None and memory.host.pid in self._dead
        if gone or (memory.host is not None and self.chance.random() < 0.05):
            memory.host = self.begin_host(memory.host.machine) if memory.host else None
        return LockAgent(self, process, memory)

    def adopt(self, parent: LockAgent) -> None:
        """Let a sub-agent begin beside its parent."""
        memory = LockMemory(self.new_name(), host=parent.memory.host, parent=parent.session)
        parent.process.agents.append(LockAgent(self, parent.process, memory))

    def _spawn(self, process: Process) -> None:
        if not self.closing:
            super()._spawn(process)

    def _act(self, agent: Agent) -> None:
        super()._act(agent)
        if agent not in agent.process.agents:
            self._end_agent(agent)

    def _end_process(self, process: Process) -> None:
        for agent in process.agents:
            self._end_agent(agent)
        super()._end_process(process)

    def _end_agent(self, agent: Any) -> None:
        """The command that waits is gone; the session's own process mostly, too."""
        self.end_host(agent.waiter)
        if self.chance.random() < 0.6:
            self.end_host(agent.memory.host)

    # The end.

    def _finish(self) -> None:
        """Nobody begins anything new; what waits is served, what is held comes free."""
        self.closing = True
        for process in self.processes:
            process.pending.clear()
        for agent in [agent for process in self.processes for agent in process.agents]:
            agent.waits = False
        limit_us = self.now_us + CLOSING_MS * 1000
        for _ in range(CLOSING_STEPS):
            if not any(process.agents for process in self.processes):
                break
            if not self.step():
                self._sleep_until_somebody_wakes()
            require(self.now_us < limit_us, "somebody waits for ever:", self.observer.oracle.waiters)
        require(not any(process.agents for process in self.processes), "somebody never ends")
        self._free_everything()

    def _free_everything(self) -> None:
        """Whatever the agents left behind can be had by the rules, without force."""
        last = Process(self, "last")
        caller = Caller("last", agent="last", process=self.begin_host())
        oracle = self.observer.oracle
        for _ in range(20):  # a sweep passes 32 deadlines
            self.pass_time(240_000_000)
            self._call(last, Heartbeat(caller))
        require(not oracle.waiters, "still waiting although nobody asks any more:", oracle.waiters)
        for held in sorted(oracle.locks.values(), key=lambda held: (held.resource, held.owner)):
            if held.ended:
                continue
            require(not held.over(oracle.newest_ms), "over, but never ended:", held)
            for dead in (False, True):
                theft = StealLock(caller, REPOSITORY, (held.resource,), dead_owner=dead)
                stolen = self._call(last, theft)
                if isinstance(stolen, LockReply):
                    break
        self.weather = CALM
        everything = AcquireLocks(caller, REPOSITORY, RESOURCES)
        reply = self._call(last, everything)
        left = [held for held in oracle.locks.values() if held.owner != "last"]
        require(isinstance(reply, LockReply) and reply.ok, "not everything can be had:", reply, left)
        self._call(last, ReleaseLocks(caller, REPOSITORY, ()))
        require(not oracle.locks, "released, and yet held:", oracle.locks)

    def _call(self, process: Process, command: Command) -> Any:
        reply = self.ask_now(process, Ask(command))
        fine = not isinstance(reply, CoordError) or isinstance(reply, NotFound | NotStealable)
        require(fine, "refused in good weather:", command, repr(reply))
        return reply

    # What is told.

    def brief(self, ask: Ask) -> str:
        command: Any = ask.command
        names = ("resources", "mode", "fence", "wait_ms", "wait_key", "to", "replaces", "force", "ids")
        fields = [getattr(command, name, "") for name in names]
        return " ".join(str(each) for each in (type(command).__name__, *fields, ask.command_id) if each)

    def describe_reply(self, reply: Any) -> str:
        if isinstance(reply, CoordError):
            return f"{type(reply).__name__} ({reply.message})"
        if isinstance(reply, LockReply):
            locks = [f"{lock.resource}#{lock.fence}" for lock in reply.locks]
            return " ".join([reply.outcome, *locks, *reply.cycle])
        return str(reply)[:120]
