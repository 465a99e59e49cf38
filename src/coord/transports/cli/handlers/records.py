"""Read the log and the metrics; move the store."""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from coord.core.errors import Invalid
from coord.sdk.admin.migrate import MigrationReport, cancel_migration
from coord.sdk.admin.migrate import migrate as move
from coord.sdk.client.client import Client
from coord.sdk.log_reader import LoggedEvent
from coord.sdk.reports.activity import (
    Activity,
    DurationStats,
    EventFilter,
    event_filter,
    follow,
    lock_periods,
    newest_events,
    stats,
)
from coord.sdk.reports.metrics import metrics as as_text
from coord.transports import arguments as words
from coord.transports import exit_codes as render
from coord.transports.cli.args import Args, Options
from coord.transports.cli.connect import connected
from coord.transports.cli.output import Answer, fields_of, is_terminal, moment, say, visible

FOLLOW_S = 60.0
"""How long to wait for news at once; it only bounds one wait."""


class LogArgs(Args, frozen=True):
    """The arguments of `coord log`."""

    view: str
    subject: str
    limit: int
    op: str
    actor: str
    resource: str
    since_s: float | None
    follow: bool


def log(options: Options, args: LogArgs) -> Answer | int:
    """Look into the log."""
    with connected(options) as client:
        actor = args.actor
        if args.view == "session":
            if args.actor:
                raise Invalid("the session is named twice", hint="coord log session ID")
            actor = args.subject or client.caller.session
            if not actor:
                raise Invalid("it cannot be told which session is meant", hint="coord log session ID")
        resources = [args.resource] if args.resource else []
        if args.view == "locks" and args.subject:
            resources.append(args.subject)
        elif args.view in ("tail", "stats") and args.subject:
            raise Invalid(f"{args.subject!r} is one word too many", hint="see coord log --help")
        which = event_filter(
            client, op=args.op, actor=actor, resources=map(words.resource, resources), since_s=args.since_s
        )
        if args.follow and args.view not in ("tail", "session"):
            raise Invalid(f"--follow goes with tail and session, not with {args.view}", hint="leave it out")
        if args.follow:
            return _follow(client, which, args.limit, as_json=options.json or not is_terminal(sys.stdout))
        return _ANSWERS[args.view](client, which, args.limit)


def _tail(client: Client, which: EventFilter, most: int) -> Answer:
    found = newest_events(client, which, most)
    rows = [_flat(happening) for happening in found.events]
    fields = {"events": rows, "head": found.head, "begins_at": found.begins_at}
    table = [{**row, "what": _details(each)} for row, each in zip(rows, found.events, strict=True)]
    count = f"{len(rows)} {'event' if len(rows) == 1 else 'events'}"
    return Answer(fields, f"{count}{_trimmed(found.begins_at)}", table, ("offset", "at", "event", "what"))


def _stats(client: Client, which: EventFilter, _most: int) -> Answer:
    found = stats(client, which)
    rows = [{"event": event, "count": count} for event, count in found.events.items()]
    line = (
        f"{found.entries} entries; locks held: {_duration_stats(found.holds)};"
        f" waited for: {_duration_stats(found.waits)}"
        f"{_trimmed(found.begins_at)}"
    )
    return Answer(fields_of(found), line, rows, ("event", "count"))


def _locks(client: Client, which: EventFilter, most: int) -> Answer:
    found = fields_of(lock_periods(client, which, most))
    held = sum(not tenure["until_at"] for tenure in found)
    columns = ("resource", "owner", "mode", "fence", "from_at", "until_at", "end_reason", "by", "reason")
    return Answer({"locks": found}, f"{held} held now, {len(found) - held} ended", found, columns)


_ANSWERS: dict[str, Callable[[Client, EventFilter, int], Answer]] = {
    "tail": _tail,
    "session": _tail,
    "stats": _stats,
    "locks": _locks,
}


def _follow(client: Client, which: EventFilter, most: int, *, as_json: bool) -> int:
    """Print events as they happen, one line each, until interrupted or nobody reads any more."""
    begun: Activity = newest_events(client, which, most)
    if not print_happenings(begun.events, as_json=as_json):
        return render.OK
    for logged_events in follow(client, which, begun.head, FOLLOW_S):
        if not print_happenings(logged_events, as_json=as_json):
            return render.OK
    raise AssertionError("it ends by a signal")


def print_happenings(logged_events: list[LoggedEvent], *, as_json: bool) -> bool:
    """Write lines to stdout; return whether somebody reads them."""
    try:
        for each in logged_events:
            line = (
                json.dumps(_flat(each)).replace("\x7f", "\\u007f")
                if as_json
                else visible(f"{moment(each.at_ms)}  {each.event}  {_details(each)}")
            )
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that Python's own flush is quiet
        return False
    return True


def _flat(happening: LoggedEvent) -> dict[str, Any]:
    at = {"offset": happening.offset, "at": moment(happening.at_ms), "event": happening.event}
    return {**at, **{name: value for name, value in happening.details.items() if name not in at}}


def _details(happening: LoggedEvent) -> str:
    return " ".join(f"{name}={_shown(value)}" for name, value in happening.details.items())


def _shown(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _duration_stats(found: DurationStats) -> str:
    if not found.count:
        return "never"
    times = "once" if found.count == 1 else f"{found.count} times"
    return f"{times}, p50 {found.p50_s:g} s, p95 {found.p95_s:g} s, max {found.max_s:g} s"


def _trimmed(begins_at: int) -> str:
    return f"; the log begins at offset {begins_at}, what was before is forgotten" if begins_at else ""


def metrics(client: Client, _args: Args) -> str:
    """Return the metrics of the tenant."""
    return as_text(client)


TOLD_EVERY = 10_000
"""Records between two lines about the progress."""


class MigrateArgs(Args, frozen=True):
    """The arguments of `coord migrate`."""

    to_url: str
    dry_run: bool
    cancel: bool


def migrate(options: Options, args: MigrateArgs) -> Answer:
    """Move the store of a repository to another url, or take that back."""
    if options.url:
        raise Invalid("migrate begins at the pinned store", hint="name the new one: --to-url URL")
    if args.cancel == bool(args.to_url):
        raise Invalid("give either --to-url or --cancel", hint="coord migrate --to-url URL --dry-run")
    if args.cancel:
        return _cancelled(cancel_migration())
    told = 0

    def tell(tenant: str, count: int) -> None:
        nonlocal told
        if count // TOLD_EVERY != told:
            told = count // TOLD_EVERY
            say(f"{tenant}: {count} records copied")

    moved = move(args.to_url, dry_run=args.dry_run, progress=tell)
    rows = [
        {"tenant": tenant, "kind": kind, "records": count}
        for tenant, kinds in moved.records.items()
        for kind, count in kinds.items()
    ]
    return Answer(fields_of(moved), _migrated_line(moved), rows, ("tenant", "kind", "records"))


def _migrated_line(moved: MigrationReport) -> str:
    count = sum(sum(kinds.values()) for kinds in moved.records.values())
    if not moved.moved:
        return f"would move {count} records from {moved.from_url} to {moved.to_url}; nothing was changed"
    return f"moved {count} records to {moved.to_url}; {moved.from_url} takes no more commits and can be kept"


def _cancelled(was_shut: bool) -> Answer:
    line = "the store takes commits again" if was_shut else "no migration was under way"
    return Answer({"cancelled": was_shut}, line)
