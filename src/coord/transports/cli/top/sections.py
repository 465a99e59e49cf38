"""Make sections of a snapshot: what needs you, agents, locks, the queue and the last events."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from coord.core.locks.commands import LockInfo
from coord.core.messages.inbox import EMERGENCY
from coord.core.messages.quoting import quote, quote_name
from coord.core.plans.commands import TaskInfo
from coord.core.sessions.commands import SessionInfo
from coord.core.sessions.schema import Liveness
from coord.transports import arguments
from coord.transports.cli.event_text import event_text
from coord.transports.cli.handlers.sessions import in_words
from coord.transports.cli.output import count, timestamp
from coord.transports.cli.table import Row
from coord.transports.cli.top.dashboard import work_of
from coord.transports.cli.top.snapshot import Snapshot

SORTS = ("name", "state", "time")
NAMES = ("needs", "agents", "locks", "queue", "events")
ROWS_MAX = 200
"""The most rows of a section; its title counts all of them."""


class Item(NamedTuple):
    """A row: what it is about (`kind`, and `key` to find it again), and its cells.

    `about` is the session, lock, task, message or event itself.
    """

    kind: str
    key: str
    row: Row
    about: Any = None

    @property
    def identity(self) -> tuple[str, str]:
        """What stays the same from one snapshot to the next."""
        return self.kind, self.key


class Section(NamedTuple):
    """Rows with a title; `total` also counts those that a filter or the limit leaves out."""

    name: str
    title: str
    columns: tuple[str, ...]
    items: list[Item]
    total: int


def sections(taken: Snapshot, *, sort: str, now: float, words: str = "") -> list[Section]:
    """Return the sections as of `now`, with the rows that contain all of `words`."""
    wanted = words.lower().split()
    found = []
    for section in _sections(taken, sort, taken.age_s(now)):
        items = [item for item in section.items if _matches(item, section.columns, wanted)]
        found.append(section._replace(items=items[:ROWS_MAX], total=len(section.items)))
    return found


def title(taken: Snapshot) -> str:
    """Return the first line: the project, and how much of everything there is."""
    found = taken.found
    live = sum(session.liveness == Liveness.LIVE for session in found.sessions)
    queue = f"{count(found.queue.unfinished, 'open task')} ({found.queue.working} in work)"
    parts = [f"{live} live of {count(len(found.sessions), 'session')}", count(found.locks, "lock"), queue]
    parts += [f"you are {quote_name(taken.own)}"] if taken.own else ["you have no session here"]
    return " · ".join([f"coord top: {taken.project}", *parts])


def _matches(item: Item, columns: Sequence[str], wanted: Sequence[str]) -> bool:
    if not wanted:
        return True
    text = " ".join([item.key, *(str(item.row.get(column, "")) for column in columns)]).lower()
    return all(word in text for word in wanted)


def _sections(taken: Snapshot, sort: str, age_s: float) -> Iterator[Section]:
    now_ms = taken.found.now_ms + round(age_s * 1000)
    needs = list(_needs(taken))
    yield _section("needs", "NEEDS YOU", ("what", "about", "next"), needs)
    claimed = {(each.session_id, each.task_id): each for each in taken.queue.working}
    agents = [
        Item("session", each.session_id, _session_row(taken, each, claimed, now_ms), each)
        for each in taken.found.sessions
    ]
    columns: tuple[str, ...] = ("agent", "state", "liveness", "task", "file", "last_heartbeat_at")
    yield _section("agents", "AGENTS", columns, _sorted(agents, sort, "agent", "last_heartbeat_at"))
    locks = [
        Item("lock", f"{each.resource} {each.owner}", _lock_row(each, age_s), each) for each in taken.locks
    ]
    columns = ("resource", "holder", "expires_in", "waiters", "reason")
    yield _section("locks", "LOCKS", columns, _sorted(locks, sort, "resource", "expires_in_s"))
    queue = [
        Item("task", each.task_id, _task_row(each, now_ms), each)
        for each in (*taken.queue.working, *taken.queue.ready, *taken.queue.waiting)
    ]
    yield _section("queue", "QUEUE", ("task_id", "state", "priority", "agent", "description"), queue)
    events = [
        Item(
            "event",
            f"{each.offset} {number}",
            {"at": timestamp(each.at_ms), "event": each.event, "details": event_text(each)},
            each,
        )
        for number, each in enumerate(taken.events)
    ]
    yield _section("events", "LAST EVENTS", ("at", "event", "details"), events)


def _section(name: str, heading: str, columns: tuple[str, ...], items: list[Item]) -> Section:
    return Section(name, heading, columns, items, len(items))


def _needs(taken: Snapshot) -> Iterator[Item]:
    """Yield what a person has to look at, the most urgent first."""
    urgent = [each for each in taken.messages if each.kind == EMERGENCY]
    rest = [each for each in taken.messages if each.kind != EMERGENCY]
    for message in (*urgent, *rest):
        about = f"from {quote_name(message.from_session_id)}: {quote(message.subject)}"
        row = {"what": message.kind, "about": about, "next": "enter reads it, a acknowledges it"}
        yield Item("message", message.id, row, message)
    for need in taken.needs:
        if need.kind == "question":
            about = f"{quote_name(need.agent or need.session_id)}: {quote(need.text)}"
            keys = "m answers it" if need.next.startswith("coord decide") else need.next
            yield Item("question", need.id, {"what": need.what, "about": about, "next": keys}, need)
    for cycle in dict.fromkeys(tuple(sorted(wait.cycle)) for wait in taken.waits if wait.cycle):
        row = {"what": "deadlock", "about": " and ".join(map(quote_name, cycle)), "next": "enter shows why"}
        yield Item("session", cycle[0], row, taken.session(cycle[0]))
    for lock in taken.locks:
        if lock.preempted_by and lock.owner == taken.own:
            about = f"{quote_name(lock.preempted_by)} asks for {quote_name(lock.resource)}"
            yield Item(
                "lock",
                f"{lock.resource} {lock.owner}",
                {"what": "preempted", "about": about, "next": "r"},
                lock,
            )
    for session in taken.found.sessions:
        if session.liveness in (Liveness.HUNG, Liveness.DEAD) and (blocks := _blocks(taken, session)):
            about = f"{quote_name(session.agent or session.session_id)} has {blocks}"
            row = {"what": session.liveness.value, "about": about, "next": "enter shows what to do"}
            yield Item("session", session.session_id, row, session)
    for need in taken.needs:
        if need.kind in ("agent", "alert"):
            about = f"{quote_name(need.id)}: {need.text}" if need.kind == "agent" else need.text
            yield Item(need.kind, need.id, {"what": need.what, "about": about, "next": need.next}, need)
    for task in taken.stuck:
        about = f"{quote_name(task.task_id)}: {quote(task.note)}" if task.note else quote_name(task.task_id)
        yield Item(
            "task", task.task_id, {"what": f"task {task.state}", "about": about, "next": "t retries it"}, task
        )


def _blocks(taken: Snapshot, session: SessionInfo) -> str:
    """Return what a session that shows no sign of life keeps from others."""
    locks = sum(lock.owner == session.session_id for lock in taken.locks)
    parts = [count(locks, "lock")] if locks else []
    parts += [count(session.claims, "task")] if session.claims else []
    return " and ".join(parts)


def _session_row(
    taken: Snapshot, session: SessionInfo, claimed: dict[tuple[str, str], TaskInfo], now_ms: int
) -> Row:
    you = " (you)" if session.session_id == taken.own else ""
    return {
        "agent": f"{session.agent or session.session_id}{you}",
        "state": in_words(session, now_ms),
        "liveness": session.liveness.value,
        "task": work_of(session, claimed),
        "file": session.current_file,
        "last_heartbeat_at": timestamp(session.last_heartbeat_ms),
    }


def _lock_row(lock: LockInfo, age_s: float) -> Row:
    left_s = lock.expires_in_s - age_s
    return {
        "resource": lock.resource,
        "holder": lock.agent or lock.owner,
        "expires_in": arguments.span(left_s) if left_s > 0 else "expired",
        "expires_in_s": left_s,
        "waiters": list(lock.waiters),
        "reason": lock.reason,
    }


def _task_row(task: TaskInfo, now_ms: int) -> Row:
    state = task.state
    if task.retry_ms > now_ms:
        state += f", again in {arguments.span((task.retry_ms - now_ms) / 1000)}"
    elif task.expires_ms:
        state += f", {arguments.span(max(0, task.expires_ms - now_ms) / 1000)} left"
    return {
        "task_id": task.task_id,
        "state": state,
        "priority": task.priority or "",
        "agent": task.agent or task.session_id or (f"for {task.assignee}" if task.assignee else ""),
        "description": task.description,
    }


def _sorted(items: list[Item], sort: str, name: str, at: str) -> list[Item]:
    keys: dict[str, Callable[[Item], Any]] = {
        "name": lambda item: str(item.row[name]),
        "state": lambda item: (str(item.row.get("state", "")), str(item.row[name])),
        "time": lambda item: item.row[at] or "",
    }
    return sorted(items, key=keys[sort])
