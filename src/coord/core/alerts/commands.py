"""Commands about alerts, and their replies: the API."""

import msgspec

from coord.core.alerts.schema import AlertOutcome, Sample, Severity
from coord.core.commands import Command, Reply, SessionCommand
from coord.core.identity import Process


class AlertInfo(Reply, frozen=True):
    """An alert as it is shown: that of a muted rule is only `info`."""

    id: str
    rule: str
    severity: Severity
    subject: str
    text: str
    session_id: str
    agent: str
    project: str
    agents: list[str]
    raised_ms: int
    seen_ms: int
    closed_ms: int
    outcome: AlertOutcome
    closed_by: str
    note: str


class RuleInfo(Reply, frozen=True):
    """A rule, how often it was right, and its precision over its newest alerts (None: none was closed)."""

    rule: str
    severity: Severity
    open: int
    right: int
    wrong: int
    precision: float | None
    muted: bool


class AlertList(Reply, frozen=True):
    """Alerts, the open ones first, each newest first, and what is known about every rule."""

    now_ms: int
    alerts: list[AlertInfo]
    rules: list[RuleInfo] = []


class ListAlerts(SessionCommand, frozen=True, kw_only=True):
    """List the open alerts of a project, or of all; with `closed` those behind them that were closed."""

    rule = "coord.core.alerts.queries:list_alerts"
    reply = AlertList
    reads_only = True
    closed: bool = False
    project: str = ""


class WatchedProcess(Reply, frozen=True):
    """The process of a silent session; its user may look how busy it is."""

    session_id: str
    process: Process


class ListWatched(Command, frozen=True):
    """List the processes of silent sessions, which somebody on their machine has to look at."""

    rule = "coord.core.alerts.stuck:list_watched"
    reply = list[WatchedProcess]
    reads_only = True


class SessionSample(msgspec.Struct, frozen=True, gc=False):
    """What the processes of one session have used so far."""

    session_id: str
    process: Process
    sample: Sample


class CheckReply(Reply, frozen=True):
    """What a check changed, and when the next one may change something (0: only after an event)."""

    now_ms: int
    raised: list[str] = []
    closed: list[str] = []
    next_ms: int = 0


class CheckAlerts(Command, frozen=True):
    """Compare records, time and samples with the rules: raise alerts, and close those that have ended."""

    rule = "coord.core.alerts.check:check_alerts"
    reply = CheckReply
    samples: tuple[SessionSample, ...] = ()


class CloseAlert(SessionCommand, frozen=True, kw_only=True):
    """Close an alert as a person, and say whether it was right; a closed one gets this outcome instead."""

    rule = "coord.core.alerts.close:close_alert"
    prefetch_keys = "coord.core.sessions.identify:caller_reads"
    reply = AlertInfo
    id: str
    right: bool
    note: str = ""
