"""Read the log and the metrics; move the store."""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from coord.core.errors import Invalid
from coord.core.messages.quoting import visible
from coord.followers.direct import log_source
from coord.followers.metrics.config import check_prefix, prefix_of
from coord.followers.metrics.gauges import metrics as as_text
from coord.sdk.admin.migrate import MigrationReport, cancel_migration
from coord.sdk.admin.migrate import migrate as move
from coord.sdk.client.client import Client
from coord.sdk.log_reader import LoggedEvent, is_beginning
from coord.sdk.reports.activity import (
    Activity,
    BriefStats,
    DurationStats,
    EventFilter,
    event_filter,
    follow,
    lock_periods,
    newest_events,
    stats,
)
from coord.transports import arguments, exit_codes
from coord.transports.cli.args import Args, Options
from coord.transports.cli.connect import connected
from coord.transports.cli.event_text import event_text
from coord.transports.cli.output import Answer, count, fields_of, form, say, timestamp

FOLLOW_S = 60.0
"""The longest single wait for new events."""


class LogArgs(Args, frozen=True):
    """The arguments of `coord log`."""

    view: str
    subject: str
    limit: int
    op: str
    agent: str
    type: str
    actor: str
    resource: str
    since_s: float | None
    follow: bool


def log(options: Options, args: LogArgs) -> Answer | int:
    """Show a view of the log."""
    with connected(options, create=False) as client:
        _check_flags(args)
        if args.view == "activity":
            from coord.transports.cli.handlers.awareness.ledger import activity

            return activity(client, agent=args.agent, type_=args.type, since_s=args.since_s, limit=args.limit)
        actor = args.actor
        if args.view == "session":
            if args.actor:
                raise Invalid("the session is given twice", hint="coord log session ID")
            actor = args.subject or client.caller.session
            if not actor:
                raise Invalid(
                    "no session given, and this process belongs to none", hint="coord log session ID"
                )
        resources = [args.resource] if args.resource else []
        if args.view == "locks" and args.subject:
            resources.append(args.subject)
        elif args.view in ("tail", "stats") and args.subject:
            raise Invalid(f"unexpected argument {args.subject!r}", hint="see coord log --help")
        which = event_filter(
            client,
            op=args.op,
            actor=actor,
            resources=map(arguments.resource, resources),
            since_s=args.since_s,
        )
        if args.follow and args.view not in ("tail", "session"):
            raise Invalid(f"--follow cannot be combined with {args.view}", hint="use it with tail or session")
        if args.follow:
            return _follow(client, which, args.limit, as_json=form() == "json")
        return _ANSWERS[args.view](client, which, args.limit)


def _check_flags(args: LogArgs) -> None:
    """Refuse the flags of another view; a filter that does nothing would mislead."""
    of_actions = args.view == "activity"
    unused = (
        {"op": args.op, "actor": args.actor, "resource": args.resource, "follow": args.follow}
        if of_actions
        else {"agent": args.agent, "type": args.type}
    )
    for name, value in unused.items():
        if value:
            used = "--agent, --type and --since" if of_actions else "--actor and --op"
            raise Invalid(f"--{name} cannot be combined with {args.view}", hint=f"use {used}")
    if of_actions and args.subject:
        raise Invalid(f"unexpected argument {args.subject!r}", hint="coord log activity --agent ID")


def _tail(client: Client, which: EventFilter, most: int) -> Answer:
    found = newest_events(client, which, most)
    rows = [_flat(happening) for happening in found.events]
    fields = {"events": rows, "head": found.head, "begins_at": found.begins_at}
    table = [{**row, "what": event_text(each)} for row, each in zip(rows, found.events, strict=True)]
    line = f"{count(len(rows), 'event')}{_trimmed(found.begins_at)}"
    return Answer(fields, line, table, ("offset", "at", "event", "what"))


def _stats(client: Client, which: EventFilter, _most: int) -> Answer:
    found = stats(client, which)
    rows = [{"event": event, "count": count} for event, count in found.events.items()]
    line = (
        f"{found.entries} log entries; lock times: {_duration_stats(found.holds)};"
        f" wait times: {_duration_stats(found.waits)};"
        f" briefs: {_brief_stats(found.briefs)}"
        f"{_trimmed(found.begins_at)}"
    )
    return Answer(fields_of(found), line, rows, ("event", "count"))


