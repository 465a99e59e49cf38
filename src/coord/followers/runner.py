"""Run followers over one log: read each page once, decode it once, feed everybody.

A follower that fails is isolated: its state goes back to what was saved, its error is noted, and it is tried
again later, while the others go on. State is saved with its offset in one commit, after many events or after
some time. An entry without events moves nobody, so the commits of this module cause no further ones.
"""

import logging
import os
from collections.abc import Callable, Iterable
from contextlib import suppress

from coord.core.errors import CoordError, Denied, Trimmed, Unavailable, Unsupported
from coord.core.followers import FailFollower, FollowerState, LeadFollower, ReadFollower, SaveFollower
from coord.followers.follower import Follower, LogSource
from coord.host.processes import describe
from coord.sdk.log_reader import PAGE_ENTRIES, LoggedEvent, first_offset, logged_events, newest_offset
from coord.stores.contract import Entry

logger = logging.getLogger("coord.followers")
SAVE_EVENTS = 2000
"""A state is saved after this number of events, ..."""
SAVE_MS = 10_000
"""... and after this time, if there was one, ..."""
SAVE_PAUSE_MS = 1000
"""... but for events no sooner than this after it was saved: 20,000 events/s would be ten commits/s."""
STEP_PAGES = 20
"""How much a process that goes on reads before it acts and saves, and looks whether it has to end."""
LEASE_MS = 30_000
RETRY_MS, RETRY_MS_MAX = 1000, 300_000
NewFollower = Callable[[LogSource], Follower]


