"""The events of reactions, and how many reactions led to an event.

The `hops` of an event say how many reactions one after another led to it, so that loops can be cut.
"""

from coord.core.events import Event


class ReactionRan(Event, frozen=True, tag="reaction.ran"):
    """The command of a reaction ended with success; `output` is the end of what it wrote."""

    id: str
    reaction: str
    cause: str
    took_ms: int = 0
    output: str = ""
    hops: int = 0


class ReactionFailed(Event, frozen=True, tag="reaction.failed"):
    """A reaction failed as often as it may; `coord reactions dead` lists the delivery."""

    id: str
    reaction: str
    cause: str
    error: str
    attempts: int = 1
    hops: int = 0


class ReactionDropped(Event, frozen=True, tag="reaction.dropped"):
    """A reaction did not keep up: its oldest waiting events, from `first` to `last`, were dropped."""

    reaction: str
    count: int
    first: str
    last: str


class ReactionRefused(Event, frozen=True, tag="reaction.refused"):
    """A reaction did not run, because `hops` reactions one after another had caused the event."""

    id: str
    reaction: str
    cause: str
    hops: int
    count: int = 1


class ReactionDecided(Event, frozen=True, tag="reaction.decided"):
    """Somebody decided about a failed delivery: it is tried again, or dropped."""

    id: str
    decision: str
    session: str
    agent: str = ""


def hops_of(details: dict[str, object]) -> int:
    """Return how many reactions one after another led to an event."""
    origin = details.get("origin")
    given = [details.get("hops"), origin.get("hops") if isinstance(origin, dict) else 0]
    return max((each for each in given if isinstance(each, int)), default=0)