def _locks(client: Client, which: EventFilter, most: int) -> Answer:
    found = fields_of(lock_periods(client, which, most))
    held = sum(not tenure["until_at"] for tenure in found)
    columns = ("resource", "owner", "mode", "fence", "from_at", "until_at", "end_reason", "by", "reason")
    return Answer({"locks": found}, f"{held} current, {len(found) - held} ended", found, columns)


_ANSWERS: dict[str, Callable[[Client, EventFilter, int], Answer]] = {
    "tail": _tail,
    "session": _tail,
    "stats": _stats,
    "locks": _locks,
}


def _follow(client: Client, which: EventFilter, most: int, *, as_json: bool) -> int:
    """Print events as they happen, until interrupted or until nobody reads them."""
    begun: Activity = newest_events(client, which, most)
    if not print_happenings(begun.events, as_json=as_json):
        return exit_codes.OK
    for logged_events in follow(client, which, begun.head, FOLLOW_S):
        if not print_happenings(logged_events, as_json=as_json):
            return exit_codes.OK
    raise AssertionError("only a signal ends it")


def print_happenings(logged_events: list[LoggedEvent], *, as_json: bool) -> bool:
    """Print events; return whether somebody still reads stdout."""
    try:
        for each in logged_events:
            line = (
                json.dumps(_flat(each)).replace("\x7f", "\\u007f")
                if as_json
                else visible(f"{timestamp(each.at_ms)}  {each.event}  {event_text(each)}")
            )
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that Python's own flush is quiet
        return False
    return True


def _flat(happening: LoggedEvent) -> dict[str, Any]:
    at = {"offset": happening.offset, "at": timestamp(happening.at_ms), "event": happening.event}
    return {**at, **{name: value for name, value in happening.details.items() if name not in at}}


def _brief_stats(found: BriefStats) -> str:
    """Return what awareness cost."""
    if not found.count:
        return "none"
    return f"{found.count}, about {count(found.tokens, 'token')} ({count(found.chars, 'character')})"


def _duration_stats(found: DurationStats) -> str:
    if not found.count:
        return "none"
    times = "once" if found.count == 1 else f"{found.count} times"
    return f"{times}, p50 {found.p50_s:g} s, p95 {found.p95_s:g} s, max {found.max_s:g} s"


def _trimmed(begins_at: int) -> str:
    whole = is_beginning(begins_at)
    return "" if whole else f"; the log starts at offset {begins_at} (older entries were trimmed)"


class MetricsArgs(Args, frozen=True):
    """The arguments of `coord metrics`."""

    prefix: str


def metrics(client: Client, args: MetricsArgs) -> str:
    """Return the metrics of the tenant."""
    source = log_source(client)
    prefix = check_prefix(args.prefix) if args.prefix else prefix_of(source)
    return as_text(source, client.caller, prefix)


REPORT_EVERY = 10_000
"""Records between two progress lines."""


class MigrateArgs(Args, frozen=True):
    """The arguments of `coord migrate`."""

    to_url: str
    dry_run: bool
    cancel: bool


def migrate(options: Options, args: MigrateArgs) -> Answer:
    """Move the store of a repository to another URL, or cancel the move."""
    if options.url:
        raise Invalid("--url cannot be combined with migrate", hint="name the new store with --to-url URL")
    if args.cancel == bool(args.to_url):
        raise Invalid("pass either --to-url or --cancel", hint="coord migrate --to-url URL --dry-run")
    if args.cancel:
        return _cancelled(cancel_migration())
    reported = 0

    def report(tenant: str, copied: int) -> None:
        nonlocal reported
        if copied // REPORT_EVERY != reported:
            reported = copied // REPORT_EVERY
            say(f"{tenant}: {copied} records copied")

    moved = move(args.to_url, dry_run=args.dry_run, progress=report)
    rows = [
        {"tenant": tenant, "kind": kind, "records": count}
        for tenant, kinds in moved.records.items()
        for kind, count in kinds.items()
    ]
    return Answer(fields_of(moved), _migrated_line(moved), rows, ("tenant", "kind", "records"))


def _migrated_line(moved: MigrationReport) -> str:
    records = count(sum(sum(kinds.values()) for kinds in moved.records.values()), "record")
    if not moved.migrated:
        return f"Dry run: {records} would move from {moved.from_url} to {moved.to_url}"
    return f"Moved {records} to {moved.to_url}; {moved.from_url} takes no more commits"


def _cancelled(was_sealed: bool) -> Answer:
    line = "The store takes commits again" if was_sealed else "No migration is in progress"
    return Answer({"cancelled": was_sealed}, line)
