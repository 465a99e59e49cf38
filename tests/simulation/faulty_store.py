"""A store as one process sees it on a bad day: late, away, silent after the fact; never wrong.

Every process has its own over the one real store. At each call it may let other processes run first or
afterwards (so commits fall between a load and its commit), pause for long, be away, lose the answer of a
commit that did or did not happen or happens later, or take the process down. If the
caller allows a stale load, it may get the state that the process saw last. All by chance, from one seed.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec

from coord.core.errors import Conflict, Unavailable, Unknown
from coord.core.ranges import Range
from coord.engine.clock import AHEAD_MS_MAX
from coord.stores.contract import Commit, Entry, Head, Limits, Loaded, RangeReader
from coord.stores.log.state import LogState
from coord.stores.memory import MemoryStore
from tests.linearizability.ledger import require

if TYPE_CHECKING:
    from tests.simulation.process import Process

T = TypeVar("T")


class Killed(BaseException):
    """The process is gone, in the middle of whatever it did."""


def _copied(state: LogState) -> LogState:
    """Return the records as they are now, without their order."""
    copied = LogState(state.offset, state.at, state.floor)
    copied.records, copied.tombstones = state.records.copy(), state.tombstones.copy()
    copied._started = state._started
    return copied


class FaultyStore(RangeReader):
    """The store contract, kept to the letter and no better."""

    def __init__(self, process: "Process", inner: MemoryStore) -> None:
        self._process = process
        self._world = process.world
        self._inner = inner
        self.seen = inner.seen
        room = self._world.plan.commit_bytes
        self.limits: Limits = msgspec.structs.replace(
            inner.limits, commit_bytes=room, record_bytes=min(inner.limits.record_bytes, room // 4)
        )
        self._newest_ms = 0
        self._known = _copied(inner._state)

    def load(self, keys: Iterable[str], ranges: Sequence[Range] = (), *, allow_stale: bool = False) -> Loaded:
        if allow_stale and not ranges and self._world.chance.random() < 0.5:
            return self._remembered(list(keys))
        self._before("load")
        return self._after(self._inner.load(list(keys), ranges))

    def _remembered(self, keys: list[str]) -> Loaded:
        """What was there when this process last looked; nobody is asked, so nothing can go wrong."""
        if not self._process.alive:
            raise Killed
        stale = self._known.offset != self._inner.seen.offset
        self._world.count("stale load" if stale else "load that may be stale")
        return Loaded(
            zip(keys, self._known.get_all(keys), strict=True), self._known.read_point, maybe_stale=True
        )

    def tail(self, after: int, limit: int) -> list[Entry]:
        self._before("tail")
        return self._after(self._inner.tail(after, limit))

    def commit(self, commit: Commit) -> int:
        self._check_time(commit)
        self._before("commit")
        weather, roll = self._world.weather, self._world.chance.random
        if roll() < weather.lost_before:
            self._fail("lost before the commit", Unknown())
        if roll() < weather.lost_late:
            self._world.in_flight.append(commit)
            self._fail("lost on its way", Unknown())
        if roll() < weather.kill:
            if roll() < 0.5:
                self._world.in_flight.append(commit)
            self._die("commit")
        try:
            offset = self._inner.commit(commit)
        except Conflict:
            self._world.count("conflict")
            self._seen_now()
            raise
        self._world.note(self._process, f"committed {offset}" if commit.writes else f"verified at {offset}")
        self._world.note_commit(commit, offset)
        if roll() < weather.lost_after:
            self._fail("lost after the commit", Unknown())
        return self._after(offset, answered=True)

    def _check_time(self, commit: Commit) -> None:
        """The time of an entry is the one its decisions were made by, and never far ahead of the clock."""
        if not commit.writes or b'"clock.accepted"' in b"".join(commit.events):
            return
        now, ahead = self._process.readings[-1]
        require(commit.at == now, "an entry with another time than its decisions:", commit.at, now)
        require(ahead <= AHEAD_MS_MAX, "written although the log is ahead of the clock by", ahead)

    def wait(self, after: int, timeout: float) -> bool:
        return self._inner.wait(after, 0)

    def trim(self, before: int) -> None:
        self._inner.trim(before)

    def now(self) -> int:
        """The clock as this process has it: never falling, but with jumps, and not that of its neighbours."""
        self._newest_ms = clock = max(self._newest_ms, self._world.wall_ms(self._process))
        newest = self.seen.at
        self._process.readings.append((max(clock, newest), newest - clock))
        return clock

    def close(self) -> None:
        """The real store outlives its processes."""

    # The weather.

    def _before(self, call: str) -> None:
        world, weather, process = self._world, self._world.weather, self._process
        if not process.alive:
            raise Killed
        world.pass_time(world.chance.randrange(0, 2_000))
        roll = world.chance.random
        if roll() < weather.interleave:
            world.interleave(world.chance.randint(1, 3))
        if roll() < weather.pause:
            world.note(process, f"pauses before {call}")
            world.count("pause")
            world.pass_time(world.chance.randrange(0, 90_000_000))
            world.interleave(world.chance.randint(5, 25))
        if roll() < weather.cut_off:
            process.cut_off_until = world.now_us + world.chance.randrange(0, 20_000_000)
        if world.now_us < process.cut_off_until or roll() < weather.unavailable:
            self._fail(f"unavailable at {call}", Unavailable("the simulated store is away"))
        if roll() < weather.kill:
            self._die(call)

    def _after(self, result: T, *, answered: bool = False) -> T:
        self._seen_now()
        world, weather = self._world, self._world.weather
        if world.chance.random() < weather.interleave:
            world.interleave(world.chance.randint(1, 3))
        if not answered and world.chance.random() < weather.unavailable / 2:
            self._fail("unavailable after a read", Unavailable("the simulated store is away"))
        if world.chance.random() < weather.kill:
            self._die("return")
        return result

    def _seen_now(self) -> None:
        self.seen = Head(*self._inner.seen)
        if self._known.read_point != self._inner._state.read_point:
            self._known = _copied(self._inner._state)

    def _fail(self, what: str, error: Exception) -> None:
        self._world.note(self._process, what)
        self._world.count(what)
        raise error

    def _die(self, call: str) -> None:
        self._world.note(self._process, f"killed at {call}")
        self._world.count(f"killed at {call}")
        raise Killed
