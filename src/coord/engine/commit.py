"""Commit, and if the reply is lost, look the commit up in the log.

To repeat a commit is safe: it expects the old version of everything it writes. If the first attempt landed,
the second is a conflict, and the log shows the id.
"""

from collections.abc import Callable

from coord.core.errors import Conflict, Trimmed, Unavailable, Unknown
from coord.engine.runtime import Runtime
from coord.stores.contract import Commit, Store

PAGE = 500
BACKOFF_S = 0.05


def commit_and_confirm(store: Store, commit: Commit, deadline: Callable[[], float], runtime: Runtime) -> int:
    """Commit, and resolve an unknown outcome before the deadline; return the offset."""
    before = store.seen.offset
    try:
        return store.commit(commit)
    except Unknown as lost:
        return _confirm(store, commit, before, deadline(), runtime, lost)


def _confirm(
    store: Store, commit: Commit, before: int, deadline: float, runtime: Runtime, lost: Unknown
) -> int:
    while True:
        try:
            landed = _find(store, commit.id, before)
            return store.commit(commit) if landed is None else landed
        except Conflict:
            landed = _find_if_reachable(store, commit.id, before)
            if landed is None:
                raise
            return landed
        except Trimmed:
            raise lost from None
        except (Unknown, Unavailable):
            if runtime.monotonic() > deadline:
                raise lost from None
            runtime.sleep(runtime.jitter(BACKOFF_S))


def _find(store: Store, commit_id: bytes, after: int) -> int | None:
    while entries := store.tail(after, PAGE):
        for entry in entries:
            if entry.id == commit_id:
                return entry.offset
        after = entries[-1].offset
    return None


def _find_if_reachable(store: Store, commit_id: bytes, after: int) -> int | None:
    """Look again after a conflict; if that fails too, the outcome stays unknown."""
    try:
        return _find(store, commit_id, after)
    except (Unavailable, Trimmed) as error:
        raise Unknown(hint="check the state before you try again") from error
