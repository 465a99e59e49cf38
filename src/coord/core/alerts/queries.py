"""Alerts as they are shown: in a list with the precision of each rule, and among what needs a person."""

from collections.abc import Iterable, Iterator

from coord.core import keys
from coord.core.alerts.check import shown_severity
from coord.core.alerts.commands import AlertInfo, AlertList, ListAlerts, RuleInfo
from coord.core.alerts.precision import precision
from coord.core.alerts.rules import RULES
from coord.core.alerts.schema import Alert, Alerts, RuleRecord, Severity
from coord.core.lifecycle.commands import Need, NeedsYou
from coord.core.transaction import Transaction

NEEDS_URGENCY = {Severity.CRITICAL: 0, Severity.WARNING: 2}
"""How urgent an alert is among the needs of `lifecycle/needs.py`; information needs nobody."""


def list_alerts(tx: Transaction, command: ListAlerts, now: int) -> AlertList:
    """Return the open alerts and, if wanted, the closed ones behind them, each newest first."""
    head = tx.get(keys.ALERTS, Alerts) or Alerts()
    kept = _alerts(tx, head.kept if command.closed else head.open.values())
    listed = [each for each in kept if command.project in ("", each.project)]
    listed.sort(key=lambda each: (each.closed_ms > 0, -each.closed_ms, -each.raised_ms, each.id))
    return AlertList(now, [info(each, head) for each in listed], [_rule(name, head) for name in RULES])


def info(alert: Alert, head: Alerts) -> AlertInfo:
    """Return an alert as it is shown."""
    return AlertInfo(
        alert.id,
        alert.rule,
        shown_severity(alert, head.rules),
        alert.subject,
        alert.text,
        alert.session,
        alert.agent,
        alert.project,
        list(alert.agents),
        alert.raised_ms,
        alert.seen_ms,
        alert.closed_ms,
        alert.outcome,
        alert.closed_by,
        alert.note,
    )


def _alerts(tx: Transaction, numbers: Iterable[int]) -> list[Alert]:
    names = [keys.alert(number) for number in numbers]
    tx.prefetch(*names)
    found = [tx.get(name, Alert) for name in names]
    return [each for each in found if each is not None]


def _rule(name: str, head: Alerts) -> RuleInfo:
    record = head.rules.get(name, RuleRecord())
    opened = sum(each.partition(" ")[0] == name for each in head.open)
    severity = Severity.INFO if record.muted else RULES[name].severity
    return RuleInfo(name, severity, opened, record.right, record.wrong, precision(record), record.muted)


def alert_needs(tx: Transaction, command: NeedsYou, _now: int) -> Iterator[Need]:
    """Yield the open alerts that a person should look at."""
    head = tx.get(keys.ALERTS, Alerts) or Alerts()
    for alert in _alerts(tx, head.open.values()):
        severity = shown_severity(alert, head.rules)
        if (
            severity in NEEDS_URGENCY
            and command.project in ("", alert.project)
            and alert.rule not in ELSEWHERE
        ):
            yield Need(
                kind="alert",
                id=alert.id,
                what=alert.rule,
                text=alert.text,
                urgency=NEEDS_URGENCY[severity],
                since_ms=alert.raised_ms,
                session_id=alert.session,
                agent=alert.agent,
                project=alert.project,
                next=f"look at it, then coord alerts close {alert.id} --true or --false",
            )


ELSEWHERE = ("stale_decision",)
"""Rules whose subject is a need itself: the question."""
