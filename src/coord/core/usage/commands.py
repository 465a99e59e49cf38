"""Commands about usage, and their replies: the API."""

from enum import StrEnum

import msgspec

from coord.core.commands import Command, Reply
from coord.core.usage.schema import Amounts


class Source(StrEnum):
    """The kind of telemetry that a report comes from."""

    LOG = "log"
    METRIC = "metric"


class UsageBy(StrEnum):
    """What usage is added up by."""

    AGENT = "agent"
    TASK = "task"
    MODEL = "model"
    DAY = "day"
    SESSION = "session"
    CREW = "crew"


class UsageItem(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One report of a tool. With `series` its amounts are totals since `start_ns`, otherwise an increase."""

    id: str
    source: Source
    model: str
    amounts: Amounts
    series: str = ""
    start_ns: int = 0
    context_tokens: int = 0
    context_window: int = 0


class Budget(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The most that a task and a crew may use, in micro-dollars and tokens; 0: no limit."""

    task_cost: int = 0
    task_tokens: int = 0
    crew_cost: int = 0
    crew_tokens: int = 0


class RecordUsageReply(Reply, frozen=True):
    """What was new in a report, and the tasks that it counts for."""

    session: str
    added: Amounts
    tasks: list[str]
    over: list[str]


class RecordUsage(Command, frozen=True, kw_only=True):
    """Add what a session of a tool used; what was reported before counts once.

    With a `project`, a session of another one is left alone.
    """

    rule = "coord.core.usage.usage:record_usage"
    prefetch_keys = "coord.core.usage.usage:usage_reads"
    reply = RecordUsageReply
    session: str
    tool: str = ""
    items: tuple[UsageItem, ...] = ()
    project: str = ""
    budget: Budget = Budget()


class UsageTotal(Reply, frozen=True):
    """What one agent, task, model, day, session or crew used; costs are in micro-dollars."""

    name: str
    project: str
    amounts: Amounts
    sessions: int
    context_percent: int = -1


class UsageReply(Reply, frozen=True):
    """Usage, the most expensive first; `newest_ms` is when the newest report of all arrived."""

    now_ms: int
    since_ms: int
    newest_ms: int
    totals: list[UsageTotal]
    total: Amounts


class GetUsage(Command, frozen=True, kw_only=True):
    """Return what was used since the day (UTC) of a time, by agent, task, model, day, session or crew.

    An empty `project` means all.
    """

    rule = "coord.core.usage.queries:get_usage"
    reply = UsageReply
    reads_only = True
    per: UsageBy = UsageBy.AGENT
    since_ms: int = 0
    project: str = ""
    limit: int = 1000


class SpentReply(Reply, frozen=True):
    """What a task used in all, and the crew of a session."""

    task: Amounts
    crew: Amounts


class GetSpent(Command, frozen=True, kw_only=True):
    """Return what counts against the budget of a task, and of the crew of a session."""

    rule = "coord.core.usage.queries:get_spent"
    reply = SpentReply
    reads_only = True
    project: str
    task: str
    session: str = ""
