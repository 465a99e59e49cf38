"""Who holds what, from the events of a log alone, with a table of what each resource covers."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Granted(NamedTuple):
    """A lock from its grant on; the offset of the grant is its fence."""

    resource: str
    session: str
    mode: str
    fence: int


class LockLog(NamedTuple):
    """All locks that a log tells of."""

    granted: set[tuple[int, str]]
    """The fence and the session of each grant."""
    ended: set[tuple[int, str]]
    held: list[Granted]
    """What nobody has ended."""
    waits: int


def read_locks(events: Iterable[Mapping[str, Any]], covers: Mapping[str, set[str]]) -> LockLog:
    """Read events in their order; two locks that conflict are an AssertionError."""
    granted, ended, waits = set(), set(), 0
    held: list[Granted] = []
    for event in events:
        if event["event"] == "lock.waiting":
            waits += 1
        elif event["event"] == "lock.acquired":
            new = Granted(event["resource"], event["session"], event["mode"], event["offset"])
            for other in held:
                assert not _conflict(new, other, covers), f"{new} was granted beside {other}"
            held.append(new)
            granted.add((new.fence, new.session))
        elif event["event"] == "lock.released":
            (old,) = [each for each in held if each[:2] == (event["resource"], event["session"])]
            assert old.fence == event["fence"], f"{old} ended as {event}"
            held.remove(old)
            ended.add((old.fence, old.session))
    return LockLog(granted, ended, held, waits)


def _conflict(one: Granted, other: Granted, covers: Mapping[str, set[str]]) -> bool:
    if one.session == other.session:
        return one.resource == other.resource
    shared = covers[one.resource] & covers[other.resource]
    return bool(shared) and not one.mode == other.mode == "read"
