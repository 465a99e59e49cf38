"""The real follower of metrics beside a simulation: killed at any point, it shows what a naive count says.

It has its own store for its state and its own chance, so a run is the same with it and without it.
"""

import random
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from coord.core.errors import Unavailable
from coord.core.identity import Caller
from coord.engine.engine import Engine
from coord.followers.follower import LogSource
from coord.followers.metrics.follower import MetricsFollower
from coord.followers.metrics.gauges import metrics_of
from coord.followers.runner import Runner
from coord.host.store_location import StoreLocation
from coord.stores.contract import Commit, Entry, Head
from coord.stores.memory import MemoryDatabase
from tests.linearizability.ledger import Violation, require
from tests.support.models.naive_metrics import GAUGES, RATES, NaiveMetrics, differences, read_samples

if TYPE_CHECKING:
    from tests.simulation.scheduler import Scheduler

LOOK, KILL, SAVE, AWAY, SHOW = 0.1, 0.3, 0.3, 0.1, 0.05
"""How often the follower looks after a commit, and what happens then."""
LOCATION = StoreLocation("memory:", "repository", None, "simulation", 0, "/nowhere")
CALLER = Caller("prometheus")


class WholeLog:
    """Every entry of a run, also those that the run has trimmed; sometimes it cannot be reached."""

    def __init__(self, chance: random.Random) -> None:
        self.entries: list[Entry] = []
        self.seen = Head(0, 0)
        self.calm = False
        self._chance = chance

    def add(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.seen = Head(entry.offset, entry.at)

    def tail(self, after: int, limit: int) -> list[Entry]:
        if not self.calm and self._chance.random() < AWAY:
            raise Unavailable("the simulated store is away")
        return self.entries[after : after + limit]


class MetricsOracle:
    """Counts a run with the real reducer and runner, and compares."""

    def __init__(self, world: "Scheduler", database: MemoryDatabase) -> None:
        self._world = world
        self._chance = random.Random(f"metrics {world.seed}")
        self.tenant: str = world.plan.tenant
        self.compared = 0
        self.log = WholeLog(self._chance)
        self._kept = Engine(MemoryDatabase("memory:", "kept"), self.tenant, clock=self._now)
        self._asked = Engine(database, self.tenant, clock=self._now, probe=world.probe)
        self._runner = self._new_runner()

    def _now(self) -> int:
        return self.log.seen.at

    def _new_runner(self) -> Runner:
        log: Any = self.log
        source = LogSource(self._kept, log, LOCATION, {}, self._now)
        return Runner(source, [MetricsFollower], "simulation")

    def committed(self, commit: Commit, offset: int) -> None:
        """A commit took place just now."""
        if not commit.writes or offset <= self.log.seen.offset:
            return
        require(offset == self.log.seen.offset + 1, "the log has a gap before", offset)
        self.log.add(Entry(offset, commit.at, commit.id, list(commit.events)))
        if self._chance.random() < LOOK:
            try:
                self._look()
            except Exception as error:
                raise Violation(f"the oracle of metrics failed: {error!r}") from error

    def _look(self) -> None:
        """Let the follower read, perhaps save, perhaps die; sometimes compare."""
        if self._chance.random() < KILL:
            self._runner = self._new_runner()
        with suppress(Unavailable):
            self._runner.step()
        if self._chance.random() < SAVE:
            self._runner.save()
        if self._chance.random() < SHOW:
            self.compare()

    def conclude(self) -> None:
        """At the end: the follower that lived through the run, one that takes over, and one from nothing."""
        self.log.calm = True
        self.compare()
        before = self.counted().dump()
        self._runner = self._new_runner()
        require(self.counted().dump() == before, "who took over has other bytes")
        self._kept = Engine(MemoryDatabase("memory:", "rebuilt"), self.tenant, clock=self._now)
        self._runner = self._new_runner()
        require(self.counted().dump() == before, "computed again it has other bytes")

    def counted(self) -> MetricsFollower:
        """Return the follower when it has read everything."""
        calm, self.log.calm = self.log.calm, True
        (run,) = self._runner.runs
        run.retry_ms = 0
        self._runner.step()
        self.log.calm = calm
        require(run.offset == self.log.seen.offset, "the follower stays behind:", run.failure)
        assert isinstance(run.follower, MetricsFollower)
        return run.follower

    def compare(self) -> None:
        """Compare what `/metrics` shows with naive counts of the log."""
        world: Any = self._world.store
        now, before = self._now(), world.seen.offset
        log: Any = self.log
        source = LogSource(self._asked, log, LOCATION, {}, self._now)
        shown = read_samples(metrics_of(source, CALLER, self.counted().snapshot(), 0))
        naive = NaiveMetrics(self.log.entries, self.tenant)
        wrong = differences(shown, naive.counted())
        wrong += differences(shown, naive.rates(now), RATES)
        wrong += differences(shown, naive.tasks(now), GAUGES)
        require(not wrong, f"the metrics at offset {self.log.seen.offset} are wrong:", *wrong[:5])
        require(world.seen.offset == before, "a scrape has written something")
        self.compared += 1
