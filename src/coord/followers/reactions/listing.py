"""The reactions of a store as people see them: what is configured, what waits, and what failed."""

from typing import Any

import msgspec

from coord.core.followers import ReadFollower
from coord.followers.follower import LogSource
from coord.followers.reactions.follower import Dead, Reactions, State
from coord.followers.reactions.performer import find_performer
from coord.followers.reactions.settings import read_settings


class ReactionInfo(msgspec.Struct, frozen=True):
    """A reaction: the events that it means, what it does, and the first event that is not done."""

    name: str
    event: list[str]
    where: dict[str, Any]
    action: str
    attempts: int
    file: str
    next: list[int]
    dead: int


class DeadInfo(msgspec.Struct, frozen=True):
    """A delivery that failed for the last time; `retry`: a person wants it tried again."""

    id: str
    reaction: str
    event: str
    at_ms: int
    error: str
    attempts: int
    retry: bool


class ReactionsInfo(msgspec.Struct, frozen=True):
    """All reactions, the problems of the tables that do not count, and who performs them ("": nobody)."""

    reactions: list[ReactionInfo]
    problems: list[str]
    performed_by: str
    waiting: int
    problem: str
    dead: list[DeadInfo]


def list_reactions(source: LogSource) -> ReactionsInfo:
    """Return the reactions of a store."""
    settings, performer = read_settings(source.location, source.environ), find_performer(source)
    state = _saved_state(source)
    rows = [
        ReactionInfo(
            each.name,
            list(each.pattern.names),
            dict(each.pattern.where),
            each.kind,
            each.attempts,
            each.source,
            list(state.next.get(each.name, ())),
            sum(dead.reaction == each.name for dead in state.dead),
        )
        for each in settings.reactions
    ]
    dead = [_dead(each) for each in state.dead]
    return ReactionsInfo(
        rows, list(settings.problems), performer.name, performer.waiting, performer.problem, dead
    )


def list_dead(source: LogSource) -> list[DeadInfo]:
    """Return the deliveries that failed for the last time."""
    return [_dead(each) for each in _saved_state(source).dead]


def _saved_state(source: LogSource) -> State:
    """Return what the process that performs reactions has saved."""
    found = source.engine.call(ReadFollower(Reactions.name))
    return msgspec.json.decode(found.state, type=State) if found.version == Reactions.version else State()


def _dead(found: Dead) -> DeadInfo:
    return DeadInfo(
        found.id, found.reaction, found.event, found.at_ms, found.error, found.attempts, found.retry
    )
