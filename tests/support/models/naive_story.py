"""What must hold between locks, claims, waits and messages, computed from the events of the log alone.

The model knows no rule of coord. It keeps who holds which resource, who has claimed which task since
when, and which messages nobody has read. It compares overlaps by listing the files that a resource covers.
"""

from collections import defaultdict
from typing import Any, NamedTuple

FILES = ("a", "b", "c", "d/x", "d/y")
COVERS: dict[str, frozenset[str]] = {
    "file:a": frozenset({"a"}),
    "file:b": frozenset({"b"}),
    "file:c": frozenset({"c"}),
    "file:d": frozenset({"d/x", "d/y"}),
    "file:d/x": frozenset({"d/x"}),
    "file:d/*": frozenset({"d/x", "d/y"}),
    "file:**": frozenset(FILES),
    "name:push": frozenset({"name:push"}),
}
"""What each resource covers, written by hand."""
TAKEN = ("stolen", "preempted", "deadlock")


class Held(NamedTuple):
    """A lock as an event granted it."""

    session: str
    mode: str
    since: int


class Claim(NamedTuple):
    """A claim as an event granted it; `since` is the offset."""

    session: str
    generation: int
    since: int


class NaiveStory:
    """Follows the log; `parents` says which session is below which."""

    def __init__(self, parents: dict[str, str], files: dict[str, tuple[str, ...]]) -> None:
        self.parents = parents
        self.files = files
        self.held: dict[tuple[str, str], Held] = {}
        self.granted: list[tuple[int, str, str]] = []
        """Every lock that was ever granted: offset, session, resource."""
        self.claims: dict[str, Claim] = {}
        self.latest: dict[str, Claim] = {}
        self.generations: dict[str, int] = defaultdict(int)
        self.done: set[str] = set()
        self.unread: dict[str, set[str]] = defaultdict(set)
        self.told: dict[str, list[int]] = defaultdict(list)
        self.seen: set[str] = set()

    def follow(self, offset: int, events: list[dict[str, Any]]) -> None:
        """Take in one entry of the log, and check it."""
        for event in events:
            self.seen.add(event["event"])
            handle = getattr(self, f"_{event['event'].replace('.', '_')}", None)
            if handle is not None:
                handle(offset, event)
        self._check_losses(offset, events)
        self._check_exclusion(offset)

    def _lock_acquired(self, offset: int, event: dict[str, Any]) -> None:
        self.held[event["session"], event["resource"]] = Held(event["session"], event["mode"], offset)
        self.granted.append((offset, event["session"], event["resource"]))

    def _lock_released(self, _offset: int, event: dict[str, Any]) -> None:
        self.held.pop((event["session"], event["resource"]), None)

    def _lock_moved(self, offset: int, event: dict[str, Any]) -> None:
        held = self.held.pop((event["session"], event["resource"]))
        self.held[event["successor"], event["resource"]] = Held(event["successor"], held.mode, held.since)
        self.granted.append((offset, event["successor"], event["resource"]))

    def _task_claimed(self, offset: int, event: dict[str, Any]) -> None:
        name, generation = event["task"], event["generation"]
        assert generation > self.generations[name], f"{name}: generation {generation} was granted before"
        assert name not in self.done, f"{name} is claimed although it is done"
        self.generations[name] = generation
        self.claims[name] = self.latest[name] = Claim(event["session"], generation, offset)

    def _task_released(self, _offset: int, event: dict[str, Any]) -> None:
        self.claims.pop(event["task"], None)

    _task_superseded = _task_released

    def _task_reset(self, _offset: int, event: dict[str, Any]) -> None:
        self.claims.pop(event["task"], None)
        self.done.discard(event["task"])

    def _task_completed(self, offset: int, event: dict[str, Any]) -> None:
        """The property: no other session held a declared file since the claim was granted."""
        name = event["task"]
        assert name not in self.done, f"{name} has two results"
        claim = self.claims.pop(name)
        assert (event["session"], event["generation"]) == claim[:2], f"{name}: a result of another claim"
        mine = frozenset().union(*(COVERS[resource] for resource in self.files[name]))
        for since, session, resource in self.granted:
            if claim.since < since < offset and COVERS[resource] & mine:
                held = f"{session} held {resource} since {since}"
                assert self.related(session, claim.session), f"{offset}: {name} is done, but {held}"
        self.done.add(name)

    def _message_sent(self, offset: int, event: dict[str, Any]) -> None:
        for session in event["to"]:
            self.unread[session].add(event["id"])
            if event["kind"] in ("preempt", "warn"):
                self.told[session].append(offset)

    def _message_delivered(self, _offset: int, event: dict[str, Any]) -> None:
        assert event["id"] in self.unread[event["session"]], f"{event['id']} was delivered twice"
        self.unread[event["session"]].discard(event["id"])

    def _message_undelivered(self, _offset: int, event: dict[str, Any]) -> None:
        self.unread[event["session"]].discard(event["id"])

    def _message_withdrawn(self, _offset: int, event: dict[str, Any]) -> None:
        self.unread[event["session"]].discard(event["id"])

    def _check_losses(self, offset: int, events: list[dict[str, Any]]) -> None:
        """Whoever loses a lock to another session is told in the same commit, or was asked before."""
        ended = {event["session"] for event in events if event["event"] == "session.ended"}
        for event in events:
            if event["event"] == "lock.released" and event["end_reason"] in TAKEN:
                session = event["session"]
                asked = (
                    event["end_reason"] == "preempted" and max(self.told[session], default=0) > event["fence"]
                )
                told = asked or session in ended or offset in self.told[session]
                assert told, f"nobody told {session}: {event}"

    def _check_exclusion(self, offset: int) -> None:
        """Overlapping locks of unrelated sessions only read."""
        locks = list(self.held.items())
        for number, ((one, resource), first) in enumerate(locks):
            for (two, other), second in locks[number + 1 :]:
                if one == two or self.related(one, two) or first.mode == second.mode == "read":
                    continue
                assert not COVERS[resource] & COVERS[other], f"{offset}: {one} {resource}, {two} {other}"

    def related(self, one: str, two: str) -> bool:
        """Whether one session is the other, or above it."""
        return one in self._line(two) or two in self._line(one)

    def _line(self, session: str) -> list[str]:
        line = [session]
        while (parent := self.parents.get(line[-1], "")) and parent not in line:
            line.append(parent)
        return line
