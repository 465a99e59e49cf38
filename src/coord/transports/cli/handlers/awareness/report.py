"""Show people what was done: one screen, with the completed tasks and the agents as bars."""

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from coord.core.errors import Invalid
from coord.core.messages.quoting import visible
from coord.followers.direct import log_source
from coord.followers.metrics.report import AgentWork, Report
from coord.followers.metrics.report import report as query
from coord.sdk.client.client import Client
from coord.sdk.log_reader import is_beginning
from coord.sdk.reports.activity import DurationStats
from coord.transports.arguments import span
from coord.transports.cli.args import Args
from coord.transports.cli.output import Answer, count, fields_of, say, timestamp
from coord.transports.cli.table import fitted

if TYPE_CHECKING:
    from coord.transports.hub.page.report import Run
    from coord.transports.hub.page.run_facts import RunFacts

LEVELS = " ▁▂▃▄▅▆▇█"
BAR = 20
NAME_MAX = 24
AGENTS_SHOWN = 8
LABEL = 14
COLUMNS_EACH = 2
"""The cells of a column of the chart."""


class ReportArgs(Args, frozen=True):
    """The arguments of `coord report`."""

    since_s: float
    html: str = ""


def report(client: Client, args: ReportArgs) -> Answer:
    """Show what was done in the last time."""
    if args.html:
        return _write_html(client, args)
    found = query(log_source(client), args.since_s)
    line = f"{count(found.tasks_done, 'task')} done in {span(args.since_s)}, {found.tasks_per_hour:g} an hour"
    if not is_beginning(found.begins_at):
        line += f"; the log starts at offset {found.begins_at} (older entries were trimmed)"
    return Answer(report_fields(found), line, drawn=lambda room: report_text(found, room))


def _write_html(client: Client, args: ReportArgs) -> Answer:
    """Write the page and the log of that time into one file."""
    from coord.integrations.setup.files import Content, read_file, write_file
    from coord.sdk.page.kept_states import kept_states
    from coord.sdk.page.past import PastStates
    from coord.transports.hub.page.report import MARK, make_report, read_run
    from coord.transports.hub.page.run_facts import read_facts

    path = os.path.abspath(args.html)
    before = read_file(path)
    if before is not None and (before.link or MARK not in before.data):
        raise Invalid(f"{args.html} exists and is no report", hint="name a new file")
    log = client.log
    name = os.path.basename(client.location.repository.root or "") if client.location.repository else ""
    past = PastStates(log, kept_states(client.location, client.tenant))
    run = read_run(log, past, log.now() - round(args.since_s * 1000))
    facts = read_facts(client.call, client.caller, client.tenant, run.state, run.entries)
    made = make_report(run, facts, name)
    write_file(path, Content(made, 0o600))
    for line in _contents(run, facts):
        say(line)
    size = f"{len(made) // 1024} KiB, {len(run.entries)} entries"
    line = f"Report of the last {span(args.since_s)}: {args.html} ({size}); open it in a browser"
    return Answer({"file": path, "bytes": len(made), "entries": len(run.entries)}, line)


def _contents(run: "Run", facts: "RunFacts") -> Iterator[str]:
    """Yield what a reader of the file will see, and what is missing."""
    yield "It shows names, paths, reasons, questions, subjects, specifications and results of tasks."
    yield "Texts of messages and diffs are not in it."
    if not run.whole:
        yield "The log was trimmed: what began before the report and did not change since is missing."
    if facts.left_out:
        yield f"Claims and results of {count(facts.left_out, 'task')} are left out: there are too many."


def report_fields(found: Report) -> dict[str, Any]:
    """Return a report as plain data."""
    fields: dict[str, Any] = fields_of(found)
    fields["from_at"], fields["until_at"] = timestamp(found.from_ms), timestamp(found.until_ms)
    for row, agent in zip(fields["agents"], found.agents, strict=True):
        row["utilisation"] = round(agent.utilisation, 3)
    return fields


def report_text(found: Report, room: int) -> str:
    """Return a report as lines for people, none longer than the terminal."""
    return "".join(f"{fitted(line, max(20, room)).rstrip()}\n" for line in _lines(found))


def _lines(found: Report) -> Iterator[str]:
    yield f"{timestamp(found.from_ms)} to {timestamp(found.until_ms)}"
    yield ""
    for number, row in enumerate(chart(found.done_by_slot)):
        yield f"{'tasks done' if not number else '':<{LABEL}}{row}"
    yield _row(
        "tasks", f"{found.tasks_done} done, {found.tasks_per_hour:g} an hour; {_times(found.completion)}"
    )
    yield _row(
        "claims",
        f"{found.claims} granted, {count(found.leases_expired, 'lease')} expired, "
        f"{count(found.zombies_refused, 'zombie')} refused",
    )
    yield _row("locks", f"{found.locks_granted} granted; waits: {_times(found.lock_waits)}")
    prevented = sum(found.overwrites_prevented.values())
    yield _row(
        "overwrites",
        f"{prevented} prevented{_by(found.overwrites_prevented)}, {found.overwrites_undone} undone",
    )
    yield _row("deadlocks", f"{found.deadlocks}; recovery: {_times(found.recovery)}")
    yield _row("by hand", f"{sum(found.interventions.values())}{_by(found.interventions)}")
    if found.agents:
        yield ""
        yield from _agent_lines(found.agents)
    if found.hotspots:
        yield ""
        for number, each in enumerate(found.hotspots):
            yield _row("wanted most" if not number else "", f"{each.times}×  {visible(each.resource)}")


def _row(label: str, text: str) -> str:
    return f"{label:<{LABEL}}{text}"


def chart(values: Sequence[int], rows: int = 3) -> list[str]:
    """Return values as columns of blocks, the highest row first, with the largest value and the axis.

    >>> chart([0, 1, 2], rows=1)
    ['  ▄▄██ 2', '└─────']
    """
    top = max(values, default=0)
    steps = len(LEVELS) - 1
    lines = []
    for row in reversed(range(rows)):
        cells = (
            min(steps, max(0, -(-value * rows * steps // top) - row * steps)) if top else 0
            for value in values
        )
        shown = "".join(LEVELS[cell] * COLUMNS_EACH for cell in cells)
        lines.append(f"{shown} {top}" if row == rows - 1 else shown)
    return [*lines, "└" + "─" * (len(values) * COLUMNS_EACH - 1)]


def _agent_lines(agents: Sequence[AgentWork]) -> Iterator[str]:
    width = min(NAME_MAX, max(len(visible(each.agent)) for each in agents))
    for each in agents[:AGENTS_SHOWN]:
        full = round(each.utilisation * BAR)
        bar = "█" * full + "░" * (BAR - full)
        busy = f"busy {span(each.busy_s)} of {span(each.seen_s)}"
        name = fitted(visible(each.agent), width)
        yield f"{name}  {bar}  {each.utilisation:>4.0%}  {each.done} done, {busy}"
    if len(agents) > AGENTS_SHOWN:
        yield f"… and {count(len(agents) - AGENTS_SHOWN, 'more agent')}"


def _times(found: DurationStats) -> str:
    if not found.count:
        return "none"
    return f"p50 {_short(found.p50_s)}, p95 {_short(found.p95_s)}, max {_short(found.max_s)}"


def _short(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 10 else span(seconds)


def _by(counts: dict[str, int]) -> str:
    parts = ", ".join(f"{name} {number}" for name, number in counts.items())
    return f" ({parts})" if parts else ""
