"""A process: one engine over its own faulty view of the shared store, and the agents that run in it."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coord.engine.engine import Engine
from coord.stores.database import Database
from tests.simulation.faulty_store import FaultyStore

if TYPE_CHECKING:
    from tests.simulation.agents import Agent
    from tests.simulation.scheduler import Scheduler


class Committers:
    """An executor whose only thread is the scheduler: work waits until the process is stepped."""

    def __init__(self) -> None:
        self.waiting: deque[Callable[[], None]] = deque()

    def submit(self, work: Callable[[], None]) -> None:
        self.waiting.append(work)


class ProcessDatabase(Database[FaultyStore]):
    """The database as one process opens it."""

    def __init__(self, process: "Process") -> None:
        super().__init__("memory:", store_id="simulation")
        self._process = process
        self.work = Committers()

    def _open_log(self, tenant: str) -> FaultyStore:
        return FaultyStore(self._process, self._process.world.store)

    @property
    def committers(self) -> Any:
        return self.work


class Surroundings:
    """Time, chance and ids, all from the world."""

    def __init__(self, process: "Process") -> None:
        self._process = process
        self._world = process.world
        self._drawn = 0

    def monotonic(self) -> float:
        return self._world.now_us / 1e6

    def sleep(self, seconds: float) -> None:
        self._world.pass_time(int(seconds * 1e6))
        self._world.interleave(1)

    def jitter(self, most: float) -> float:
        return self._world.chance.uniform(0, most)

    def commit_id(self) -> bytes:
        self._drawn += 1
        return f"{self._process.name}/{self._drawn}".encode()


@dataclass(frozen=True, slots=True)
class Waiting:
    """An agent that waits for a future."""

    agent: "Agent"
    asked: Any
    future: "Future[Any]"


class Process:
    """One engine and its agents; dies whole."""

    def __init__(self, world: "Scheduler", name: str) -> None:
        self.world = world
        self.name = name
        self.alive = True
        self.skew_ms = world.draw_skew()
        self.cut_off_until = 0
        self.readings: list[tuple[int, int]] = []
        self.agents: list[Agent] = []
        self.pending: list[Waiting] = []
        self.database = ProcessDatabase(self)
        clock = self.given_clock if world.plan.clock == "given" else None
        self.engine = Engine(
            self.database, world.plan.tenant, clock=clock, runtime=Surroundings(self), probe=world.probe
        )

    def given_clock(self) -> int:
        """A clock that replaces the store's wholly; it may even run backwards."""
        now = self.world.wall_ms(self)
        self.readings.append((now, 0))
        return now

    def wait_for(self, agent: "Agent", asked: Any, future: "Future[Any]") -> None:
        self.pending.append(Waiting(agent, asked, future))
