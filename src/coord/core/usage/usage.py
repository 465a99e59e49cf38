"""Add what a session used to its day, its tasks and its crew, and compare these with their budgets."""

import msgspec

from coord.core import keys
from coord.core.errors import Invalid
from coord.core.ids import check_id
from coord.core.sessions.identify import ancestors
from coord.core.sessions.schema import Session
from coord.core.transaction import Transaction
from coord.core.usage.commands import Budget, RecordUsage, RecordUsageReply
from coord.core.usage.counting import add, context_percent, count, grown, split, totals
from coord.core.usage.schema import (
    Amounts,
    BudgetExceeded,
    OverBudget,
    Spent,
    UsageDay,
    UsageHead,
    UsageReported,
    UsageRow,
    UsageState,
)

DAY_MS = 24 * 3600 * 1000
STATE_KEPT_MS = 30 * DAY_MS
KEPT_MS = 400 * DAY_MS
OVER_KEPT_MS = 7 * DAY_MS
"""How long a task over its budget is listed as something that needs a person."""
ITEMS_MAX = 1000
TASKS_MAX = 16
ROWS_MAX = 200
UNKNOWN_MAX = 200
"""How many sessions that coord does not know are kept apart."""
OTHER_SESSION = "other-sessions"


def usage_reads(command: RecordUsage) -> list[str]:
    """Return the keys that a report reads."""
    return [keys.session(command.session), keys.usage_state(command.session), keys.USAGE_HEAD]


def record_usage(tx: Transaction, command: RecordUsage, now: int) -> RecordUsageReply:
    """Count a report once, for its session and for the tasks that the session has claimed."""
    check_id("session id", command.session)
    if len(command.items) > ITEMS_MAX:
        raise Invalid(
            f"the report has {len(command.items)} parts", hint=f"send at most {ITEMS_MAX} at a time"
        )
    session = tx.get(keys.session(command.session), Session)
    if session is not None and command.project not in ("", session.project):
        return RecordUsageReply(command.session, Amounts(), [], [])
    name = command.session if session is not None else _unknown_name(tx, command.session)
    before = tx.get(keys.usage_state(name), UsageState) or UsageState()
    after = count(before, command.items)
    added = grown(totals(before), totals(after))
    if after == before:
        return RecordUsageReply(name, Amounts(), [], [])
    after = msgspec.structs.replace(after, tool=command.tool[:40] or before.tool, at_ms=now)
    tx.put(keys.usage_state(name), after, keys.due(now + STATE_KEPT_MS))
    _note_newest(tx, after.tool, now)
    if not added:
        return RecordUsageReply(name, Amounts(), [], [])
    above = ancestors(tx, name) if session is not None else []
    tasks = _tasks_of(tx, (name, *above))
    lead = above[-1] if above else name
    _add_to_day(tx, _day_of(name, session, lead), added, tasks, now)
    total = Amounts()
    for amounts in added.values():
        total = add(total, amounts)
    over = _add_to_budgets(tx, command.budget, session, name, lead, tasks, total, now)
    _emit(tx, session, name, after, added, tasks, total)
    return RecordUsageReply(name, total, [task for _, task in tasks], over)


def _unknown_name(tx: Transaction, name: str) -> str:
    """Return under which name a session is counted that coord does not know: its own, or that of the rest."""
    head = tx.get(keys.USAGE_HEAD, UsageHead) or UsageHead()
    if name in head.strangers or tx.get(keys.usage_state(name), UsageState) is not None:
        return name
    if len(head.strangers) >= UNKNOWN_MAX:
        return OTHER_SESSION
    tx.put_late(keys.USAGE_HEAD, msgspec.structs.replace(head, strangers=(*head.strangers, name)))
    return name


def _note_newest(tx: Transaction, tool: str, now: int) -> None:
    head = tx.get(keys.USAGE_HEAD, UsageHead) or UsageHead()
    tx.put_late(keys.USAGE_HEAD, msgspec.structs.replace(head, newest_ms=now, tool=tool))


