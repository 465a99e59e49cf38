"""Records and events of usage: the format on disk. Money is in micro-dollars, whole numbers."""

import msgspec

from coord.core.events import Event
from coord.core.records import Stored


class Amounts(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What was used. `input` excludes what came from the cache or was written to it.

    `cost` is what the tool reported, `estimated` comes from list prices. `unpriced` counts the tokens that
    have neither.
    """

    requests: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost: int = 0
    estimated: int = 0
    unpriced: int = 0

    @property
    def tokens(self) -> int:
        """All tokens."""
        return self.input + self.output + self.cache_read + self.cache_write

    @property
    def spent(self) -> int:
        """The money, reported or estimated."""
        return self.cost + self.estimated


class UsageReported(Event, frozen=True, tag="usage.reported"):
    """A session used tokens since its last report; costs are in micro-dollars."""

    session: str
    agent: str
    project: str
    tool: str
    models: tuple[str, ...]
    tasks: tuple[str, ...] = ()
    requests: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost: int = 0
    estimated: int = 0
    context_percent: int = -1


class BudgetExceeded(Event, frozen=True, tag="budget.exceeded"):
    """A task or a crew used more than its budget; said once until the budget suffices again."""

    scope: str
    name: str
    project: str
    session: str
    spent: int
    tokens: int
    limit: str


class UsageState(Stored, frozen=True, tag=1):
    """What a session reported so far, so that nothing counts twice.

    `logged` and `metered` are the sums of the two kinds of report, by model. They describe the same requests,
    so the larger one counts. `series` has the newest value of each counter and start of its process, and
    `floor_ns` the newest start that was forgotten. `recent` are the ids of the newest reports.
    """

    tool: str = ""
    logged: dict[str, Amounts] = {}
    metered: dict[str, Amounts] = {}
    series: dict[str, Amounts] = {}
    floor_ns: int = 0
    recent: tuple[str, ...] = ()
    context_tokens: int = 0
    context_window: int = 0
    at_ms: int = 0


class UsageRow(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What a session used of a model for a task (empty: for none)."""

    model: str
    project: str = ""
    task: str = ""
    amounts: Amounts = Amounts()


class UsageDay(Stored, frozen=True, tag=1):
    """What a session used on one day (UTC); `lead` is the session at the top of its crew."""

    session: str = ""
    agent: str = ""
    project: str = ""
    lead: str = ""
    rows: tuple[UsageRow, ...] = ()


class Spent(Stored, frozen=True, tag=1):
    """What a task or a crew used in all."""

    amounts: Amounts = Amounts()
    over_ms: int = 0
    """Since when it is over its budget; 0 if it is not."""


class OverBudget(Stored, frozen=True, tag=1):
    """A task or a crew that is over its budget, for the list of what needs a person."""

    scope: str = ""
    name: str = ""
    project: str = ""
    session: str = ""
    agent: str = ""
    text: str = ""
    since_ms: int = 0


class UsageHead(Stored, frozen=True, tag=1):
    """When the newest report arrived, and the sessions of tools that coord does not know."""

    newest_ms: int = 0
    tool: str = ""
    strangers: tuple[str, ...] = ()
