"""The lines of the text logs below `.contract/logs/`, from the events of the log (AUD-10).

Each line begins with its time. The sentences about deadlocks, crashes and waits that were given up are those
of the first founding document. Texts of others cannot begin a line.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from coord.core.locks.schema import EndReason
from coord.core.messages.quoting import quote as quote_text
from coord.core.messages.quoting import quote_name
from coord.followers.mirrors.present import at
from coord.sdk.log_reader import LoggedEvent

ALL, INCIDENTS, COMPLETED = "coordination.log", "coordination_events.log", "completed_tasks.log"
LOGS = (ALL, INCIDENTS, COMPLETED)
SESSIONS_MAX = 5000
"""Of how many sessions the agents and waits are remembered; the oldest are forgotten first."""
CRASHED = (EndReason.OWNER_DEAD, EndReason.OWNER_SILENT)


class Line(NamedTuple):
    """A line of one of the logs, from the entry at `offset`."""

    offset: int
    log: str
    text: str


class _Memory(msgspec.Struct):
    agents: dict[str, str] = {}
    waits: dict[str, int] = {}


class LogReader:
    """Turns events into lines; what it remembers follows from the events alone."""

    def __init__(self, memory: bytes = b"", *, verbose: bool = False) -> None:
        self._memory = msgspec.json.decode(memory, type=_Memory) if memory else _Memory()
        self._verbose = verbose

    def dump(self) -> bytes:
        """Return what it remembers."""
        return msgspec.json.encode(self._memory)

    def read(self, entry: Iterable[LoggedEvent]) -> list[Line]:
        """Return the lines of the events of one log entry."""
        events = list(entry)
        lines: list[Line] = []
        for event in events:
            self._remember(event)
            for log, text in self._texts(event, events):
                lines.append(Line(event.offset, log, f"{at(event.at_ms)} {text}\n"))
            self._forget(event)
        return lines

    def _remember(self, event: LoggedEvent) -> None:
        details, memory = event.details, self._memory
        if event.event == "lock.waiting":
            memory.waits[_wait(details)] = event.at_ms
        if details.get("agent") and isinstance(details.get("session"), str):
            memory.agents[details["session"]] = details["agent"]
        for known in (memory.agents, memory.waits):
            while len(known) > SESSIONS_MAX:
                del known[next(iter(known))]

    def _forget(self, event: LoggedEvent) -> None:
        if event.event == "session.ended":
            self._memory.agents.pop(event.details["session"], None)
        elif event.event == "lock.withdrawn":
            self._memory.waits.pop(_wait(event.details), None)
        elif event.event == "lock.acquired":
            resource, session = event.details["resource"], event.details["session"]
            self._memory.waits.pop(_wait({"session": session, "resources": [resource]}), None)

    def _name(self, session: str) -> str:
        return quote_name(self._memory.agents.get(session, session))

    def _texts(self, event: LoggedEvent, entry: list[LoggedEvent]) -> list[tuple[str, str]]:
        details = event.details
        match event.event:
            case "lock.deadlock":
                return self._deadlock(details, entry)
            case "session.ended" if details["end_reason"] == "dead":
                return self._crash(details, entry)
            case "session.hung":
                return [(ALL, f"Agent {self._name(details['session'])} heartbeat missed")]
            case "lock.withdrawn" if details["reason"] not in ("granted", "deadlock"):
                return self._given_up(event)
            case "task.completed":
                what = f"{quote_name(details['task'])} by {quote_name(details['agent'])}"
                done = f"Task completed: {what} (generation {details['generation']})"
                return [(ALL, done), (COMPLETED, done)]
        simple = _SIMPLE.get(event.event) or (_VERBOSE.get(event.event) if self._verbose else None)
        return [(ALL, simple(details, self._name))] if simple else []

    def _deadlock(self, details: dict[str, Any], entry: list[LoggedEvent]) -> list[tuple[str, str]]:
        cycle, victim = details["cycle"], self._name(details["victim"])
        closed = cycle if cycle[:1] == cycle[-1:] and len(cycle) > 1 else (*cycle, *cycle[:1])
        path = " -> ".join(map(self._name, closed))
        if not details.get("resolved"):
            return [(ALL, f"[DeadlockDetector] Cycle detected: {path}. Asking {victim} to release its lock.")]
        lost = [
            quote_name(each.details["resource"].partition(":")[2])
            for each in entry
            if each.event == "lock.released"
            and each.details["end_reason"] == EndReason.DEADLOCK
            and each.details["session"] == details["victim"]
        ]
        between = " and ".join(self._name(each) for each in dict.fromkeys(cycle))
        what = f"Deadlock detected between {between}, preempting {victim}'s lock on {', '.join(lost)}"
        found = f"[DeadlockDetector] Cycle detected: {path}. Preempting {victim}'s lock."
        return [(ALL, found), (INCIDENTS, what)]

    def _crash(self, details: dict[str, Any], entry: list[LoggedEvent]) -> list[tuple[str, str]]:
        name = self._name(details["session"])
        locks = sum(
            each.event == "lock.released"
            and each.details["session"] == details["session"]
            and each.details["end_reason"] in CRASHED
            for each in entry
        )
        noun = "lock" if locks == 1 else "locks"
        missed = f"{name} heartbeat missed, assuming crash – releasing {locks} {noun}"
        return [(ALL, f"Agent {name} heartbeat missed"), (INCIDENTS, missed)]

    def _given_up(self, event: LoggedEvent) -> list[tuple[str, str]]:
        began = self._memory.waits.get(_wait(event.details), event.at_ms)
        waited_s = max(0, event.at_ms - began) // 1000
        what = ", ".join(quote_name(each.partition(":")[2]) for each in event.details["resources"])
        text = f"Failed to acquire lock for {waited_s}s, giving up"
        return [(ALL, f"{text} ({self._name(event.details['session'])} on {what})")]


def _wait(details: dict[str, Any]) -> str:
    return "\n".join((details["session"], *details["resources"]))


_Name = Callable[[str], str]


def _lock(details: dict[str, Any], name: _Name) -> str:
    return f"{name(details['session'])} on {quote_name(details['resource'].partition(':')[2])}"


def _lock_ended(details: dict[str, Any], name: _Name) -> str:
    reason = details["end_reason"]
    by = f" by {name(details['by'])}" if details.get("by") else ""
    match reason:
        case EndReason.RELEASED | EndReason.SESSION_ENDED:
            return f"Lock released: {_lock(details, name)}"
        case EndReason.PREEMPTED | EndReason.DEADLOCK | EndReason.STOLEN:
            return f"Lock preempted: {_lock(details, name)}{by} ({reason})"
    return f"Lock expired: {_lock(details, name)} ({reason})"


def _task(words: str, *fields: str) -> Callable[[dict[str, Any], _Name], str]:
    def text(details: dict[str, Any], name: _Name) -> str:
        del name
        more = ", ".join(f"{field} {_value(details[field])}" for field in fields if details.get(field))
        return f"{words}: {quote_name(details['task'])}" + (f" ({more})" if more else "")

    return text


def _value(value: Any) -> str:
    return quote_text(value) if isinstance(value, str) and " " in value else quote_name(str(value))


_SIMPLE: dict[str, Callable[[dict[str, Any], _Name], str]] = {
    "lock.acquired": lambda details, name: f"Lock acquired: {_lock(details, name)} ({details['mode']})",
    "lock.released": _lock_ended,
    "lock.preemption_asked": lambda details, name: (
        f"Preemption requested: {_lock(details, name)} by {name(details['by'])}"
    ),
    "task.added": _task("Task queued"),
    "task.assigned": _task("Task assigned", "agent"),
    "task.claimed": _task("Task assigned", "agent", "generation"),
    "task.released": _task("Task returned", "agent", "reason"),
    "task.expired": _task("Task returned", "agent"),
    "task.failed": _task("Task failed", "reason"),
    "task.errored": _task("Task failed", "retries", "reason"),
    "task.retried": _task("Task retried", "retries"),
    "task.skipped": _task("Task skipped", "reason"),
    "task.reset": _task("Task queued again", "reason"),
}
_VERBOSE: dict[str, Callable[[dict[str, Any], _Name], str]] = {
    "lock.renewed": lambda details, name: f"Lock renewed: {_lock(details, name)}",
    "lock.waiting": lambda details, name: (
        f"Lock waited for: {name(details['session'])} on "
        + ", ".join(quote_name(each.partition(":")[2]) for each in details["resources"])
    ),
    "lock.denied": lambda details, name: (
        f"Lock denied: {name(details['session'])} on "
        + ", ".join(quote_name(each.partition(":")[2]) for each in details["resources"])
    ),
    "lock.moved": lambda details, name: f"Lock moved: {_lock(details, name)} to {name(details['successor'])}",
    "task.renewed": _task("Task renewed", "agent"),
}
"""What `--verbose` adds: every operation on a ticket (AUD-15)."""
