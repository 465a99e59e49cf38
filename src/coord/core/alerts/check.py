"""Check all rules: raise an alert for each new condition, once, and close those that have ended.

There is one open alert for a rule and its subject. At most `OPEN_MAX` are open, and `KEPT_MAX` are kept; the
oldest closed one makes room. A subject whose alert has just been closed is left alone for one interval.
"""

from typing import NamedTuple

import msgspec

from coord.core import keys
from coord.core.alerts.commands import CheckAlerts, CheckReply
from coord.core.alerts.precision import with_outcome
from coord.core.alerts.rules import RULES, Condition, World
from coord.core.alerts.schema import (
    Alert,
    AlertClosed,
    AlertOutcome,
    AlertRaised,
    AlertRuleMuted,
    Alerts,
    RuleRecord,
    Severity,
)
from coord.core.alerts.stuck import INTERVAL_MS, agents, update_watches
from coord.core.questions.questions import open_questions
from coord.core.settings import settings_of
from coord.core.transaction import Transaction

KEPT_MAX = 100
OPEN_MAX = 80


class Book:
    """The alerts of a tenant, as one command changes them."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._before = tx.get(keys.ALERTS, Alerts) or Alerts()
        self._open = dict(self._before.open)
        self._closed = dict(self._before.closed)
        self._kept = list(self._before.kept)
        self._rules = dict(self._before.rules)
        self._newest = self._before.newest

    def open_alerts(self) -> list[Alert]:
        """Return the open alerts, oldest first."""
        self._tx.prefetch(*(keys.alert(number) for number in self._open.values()))
        found = [self._tx.get(keys.alert(number), Alert) for number in sorted(self._open.values())]
        return [each for each in found if each is not None]

    def may_raise(self, condition: Condition, now: int) -> bool:
        """Whether a condition is new, and not about what was closed within this interval."""
        name = subject_name(condition.rule, condition.subject)
        rested = now - self._closed.get(name, now - INTERVAL_MS) >= INTERVAL_MS
        return name not in self._open and rested and len(self._open) < OPEN_MAX

    def raise_alert(self, condition: Condition, now: int) -> str:
        """Raise an alert; return its id."""
        self._newest += 1
        number = self._newest
        fields = condition._asdict()
        alert = Alert(id=f"a{number}", raised_ms=now, seen_ms=now, **fields)
        self._tx.put(keys.alert(number), alert)
        self._open[subject_name(condition.rule, condition.subject)] = number
        self._kept.append(number)
        if len(self._kept) > KEPT_MAX:
            still_open = set(self._open.values())
            oldest = next(each for each in self._kept if each not in still_open)
            self._kept.remove(oldest)
            self._tx.delete(keys.alert(oldest))
        self._announce(alert)
        return alert.id

    def see_again(self, alert: Alert, condition: Condition, now: int) -> None:
        """Note that a condition lasts; one that became more severe is announced again."""
        worse = _rank(condition.severity) > _rank(alert.severity)
        changed = msgspec.structs.replace(
            alert,
            severity=condition.severity,
            text=condition.text if condition.severity != alert.severity else alert.text,
            agents=tuple(dict.fromkeys((*alert.agents, *condition.agents))),
            seen_ms=now if now - alert.seen_ms >= INTERVAL_MS else alert.seen_ms,
        )
        if changed != alert:
            self._tx.put(keys.alert(number_of_alert(alert)), changed)
        if worse:
            self._announce(changed)

    def close(self, alert: Alert, outcome: AlertOutcome, note: str, now: int, by: str = "") -> Alert:
        """Give an alert its outcome, and close it if it is open."""
        number = number_of_alert(alert)
        closed_ms = alert.closed_ms or now
        closed = msgspec.structs.replace(alert, closed_ms=closed_ms, outcome=outcome, note=note, closed_by=by)
        self._tx.put(keys.alert(number), closed)
        name = subject_name(alert.rule, alert.subject)
        if self._open.get(name) == number:
            del self._open[name]
            self._closed[name] = now
        self._tx.emit(
            AlertClosed(
                *(alert.id, alert.rule, alert.subject, outcome, note, by),
                *(alert.session, alert.agent, alert.project),
            )
        )
        self._count(alert.rule, number, outcome)
        return closed

    def _count(self, rule: str, number: int, outcome: AlertOutcome) -> None:
        before = self._rules.get(rule, RuleRecord())
        after = with_outcome(before, number, outcome is AlertOutcome.TRUE)
        self._rules[rule] = after
        if after.muted != before.muted:
            right = sum(known for _, known in after.newest)
            self._tx.emit(AlertRuleMuted(rule, after.muted, right, len(after.newest) - right))

    def _announce(self, alert: Alert) -> None:
        severity = shown_severity(alert, self._rules)
        self._tx.emit(
            AlertRaised(
                *(alert.id, alert.rule, severity, alert.subject, alert.text),
                *(alert.session, alert.agent, alert.project, alert.raised_ms),
            )
        )

    def save(self, now: int) -> None:
        """Write the record of all alerts, if it changed."""
        rested = {name: at for name, at in self._closed.items() if now - at < INTERVAL_MS}
        after = msgspec.structs.replace(
            self._before,
            newest=self._newest,
            kept=tuple(self._kept),
            open=self._open,
            closed=rested,
            rules=self._rules,
        )
        if (after.open, after.rules) != (self._before.open, self._before.rules):
            self._tx.put(keys.ALERTS, after)


class Changes(NamedTuple):
    """The ids of the alerts that a check raised and closed."""

    raised: list[str]
    closed: list[str]


def subject_name(rule: str, subject: str) -> str:
    """Return the name under which at most one alert is open."""
    return f"{rule} {subject}"


def number_of_alert(alert: Alert) -> int:
    """Return the number in the id of an alert."""
    return int(alert.id[1:])


def shown_severity(alert: Alert, rules: dict[str, RuleRecord]) -> Severity:
    """Return the severity of an alert; a muted rule only informs."""
    return Severity.INFO if rules.get(alert.rule, RuleRecord()).muted else alert.severity


def _rank(severity: Severity) -> int:
    return list(Severity).index(severity)


def check_alerts(tx: Transaction, command: CheckAlerts, now: int) -> CheckReply:
    """Compare records, time and samples with all rules."""
    settings, found = settings_of(tx), agents(tx, now)
    world = World(found, update_watches(tx, found, command.samples, now), settings)
    conditions = {
        subject_name(each.rule, each.subject): each
        for rule in RULES.values()
        for each in rule.find(tx, world, now)
    }
    book = Book(tx)
    changes = Changes([], [])
    for alert in book.open_alerts():
        condition = conditions.get(subject_name(alert.rule, alert.subject))
        if condition is not None and condition.beat_ms == alert.beat_ms:
            book.see_again(alert, condition, now)
            continue
        rule = RULES.get(alert.rule)  # a newer version may know more
        end = rule.end(tx, alert, world, now) if rule is not None else None
        if end is not None:
            book.close(alert, end.outcome, end.note, now)
            changes.closed.append(alert.id)
    for condition in conditions.values():
        if book.may_raise(condition, now):
            changes.raised.append(book.raise_alert(condition, now))
    book.save(now)
    return CheckReply(now, changes.raised, changes.closed, _next_check(tx, world, book, now))


def _next_check(tx: Transaction, world: World, book: Book, now: int) -> int:
    """Return when time alone may change something; agents that are silent for very long do not count."""
    settings = world.settings
    horizon_ms = 1000 * (settings.alert_prompting_seconds + settings.alert_stuck_seconds)
    lively = any(now - each.session.beat_ms < horizon_ms for each in world.agents)
    if lively or any(each.rule == "duplicate_file_edit" for each in book.open_alerts()):
        return now + INTERVAL_MS
    patience_ms = 1000 * settings.alert_decision_seconds
    waiting = [each.asked_ms + patience_ms for each in open_questions(tx, now)] if patience_ms else []
    return min((max(at, now + INTERVAL_MS) for at in waiting if at > now), default=0)
