"""What a report says beside the log, whatever other programs have written into the log."""

from typing import Any

from coord.core.alerts.commands import AlertList, ListAlerts
from coord.core.commands import Command
from coord.core.identity import Caller
from coord.core.locks.commands import ListLockPeriods, LockPeriods
from coord.core.page.state import PageState, apply_entry
from coord.core.plans.commands import GetTasks, TaskList
from coord.core.usage.commands import GetUsage, UsageReply
from coord.core.usage.schema import Amounts
from coord.transports.hub.page.run_facts import read_facts

STRANGE = [
    b'{"event":"task.added","project":"shop","task":["a"],"title":"x"}',
    b'{"event":"task.added","project":3,"task":"b"}',
    b'{"event":"task.added","project":"shop","task":"c","added_ms":"late","depends_on":[["c"],4]}',
    b'{"event":"task.added","project":"shop","task":"d","added_ms":1e30,"depends_on":["c"]}',
]


def nothing(command: Command) -> Any:
    """Answer as an empty store does."""
    replies = {
        GetTasks: TaskList([]),
        GetUsage: UsageReply(0, 0, 0, [], Amounts()),
        ListAlerts: AlertList(0, []),
        ListLockPeriods: LockPeriods([]),
    }
    return replies[type(command)]


def test_tasks_with_names_are_drawn_and_others_left_out() -> None:
    state = PageState()
    apply_entry(state, 1, 1, STRANGE)
    facts = read_facts(nothing, Caller("ann"), "local", state, [])
    assert facts.plans["shop"].task == ["c", "d"]
    assert list(facts.plans) == ["shop"]
