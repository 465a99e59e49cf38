"""Claims that were taken from a session without its doing."""

from coord.core import keys
from coord.core.records import Stored
from coord.core.tasks.types import ReleaseReason
from coord.core.transaction import Transaction

KEPT_MS = 30 * 24 * 3600 * 1000


class Lost(Stored, frozen=True, tag=1):
    """A claim that a session lost: under which generation, why and when."""

    generation: int = 0
    reason: ReleaseReason = ReleaseReason.EXPIRED
    at_ms: int = 0
    note: str = ""


def remember_lost(tx: Transaction, session: str, project: str, task_id: str, lost: Lost) -> None:
    """Write down for its session that a claim is lost; of each task it remembers the latest."""
    tx.put(keys.lost(session, project, task_id), lost, keys.due(lost.at_ms + KEPT_MS))
