"""`coord log activity`: the newest actions of agents."""

from coord.core.activity.settings import ledger_settings
from coord.core.sessions.commands import ListSessions
from coord.sdk.client.client import Client
from coord.sdk.reports.ledger import Ledger, ledger_filter, rows_of
from coord.transports.cli.output import Answer, count, timestamp

COLUMNS = ("timestamp", "agent_id", "agent_role", "action_type", "summary")


def activity(client: Client, *, agent: str, type_: str, since_s: float | None, limit: int) -> Answer:
    """Return the newest actions that pass a filter, oldest first."""
    since_ms = 0 if since_s is None else client.log.now() - round(since_s * 1000)
    which = ledger_filter(agent, type_, since_ms)
    listed = client.call(ListSessions(client.caller, everyone=True))
    sessions = {session.session_id: session for session in listed}
    settings = ledger_settings(client.configuration.tables, client.configuration.file)
    ledger = Ledger(client.log, sessions, entries=settings.entries)
    rows = rows_of(ledger.newest(which, limit), timestamp)
    return Answer({"activity": rows}, count(len(rows), "action"), rows, COLUMNS)
