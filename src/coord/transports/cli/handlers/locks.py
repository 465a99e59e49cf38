"""Acquire, release and inspect locks."""

import sys
from collections.abc import Sequence
from typing import Any

from coord.core.errors import Invalid
from coord.core.locks.commands import CheckReply, LockInfo, LockReply, Outcome, ReleaseReply
from coord.sdk.client.client import Client
from coord.transports import arguments, exit_codes
from coord.transports.cli.args import Args
from coord.transports.cli.output import Answer, count, fields_of, form, is_terminal, say

HOLDERS_MAX = 100
"""How many blocking locks a check prints."""
WAIT_S = 100.0
"""How long to wait without a terminal: agents' tools stop a command that runs much longer."""
COLUMNS = ("resource", "mode", "fence", "agent", "owner", "expires_in", "reason")


class AcquireArgs(Args, frozen=True):
    """How to take locks: the flags of `lock`, `guard` and `project-lock`."""

    ttl_s: float | None
    reason: str
    wait_s: float | None
    no_wait: bool
    priority: int
    profile: str
    preemptible: bool
    command_id: str


class LockArgs(AcquireArgs, frozen=True):
    """The arguments of `coord guard` and `coord lock`."""

    resources: list[str]
    literal: bool
    mode: str


class PlainLockArgs(LockArgs, frozen=True):
    """The arguments of `coord lock`."""

    progress_timeout_s: float | None
    keep: bool


def lock(client: Client, args: PlainLockArgs) -> Answer | int:
    """Lock resources, all or none; with `--hold` until somebody interrupts it."""
    progress_s = args.progress_timeout_s
    if args.keep:
        from coord.transports.cli.handlers.guard import keep_locked

        return keep_locked(client, args, progress_timeout_s=progress_s)
    return answer_of(take(client, resources_of(args), args, args.mode, progress_timeout_s=progress_s))


class ProjectLockArgs(AcquireArgs, frozen=True):
    """The arguments of `coord project-lock`."""

    project: str
    area: str


def project_lock(client: Client, args: ProjectLockArgs) -> Answer:
    """Lock a project or an area of it."""
    return answer_of(take(client, [arguments.project_resource(args.project, args.area)], args))


class UnlockArgs(Args, frozen=True):
    """The arguments of `coord unlock`."""

    resources: list[str]
    literal: bool
    fence: int | None
    all: bool


def unlock(client: Client, args: UnlockArgs) -> Answer:
    """Release locks of this session."""
    if args.all == bool(args.resources):
        raise Invalid(
            "name locks or pass --all, not both" if args.all else "no lock given",
            hint="coord unlock --all releases everything that no claim needs",
        )
    if args.all:
        return _released(client.unlock_all())
    return _released(client.unlock(resources_of(args), fence=args.fence))


class ProjectUnlockArgs(Args, frozen=True):
    """The arguments of `coord project-unlock`."""

    project: str
    area: str


def project_unlock(client: Client, args: ProjectUnlockArgs) -> Answer:
    """Release the lock on a project or an area of it."""
    return _released(client.unlock([arguments.project_resource(args.project, args.area)]))


class RenewArgs(Args, frozen=True):
    """The arguments of `coord renew`."""

    resources: list[str]
    literal: bool
    ttl_s: float | None
    fence: int | None


def renew(client: Client, args: RenewArgs) -> Answer:
    """Renew locks."""
    reply = client.renew(resources_of(args) or None, ttl_s=args.ttl_s, fence=args.fence)
    return Answer(fields_of(reply), _summary("renewed", reply.locks), rows_of(reply.locks), COLUMNS)


class StealArgs(Args, frozen=True):
    """The arguments of `coord steal`."""

    resource: str
    literal: bool
    dead_owner: bool
    force: bool
    release: bool
    reason: str
    fence: int | None


def steal(client: Client, args: StealArgs) -> Answer:
    """Take over a lock whose owner is gone."""
    if args.force and not args.reason:
        raise Invalid("--force requires --reason", hint="add --reason TEXT; coord records it")
    reply = client.steal(
        arguments.resource(args.resource, literal=args.literal),
        dead_owner=args.dead_owner,
        force=args.force,
        reason=args.reason,
        fence=args.fence,
        release=args.release,
    )
    if args.release:
        return Answer({"released": args.resource}, f"Released {args.resource}")
    return answer_of(_salvaged(client, reply))


class HandoffArgs(Args, frozen=True):
    """The arguments of `coord handoff`."""

    what: str
    peer: str
    note: str
    task: bool
    literal: bool


