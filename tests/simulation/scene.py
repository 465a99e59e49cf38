"""A lock world with a plot: each agent has its own routine, and the scene is over when all have ended."""

from collections.abc import Callable, Sequence
from typing import Any

from tests.linearizability.ledger import require
from tests.simulation.agents import Agent, Routine
from tests.simulation.lock_agents import LockAgent, LockMemory
from tests.simulation.lock_setting import LockSetting
from tests.simulation.lock_world import LockWorld
from tests.simulation.process import Process
from tests.simulation.resources import RING
from tests.simulation.setting import Weather

LIMIT_MS = 3_600_000


class Actor(LockAgent):
    """An agent that follows a plot."""

    def _live(self) -> Routine:
        yield from self.world.plot(self)


class Scene(LockWorld):
    """Agents that play one part each; `plots` are the parts, in order."""

    def __init__(self, seed: int, plots: "Sequence[Callable[[Actor], Routine]]", weather: Weather) -> None:
        self._plots = list(plots)
        self._weather = weather
        self.notes: dict[str, Any] = {}
        super().__init__(seed)
        self.closing = True  # nobody takes the place of who has ended

    def _draw_setting(self) -> LockSetting:
        return LockSetting(
            tenant="local",
            processes=3,
            agents=len(self._plots),
            steps=0,
            clock="server",
            weather=self._weather,
            commit_bytes=8 << 20,
            futures=0.0,
            resources=RING,
            ttls_ms=(0,),
            patience_ms=(600_000,),
            sub_agents=0.0,
            mortality=0.0,
        )

    def _new_agent(self, process: Process, memory: LockMemory) -> Agent:
        return Actor(self, process, memory)

    def plot(self, actor: Actor) -> Routine:
        return self._plots[int(actor.session[1:]) - 1](actor)

    def play(self) -> None:
        """Let everybody play to the end."""
        while any(process.agents for process in self.processes):
            if not self.step():
                self._sleep_until_somebody_wakes()
            require(self.now_us < LIMIT_MS * 1000, "somebody waits for ever:", self.observer.oracle.waiters)
        self.observer.conclude()
