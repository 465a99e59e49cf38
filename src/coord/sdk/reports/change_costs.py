"""What merged changes cost, from the log: usage up to a merge counts for the branch that was merged."""

from collections.abc import Iterable
from typing import Any

import msgspec

from coord.core.usage.schema import Amounts
from coord.sdk.log_reader import LoggedEvent

TAGS = frozenset(("usage.reported", "git.committed", "git.merged"))
_FIELDS = [name for name in Amounts.__struct_fields__ if name != "unpriced"]


class ChangeCost(msgspec.Struct, frozen=True):
    """A merged change, the sessions that committed to its branch, and what these used for it."""

    commit: str
    branch: str
    into: str
    at_ms: int
    sessions: tuple[str, ...]
    amounts: Amounts


def change_costs(events: Iterable[LoggedEvent]) -> list[ChangeCost]:
    """Return the merged changes in the order of their merges.

    The sessions of a change are those that committed to its branch since it was merged last; if the log
    knows none, the session that merged it. All that they used since their last merged change counts for it.
    """
    used: dict[str, Amounts] = {}
    on_branch: dict[str, dict[str, None]] = {}
    found: list[ChangeCost] = []
    for event in events:
        details = event.details
        if event.event == "usage.reported":
            before = used.get(details["session"], Amounts())
            numbers = {name: getattr(before, name) + _number(details, name) for name in _FIELDS}
            used[details["session"]] = Amounts(**numbers)
        elif event.event == "git.committed":
            on_branch.setdefault(_branch(details), {})[details["session"]] = None
        elif event.event == "git.merged":
            sessions = tuple(on_branch.pop(_branch(details), {}) or {details["session"]: None})
            amounts = _sum(used.pop(name, Amounts()) for name in sessions)
            commit, branch, into = (str(details.get(name, "")) for name in ("commit", "branch", "into"))
            found.append(ChangeCost(commit, branch, into, event.at_ms, sessions, amounts))
    return found


def _branch(details: dict[str, Any]) -> str:
    return str(details.get("branch", "")).removeprefix("refs/heads/")


def _number(details: dict[str, Any], name: str) -> int:
    value = details.get(name, 0)
    return value if isinstance(value, int) else 0


def _sum(parts: Iterable[Amounts]) -> Amounts:
    total = Amounts()
    for part in parts:
        total = Amounts(**{name: getattr(total, name) + getattr(part, name) for name in _FIELDS})
    return total
