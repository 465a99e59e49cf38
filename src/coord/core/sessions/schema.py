"""Records and events of sessions: the format on disk."""

from enum import StrEnum

from coord.core.events import Event


class Liveness(StrEnum):
    """How alive a session seems: graded by the age of its heartbeat, or dead where that is proven."""

    LIVE = "live"
    SUSPECT = "suspect"
    STALE = "stale"
    HUNG = "hung"
    DEAD = "dead"
    ENDED = "ended"


class SessionRegistered(Event, frozen=True, tag="session.registered"):
    """A session began; `process_ancestors` says whether it was seen below a known process."""

    session: str
    agent: str
    parent: str = ""
    process_ancestors: str = ""
    on_the_way: bool = False


class SessionUpdated(Event, frozen=True, tag="session.updated"):
    """A session changed what it says of itself."""

    session: str
    state: str


class SessionEnded(Event, frozen=True, tag="session.ended"):
    """A session deregistered, was replaced, or was declared dead (then with the evidence)."""

    session: str
    agent: str
    end_reason: str
    evidence: str = ""
    successor: str = ""
