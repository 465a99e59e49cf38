"""Gather reports of usage in memory, and write those of a session at most once a minute.

A fleet reports every few seconds, and each commit would grow the log. `kill -9` of the hub loses what was not
written: at most `PAUSE_S` of each session. A hub that stops writes everything first.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from coord.core.errors import Busy, Conflict, CoordError, Unavailable, Unknown
from coord.core.usage.commands import Budget, RecordUsage, UsageItem
from coord.core.usage.usage import ITEMS_MAX
from coord.engine.pending import results_of
from coord.host.consent import read_consented
from coord.integrations.telemetry.prices import Model, budget_rules, prices_for
from coord.transports.hub.stores import HubStores, OpenStore
from coord.transports.hub.telemetry.reports import Report

logger = logging.getLogger("coord.hub")
PAUSE_S = 60.0
"""The shortest time between two commits of a session."""
SOON_S = 1.0
TRY_AGAIN = (Unavailable, Unknown, Busy, Conflict)
"""Errors after which reports are kept; any other one would come again."""
SESSIONS_MAX = 2000
RULES_S = 30.0
"""How long the configuration of a repository is used before it is read again."""


class Rules(NamedTuple):
    """What the `coord.toml` of a repository says about money."""

    prices: Mapping[str, Model] = {}
    budget: Budget = Budget()
    read_s: float = 0.0


class Target(NamedTuple):
    """The log that a report belongs to, and the only project that its token is for ("": all)."""

    store: OpenStore
    tenant: str
    project: str = ""


class Waiting(msgspec.Struct):
    """The reports of a session that wait to be written, by what makes them the same."""

    tool: str
    origin: bytes
    items: dict[str, UsageItem]
    written_s: float = -PAUSE_S


class Gatherer:
    """The reports that the hub has received and not written yet."""

    def __init__(self, stores: HubStores, clock: Callable[[], float] = time.monotonic) -> None:
        self._stores = stores
        self._clock = clock
        self._waiting: dict[tuple[Target, str], Waiting] = {}
        self._rules: dict[Target, Rules] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._writing: set[asyncio.Task[None]] = set()
        self.received = 0
        self.dropped = 0

    async def rules(self, target: Target) -> Rules:
        """Return what the repository of a store says about prices and budgets."""
        found = self._rules.get(target)
        if found is None or self._clock() - found.read_s > RULES_S:
            found = await self._stores.run(_read_rules, target.store, self._stores.environ, self._clock())
            self._rules[target] = found
        return found

    def add(self, target: Target, report: Report, origin: bytes) -> bool:
        """Take a report; false if too many sessions report."""
        key = (target, report.session)
        waiting = self._waiting.get(key)
        if waiting is None:
            if len(self._waiting) >= SESSIONS_MAX and not self._forget_idle():
                self.dropped += 1
                return False
            waiting = self._waiting[key] = Waiting(report.tool, origin, {})
        waiting.tool, waiting.origin = report.tool, origin
        name = f"{report.item.series}@{report.item.start_ns}" if report.item.series else report.item.id
        before = waiting.items.get(name)
        if before is None or not report.item.series or _is_larger(report.item, before):
            waiting.items[name] = report.item
        self.received += 1
        return True

    def is_full(self, target: Target, session: str) -> bool:
        """Whether a session has as many reports waiting as one command takes."""
        waiting = self._waiting.get((target, session))
        return waiting is not None and len(waiting.items) >= ITEMS_MAX

    def _forget_idle(self) -> bool:
        """Forget a session that has nothing to write, and whose pause is over."""
        now = self._clock()
        for key, waiting in list(self._waiting.items()):
            if not waiting.items and now - waiting.written_s >= PAUSE_S:
                del self._waiting[key]
        return len(self._waiting) < SESSIONS_MAX

    def schedule(self) -> None:
        """Write what is due, a second from now; reports that come until then join it."""
        due = [
            max(SOON_S, waiting.written_s + PAUSE_S - self._clock())
            for waiting in self._waiting.values()
            if waiting.items
        ]
        if due and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(min(due), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        task = asyncio.ensure_future(self._write_and_go_on())
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def _write_and_go_on(self) -> None:
        await self.write()
        self.schedule()

    async def write(self, *, all_of_them: bool = False) -> None:
        """Write the sessions whose pause is over, or all; those of one log in one batch."""
        now = self._clock()
        due: dict[Target, list[tuple[str, Waiting]]] = {}
        for (target, session), waiting in list(self._waiting.items()):
            if waiting.items and (all_of_them or now - waiting.written_s >= PAUSE_S):
                due.setdefault(target, []).append((session, waiting))
        for target, sessions in due.items():
            try:
                await self._write_log(target, sessions, now)
            except CoordError as error:
                logger.warning("usage was not written: %s", error.message)

    async def _write_log(self, target: Target, sessions: list[tuple[str, Waiting]], now: float) -> None:
        budget = (await self.rules(target)).budget
        with target.store.in_use():
            engine = await self._stores.engine(target.store, target.tenant)
            futures: list[Any] = []
            taken: list[tuple[Waiting, dict[str, UsageItem]]] = []
            for session, waiting in sessions:
                names = list(waiting.items)[:ITEMS_MAX]
                items = {name: waiting.items.pop(name) for name in names}
                waiting.written_s = now
                taken.append((waiting, items))
                command = RecordUsage(
                    session=session,
                    tool=waiting.tool,
                    items=tuple(items.values()),
                    project=target.project,
                    budget=budget,
                )
                futures += engine.ask_many([command], origin=waiting.origin)
            for result, (waiting, items) in zip(await results_of(futures), taken, strict=True):
                if isinstance(result, CoordError):
                    logger.warning("usage was not written: %s", result.message)
                if isinstance(result, TRY_AGAIN):  # it counts once, whatever was written
                    waiting.items = {**items, **waiting.items}

    async def write_session(self, target: Target, session: str) -> None:
        """Write a session at once, because it has too many reports to wait."""
        waiting = self._waiting.get((target, session))
        if waiting is not None and waiting.items:
            await self._write_log(target, [(session, waiting)], self._clock())

    async def close(self) -> None:
        """Write everything; the hub stops."""
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.gather(*self._writing, return_exceptions=True)
        await self.write(all_of_them=True)


def _is_larger(new: UsageItem, old: UsageItem) -> bool:
    return any(
        getattr(new.amounts, name) > getattr(old.amounts, name) for name in new.amounts.__struct_fields__
    )


def _read_rules(store: OpenStore, environ: Mapping[str, str], now: float) -> Rules:
    """Return what a repository's `coord.toml` says; a wrong one counts as none, and the hub logs why."""
    repository = store.location.repository
    try:
        budget = budget_rules(read_consented(repository, environ).tables).budget
        return Rules(prices_for(repository, environ), budget, now)
    except CoordError as error:
        logger.warning("coord.toml: %s", error.message)
        return Rules(read_s=now)