def handoff(client: Client, args: HandoffArgs) -> Answer:
    """Give a lock or a claim to another session."""
    resource = "" if args.task else arguments.resource(args.what, literal=args.literal)
    reply = client.handoff(resource, args.peer, task=args.what, note=args.note)
    what = f"{reply.task}, generation {reply.generation}" if reply.task else ""
    files = ", ".join(lock.resource for lock in reply.locks)
    line = f"Handed over to {reply.to} ✓ {' with '.join(each for each in (what, files) if each)}"
    return Answer(fields_of(reply), line, rows_of(reply.locks), COLUMNS)


class PreemptArgs(Args, frozen=True):
    """The arguments of `coord preempt`."""

    resource: str
    literal: bool
    priority: int
    reason: str
    grace_s: float
    wait_s: float | None


def preempt(client: Client, args: PreemptArgs) -> Answer:
    """Ask a holder of lower priority to release its lock."""
    reply = client.preempt(
        arguments.resource(args.resource, literal=args.literal),
        priority=args.priority,
        reason=args.reason,
        grace_s=args.grace_s,
        wait_s=args.wait_s,
    )
    return answer_of(_salvaged(client, reply))


class CheckArgs(Args, frozen=True):
    """The arguments of `coord check`."""

    resources: list[str]
    literal: bool
    mode: str
    fence: int | None


def check(client: Client, args: CheckArgs) -> Answer:
    """Check whether resources can be locked now."""
    reply = client.check(resources_of(args), mode=args.mode, fence=args.fence, limit=HOLDERS_MAX)
    _warn(reply.warnings)
    return checked(reply)


def checked(reply: CheckReply) -> Answer:
    """Return the answer to a check."""
    if reply.free:
        return Answer(fields_of(reply), "Free")
    message = (
        f"Held by {holder_of(reply.holders[0])}" if reply.holders else "This session no longer has the lock"
    )
    failure = exit_codes.Failure(exit_codes.REFUSED, "held", message, "coord lock queues for it")
    return Answer(fields_of(reply), message, rows_of(reply.holders), COLUMNS, failure)


class LocksArgs(Args, frozen=True):
    """The arguments of `coord locks`."""

    owner: str | None
    limit: int | None
    after: str


def locks(client: Client, args: LocksArgs) -> Answer | int:
    """List the locks."""
    from coord.transports.cli.listing import Listing, Page, show_pages  # other commands do not need it

    listing = Listing("locks", "lock", (*COLUMNS[:-1], "waiters", *COLUMNS[-1:]), _rows_with_waiters)
    pages = client.lock_pages(args.owner, after=args.after, limit=args.limit)
    return show_pages(listing, (Page(page.locks, page.after) for page in pages))


def _rows_with_waiters(found: Sequence[LockInfo]) -> list[dict[str, Any]]:
    rows = rows_of(found)
    for row in rows if form() != "wide" else ():
        row["waiters"] = len(row["waiters"]) or ""
    return rows


def resources_of(args: LockArgs | UnlockArgs | RenewArgs | CheckArgs) -> list[str]:
    """Return the resources that a user typed."""
    return [arguments.resource(word, literal=args.literal) for word in args.resources]


def _warn(warnings: Sequence[str]) -> None:
    for line in warnings:
        say(f"coord: {line}")


def take(
    client: Client, resources: Sequence[str], args: AcquireArgs, mode: str = "", **more: Any
) -> LockReply:
    """Acquire locks and wait as the flags say; a terminal shows who has them and the position."""
    person = is_terminal(sys.stderr)
    wait_s = wait_of(args, terminal=person)
    asked: dict[str, Any] = {
        **more,
        "mode": mode,
        "ttl_s": args.ttl_s,
        "reason": args.reason,
        "priority": args.priority,
        "profile": args.profile,
        "preemptible": args.preemptible,
        "command_id": args.command_id,
    }
    if not person:
        return _salvaged(client, client.acquire(resources, wait_s=wait_s, **asked))
    from coord.transports.cli.waiting.line import showing_wait

    with showing_wait(client, ", ".join(resources), wait_s, describe_wait):
        reply = client.acquire(resources, wait_s=wait_s, **asked)
    return _salvaged(client, reply)


def describe_wait(reply: LockReply, age_s: float) -> str:
    """Return who has a lock and the position in its queue, `age_s` seconds after the reply."""
    holder = f"held by {holder_of(reply.holder, age_s)}, " if reply.holder else ""
    return f"{holder}position {reply.position} in the queue"