class FollowerRun:
    """One follower of a runner: where it is, and what is not saved yet."""

    def __init__(self, new: NewFollower, source: LogSource, runner: str) -> None:
        self._new = new
        self._source = source
        self._runner = runner
        self.follower = new(source)
        self.name = self.follower.name
        self.missed = 0
        self.ready = False
        """Whether its state is loaded, and this process may run it."""
        self.failure: Exception | None = None
        self.retry_ms = 0
        self.due_ms = 0
        self._failures = 0
        self._unsaved = 0
        self._saved_ms = 0
        self._pause_until_ms = 0
        self._leads_until_ms = 0
        self.rests_at = 0
        """The end of the log when it gave its lease up, because there was nothing to do; 0 otherwise."""

    @property
    def offset(self) -> int:
        """The newest entry that the follower has read."""
        return self.follower.offset

    @offset.setter
    def offset(self, offset: int) -> None:
        self.follower.offset = offset

    def prepare(self, now: int) -> bool:
        """Load the saved state; become the runner if there are effects; return whether it can run."""
        if self._can_run(now):
            self.follower.refresh(self.offset, now)
        return self.ready

    def _can_run(self, now: int) -> bool:
        if self.ready and (not self.follower.has_effects or now < self._leads_until_ms - LEASE_MS // 2):
            return True
        if now < self.retry_ms or self._rests(now):
            return False
        if now >= self._leads_until_ms:  # another process may have run it since
            self.ready = False
        engine = self._source.engine
        found: FollowerState
        if self.follower.is_local:
            found = FollowerState()
        elif self.follower.has_effects:
            found = engine.call(LeadFollower(self.name, self._runner, LEASE_MS, describe(os.getpid())))
            self._leads_until_ms = now + LEASE_MS
            if not found.leads:
                self.ready, self.retry_ms = False, now + LEASE_MS // 2
                return False
        else:
            found = engine.call(ReadFollower(self.name))
        if not self.ready:
            self._begin(found, now)
        return True

    def _rests(self, now: int) -> bool:
        """Whether an idle runner lets its lease end: renewing it would write to the log for ever."""
        if not self.follower.has_effects:
            return False
        if self.rests_at:
            if newest_offset(self._source.log) == self.rests_at:
                return True
            self.rests_at = 0
        elif self._is_idle() and newest_offset(self._source.log) == self.offset:
            self.save(now)
            self.ready, self.retry_ms = False, 0
            self.rests_at = newest_offset(self._source.log)
            return True
        return False

    def _is_idle(self) -> bool:
        """Whether only an event can give it something to do."""
        return self.ready and not self.follower.busy and not self.due_ms

    def _begin(self, found: FollowerState, now: int) -> None:
        self.follower.close()
        self.follower = self._new(self._source)
        self.offset = self.missed = self._unsaved = 0
        if self.follower.is_local:
            self.offset = self.follower.resume()
        elif found.version > self.follower.version:
            raise Unsupported(
                f"a newer coord runs follower {self.name}", hint="upgrade coord on this machine"
            )
        elif found.version == self.follower.version:
            self.follower.load(found.state)
            self.offset, self.missed = found.offset, found.missed
        elif self.follower.starts_at_present:
            self.offset = newest_offset(self._source.log)
            self._unsaved = 1  # where it began has to survive
        self._saved_ms, self.ready, self.failure = now, True, None

    def feed(self, entry: Entry, events: list[LoggedEvent]) -> None:
        """Take the events of one entry, unless they were taken before."""
        if entry.offset <= self.offset:
            return
        if events:
            self.follower.apply_entry(events)
        self._unsaved += len(events)
        self.offset = entry.offset

    def skip_to(self, first: int) -> None:
        """Go on at the first entry that is left; those before it were trimmed unread."""
        if self.offset:
            self.missed += first - 1 - self.offset
        self.offset = max(self.offset, first - 1)

    def act(self, now: int) -> None:
        """Perform what is due, then save what has to be saved."""
        self.due_ms = self.follower.act(now)
        if self.follower.is_local:
            self._failures = 0
        long_ago = self._unsaved and now - self._saved_ms >= SAVE_MS
        many = self._unsaved >= SAVE_EVENTS and now >= self._pause_until_ms
        if self.follower.acted or many or long_ago:
            self.save(now)

    def save(self, now: int) -> None:
        """Save the state, if it changed."""
        if self.follower.is_local or not self.ready or not (self._unsaved or self.follower.acted):
            return
        follower = self.follower
        self._source.engine.call(
            SaveFollower(
                self.name,
                follower.offset_to_save(self.offset),
                follower.version,
                follower.dump(),
                self.missed,
                self._leading(),
                0 if follower.starts_at_present else first_offset(self._source.log),
            )
        )
        self._unsaved, self._saved_ms, self._failures = 0, now, 0
        self._pause_until_ms = now + SAVE_PAUSE_MS

    def resign(self) -> None:
        """End the lease, so that another process can go on at once."""
        if self.ready and self.follower.has_effects:
            self.ready, self._leads_until_ms = False, 0
            self._source.engine.call(LeadFollower(self.name, self._runner, 0))

    def _leading(self) -> str:
        return self._runner if self.follower.has_effects else ""

    def fail(self, error: Exception, now: int) -> None:
        """Go back to the saved state and try again later, each time after a longer time."""
        self.ready, self.failure = False, error
        self.retry_ms = now + min(RETRY_MS << min(self._failures, 20), RETRY_MS_MAX)
        self._failures += 1
        if isinstance(error, Denied | Unavailable) and not self.follower.is_local:
            return  # another process runs it, or the store is away
        logger.warning("follower %s failed: %s", self.name, error, exc_info=not isinstance(error, CoordError))
        if self.follower.is_local:
            return
        try:
            self._source.engine.call(FailFollower(self.name, f"{error}" or type(error).__name__))
        except CoordError as second:
            logger.warning("that follower %s failed cannot be noted: %s", self.name, second)


class Runner:
    """Runs followers over the log of one tenant, in one thread at a time."""

    def __init__(self, source: LogSource, followers: Iterable[NewFollower], runner: str) -> None:
        self._source = source
        self.runs = [FollowerRun(new, source, runner) for new in followers]
        self.behind = False
        """Whether the last step ended before the end of the log."""

    def step(self, *, pages_max: int = 0) -> int:
        """Let every follower read to the end of the log and act; return when something is due (0: an event).

        `pages_max` bounds how much is read: `behind` says whether there is more.
        """
        now = self._source.now()
        for run in self.runs:
            self._guarded(run, run.prepare, now)
        read, self.behind = 0, False
        while (active := [run for run in self.runs if run.ready]) and (page := self._page(active)):
            read += 1
            self._feed(page, active)
            if read == pages_max:
                self.behind = len(page) == PAGE_ENTRIES
                break
        now = self._source.now()
        for run in self.runs:
            if run.ready:
                self._guarded(run, run.act, now)
        due = [run.due_ms if run.ready else run.retry_ms for run in self.runs]
        return min(filter(None, due), default=0)

    @property
    def offset(self) -> int:
        """The newest offset that every running follower has read."""
        return min((run.offset for run in self.runs if run.ready), default=self._source.log.seen.offset)

    def save(self) -> None:
        """Save every state that changed."""
        now = self._source.now()
        for run in self.runs:
            self._guarded(run, run.save, now)

    def close(self, *, save: bool = True) -> None:
        """Save, and end what the followers have begun."""
        if save:
            self.save()
        for run in self.runs:
            run.follower.close()
            with suppress(CoordError):
                run.resign()

    def _page(self, active: list[FollowerRun]) -> list[Entry]:
        after = min(run.offset for run in active)
        try:
            return self._source.log.tail(after, PAGE_ENTRIES)
        except Trimmed as trimmed:
            for run in active:
                if run.offset < trimmed.first - 1:
                    run.skip_to(trimmed.first)
            return self._source.log.tail(trimmed.first - 1, PAGE_ENTRIES)

    def _feed(self, page: list[Entry], active: list[FollowerRun]) -> None:
        for entry in page:
            events = list(logged_events([entry]))
            for run in active:
                if run.ready:
                    self._guarded(run, run.feed, entry, events)

    def _guarded(self, run: FollowerRun, work: Callable[..., object], *arguments: object) -> None:
        """Let a follower do something; whatever it raises is its own failure."""
        try:
            work(*arguments)
        except Exception as error:  # noqa: BLE001 - a follower must not stop the others
            run.fail(error, self._source.now())
