"""Register, update and inspect sessions."""

from collections.abc import Sequence
from typing import Any

from coord.core.errors import Invalid
from coord.core.sessions.commands import SessionInfo
from coord.sdk.client.client import Client
from coord.sdk.client.session_memory import SessionMemory
from coord.transports import arguments
from coord.transports.cli.args import Args
from coord.transports.cli.output import Answer, count, fields_of, timestamp

COLUMNS = ("session_id", "agent", "liveness", "state", "task", "last_heartbeat_at", "cwd")
STATUS_LINES = (
    *("session_id", "agent", "role", "project", "parent", "liveness", "state", "task", "pid", "cwd"),
    *("started_at", "last_heartbeat_at", "locks", "messages", "stuck"),
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
    bin: str | None
    tool_version: str | None


def register(client: Client, args: RegisterArgs) -> Answer:
    """Register this session, and list the others."""
    reply = client.register(
        task=args.task,
        phase=args.phase,
        status=args.status,
        bin=args.bin,
        version=args.tool_version,
        blob=args.blob,
        capabilities=_capabilities(args.capabilities),
        replaces=args.replaces,
    )
    line = f"Registered {reply.session.session_id}; {_company(reply.peers)}"
    return Answer(fields_of(reply), line, _rows(reply.peers), COLUMNS)


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
    return Answer({"session": fields_of(reply)}, f"Updated {reply.session_id}")


class PeersArgs(Args, frozen=True):
    """The arguments of `coord peers`."""

    live: bool


def peers(client: Client, args: PeersArgs) -> Answer:
    """List the other sessions."""
    found = client.peers(live=args.live)
    return Answer({"peers": fields_of(found)}, _company(found), _rows(found), COLUMNS)


def status(client: Client, _args: Args) -> Answer:
    """Show this session: its task, locks and messages."""
    reply = client.status()
    session, locks, messages, stuck = (reply[name] for name in ("session", "locks", "messages", "stuck"))
    shown = {**fields_of(session), "task": _task(session.current_task)}
    shown |= {"locks": [lock.resource for lock in locks], "messages": messages, "stuck": stuck}
    rows = [{"field": name, "value": shown[name]} for name in STATUS_LINES]
    unread = count(messages, "unread message")
    line = f"{session.session_id}: {session.state}, {count(len(locks), 'lock')}, {unread}"
    if stuck:
        line += f"; stuck: {', '.join(stuck)} (see coord task show, then retry or skip)"
    return Answer(fields_of(reply), line, rows, ("field", "value"))


class DeregArgs(Args, frozen=True):
    """The arguments of `coord dereg`."""

    session: str


def dereg(client: Client, args: DeregArgs) -> Answer:
    """End a session and release its locks."""
    reply = client.dereg(args.session)
    released = f"; released {', '.join(reply.released)}" if reply.released else ""
    return Answer(fields_of(reply), f"Ended {reply.session_id}{released}")


def _capabilities(texts: Sequence[str] | None) -> dict[str, float] | None:
    """Return capabilities that were typed as `testing=1.2,doc`."""
    pairs = [text.partition("=") for text in texts or ()]
    return None if texts is None else {name: arguments.decimal(value or "1") for name, _, value in pairs}


def _company(peers: Sequence[SessionInfo]) -> str:
    if not peers:
        return "no other sessions"
    names = ", ".join(f"{peer.agent or peer.session_id} ({peer.liveness})" for peer in peers[:5])
    more = f" and {len(peers) - 5} more" if len(peers) > 5 else ""
    return f"{count(len(peers), 'other session')}: {names}{more}"


def _rows(peers: Sequence[SessionInfo]) -> list[dict[str, Any]]:
    return [{**fields_of(peer), "task": _task(peer.current_task)} for peer in peers]


def _task(task: dict[str, Any]) -> str:
    return " ".join(str(value) for value in task.values() if value)


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
