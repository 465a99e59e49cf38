"""Register, update and inspect sessions."""

from collections.abc import Sequence
from typing import Any

from coord.core.errors import Invalid
from coord.core.lifecycle.commands import NeedsReply, Overview
from coord.core.sessions.commands import SessionInfo, SessionWait
from coord.core.tasks.types import TaskClaim
from coord.sdk.client.client import Client
from coord.sdk.client.session_memory import SessionMemory
from coord.transports import arguments
from coord.transports.cli.args import Args
from coord.transports.cli.output import Answer, count, fields_of, timestamp

COLUMNS = ("session_id", "agent", "liveness", "state", "task", "last_heartbeat_at", "cwd")
ELSEWHERE_COLUMNS = ("session_id", "agent", "liveness", "state", "task", "last_heartbeat_at", "repository")
TICKETS_MAX = 1000
"""The most locks that the dashboard lists; its line counts all of them."""
STATUS_LINES = (
    *("session_id", "agent", "role", "model", "project", "parent", "liveness", "state", "current_task"),
    *("current_file", "claims", "locks", "waits", "agents", "messages", "emergencies", "stuck"),
    *("pid", "cwd", "started_at", "last_heartbeat_at"),
)


class DescribeArgs(Args, frozen=True):
    """How a session describes itself."""

    task: str | None
    phase: str | None
    status: str | None
    blob: Any
    capabilities: Sequence[str] | None


class RegisterArgs(DescribeArgs, frozen=True):
    """The arguments of `coord register`."""

    replaces: str
    force: bool
    reason: str
    bin: str | None
    tool_version: str | None
    model: str | None


def register(client: Client, args: RegisterArgs) -> Answer:
    """Register this session, and list the others."""
    reply = client.register(
        task=args.task,
        phase=args.phase,
        status=args.status,
        bin=args.bin,
        version=args.tool_version,
        model=args.model,
        blob=args.blob,
        capabilities=_capabilities(args.capabilities),
        replaces=args.replaces,
        force=args.force,
        reason=args.reason,
    )
    line = f"Registered {reply.session.session_id}; {_company(reply.peers)}"
    fields = {**fields_of(reply), "session": _fields(reply.session), "peers": _all_fields(reply.peers)}
    return Answer(fields, line, _rows(reply.peers), COLUMNS)


def heartbeat(client: Client, _args: Args) -> Answer:
    """Report that this session is alive."""
    reply = client.heartbeat()
    return Answer(fields_of(reply), f"{reply.session_id}: alive")


class UpdateArgs(DescribeArgs, frozen=True):
    """The arguments of `coord update`."""

    merge_blob: bool
    owned: Any


def update(client: Client, args: UpdateArgs) -> Answer:
    """Update this session's description."""
    if args.merge_blob and args.blob is None:
        raise Invalid("--merge-blob requires --blob", hint="add --blob JSON")
    blob = {"merge_blob" if args.merge_blob else "blob": args.blob}
    reply = client.update(
        task=args.task,
        status=args.status,
        phase=args.phase,
        owned=args.owned,
        capabilities=_capabilities(args.capabilities),
        **blob,
    )
    gone = [
        f"{verb} {', '.join(names)}"
        for verb, names in (("released", reply.released), ("returned", reply.returned))
        if names
    ]
    return Answer({"session": _fields(reply)}, "; ".join((f"Updated {reply.session_id}", *gone)))


class PeersArgs(Args, frozen=True):
    """The arguments of `coord peers`."""

    live: bool


def peers(client: Client, args: PeersArgs) -> Answer:
    """List the other sessions here, and those of other repositories on this machine."""
    here, elsewhere = client.peers(live=args.live), client.peers_elsewhere(live=args.live)
    fields = {"peers": _all_fields(here), "elsewhere": _all_fields(elsewhere)}
    if not elsewhere:
        return Answer(fields, _company(here), _rows(here), COLUMNS)
    line = f"{_company(here)}; in other repositories: {_names(elsewhere)}"
    rows = [*({**row, "repository": "here"} for row in _rows(here)), *_rows(elsewhere)]
    return Answer(fields, line, rows, ELSEWHERE_COLUMNS)


