"""The scope of commits: a session may change only files that it had locked.

The trailers of a commit name its locks, and the store knows whether they are real. For a file without such a
lock, the session must have been the last writer between the start of the branch and the commit. A commit that
names no session belongs to the session of the branch's worktree, or to the caller; a person needs no locks.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from coord.core.locks.commands import CheckFences, LockPeriod
from coord.core.locks.paths import parse_pattern
from coord.core.locks.queries import FENCES_MAX
from coord.core.locks.resources import parse_resource
from coord.core.locks.schema import Mode
from coord.integrations.git.gate.check import Finding, check_commits, covers, shown_path
from coord.integrations.git.gate.commits import CommitUnderReview, new_commits
from coord.integrations.git.gate.trailers import FenceTrailer
from coord.integrations.git.run import Git
from coord.sdk.client.client import Client
from coord.sdk.reports.activity import EventFilter, lock_periods

SLACK_MS = 2000
"""Git counts in seconds, and its clock differs from the store's."""
TENURES_MAX = 10_000
UNKNOWN = "unknown"


class Signer(NamedTuple):
    """The author of commits that name no session."""

    session: str
    person: bool


def signer_of(client: Client) -> Signer:
    """Return the session of a client, and register it."""
    session = client.heartbeat().session_id
    return Signer(session, client.caller.terminal and session == client.caller.session)


def check_branch(
    client: Client, git: Git, signer: Signer, tip: str, onto: str, *, any_file: bool
) -> list[Finding]:
    """Return the problems of a branch: files out of scope, locks of others, superseded fences and claims."""
    commits = new_commits(git, tip, [onto])
    commits, findings = _with_proofs(client, git, signer, commits, onto)
    return [*([] if any_file else findings), *check_commits(client, client.caller, commits)]


def _with_proofs(
    client: Client, git: Git, signer: Signer, commits: Sequence[CommitUnderReview], onto: str
) -> tuple[list[CommitUnderReview], list[Finding]]:
    """Return commits with the fences that prove their scope, and a finding for each unproved file."""
    known = _granted(client, [fence for commit in commits for fence in commit.trailers.fences])
    proved, findings, holders = [], list[Finding](), _Holders(client)
    for commit in commits:
        session = commit.trailers.session or ("" if signer.person else signer.session)
        fences = [fence for fence in commit.trailers.fences if fence in known]
        left = [path for path in commit.paths if not _covered(fences, path)] if session else []
        began_ms, made_ms = _branch_times(git, commit.commit, onto) if left else (0, 0)
        for path in left:
            last = holders.last(path, session, began_ms, made_ms)
            if last is not None:
                fences.append(last)
            else:
                findings.append(_out_of_scope(commit, path, session))
        trailers = commit.trailers._replace(session=session, fences=tuple(dict.fromkeys(fences)))
        proved.append(commit._replace(trailers=trailers))
    return proved, findings


class _Holders:
    """The write locks in the log; read once, and only if a commit does not name its locks."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @cached_property
    def _tenures(self) -> list[LockPeriod]:
        """All write locks, the latest first."""
        repository = self._client.location.repository_id
        which = EventFilter(resources=parse_resource("file:.", repository), repository=repository)
        found = lock_periods(self._client, which, TENURES_MAX)
        return sorted((each for each in found if each.mode != Mode.READ), key=lambda each: -each.fence)

    def last(self, path: str, session: str, began_ms: int, made_ms: int) -> FenceTrailer | None:
        """Return the lock of a session if it was the last writer of a file between two times.

        Git counts in seconds, so a lock of others within the second of the commit does not count.
        """
        for tenure in self._tenures:
            own = tenure.owner == session
            began_in_time = tenure.from_ms <= made_ms + SLACK_MS if own else tenure.from_ms < made_ms
            if began_in_time and _covers(tenure.resource, path):
                fence = FenceTrailer(tenure.fence, tenure.resource)
                if _granted(self._client, [fence]):  # another repository of the store may have the same path
                    ended_before = tenure.until_ms and tenure.until_ms < began_ms - SLACK_MS
                    return fence if own and not ended_before else None
        return None


def _granted(client: Client, fences: Sequence[FenceTrailer]) -> set[FenceTrailer]:
    """Return the fences that the store granted."""
    wanted, found = list(dict.fromkeys(fences)), set[FenceTrailer]()
    for start in range(0, len(wanted), FENCES_MAX):
        some = wanted[start : start + FENCES_MAX]
        asked = CheckFences(client.location.repository_id, tuple((*each, "") for each in some))
        shown = client.call(asked)
        found.update(fence for fence, each in zip(some, shown, strict=True) if each.end_reason != UNKNOWN)
    return found


def _covered(fences: Sequence[FenceTrailer], path: str) -> bool:
    return any(_covers(fence.resource, path) for fence in fences)


def _covers(resource: str, path: str) -> bool:
    return any(covers(pattern, path) for pattern in parse_pattern(resource.removeprefix("file:")))


def _branch_times(git: Git, commit: str, onto: str) -> tuple[int, int]:
    """Return when the branch of a commit started, and when the commit was made."""
    base = git.run("merge-base", commit, onto).text
    shown = git.must("log", "--no-walk=unsorted", "--format=%ct", *([base] if base else []), commit)
    times = [int(line) * 1000 for line in shown.text.split()]
    return times[0] if base else 0, times[-1]


def _out_of_scope(commit: CommitUnderReview, path: str, session: str) -> Finding:
    return Finding(
        f"commit {commit.commit[:10]} changes {shown_path(path)}, which {session} had not locked",
        f"lock it (coord lock {shown_path(path)}), look at the changes of others, and amend the commit "
        f"(git commit --amend)",
    )
