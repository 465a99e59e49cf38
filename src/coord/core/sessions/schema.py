"""Records and events of sessions: the format on disk."""

from enum import StrEnum
from typing import Any

from coord.core.events import Event
from coord.core.identity import Process
from coord.core.records import Stored


class Liveness(StrEnum):
    """How alive a session seems: graded by its last heartbeat, or proven dead."""

    LIVE = "live"
    SUSPECT = "suspect"
    STALE = "stale"
    HUNG = "hung"
    DEAD = "dead"
    ENDED = "ended"


class SessionRegistered(Event, frozen=True, tag="session.registered"):
    """A session began; `ancestry` says whether it was seen below a known process."""

    session: str
    agent: str
    parent: str = ""
    ancestry: str = ""
    implicit: bool = False
    role: str = ""
    tool: str = ""
    model: str = ""
    user: str = ""
    project: str = ""
    person: bool = False
    state: str = ""


class SessionUpdated(Event, frozen=True, tag="session.updated"):
    """A session changed what it reports about itself, or has another parent; this is how it is now."""

    session: str
    state: str
    agent: str = ""
    role: str = ""
    tool: str = ""
    model: str = ""
    parent: str = ""
    project: str = ""


class SessionEnded(Event, frozen=True, tag="session.ended"):
    """A session deregistered, was replaced or terminated (`by` whom), or was declared dead, with evidence."""

    session: str
    agent: str
    end_reason: str
    evidence: str = ""
    successor: str = ""
    by: str = ""
    role: str = ""
    project: str = ""


class SessionHung(Event, frozen=True, tag="session.hung"):
    """A session was silent for longer than the setting `hung_seconds`, and is not proven dead."""

    session: str
    agent: str
    silent_s: int
    runner: bool = False
    project: str = ""


class SessionCompacted(Event, frozen=True, tag="session.compacted"):
    """The context of a session was compacted, so it needs to know everything again."""

    session: str
    agent: str
    epoch: int


class Session(Stored, frozen=True, tag=1):
    """A session; kept for a day after its end.

    `parent_process` is the process of another session below which it was first seen: commands may come
    from there, but it does not prove that this session is alive. `calls` maps tool calls under way to their
    deadlines, `current_file` is the file of the newest one and `current_command` its command line;
    `reminded` is the lock of which the session was reminded last. `state` is what the session reported at
    `reported_ms`; `state.py` derives what it does.
    `terminated_by` is the session that ended it, and `end_note` says why; while `ended_ms` is 0, the sweep
    has yet to carry that out. `repository` is the folder of its repository. A `person` is no agent.
    A `terminal` is the session of whoever uses a terminal; the agents below it are sessions besides it.
    `emergencies` counts the emergencies in its inbox: while there is one, hooks stop its tool calls.
    `runner` is the process in which `coord work` runs it; coord may end that process if it hangs.
    `hung_beat_ms` is the heartbeat after which the session was last reported as hung.
    `seen` are the changes by others, of locks and of sessions, about which a hook was asked at `seen_ms` to
    brief the session (`locks/tool_calls.py`). `briefed` is the digest of the facts that it got last, at
    `briefed_ms`, and `briefed_offset` the offset up to which they go. `epoch` counts how often its context
    began again, `epoch_mark` what showed it last.
    """

    session_id: str = ""
    agent: str = ""
    role: str = ""
    user: str = ""
    project: str = ""
    parent: str = ""
    host: str = ""
    cwd: str = ""
    bin: str = ""
    version: str = ""
    model: str = ""
    repository: str = ""
    process: Process | None = None
    parent_process: Process | None = None
    children: bool = False
    state: str = "idle"
    reported_ms: int = 0
    started_ms: int = 0
    beat_ms: int = 0
    ended_ms: int = 0
    end_reason: str = ""
    terminated_by: str = ""
    end_note: str = ""
    calls: dict[str, int] = {}
    reminded: int = 0
    emergencies: int = 0
    current_file: str = ""
    current_task: dict[str, Any] = {}
    owned_resources: dict[str, Any] = {}
    blob: dict[str, Any] = {}
    capabilities: dict[str, float] = {}
    person: bool = False
    runner: Process | None = None
    hung_beat_ms: int = 0
    terminal: bool = False
    current_command: str = ""
    token: str = ""
    """The token with which it came over the network; empty if it came from the machine of the store."""
    questions: int = 0
    """How many of its questions are not closed: without any, no rule looks for them."""
    seen: tuple[int, int] = (0, 0)
    seen_ms: int = 0
    briefed: str = ""
    briefed_ms: int = 0
    briefed_offset: int = 0
    epoch: int = 0
    epoch_mark: str = ""
    edited: dict[str, int] = {}
    """The files whose edits were logged in the last minute, and when."""
    read: tuple[int, ...] = ()
    """Checksums of the files whose reads were logged since `read_ms`, in a minute that began then."""
    read_ms: int = 0


class CrewChanges(Stored, frozen=True, tag=1):
    """How often sessions of agents began or ended in a project; the last was `by` (`sessions/changes.py`)."""

    changes: int = 0
    by: str = ""
    others: int = 0


class ProcessSessions(Stored, frozen=True, tag=1):
    """Index: the sessions of agents that live in a process (a parent and its sub-agents may share one)."""

    sessions: tuple[str, ...] = ()
