"""Answer what was used: by agent, task, model, day, session or crew."""

import datetime as dt
from collections.abc import Iterator

from coord.core import keys
from coord.core.sessions.identify import ancestors
from coord.core.transaction import Transaction
from coord.core.usage.commands import GetSpent, GetUsage, SpentReply, UsageBy, UsageReply, UsageTotal
from coord.core.usage.counting import add, context_percent
from coord.core.usage.schema import Amounts, Spent, UsageDay, UsageHead, UsageRow, UsageState
from coord.core.usage.usage import DAY_MS

NO_TASK = "(no task)"


def get_usage(tx: Transaction, command: GetUsage, now: int) -> UsageReply:
    """Return what was used since the day of a time, the most expensive first."""
    since = max(0, command.since_ms) // DAY_MS
    sums: dict[tuple[str, str], Amounts] = {}
    sessions: dict[tuple[str, str], set[str]] = {}
    total = Amounts()
    for number, day in _days(tx, since):
        for row in day.rows:
            if command.project not in ("", row.project or day.project):
                continue
            name = _name(command.per, number, day, row)
            sums[name] = add(sums.get(name, Amounts()), row.amounts)
            sessions.setdefault(name, set()).add(day.session)
            total = add(total, row.amounts)
    head = tx.get(keys.USAGE_HEAD, UsageHead) or UsageHead()
    ordered = sorted(sums, key=lambda name: (-sums[name].spent, -sums[name].tokens, name))
    if command.per is UsageBy.DAY:
        ordered.sort(reverse=True)
    found = [
        UsageTotal(
            name=name[1],
            project=name[0],
            amounts=sums[name],
            sessions=len(sessions[name]),
            context_percent=_context(tx, name[1]) if command.per is UsageBy.SESSION else -1,
        )
        for name in ordered[: max(0, command.limit)]
    ]
    return UsageReply(now, since * DAY_MS, head.newest_ms, found, total)


def _days(tx: Transaction, since: int) -> Iterator[tuple[int, UsageDay]]:
    """Yield what each session used on each day from the given one on."""
    for page in tx.pages(keys.USAGE_PREFIX, after=("", keys.usage_day(since, ""))):
        tx.prefetch(*(entry.key for entry in page))
        for entry in page:
            day = tx.get(entry.key, UsageDay)
            number = int(keys.parts(entry.key)[1])
            if day is not None and number >= since:
                yield number, day


def _name(by: UsageBy, number: int, day: UsageDay, row: UsageRow) -> tuple[str, str]:
    """Return the project and the name under which a row is counted."""
    if by is UsageBy.TASK:
        return (row.project, row.task) if row.task else ("", NO_TASK)
    if by is UsageBy.MODEL:
        return "", row.model
    if by is UsageBy.DAY:
        return "", dt.date.fromordinal(_EPOCH + number).isoformat()
    if by is UsageBy.SESSION:
        return day.project, day.session
    if by is UsageBy.CREW:
        return day.project, day.lead
    return day.project, day.agent or day.session


_EPOCH = dt.date(1970, 1, 1).toordinal()


def _context(tx: Transaction, session: str) -> int:
    return context_percent(tx.get(keys.usage_state(session), UsageState))


def get_spent(tx: Transaction, command: GetSpent, _now: int) -> SpentReply:
    """Return what counts against the budgets of a task and of a crew."""
    above = ancestors(tx, command.session) if command.session else []
    lead = above[-1] if above else command.session
    task, crew = keys.spent("task", command.project, command.task), keys.spent("crew", "", lead)
    tx.prefetch(task, crew)
    found = [tx.get(key, Spent) or Spent() for key in (task, crew)]
    return SpentReply(found[0].amounts, found[1].amounts)