def status(client: Client, _args: Args) -> Answer:
    """Show this session and what blocks it; without a session, an overview of the project."""
    reply = client.status()
    if reply["session"] is None:
        return _overview(reply["overview"], reply["stuck"], reply["needs"], "You have no session here; ")
    session, locks, messages, stuck = (reply[name] for name in ("session", "locks", "messages", "stuck"))
    now_ms = reply["now_ms"]
    shown = _fields(session)
    shown |= {"state": in_words(session, now_ms), "current_task": task_of(session)}
    shown |= {"claims": [_claim(claim, now_ms) for claim in reply["claims"]]}
    shown |= {"locks": [f"{lock.resource} ({arguments.span(lock.expires_in_s)} left)" for lock in locks]}
    shown |= {"waits": [_wait(wait, now_ms) for wait in session.waits], "messages": messages, "stuck": stuck}
    shown |= {"agents": [f"{agent.session_id} ({in_words(agent, now_ms)})" for agent in reply["agents"]]}
    shown["emergencies"] = reply["emergencies"]
    rows = [{"field": name, "value": shown[name]} for name in STATUS_LINES if shown[name] not in ("", [], 0)]
    unread = count(messages, "unread message")
    if reply["emergencies"]:
        unread += f" ({count(reply['emergencies'], 'emergency message')})"
    line = f"{session.session_id}: {in_words(session, now_ms)}, {count(len(locks), 'lock')}, {unread}"
    if stuck:
        line += f"; stuck: {', '.join(stuck)} (see coord task show, then retry or skip)"
    line += _pending(reply["needs"])
    fields = {
        **reply,
        "needs": reply["needs"].needs,
        "session": _fields(session),
        "agents": _all_fields(reply["agents"]),
    }
    del fields["now_ms"]
    return Answer(fields_of(fields), line, rows, ("field", "value"))


def dashboard(client: Client, _args: Args) -> Answer:
    """Show what all agents do, the locks and the queued tasks."""
    from coord.transports.cli.top.dashboard import agent_rows, draw, queued_rows, ticket_rows

    found, queue = client.overview(), client.queue()
    locks = [lock for page in client.lock_pages(limit=TICKETS_MAX) for lock in page.locks]
    stuck, needs = [task.task_id for task in client.stuck_tasks()], client.needs_you(client.project)
    answer = _overview(found, stuck, needs)
    more = {
        "table": agent_rows(found, queue),
        "tickets": ticket_rows(locks),
        "queued": queued_rows(queue),
    }
    fields = {**answer.fields, **more}
    return answer._replace(fields=fields, drawn=lambda room: draw(fields, room))


def _pending(found: NeedsReply) -> str:
    """Return how many questions wait for a person, and how long the oldest does; "" for none."""
    number = found.counts.get("question", 0)
    if not number:
        return ""
    age = arguments.span(max(0, found.now_ms - found.oldest_question_ms) / 1000)
    return f"; {count(number, 'decision')} pending ({age}; see coord needs)"


def _overview(found: Overview, stuck: Sequence[str], needs: NeedsReply, before: str = "") -> Answer:
    """Return what all sessions do, the locks, the waits and the queue of the project."""
    from coord.transports.cli.top.dashboard import COLUMNS as DASHBOARD
    from coord.transports.cli.top.dashboard import agent_rows

    waits = [
        {"session_id": session.session_id, **fields_of(wait)}
        for session in found.sessions
        for wait in session.waits
    ]
    queue = found.queue
    fields = {
        "session": None,
        "agents": _all_fields(found.sessions),
        "locks": found.locks,
        "waits": waits,
        "queue": fields_of(queue),
        "stuck": list(stuck),
        "needs": fields_of(needs.needs),
    }
    parts = [
        count(len(found.sessions), "session"),
        count(found.locks, "lock"),
        f"{len(waits)} waiting",
        f"{count(queue.unfinished, 'open task')} ({queue.working} in work, {queue.stuck} stuck)",
    ]
    line = before + ", ".join(parts)
    if stuck:
        line += f"; stuck: {', '.join(stuck)} (see coord task show, then retry or skip)"
    line += _pending(needs)
    return Answer(fields, line, agent_rows(found), DASHBOARD)


def in_words(session: SessionInfo, now_ms: int) -> str:
    """Return the state of a session with what it waits for, behind whom, and for how long already."""
    if session.state != "blocked" or not session.waits:
        return session.state
    return f"blocked: waiting for {_wait(session.waits[0], now_ms)}"


def _wait(wait: SessionWait, now_ms: int) -> str:
    names = ", ".join(resource.removeprefix("file:") for resource in wait.resources)
    names = names or f"a task of {wait.project}"
    behind = f" behind {', '.join(wait.behind)}" if wait.behind else ""
    position = f", {_ordinal(wait.position)}" if wait.position > 1 else ""
    return f"{names}{behind}{position}, {arguments.span((now_ms - wait.since_ms) / 1000)}"


