"""Who performs reactions now, and how many events wait for them.

A process that a person started performs them: the hub, or `coord follow reactions`. A command that ends never
does. Its caller may be an agent, whose sandbox, variables and processes a reaction must not have, and it
cannot wait for a test run or for a webhook that is tried for minutes. So the lists of coord have to say where
nobody performs them.
"""

from typing import NamedTuple

import msgspec

from coord.core.followers import FollowerInfo, FollowerState, ListFollowers, ReadFollower
from coord.followers.follower import LogSource
from coord.followers.reactions.events import HOPS_MAX, Position, delivery_of
from coord.followers.reactions.follower import Reactions, State
from coord.followers.reactions.settings import Reaction, read_settings
from coord.sdk.log_reader import first_offset, logged_events, pages

HUB = "the hub"
NEXT = "start coord serve, or run coord follow reactions"
ENTRIES_MAX = 10_000
"""How many entries are read to count what waits."""


class Performer(NamedTuple):
    """Who performs reactions ("": nobody), how many people want, and how many events wait."""

    reactions: int
    name: str = ""
    waiting: int = 0

    @property
    def problem(self) -> str:
        """What is wrong, in a few words; empty if nothing is."""
        if self.name or not self.reactions:
            return ""
        events = "1 event waits" if self.waiting == 1 else f"{self.waiting} events wait"
        return f"nobody performs the reactions ({events})"


def find_performer(source: LogSource) -> Performer:
    """Return who performs the reactions that are configured here."""
    reactions = read_settings(source.location, source.environ).reactions
    if not Reactions.wanted(source):
        return Performer(0)
    followers: list[FollowerInfo] = source.engine.call(ListFollowers())
    found = next((each for each in followers if each.name == Reactions.name), None)
    if found is None:
        return Performer(len(reactions))
    performer = HUB if found.live else found.runner
    return Performer(len(reactions), performer, 0 if performer else _waiting(source, reactions))


def _waiting(source: LogSource, reactions: tuple[Reaction, ...]) -> int:
    """Count the events that some reaction means, and that nobody has performed it for."""
    saved: FollowerState = source.engine.call(ReadFollower(Reactions.name))
    if saved.version != Reactions.version:
        return 0
    begins = msgspec.json.decode(saved.state, type=State).next
    found = entries = number = offset = 0
    for page in pages(source.log, max(saved.offset + 1, first_offset(source.log))):
        for logged in logged_events(page):
            number = number + 1 if logged.offset == offset else 0
            offset = logged.offset
            event = delivery_of(logged, number)
            found += event.hops < HOPS_MAX and any(
                each.pattern.matches(event.event, event.details)
                and event.position >= Position(*begins.get(each.name, (0, 0)))
                for each in reactions
            )
        entries += len(page)
        if entries >= ENTRIES_MAX:
            break
    return found
