"""Which of several ready tasks an agent is best at.

Only near-equals change places: tasks whose ranks differ by less than one step of priority. So a higher
priority still comes first, and a task is passed over only by tasks that were added shortly after it.
The rule looks at nobody else: an agent that takes what it is best at leaves the rest to those that are better
at it, and if there are none it takes the rest next. A claim therefore reads what it would read anyway.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from coord.core.plans.commands import ClaimNext
from coord.core.sessions.schema import Session
from coord.core.tasks.schema import PRIORITY_STEP_MS

ADVISE = "advise"


class Candidate(NamedTuple):
    """A ready task; candidates sort by rank."""

    rank: str
    task_id: str


def speeds_for(command: ClaimNext, session: Session) -> Callable[[str], float] | None:
    """Return how fast the agent is with tasks of a type; None if nothing is known about that."""
    if command.mode in ("", ADVISE) or not (command.routing or session.capabilities):
        return None
    from coord.core.routing.router import agent_speeds  # noqa: PLC0415 - few agents declare what they are best at

    return agent_speeds(session.agent or session.session_id, session.capabilities, command.routing)


def merge_preferred(streams: Sequence[tuple[float, Iterator[Candidate]]]) -> Iterator[Candidate]:
    """Yield the candidates of several classes by rank, and near-equals by the agent's speed."""
    heads = [(speed, head, rest) for speed, rest in streams if (head := next(rest, None)) is not None]
    while heads:
        first_ms = min(int(head.rank) for _, head, _ in heads)
        near = [entry for entry in heads if int(entry[1].rank) - first_ms < PRIORITY_STEP_MS]
        best = min(near, key=lambda entry: (-entry[0], entry[1]))
        yield best[1]
        heads.remove(best)
        head = next(best[2], None)
        if head is not None:
            heads.append((best[0], head, best[2]))
