"""Sessions that report usage, with the rules alone."""

from typing import Any

from coord.core import keys
from coord.core.records import MARKER, encode
from coord.core.sessions.schema import Session
from coord.core.usage.commands import GetUsage, RecordUsage, Source, UsageBy, UsageItem
from coord.core.usage.schema import Amounts
from tests.support.rule_harness import T0, Kept, Outcome, RuleHarness


def begin(harness: RuleHarness, name: str, **fields: Any) -> None:
    session = Session(session_id=name, agent=f"agent-{name}", project="shop", beat_ms=T0, **fields)
    harness.records[keys.session(name)] = Kept(encode(session), "")


def claim(harness: RuleHarness, session: str, *tasks: str) -> None:
    for task in tasks:
        harness.records[keys.by_session(session, "shop", task)] = Kept(encode(MARKER), "")


_number = iter(range(1_000_000))


def item(tokens: int = 10, model: str = "m", cost: int = 0, **fields: Any) -> UsageItem:
    amounts = Amounts(requests=1, input=tokens, cost=cost)
    return UsageItem(id=f"i{next(_number)}", source=Source.LOG, model=model, amounts=amounts, **fields)


def record(harness: RuleHarness, session: str, *items: UsageItem, now: int = T0, **fields: Any) -> Outcome:
    return harness.run(RecordUsage(session=session, tool="claude", items=items, **fields), now)


def used(harness: RuleHarness, by: str, **fields: Any) -> dict[str, tuple[int, int]]:
    found = harness.run(GetUsage(per=UsageBy(by), **fields)).reply
    return {each.name: (each.amounts.tokens, each.amounts.spent) for each in found.totals}