def _salvaged(client: Client, reply: LockReply) -> LockReply:
    """Salvage the unfinished changes of previous holders who lost such a lock; show the warnings."""
    _warn(reply.warnings)
    after = salvaged(client, reply)
    for line in after.warnings[len(reply.warnings) :]:
        say(line)
    return after


def salvaged(client: Client, reply: LockReply) -> LockReply:
    """Salvage the unfinished changes of previous holders; return the reply with what was done as warnings."""
    if not reply.ok or not reply.after_loss:
        return reply
    import msgspec

    from coord.integrations.git.salvage.rollback import salvage_first

    return msgspec.structs.replace(reply, warnings=[*reply.warnings, *salvage_first(client, reply.locks)])


def wait_of(args: AcquireArgs, *, terminal: bool) -> float | None:
    """Return how long to wait; the default is no limit on a terminal, else `WAIT_S`."""
    if args.no_wait:
        return 0
    if args.wait_s is not None:
        return float(args.wait_s)
    return None if terminal else WAIT_S


def answer_of(reply: LockReply) -> Answer:
    """Return the answer to a lock request."""
    fields: dict[str, Any] = {"locks": fields_of(reply.locks)}
    if reply.warnings:
        fields["warnings"] = list(reply.warnings)
    if reply.ok:
        word = "refreshed" if all(lock.refreshed for lock in reply.locks) else "acquired"
        return Answer(fields, _summary(word, reply.locks), rows_of(reply.locks), COLUMNS)
    if reply.holder is not None:
        fields |= {"holder": fields_of(reply.holder), "expires_in_s": reply.holder.expires_in_s}
    fields |= {"position": reply.position, "cycle": list(reply.cycle)}
    failure = _denial(reply)
    line = f"{failure.message}; {failure.hint}"
    if reply.outcome is Outcome.DEADLOCK:
        from coord.core.locks.deadlock import deadlock_text

        loss: dict[str, Any] = {name: getattr(reply, name) for name in ("lost", "lost_to", "again", "claims")}
        fields |= loss
        line = deadlock_text(**loss)
    rows = rows_of([reply.holder]) if reply.holder else []
    return Answer(fields, line, rows, COLUMNS, failure)


def holder_of(lock: LockInfo, age_s: float = 0.0) -> str:
    """Return the holder of a lock with the time left: `NAME (expires in 4m30s)`."""
    name = lock.agent or lock.owner
    left_s = lock.expires_in_s - age_s
    left = f"expires in {arguments.span(left_s)}" if left_s > 0 else "expired"
    return f"{name} ({left})"


def rows_of(found: Sequence[LockInfo]) -> list[dict[str, Any]]:
    """Return locks as table rows."""
    return [{**fields_of(lock), "expires_in": arguments.span(lock.expires_in_s)} for lock in found]


def _denial(reply: LockReply) -> exit_codes.Failure:
    holder = f" — held by {holder_of(reply.holder)}" if reply.holder else ""
    if reply.outcome is Outcome.DEADLOCK:
        from coord.core.locks.deadlock import loss_text, next_command

        message, hint = (
            loss_text(reply.lost, reply.lost_to),
            f"run: {next_command(reply.again, reply.claims)}",
        )
        return exit_codes.Failure(exit_codes.REFUSED, "deadlock", message, hint)
    if reply.outcome in {Outcome.WAITING, Outcome.WITHDRAWN}:
        message = f"Failed to acquire lock in time, giving up{holder}"
        return exit_codes.Failure(
            exit_codes.TIMED_OUT, "timed_out", message, "retry, or ask the holder with coord send"
        )
    return exit_codes.Failure(
        exit_codes.REFUSED, "held", f"Lock denied{holder}", "drop --no-wait to queue for it"
    )


def _released(reply: ReleaseReply) -> Answer:
    parts = [f"Lock released ✓ {', '.join(reply.released)}"] if reply.released else []
    if reply.kept:
        parts.append(f"Kept for a claim: {', '.join(reply.kept)}")
    return Answer(fields_of(reply), "; ".join(parts) or "No locks")


def _summary(word: str, found: Sequence[LockInfo]) -> str:
    if not found:
        return "No locks"
    least = min(lock.expires_in_s for lock in found)
    return f"Lock {word} ✓ {', '.join(lock.resource for lock in found)} (expires in {arguments.span(least)})"


def waits(client: Client, _args: Args) -> Answer:
    """Show the wait-for graph."""
    from coord.transports.cli.waiting.tree import tree

    found = client.waits()
    return Answer(
        {"waits": fields_of(found)}, count(len(found), "wait"), drawn=lambda room: tree(found, room)
    )
