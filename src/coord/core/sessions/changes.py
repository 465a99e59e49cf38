"""Count changes so that a session sees at once whether others made one, without reading what they changed.

A record of changes has the number of all changes, the session that made the last one, and the number of the
last change that another session made. So each session can leave out its own.
"""

from typing import Protocol


class Counted(Protocol):
    """A record that counts changes: `changes` of them, the last one `by` a session, `others` by another."""

    @property
    def changes(self) -> int: ...
    @property
    def by(self) -> str: ...
    @property
    def others(self) -> int: ...


def next_change(before: Counted, session: str) -> dict[str, int | str]:
    """Return the fields of a record after a change by a session."""
    others = before.others if before.by == session else before.changes
    return {"changes": before.changes + 1, "by": session, "others": others}


def changes_by_others(record: Counted | None, session: str) -> int:
    """Return the number of the last change that another session made; 0 if none did."""
    if record is None:
        return 0
    return record.others if record.by == session else record.changes