def _ordinal(number: int) -> str:
    """Return the name of a position.

    >>> [_ordinal(number) for number in (1, 2, 3, 4, 11, 22)]
    ['1st', '2nd', '3rd', '4th', '11th', '22nd']
    """
    last = 0 if number % 100 in (11, 12, 13) else number % 10
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(last, 'th') }"


def _claim(claim: TaskClaim, now_ms: int) -> str:
    left = arguments.span(max(0, claim.expires_ms - now_ms) / 1000)
    return f"{claim.task_id} (generation {claim.generation.generation}, {left} left)"


class DeregArgs(Args, frozen=True):
    """The arguments of `coord dereg`."""

    session: str
    force: bool
    reason: str


def dereg(client: Client, args: DeregArgs) -> Answer:
    """End a session and release its locks."""
    reply = client.dereg(args.session, force=args.force, reason=args.reason)
    released = f"; released {', '.join(reply.released)}" if reply.released else ""
    below = f"; with it {', '.join(reply.terminated)}" if reply.terminated else ""
    return Answer(fields_of(reply), f"Ended {reply.session_id}{below}{released}")


def _capabilities(texts: Sequence[str] | None) -> dict[str, float] | None:
    """Return capabilities that were typed as `testing=1.2,doc`."""
    pairs = [text.partition("=") for text in texts or ()]
    return None if texts is None else {name: arguments.decimal(value or "1") for name, _, value in pairs}


def _company(peers: Sequence[SessionInfo]) -> str:
    if not peers:
        return "no other sessions"
    return f"{count(len(peers), 'other session')}: {_names(peers)}"


def _names(peers: Sequence[SessionInfo]) -> str:
    names = ", ".join(f"{peer.agent or peer.session_id} ({peer.liveness})" for peer in peers[:5])
    return names + (f" and {len(peers) - 5} more" if len(peers) > 5 else "")


def _rows(peers: Sequence[SessionInfo]) -> list[dict[str, Any]]:
    return [{**_fields(peer), "task": task_of(peer)} for peer in peers]


def _all_fields(sessions: Sequence[SessionInfo]) -> list[dict[str, Any]]:
    return [_fields(session) for session in sessions]


def _fields(session: SessionInfo) -> dict[str, Any]:
    """Return a session as plain data; the times of its task become `…_at`, too, unless it named them."""
    task = dict(session.current_task)
    for name in ("started", "estimated_completion"):
        if f"{name}_ms" in task:
            task[f"{name}_at"] = timestamp(task.pop(f"{name}_ms"))
    return {**fields_of(session), "current_task": task}


def task_of(session: SessionInfo) -> str:
    """Return what a session works on: what it reported, or the task that it claimed."""
    task = session.current_task
    words = [str(task[name]) for name in ("ticket", "phase", "status") if task.get(name)]
    return "" if words == [session.state] else " ".join(words)


class SessionShowArgs(Args, frozen=True):
    """The arguments of `coord session show`."""

    session: str


def session_show(client: Client, args: SessionShowArgs) -> Answer:
    """Show a session's claims, results and next steps."""
    memory = client.session_memory(args.session)
    line = (
        f"{memory.session_id}: {count(len(memory.active_claims), 'claim')}, {len(memory.lost_claims)} lost, "
        f"{len(memory.completed_tasks)} finished; {memory.resume.next[0]}"
    )
    return Answer(fields_of(memory), line, _memory_rows(memory), ("field", "value"))


def _memory_rows(memory: SessionMemory) -> list[dict[str, Any]]:
    claims = [
        f"{ref.task_id} (generation {ref.generation}, {arguments.span(ref.expires_in_s)} left)"
        for ref in memory.active_claims
    ]
    lost = [
        f"{claim.task_id} (generation {claim.generation}, {claim.reason.lower()}"
        f"{f', now with {claim.holder}' if claim.holder else ''})"
        for claim in memory.lost_claims
    ]
    pairs: list[tuple[str, Any]] = [
        ("session", memory.session_id),
        ("user", memory.user_id),
        ("project", memory.project_id),
        ("started", timestamp(memory.created_ms)),
        ("last active", timestamp(memory.last_activity_ms)),
        ("claims", claims),
        ("lost", lost),
        ("finished", memory.completed_tasks),
        ("locks", [lock.resource for lock in memory.resume.locks]),
        ("waiting for", memory.resume.waiting_for),
        ("unread messages", memory.resume.unread_messages),
        *((f"track {name or '-'}", _progress(done)) for name, done in (memory.track_progress or {}).items()),
        *(("next", step) for step in memory.resume.next),
    ]
    return [{"field": name, "value": value} for name, value in pairs]


def _progress(done: dict[str, int]) -> str:
    return ", ".join(f"{number} {stage.replace('_', ' ')}" for stage, number in done.items())
