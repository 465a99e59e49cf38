"""Check commits: who holds their files, and whether their fences and claims are still current."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from coord.core.errors import Invalid
from coord.core.identity import Caller
from coord.core.locks.commands import CheckFences, CheckLocks, FenceInfo, ListLocks, LockInfo
from coord.core.locks.paths import Pattern, fold, is_unprintable, literal_path, parse_pattern
from coord.core.locks.paths import covers as path_covers
from coord.core.locks.queries import FENCES_MAX
from coord.core.locks.resources import PATH_BYTES_MAX
from coord.core.messages.quoting import quote, quote_name
from coord.core.tasks.commands import GetTaskStates
from coord.integrations.git.changes import CoveredPaths, write_locks
from coord.integrations.git.gate.commits import CommitUnderReview
from coord.integrations.git.gate.trailers import FenceTrailer
from coord.sdk.client.connection import Connection

PATHS_MAX = 256
"""For more files than this, all locks of the repository are read."""
IN_ORDER = ("held", "released", "session_ended")


class Finding(NamedTuple):
    """A problem of a commit, and the next step."""

    what: str
    next_step: str


def check_commits(
    connection: Connection, caller: Caller, commits: Sequence[CommitUnderReview]
) -> list[Finding]:
    """Return the problems of commits that a caller makes or moves, each once."""
    paths = dict.fromkeys(path for commit in commits for path in commit.paths)
    names = _other_names(connection, caller, paths)
    locks = _foreign_locks(connection, caller, [*paths, *(each for some in names.values() for each in some)])
    fences = _Fences(connection, (fence for commit in commits for fence in commit.trailers.fences))
    found: dict[Finding, None] = {}
    for commit in commits:
        found.update(dict.fromkeys(_check_paths(commit, locks, fences, names)))
    found.update(dict.fromkeys(_superseded_claims(connection, commits)))
    return list(found)


def _other_names(connection: Connection, caller: Caller, paths: Iterable[str]) -> dict[str, list[str]]:
    """Return the further names of changed files, by links that were perhaps made after a lock was granted.

    A session that has locked a file itself may commit it, whatever links somebody made.
    """
    root = connection.location.repository.root if connection.location.repository is not None else None
    asked = CheckLocks(caller, connection.location.repository_id, ("file:.",), "write", limit=1)
    if root is None or connection.call(asked).free:
        return {}
    from coord.host.links import other_names

    assert connection.location.repository is not None, "it has a root"
    own = CoveredPaths(lock.resource for lock in write_locks(connection.call(ListLocks(caller, own=True))))
    unlocked = [path for path in paths if path not in own]
    return other_names(connection.location.repository, root, unlocked) if unlocked else {}


class _Lock(NamedTuple):
    shown: LockInfo
    pattern: Pattern


def _foreign_locks(connection: Connection, caller: Caller, paths: list[str]) -> list[_Lock]:
    """Return the write locks of others that may cover these paths."""
    if not paths:
        return []
    by_name = len(paths) <= PATHS_MAX and all(map(_lockable, paths))
    texts = [f"file:{literal_path(path).spelled}" for path in paths] if by_name else ["file:."]
    asked = CheckLocks(caller, connection.location.repository_id, tuple(texts), "write")
    return [
        _Lock(holder, pattern)
        for holder in connection.call(asked).holders
        if holder.mode != "read"
        for pattern in parse_pattern(holder.resource.removeprefix("file:"))
    ]


def _lockable(path: str) -> bool:
    """Whether a path can be locked by name; git allows names that only a lock on their folder covers."""
    return not is_unprintable(path) and len(fold(path).encode()) <= PATH_BYTES_MAX


def covers(pattern: Pattern, path: str) -> bool:
    """Whether a pattern covers a file with any name; unprintable characters match as plain ones."""
    known = _pattern_of(path)
    return known is None or path_covers(pattern, known)


@lru_cache(maxsize=100_000)
def _pattern_of(path: str) -> Pattern | None:
    if is_unprintable(path):
        path = "".join("\N{REPLACEMENT CHARACTER}" if is_unprintable(letter) else letter for letter in path)
    try:
        return literal_path(path)
    except Invalid:
        return None  # too long or too deep to compare, so it counts as covered


class _Fences:
    """The state of the locks that commits name in their trailers."""

    def __init__(self, connection: Connection, trailers: Iterable[FenceTrailer]) -> None:
        self._connection = connection
        wanted = list(dict.fromkeys(trailers))
        self._shown: dict[tuple[FenceTrailer, str], FenceInfo] = {}
        for start in range(0, len(wanted), FENCES_MAX):
            self._ask([(fence, "") for fence in wanted[start : start + FENCES_MAX]])

    def of(self, fence: FenceTrailer, path: str) -> FenceInfo:
        """Return the state of a fence for one file; a glob may be superseded in another part only."""
        whole = self._shown[fence, ""]
        part = f"file:{literal_path(path).spelled}" if whole.superseded and _lockable(path) else ""
        if (fence, part) not in self._shown:
            self._ask([(fence, part)])
        return self._shown[fence, part]

    def _ask(self, wanted: list[tuple[FenceTrailer, str]]) -> None:
        fences = tuple((fence.fence, fence.resource, part) for fence, part in wanted)
        asked = CheckFences(self._connection.location.repository_id, fences)
        self._shown.update(zip(wanted, self._connection.call(asked), strict=True))


def _check_paths(
    commit: CommitUnderReview, locks: list[_Lock], fences: _Fences, names: dict[str, list[str]]
) -> Iterable[Finding]:
    """Yield the problems of the files of a commit.

    If several fences cover a file, the latest counts. If its lock was released in order, the change was
    finished before the present holder started.
    """
    proofs = [
        (fence, parse_pattern(fence.resource.removeprefix("file:"))[0]) for fence in commit.trailers.fences
    ]
    own = {fence.fence for fence in commit.trailers.fences}
    for path in commit.paths:
        covering = [fences.of(fence, path) for fence, pattern in proofs if covers(pattern, path)]
        known = [shown for shown in covering if shown.end_reason != "unknown"]
        proof = max(known, key=lambda shown: shown.fence, default=None)
        if proof is not None and proof.superseded:
            yield _superseded_fence(commit, path, proof)
        if proof is not None and proof.end_reason in IN_ORDER:
            continue
        for lock in locks:
            mine = lock.shown.owner == commit.trailers.session or lock.shown.fence in own
            by = next((name for name in (path, *names.get(path, ())) if covers(lock.pattern, name)), None)
            if not mine and by is not None:
                yield _held(commit, path, lock.shown, "" if by == path else by)


def _superseded_claims(connection: Connection, commits: Sequence[CommitUnderReview]) -> Iterable[Finding]:
    """Yield the claims of commits that somebody else has taken over since."""
    claims = {task: commit for commit in commits for task in commit.trailers.tasks}
    names = tuple(dict.fromkeys((task.project, task.task) for task in claims))
    states = connection.call(GetTaskStates(connection.tenant, names)) if names else []
    generations = {(state.project_id, state.task_id): state.generation for state in states}
    for task, commit in claims.items():
        current = generations[task.project, task.task]
        if current > task.generation:
            yield Finding(
                f"{_name(commit)} belongs to generation {task.generation} of {task.task}, "
                f"but generation {current} has taken over",
                f"leave the task to its holder (coord task show {task.task}), "
                "or claim it again and renew the trailers (git rebase --force-rebase BRANCH)",
            )


def _superseded_fence(commit: CommitUnderReview, path: str, fence: FenceInfo) -> Finding:
    name = shown_path(path)
    return Finding(
        f"{_name(commit)} changes {name} under fence {fence.fence} of {fence.owner}, which was lost "
        f"({fence.end_reason}); {fence.by} has held it since, under fence {fence.by_fence}",
        f"lock it again (coord lock {name}), look at the changes, and amend the commit (git commit --amend)",
    )


def _held(commit: CommitUnderReview, path: str, lock: LockInfo, by: str = "") -> Finding:
    name = shown_path(path)
    through = f", which {shown_path(by)} leads to," if by else ""
    who = f"{lock.owner} ({lock.agent})" if lock.agent and lock.agent != lock.owner else lock.owner
    until = f" for another {lock.expires_in_s:.0f} s" if lock.expires_in_s else ""
    why = f": {quote(lock.reason)}" if lock.reason else ""
    what = f"{name}{through} is locked by {who} as {quote_name(lock.resource)}{until}{why}"
    if commit.commit:
        return Finding(
            f"{what}; {_name(commit)} changes it", "try again after its release (coord locks shows it)"
        )
    return Finding(what, f"commit only your files (git commit -- FILES), or wait for it (coord lock {name})")


def _name(commit: CommitUnderReview) -> str:
    return f"commit {commit.commit[:10]}" if commit.commit else "the staged change"


def shown_path(path: str) -> str:
    """Return a path in a form that fits on one line."""
    return path if path.isprintable() and " " not in path else repr(path)


def anonymous(caller: Caller) -> Caller:
    """Return an anonymous caller, because a shared repository does not know who pushes."""
    return msgspec.structs.replace(
        caller, session="pre-receive", parent="", process=None, process_ancestors=(), tool=""
    )
