"""List alerts with the precision of their rules, and close one."""

from coord.core.alerts.commands import AlertInfo, AlertList, RuleInfo
from coord.core.errors import Invalid
from coord.sdk.client.client import Client
from coord.transports import arguments
from coord.transports.cli.args import Args
from coord.transports.cli.output import Answer, count, fields_of
from coord.transports.cli.table import Row

COLUMNS = ("id", "age", "severity", "rule", "text")
CLOSED_COLUMNS = (*COLUMNS, "outcome", "closed_by", "note")


class AlertsArgs(Args, frozen=True):
    """The arguments of `coord alerts`."""

    action: str
    id: str
    all: bool
    true: bool
    false: bool
    note: str


def alerts(client: Client, args: AlertsArgs) -> Answer:
    """List alerts, or close one."""
    if args.action == "close":
        return _close(client, args)
    if args.id or args.true or args.false or args.note:
        raise Invalid("only close takes an id, an outcome and a note", hint="coord alerts close ID --true")
    found = client.alerts(closed=args.all)
    rows = [alert_row(each, found.now_ms) for each in found.alerts]
    fields = {
        "open": sum(not each.closed_ms for each in found.alerts),
        "alerts": rows,
        "rules": [fields_of(each) for each in found.rules],
    }
    return Answer(fields, _line(found), rows, CLOSED_COLUMNS if args.all else COLUMNS)


def _close(client: Client, args: AlertsArgs) -> Answer:
    if not args.id or not (args.true or args.false):
        raise Invalid("name the alert and its outcome", hint="coord alerts close ID --true, or --false")
    if args.all:
        raise Invalid("--all belongs to the list", hint="coord alerts --all")
    alert = client.close_alert(args.id, right=args.true, note=args.note)
    return Answer({"alert": fields_of(alert)}, f"Closed {alert.id} ({alert.rule}) as {alert.outcome}")


def alert_row(alert: AlertInfo, now_ms: int) -> Row:
    """Return an alert as a row, with its age."""
    return {**fields_of(alert), "age": arguments.span(max(0, now_ms - alert.raised_ms) / 1000)}


def _line(found: AlertList) -> str:
    """Return how many alerts are open, and how often each rule was right."""
    opened = sum(not each.closed_ms for each in found.alerts)
    rules = [_precision(each) for each in found.rules if each.precision is not None]
    return "; ".join([f"{count(opened, 'open alert')}", *rules])


def _precision(rule: RuleInfo) -> str:
    muted = ", muted" if rule.muted else ""
    return f"{rule.rule} was right in {round(100 * (rule.precision or 0))} % of its last alerts{muted}"
