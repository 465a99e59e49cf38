"""What a merged change cost: what its sessions used since the change before."""

from typing import Any

from coord.sdk.log_reader import LoggedEvent
from coord.sdk.reports.change_costs import change_costs


def events(*found: tuple[str, dict[str, Any]]) -> list[LoggedEvent]:
    return [LoggedEvent(number, number, name, details) for number, (name, details) in enumerate(found, 1)]


def used(session: str, cost: int) -> tuple[str, dict[str, Any]]:
    return "usage.reported", {"session": session, "cost": cost, "input": 10, "models": ["m"]}


def committed(session: str, branch: str) -> tuple[str, dict[str, Any]]:
    return "git.committed", {"session": session, "branch": branch}


def merged(branch: str, by: str = "eve") -> tuple[str, dict[str, Any]]:
    return "git.merged", {"session": by, "branch": branch, "into": "main", "commit": f"c-{branch}"}


def test_the_sessions_that_committed_paid_for_a_change() -> None:
    found = change_costs(
        events(
            *(used("ann", 5), used("bob", 7), used("eve", 100)),
            *(committed("ann", "refs/heads/x"), committed("bob", "x"), merged("x")),
            *(used("ann", 1), committed("ann", "y"), merged("y"), merged("z")),
        )
    )
    assert [(each.commit, each.sessions, each.amounts.cost) for each in found] == [
        ("c-x", ("ann", "bob"), 12),
        ("c-y", ("ann",), 1),
        ("c-z", ("eve",), 100),
    ]
    assert found[0].amounts.input == 20
    assert found[0].at_ms == 6


def test_nothing_counts_for_two_changes() -> None:
    found = change_costs(events(used("ann", 5), committed("ann", "x"), merged("x"), merged("x", "ann")))
    assert [each.amounts.cost for each in found] == [5, 0]
