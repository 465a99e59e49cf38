"""Records and events of alerts: the format on disk."""

from enum import StrEnum

import msgspec

from coord.core.events import Event
from coord.core.records import Stored


class Severity(StrEnum):
    """How much an alert matters, the least first."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class AlertOutcome(StrEnum):
    """Whether an alert was right; an open one has no outcome, and one that was dropped unread keeps none."""

    NONE = ""
    TRUE = "true"
    FALSE = "false"


class AlertRaised(Event, frozen=True, tag="alert.raised"):
    """A condition needs attention, or needs more of it than before; the documents call this `alert:new`."""

    id: str
    rule: str
    severity: Severity
    subject: str
    text: str
    session: str = ""
    agent: str = ""
    project: str = ""
    since_ms: int = 0


class AlertClosed(Event, frozen=True, tag="alert.closed"):
    """An alert ended by itself, or somebody (`by`) closed it or changed its outcome."""

    id: str
    rule: str
    subject: str
    outcome: AlertOutcome
    note: str
    by: str = ""
    session: str = ""
    agent: str = ""
    project: str = ""


class AlertRuleMuted(Event, frozen=True, tag="alert.rule_muted"):
    """A rule was wrong too often, so its alerts are only for information; or it is not any more."""

    rule: str
    muted: bool
    right: int
    wrong: int


class Alert(Stored, frozen=True, tag=1):
    """An alert, open or closed. `seen_ms`: when its condition was found last.

    `severity` is what the rule says; a muted rule is shown as information. `beat_ms` is the last sign of life
    of the session of a stuck agent when the alert was raised, and `agents` are the sessions that it is about.
    """

    id: str = ""
    rule: str = ""
    severity: Severity = Severity.INFO
    subject: str = ""
    text: str = ""
    session: str = ""
    agent: str = ""
    project: str = ""
    agents: tuple[str, ...] = ()
    raised_ms: int = 0
    seen_ms: int = 0
    beat_ms: int = 0
    closed_ms: int = 0
    outcome: AlertOutcome = AlertOutcome.NONE
    closed_by: str = ""
    note: str = ""


class RuleRecord(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """How often a rule was right: in all, and its newest outcomes as (number of the alert, whether right)."""

    right: int = 0
    wrong: int = 0
    newest: tuple[tuple[int, bool], ...] = ()
    muted: bool = False


class Alerts(Stored, frozen=True, tag=1):
    """All alerts that are kept: their numbers, oldest first, and which are open, by rule and subject.

    `closed` says when an alert about a subject ended, for as long as it is not raised again.
    """

    newest: int = 0
    kept: tuple[int, ...] = ()
    open: dict[str, int] = {}
    closed: dict[str, int] = {}
    rules: dict[str, RuleRecord] = {}


class Sample(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What the processes of a session have used since they started, as a machine counts it.

    `cpu_ms` is their processor time. `read_bytes` are what they read from files, pipes and connections;
    `written_bytes` went to files. `processes` and `newest` change when one starts or ends.
    """

    cpu_ms: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    processes: int = 0
    newest: int = 0


class Watch(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What is known about the processes of a silent session since its last sign of life, `beat_ms`.

    They were busy at `busy_ms` (0: never seen so), in `busy_runs` samples in a row, and are quiet
    since `quiet_ms`, as far as samples show it.
    """

    beat_ms: int = 0
    sample: Sample | None = None
    sampled_ms: int = 0
    busy_ms: int = 0
    busy_runs: int = 0
    quiet_ms: int = 0


class Watches(Stored, frozen=True, tag=1):
    """The silent sessions whose processes are watched."""

    sessions: dict[str, Watch] = {}
