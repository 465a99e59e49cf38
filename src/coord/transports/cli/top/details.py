"""The details of a row: what is known about it, why it waits, and the commands that help.

A chain of waits is followed to its end: who waits, for what, behind whom, and what that one waits for.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from coord.core.lifecycle.commands import Need
from coord.core.locks.commands import CheckLocks, CheckReply, LockInfo, SessionWait
from coord.core.messages.quoting import quote, quote_lines, quote_name
from coord.core.plans.commands import GetTasks, TaskInfo, TaskList
from coord.core.sessions.commands import SessionInfo
from coord.core.sessions.schema import Liveness
from coord.core.tasks.types import TaskStatus
from coord.sdk.client.client import Client
from coord.transports import arguments
from coord.transports.cli.event_text import detail_text
from coord.transports.cli.handlers.sessions import in_words, task_of
from coord.transports.cli.output import count, timestamp
from coord.transports.cli.table import ago
from coord.transports.cli.top.actions import shown, spelled
from coord.transports.cli.top.sections import Item
from coord.transports.cli.top.snapshot import Snapshot

INDENT = "   "
INDENTS_MAX = 8


def details(client: Client, taken: Snapshot, item: Item, options: Sequence[str] = ()) -> list[str]:
    """Return the lines about a row; texts of others are quoted. `options`: the global flags of commands."""
    about = current(taken, item)
    if about is None:
        return [f"{item.kind} {quote_name(item.key)} has ended"]
    lines: dict[str, Callable[[Client, Snapshot, Any], Iterator[str | None]]] = {
        "session": _session,
        "lock": _lock,
        "task": _task,
        "message": _message,
        "question": _need,
        "agent": _need,
        "alert": _need,
        "event": _event,
    }
    found = [line for line in lines[item.kind](client, taken, about) if line is not None]
    return [*found, *_commands(client, taken, item.kind, about, options)]


def current(taken: Snapshot, item: Item) -> Any:
    """Return what the row is about as of this snapshot; None if it is gone."""
    match item.kind:
        case "session":
            return taken.session(item.key)
        case "lock":
            resource, _, owner = item.key.rpartition(" ")
            same = [each for each in taken.locks if each.resource == resource]
            return next((each for each in same if each.owner == owner), next(iter(same), None))
        case "task":
            tasks = (*taken.queue.working, *taken.queue.ready, *taken.queue.waiting, *taken.stuck)
            return next((each for each in tasks if each.task_id == item.key), None)
        case _:
            return item.about


def _field(name: str, value: object) -> str | None:
    return f"{name:<11} {value}" if value else None


def _time(ms: int) -> str:
    return ago(timestamp(ms) or "") if ms else ""


def _session(_client: Client, taken: Snapshot, session: SessionInfo) -> Iterator[str | None]:
    own = " (you)" if session.session_id == taken.own else ""
    yield f"SESSION {quote_name(session.session_id)}{own}"
    yield _field("agent", quote_name(session.agent) if session.agent else "")
    yield _field("role", quote_name(session.role) if session.role else "")
    yield _field("model", quote_name(session.model) if session.model else "")
    yield _field("state", f"{in_words(session, taken.found.now_ms)}, {session.liveness.value}")
    yield _field("task", quote(task_of(session)) if task_of(session) else "")
    yield _field("file", quote_name(session.current_file) if session.current_file else "")
    yield _field("command", quote(session.current_command) if session.current_command else "")
    yield _field("heartbeat", _time(session.last_heartbeat_ms))
    yield _field("started", _time(session.started_ms))
    process = f"process {session.pid} on {quote_name(session.host)}" if session.pid else ""
    yield _field("runs as", process)
    yield _field("folder", quote_name(session.cwd) if session.cwd else "")
    yield _field("lead", quote_name(session.parent) if session.parent else "")
    yield ""
    locks = [lock for lock in taken.locks if lock.owner == session.session_id]
    yield f"LOCKS: {count(len(locks), 'lock')}"
    for lock in locks:
        waiters = f", wanted by {', '.join(map(quote_name, lock.waiters))}" if lock.waiters else ""
        yield f"{INDENT}{quote_name(lock.resource)} ({_left(lock)}{waiters})"
    tasks = [task for task in taken.queue.working if task.session_id == session.session_id]
    yield f"TASKS: {count(len(tasks), 'task')}"
    for task in tasks:
        about = f" {quote(task.description)}" if task.description else ""
        yield f"{INDENT}{quote_name(task.task_id)}{about}"
    yield ""
    yield from _why(taken, session.session_id)


def _lock(_client: Client, taken: Snapshot, lock: LockInfo) -> Iterator[str | None]:
    holder = taken.session(lock.owner)
    life = f", {holder.liveness.value}" if holder is not None else ""
    yield f"LOCK {quote_name(lock.resource)}"
    yield _field(
        "holder", f"{_who(lock.agent, lock.owner)}{life}{' (you)' if lock.owner == taken.own else ''}"
    )
    yield _field("mode", f"{lock.mode}, fence {lock.fence}")
    yield _field("since", _time(lock.acquired_ms))
    yield _field("lease", _left(lock))
    yield _field("reason", quote(lock.reason) if lock.reason else "")
    yield _field("worktree", quote_name(lock.worktree) if lock.worktree else "")
    yield _field("asked for", f"by {quote_name(lock.preempted_by)}" if lock.preempted_by else "")
    yield ""
    yield f"WAITERS: {len(lock.waiters) or 'none'}"
    waits = {wait.session: wait for wait in taken.waits if not wait.denied}
    for number, waiter in enumerate(lock.waiters, 1):
        wait = waits.get(waiter)
        since = f", {arguments.span(wait.waited_s)}" if wait is not None else ""
        yield f"{INDENT}{number}. {quote_name(waiter)}{since}"
    yield ""
    yield from _why(taken, lock.owner)


def _task(client: Client, taken: Snapshot, task: TaskInfo) -> Iterator[str | None]:
    now_ms = taken.found.now_ms
    yield f"TASK {quote_name(task.task_id)}"
    yield _field("about", quote(task.description) if task.description else "")
    yield _field("state", task.state)
    yield _field("priority", task.priority)
    yield _field("in work by", _who(task.agent, task.session_id) if task.session_id else "")
    left = arguments.span(max(0, task.expires_ms - now_ms) / 1000) if task.expires_ms else ""
    yield _field("lease", f"generation {task.generation}, {left} left" if left else "")
    yield _field("kept for", quote_name(task.assignee) if task.assignee else "")
    yield _field("retries", f"{task.retries} of {task.retries_max}" if task.retries else "")
    yield _field("note", quote(task.note) if task.note else "")
    yield _field("parts", f"{task.parts_done} of {task.parts} done" if task.parts else "")
    needs = [
        task.type and f"type {task.type}",
        task.track and f"track {task.track}",
        task.role and f"role {task.role}",
    ]
    yield _field("needs", quote_name(", ".join([*filter(None, needs), *task.needs])) if any(needs) else "")
    yield _field("files", ", ".join(map(quote_name, task.files)))
    yield ""
    yield "WHY IS IT WAITING?" if not task.session_id else "WHO WORKS ON IT?"
    yield from _why_task(client, taken, task)


def _why_task(client: Client, taken: Snapshot, task: TaskInfo) -> Iterator[str]:
    """Yield what a task waits for: other tasks, a retry, the holders of its files, or an agent."""
    if task.session_id:
        yield from _chain(taken, task.session_id, (), 1)
        return
    if task.state in (TaskStatus.FAILED, TaskStatus.ERRORED):
        yield f"{INDENT}it failed for good: somebody has to retry or skip it"
        return
    reasons = 0
    if task.depends_on:
        found: TaskList = client.call(GetTasks(taken.project, tuple(task.depends_on)))
        for other in found.tasks:
            if other.state not in (TaskStatus.DONE, TaskStatus.SKIPPED):
                reasons += 1
                by = f", by {_who(other.agent, other.session_id)}" if other.session_id else ""
                yield f"{INDENT}for task {quote_name(other.task_id)}: {other.state}{by}"
                if other.session_id:
                    yield from _chain(taken, other.session_id, (), 2)
    if task.retry_ms > taken.found.now_ms:
        reasons += 1
        left = arguments.span((task.retry_ms - taken.found.now_ms) / 1000)
        yield f"{INDENT}for its next try, in {left}"
    if task.files:
        command = CheckLocks(client.caller, client.location.repository_id, tuple(task.files))
        reply: CheckReply = client.call(command)
        for lock in reply.holders:
            reasons += 1
            holder = f"{_who(lock.agent, lock.owner)} ({_left(lock)})"
            yield f"{INDENT}for the lock on {quote_name(lock.resource)} of {holder}"
            yield from _chain(taken, lock.owner, (), 2)
    if not reasons:
        kept = (
            f"{quote_name(task.assignee)}, for whom it is kept"
            if task.assignee
            else "the next agent that may take it"
        )
        yield f"{INDENT}for {kept}"


def _message(_client: Client, _taken: Snapshot, message: Any) -> Iterator[str | None]:
    yield f"MESSAGE {quote_name(message.id)}"
    yield _field("from", quote_name(message.from_session_id))
    yield _field("in", quote_name(message.from_repository) if message.from_repository else "")
    yield _field("kind", quote_name(message.kind))
    yield _field("sent", _time(message.sent_ms))
    yield _field("priority", message.priority)
    yield _field("answers", quote_name(message.reply_to) if message.reply_to else "")
    yield ""
    yield from quote_lines(message.subject).splitlines()
    if message.body:
        yield from quote_lines(message.body).splitlines()


def _need(_client: Client, taken: Snapshot, need: Need) -> Iterator[str | None]:
    yield f"{need.what.upper()} {quote_name(need.id)}"
    yield _field("session", quote_name(need.session_id) if need.session_id else "")
    yield _field("agent", quote_name(need.agent) if need.agent else "")
    yield _field("since", _time(need.since_ms))
    yield _field("options", ", ".join(map(quote_name, need.options)))
    yield ""
    yield from quote_lines(need.text).splitlines()
    if need.session_id:
        yield ""
        yield from _why(taken, need.session_id)


def _event(_client: Client, _taken: Snapshot, event: Any) -> Iterator[str | None]:
    yield f"EVENT {event.event}"
    yield _field("at", timestamp(event.at_ms))
    yield _field("offset", event.offset)
    yield ""
    for name, value in event.details.items():
        yield quote_name(detail_text(name, value))


def _commands(
    client: Client, taken: Snapshot, kind: str, about: Any, options: Sequence[str]
) -> Iterator[str]:
    """Yield the commands that help, the gentlest first."""
    found: list[list[str]] = []
    if kind == "session":
        found = [["session", "show", about.session_id]]
        found += [["send", about.session_id, "request", "…"]] if about.session_id != taken.own else []
        found += [["dereg", about.session_id]] if about.liveness is Liveness.DEAD else []
    elif kind == "lock" and about.owner == taken.own:
        found = [["unlock", spelled(client, about.resource)]]
    elif kind == "lock":
        name, holder = spelled(client, about.resource), taken.session(about.owner)
        dead = holder is not None and holder.liveness is Liveness.DEAD
        found = [["send", about.owner, "request", f"please release {about.resource}"]]
        found += [["steal", name, "--dead-owner"] if dead else ["steal", name, "--force", "--reason", "…"]]
    elif kind == "task":
        found = [["task", "show", about.task_id]]
        if about.state in (TaskStatus.FAILED, TaskStatus.ERRORED):
            found += [["task", "retry", about.task_id], ["task", "skip", about.task_id]]
        elif about.session_id and about.session_id != taken.own:
            found += [["task", "claim", about.task_id, "--force", "--reason", "…"]]
    elif kind == "message":
        found = [["ack", about.id], ["send", about.from_session_id, "reply", "…", "--reply-to", about.id]]
    elif kind == "question":
        found = [["decide", about.id, "…"], ["withdraw", about.id]]
    elif kind == "agent":
        found = [["agent", "enable", about.id]]
    elif kind == "alert":
        found = [["alerts", "close", about.id, "--true"], ["alerts", "close", about.id, "--false"]]
    else:
        found = [["log", "tail"]]
    yield ""
    yield "COMMANDS"
    yield from (INDENT + shown([words], options) for words in found)


def _why(taken: Snapshot, session: str) -> Iterator[str]:
    """Yield why a session does not go on."""
    yield f"WHAT DOES {quote_name(session)} WAIT FOR?"
    yield from _chain(taken, session, (), 1)


def _chain(
    taken: Snapshot, session: str, above: tuple[str, ...], depth: int, known: set[str] | None = None
) -> Iterator[str]:
    """Yield the waits of a session and, below each, those of the sessions that block it.

    A session that several others wait for is followed once: `known` has those that were.
    """
    known = set() if known is None else known
    pad = INDENT * min(depth, INDENTS_MAX)
    if session in above:
        cycle = (*above[above.index(session) :], session)
        yield f"{pad}and so on: a deadlock of {' → '.join(map(quote_name, cycle))}"
        return
    waits = [wait for wait in taken.waits if wait.session == session]
    if not waits:
        yield f"{pad}{quote_name(session)} waits for nothing: {_life(taken, session)}"
        return
    if session in known:
        yield f"{pad}{quote_name(session)} waits, too: see above"
        return
    known.add(session)
    for wait in waits:
        yield f"{pad}{_wait_text(wait)}"
        for blocker in dict.fromkeys(each.session for each in wait.blockers):
            why = ", ".join(
                f"{each.by} {quote_name(each.what)}" for each in wait.blockers if each.session == blocker
            )
            yield f"{pad}{INDENT}behind {quote_name(blocker or 'nobody for certain')}: {why}"
            if blocker:
                yield from _chain(taken, blocker, (*above, session), depth + 2, known)


def _wait_text(wait: SessionWait) -> str:
    wants = ", ".join(quote_name(each.removeprefix("file:")) for each in wait.wants) or "a task"
    time = arguments.span(wait.waited_s)
    if wait.denied:
        return f"{quote_name(wait.session)} was denied {wants} {time} ago, and may ask again"
    position = f", position {wait.position}" if wait.position else ""
    return f"{quote_name(wait.session)} waits for {wants}{position}, {time}"


def _life(taken: Snapshot, name: str) -> str:
    session = taken.session(name)
    if session is None:
        return "it has ended"
    task = f", on {quote(task_of(session))}" if task_of(session) else ""
    return f"{session.state}{task}, {session.liveness.value}, heartbeat {_time(session.last_heartbeat_ms)}"


def _who(agent: str, session: str) -> str:
    return (
        f"{quote_name(agent)} ({quote_name(session)})" if agent and agent != session else quote_name(session)
    )


def _left(lock: LockInfo) -> str:
    return f"expires in {arguments.span(lock.expires_in_s)}" if lock.expires_in_s > 0 else "expired"
