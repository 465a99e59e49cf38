"""Show what was used, and say how agent tools report it."""

from shlex import quote
from typing import Any

from coord.core.usage.commands import UsageTotal
from coord.core.usage.schema import Amounts
from coord.core.usage.usage import DAY_MS, dollars
from coord.sdk.client.client import Client
from coord.transports import arguments
from coord.transports.cli.args import Args
from coord.transports.cli.output import Answer, count, timestamp

CHANGE = "change"
PRICE_COLUMNS = ("model", "input", "output", "cache_read", "cache_write", "window", "source")
COUNTS = ("requests", "input", "output", "cache_read", "cache_write")


class CostArgs(Args, frozen=True):
    """The arguments of `coord cost`."""

    by: str
    since_s: float


def cost(client: Client, args: CostArgs) -> Answer:
    """Show what was used, the most expensive first."""
    since_ms = client.log.now() - round(args.since_s * 1000)
    if args.by == CHANGE:
        return _changes(client, since_ms)
    found = client.usage(args.by, since_ms=since_ms, all_projects=not client.project_given)
    rows = [_row(args.by, each) for each in found.totals]
    newest = found.newest_ms
    since = timestamp(found.since_ms // DAY_MS * DAY_MS)
    fields = {"by": args.by, "since": since, "newest": timestamp(newest) if newest else None}
    total = _numbers(found.total)
    if not rows:
        hint = "coord telemetry says how agent tools report to the hub"
        line = f"Nothing was reported; {hint}" if not newest else "Nothing was used"
        return Answer({**fields, "total": total, "usage": []}, line)
    said = f"{_money(found.total)} and {found.total.tokens:,} tokens since {since[:10] if since else ''}"
    if newest:
        said += f"; newest report {arguments.span(max(0, found.now_ms - newest) / 1000)} ago"
    context = ("context",) if args.by == "session" else ()
    columns = (args.by, "cost", "tokens", *COUNTS, "sessions", *context)
    return Answer({**fields, "total": total, "usage": rows}, said, rows, columns)


def _changes(client: Client, since_ms: int) -> Answer:
    from coord.sdk.log_reader import first_offset, logged_events, pages
    from coord.sdk.reports.change_costs import TAGS, change_costs

    log = client.log
    events = (each for page in pages(log, first_offset(log)) for each in logged_events(page))
    found = change_costs(each for each in events if each.event in TAGS)
    rows = [
        {
            "change": each.commit[:12],
            "branch": each.branch,
            "into": each.into,
            "at": timestamp(each.at_ms),
            "sessions": list(each.sessions),
            **_numbers(each.amounts),
        }
        for each in found
        if each.at_ms >= since_ms
    ]
    line = f"{len(rows)} merged {'change' if len(rows) == 1 else 'changes'}"
    return Answer(
        {"by": CHANGE, "usage": rows}, line, rows, ("change", "branch", "cost", "tokens", "sessions")
    )


def _row(by: str, total: UsageTotal) -> dict[str, Any]:
    row = {by: total.name, "project": total.project, **_numbers(total.amounts), "sessions": total.sessions}
    if by == "session":
        percent = total.context_percent
        row |= {"context_percent": None if percent < 0 else percent}
        row |= {"context": "" if percent < 0 else f"{percent}%"}
    return row


def _numbers(amounts: Amounts) -> dict[str, Any]:
    """Return amounts with dollars, and the cost as people read it."""
    return {
        "cost": _money(amounts),
        "cost_usd": amounts.spent / 1e6,
        "estimated_usd": amounts.estimated / 1e6,
        "tokens": amounts.tokens,
        "unpriced_tokens": amounts.unpriced,
        **{name: getattr(amounts, name) for name in COUNTS},
    }


def _money(amounts: Amounts) -> str:
    """Return the money as text: `~` marks an estimate, `?` that some tokens have no price."""
    if not amounts.spent and amounts.unpriced:
        return "?"
    mark = "~" if amounts.estimated else ""
    return f"{mark}{dollars(amounts.spent)}{'+?' if amounts.unpriced else ''}"


class TelemetryArgs(Args, frozen=True):
    """The arguments of `coord telemetry`."""

    action: str
    tool: str


def telemetry(client: Client, args: TelemetryArgs) -> Answer:
    """Switch the reports of agent tools on or off, or say what to set in each tool."""
    if args.action == "prices":
        return _prices(client)
    if args.action == "off":
        from coord.integrations.telemetry.switch import switch_off

        was_on = switch_off(client)
        line = "Telemetry is off: its token no longer counts" if was_on else "Telemetry was off"
        return Answer({"on": False}, line)
    from coord.integrations.telemetry.setup import TOOLS, VARIABLE, hub_url, lines_for
    from coord.integrations.telemetry.switch import read_telemetry, switch_on

    url = hub_url(client.environ)
    if args.action == "on":
        found = switch_on(client, url)
        fields = {"on": True, "url": url, "script": found.script, "codex": found.codex}
        line = f"Telemetry is on for {url}, and for what coord work starts"
        text = (
            f"Claude Code and Gemini CLI: first run in their shell\n  . {quote(found.script)}\n"
            f"Codex: once\n  cat {quote(found.codex)} >> ~/.codex/config.toml\n"
        )
        return Answer(fields, line, drawn=lambda _width: text)
    on = read_telemetry(client)
    texts = {tool: lines_for(tool, url) for tool in TOOLS if args.tool in ("", tool)}
    first = f"# {VARIABLE} is a token that you create once: coord token create --role report\n"
    text = "\n".join((first, *texts.values()))
    line = f"Telemetry is on: {on.folder} has all of this" if on else "Telemetry is off: coord telemetry on"
    fields = {"on": on is not None, "url": url, "tools": texts}
    return Answer(fields, line, drawn=lambda _width: text)


def _prices(client: Client) -> Answer:
    """List what a million tokens cost, and whose price that is."""
    from coord.integrations.telemetry.prices import all_prices

    rows = [
        {"model": name, **model._asdict(), "source": source}
        for name, (model, source) in sorted(all_prices(client.location.repository, client.environ).items())
    ]
    line = f"{count(len(rows), 'model')}; dollars for a million tokens"
    return Answer({"prices": rows}, line, rows, PRICE_COLUMNS)