def _tasks_of(tx: Transaction, names: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the project and id of the tasks that a session has claimed, or else the nearest one above it."""
    for name in names:
        found = tx.scan(keys.by_session_prefix(name), limit=TASKS_MAX)
        if found:
            return [(each[2], each[3]) for each in (keys.parts(entry.key) for entry in found)]
    return []


def _day_of(name: str, session: Session | None, lead: str) -> UsageDay:
    if session is None:
        return UsageDay(session=name, lead=lead)
    return UsageDay(session=name, agent=session.agent, project=session.project, lead=lead)


def _add_to_day(
    tx: Transaction, new: UsageDay, added: dict[str, Amounts], tasks: list[tuple[str, str]], now: int
) -> None:
    key = keys.usage_day(now // DAY_MS, new.session)
    day = tx.get(key, UsageDay)
    rows = {(row.model, row.project, row.task): row for row in (day.rows if day is not None else ())}
    for model, amounts in added.items():
        for (project, task), part in zip(tasks or [("", "")], split(amounts, len(tasks)), strict=True):
            name = (model, project, task)
            if name not in rows and len(rows) >= ROWS_MAX:
                name = (model, "", "")
            row = rows.get(name) or UsageRow(*name)
            rows[name] = msgspec.structs.replace(row, amounts=add(row.amounts, part))
    tx.put(key, msgspec.structs.replace(new, rows=tuple(rows.values())), keys.due(now + KEPT_MS))


def _add_to_budgets(
    tx: Transaction,
    budget: Budget,
    session: Session | None,
    name: str,
    lead: str,
    tasks: list[tuple[str, str]],
    total: Amounts,
    now: int,
) -> list[str]:
    """Count for the tasks and the crew of a session; return those that are over their budget."""
    project = session.project if session is not None else ""
    agent = session.agent if session is not None else ""
    wanted = [
        ("task", of_project, task, part, budget.task_cost, budget.task_tokens)
        for (of_project, task), part in zip(tasks, split(total, len(tasks)), strict=False)
    ]
    wanted.append(("crew", project, lead, total, budget.crew_cost, budget.crew_tokens))
    over = []
    for scope, of_project, whose, part, cost, tokens in wanted:
        key = keys.spent(scope, of_project if scope == "task" else "", whose)
        before = tx.get(key, Spent) or Spent()
        amounts = add(before.amounts, part)
        limit = exceeded(amounts, cost, tokens)
        over_ms = (before.over_ms or now) if limit else 0
        tx.put(key, Spent(amounts=amounts, over_ms=over_ms, unknown=before.unknown), keys.due(now + KEPT_MS))
        mark = keys.over_budget(scope, of_project if scope == "task" else "", whose)
        if limit:
            over.append(f"{scope} {whose}")
        if limit and not before.over_ms:
            text = f"{scope} {whose} used {limit}"
            found = OverBudget(
                scope=scope,
                name=whose,
                project=of_project,
                session=name,
                agent=agent,
                text=text,
                since_ms=now,
            )
            tx.put(mark, found, keys.due(now + OVER_KEPT_MS))
            spent, used = amounts.spent, amounts.tokens
            tx.emit(BudgetExceeded(scope, whose, of_project, name, spent, used, limit))
        elif before.over_ms and not limit and tx.get(mark, OverBudget) is not None:
            tx.delete(mark)
    return over


def exceeded(amounts: Amounts, cost: int, tokens: int) -> str:
    """Return how far amounts exceed a budget, as text; empty if they do not. 0 is no limit.

    >>> exceeded(Amounts(cost=2_500_000), 2_000_000, 0)
    '$2.50 of $2.00'
    """
    if cost and amounts.spent > cost:
        return f"{dollars(amounts.spent)} of {dollars(cost)}"
    if tokens and amounts.tokens > tokens:
        return f"{amounts.tokens} of {tokens} tokens"
    return ""


def dollars(micros: int) -> str:
    """Return money as text: `$1.25`, or four decimals below a cent.

    >>> dollars(1_250_000), dollars(1_800), dollars(0)
    ('$1.25', '$0.0018', '$0.00')
    """
    if 0 < micros < 10_000:
        return f"${micros / 1e6:.4f}"
    cents = (micros + 5_000) // 10_000
    return f"${cents // 100}.{cents % 100:02d}"


def _emit(
    tx: Transaction,
    session: Session | None,
    name: str,
    state: UsageState,
    added: dict[str, Amounts],
    tasks: list[tuple[str, str]],
    total: Amounts,
) -> None:
    tx.emit(
        UsageReported(
            name,
            session.agent if session is not None else "",
            session.project if session is not None else "",
            state.tool,
            tuple(added),
            tuple(task for _, task in tasks),
            requests=total.requests,
            input=total.input,
            output=total.output,
            cache_read=total.cache_read,
            cache_write=total.cache_write,
            cost=total.cost,
            estimated=total.estimated,
            context_percent=context_percent(state),
        )
    )
