"""Close an alert as a person, with the outcome that it deserves."""

import re

from coord.core import keys
from coord.core.alerts.check import Book
from coord.core.alerts.commands import AlertInfo, CloseAlert
from coord.core.alerts.queries import info
from coord.core.alerts.schema import Alert, AlertOutcome, Alerts
from coord.core.errors import Invalid, NotFound
from coord.core.ids import short_repr
from coord.core.questions.answer import find_person
from coord.core.transaction import Transaction

NOTE_CHARS_MAX = 500
_ID = re.compile(r"a?([1-9][0-9]{0,7})")


def close_alert(tx: Transaction, command: CloseAlert, now: int) -> AlertInfo:
    """Close an alert, or correct the outcome of one that ended by itself."""
    by, limits = find_person(tx, command.caller, "closes alerts", "coord alerts close", now)
    alert = find_alert(tx, command.id)
    if limits is not None and limits.project not in ("", alert.project):
        raise NotFound(
            f"there is no alert {alert.id} in project {limits.project}", hint="use a token without that limit"
        )
    if len(command.note) > NOTE_CHARS_MAX or not command.note.isprintable():
        raise Invalid("the note is not one line of text", hint=f"use at most {NOTE_CHARS_MAX} characters")
    outcome = AlertOutcome.TRUE if command.right else AlertOutcome.FALSE
    if alert.closed_ms and (alert.outcome, alert.note, alert.closed_by) == (outcome, command.note, by):
        return info(alert, tx.get(keys.ALERTS, Alerts) or Alerts())
    book = Book(tx)
    closed = book.close(alert, outcome, command.note, now, by)
    book.save(now)
    return info(closed, tx.get(keys.ALERTS, Alerts) or Alerts())


def find_alert(tx: Transaction, name: str) -> Alert:
    """Return an alert by its id, `a7` or `7`."""
    found = _ID.fullmatch(name)
    alert = tx.get(keys.alert(int(found[1])), Alert) if found is not None else None
    if alert is None:
        raise NotFound(
            f"there is no alert {short_repr(name)}", hint="coord alerts --all lists those that are kept"
        )
    return alert
