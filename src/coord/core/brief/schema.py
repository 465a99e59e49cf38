"""Events of briefs: the format on disk."""

from coord.core.events import Event


class BriefDelivered(Event, frozen=True, tag="brief.delivered"):
    """A hook gave a session its brief: the receipt of what that cost.

    `offset` is the newest log entry that the brief knew; `tokens` is an estimate from `chars`.
    """

    session: str
    agent: str
    offset: int
    chars: int
    tokens: int
    epoch: int = 0
