"""Salvage the unfinished edits of a former holder before the next one starts.

Edits belong to a holder that lost its lock only if nobody held the file since, that holder works in this
worktree, and the file was written while it was locked. All other edits stay and are reported.
"""

import os
from collections.abc import Sequence
from contextlib import suppress

from coord.core.errors import CoordError
from coord.core.locks.commands import LockInfo
from coord.core.locks.locks import LOSS_KEPT_MS
from coord.core.locks.resources import parse_resource
from coord.core.locks.schema import LOST, EndReason
from coord.core.messages.quoting import quote_name, quote_names
from coord.host.repository import find_repository
from coord.integrations.git.changes import CoveredPaths, changes, literal_name, write_locks
from coord.integrations.git.run import Git
from coord.integrations.git.salvage.swap import salvage_paths
from coord.sdk.client.client import Client
from coord.sdk.log_reader import LoggedEvent
from coord.sdk.reports.activity import EventFilter, newest_events

SLACK_MS = 60_000
"""The tolerance between file times and store times, and for a holder that learns late of its loss."""
EVENTS_MAX = 500
IGNORED_ENDINGS = (EndReason.LAPSED, EndReason.PARENT_ENDED)
"""Ends that say nothing about edits: an unused hand-off, a lock that ended with the parent's."""


def salvage_first(client: Client, granted: Sequence[LockInfo]) -> list[str]:
    """Salvage the edits of holders that lost these locks in this worktree; return what was done."""
    repository = client.location.repository
    fresh = [lock for lock in write_locks(granted) if not lock.refreshed]
    if not fresh or repository is None or repository.root is None:
        return []
    git, held = Git(repository.root), CoveredPaths(lock.resource for lock in fresh)
    try:
        changed = [change.path for change in changes(git, _where(git, fresh)) if change.path in held]
    except CoordError as error:
        return [f"coord could not look for edits of others: {error.message}"]
    return _salvage_changes(client, git, changed, fresh) if changed else []


def _where(git: Git, fresh: list[LockInfo]) -> list[str]:
    """Return the paths to search; [], which means everywhere, if a lock is a glob or a path is missing."""
    names = [literal_name(lock.resource) for lock in fresh]
    there = [name for name in names if name is not None and os.path.lexists(f"{git.folder}/{name}")]
    return there if len(there) == len(fresh) else []


def _salvage_changes(client: Client, git: Git, changed: list[str], fresh: list[LockInfo]) -> list[str]:
    repository = client.location.repository_id
    resources = tuple(each for lock in fresh for each in parse_resource(lock.resource, repository))
    since_ms = fresh[0].acquired_ms - LOSS_KEPT_MS
    which = EventFilter("lock.released", "", resources, since_ms, repository)
    losses = list(reversed(newest_events(client, which, EVENTS_MAX).events))
    by_loss: dict[int, list[str]] = {}
    for path in changed:
        number = _last_holder(losses, path)
        if number is not None and _belongs_to(client, losses[number], git.folder, path, fresh[0].owner):
            by_loss.setdefault(number, []).append(path)
    reports: list[str] = []
    for number, paths in by_loss.items():
        reports += _salvage_holder(client, git, losses[number], paths, fresh[0])
    return reports


def _last_holder(losses: list[LoggedEvent], path: str) -> int | None:
    """Return the index of the last holder's lock among these ended locks, newest first."""
    for number, loss in enumerate(losses):
        if loss.details["end_reason"] not in IGNORED_ENDINGS and path in CoveredPaths(
            [loss.details["resource"]]
        ):
            return number
    return None


def _belongs_to(client: Client, loss: LoggedEvent, root: str, path: str, owner: str) -> bool:
    """Whether the edits of a file belong to the holder that lost its lock."""
    details = loss.details
    if details["end_reason"] not in LOST or details["session"] == owner:
        return False
    try:
        checkout = find_repository(client.show(details["session"]).cwd)
    except CoordError:
        return False  # its worktree is unknown, so the edits may belong to somebody else
    if checkout is None or checkout.root != root:
        return False
    until_ms = int(details["until_ms"])
    since_ms = until_ms - int(details["held_s"] * 1000)
    return since_ms - SLACK_MS <= _written_ms(f"{root}/{path}") <= until_ms + SLACK_MS


def _written_ms(path: str) -> float:
    """Return when a file was written; for a missing file, when its folder was."""
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    return os.lstat(path).st_mtime_ns / 1_000_000


def _salvage_holder(
    client: Client, git: Git, loss: LoggedEvent, paths: list[str], lock: LockInfo
) -> list[str]:
    details = loss.details
    loser = details.get("agent") or details["session"]
    resource = quote_name(str(details["resource"]))
    why = f"edits of {loser}, whose lock on {resource} ended ({details['end_reason']})"
    try:
        ref, restored = salvage_paths(git, str(details["fence"]), paths, f"{why}; next: {lock.owner}")
    except CoordError as error:
        return [f"{why} could not be salvaged: {error.message}"]
    if not ref:
        return []
    left = [path for path in paths if path not in restored]
    report = f"{why} are in {ref}" + (
        f"; new files and conflicts stay in place: {quote_names(left, len(left))}" if left else ""
    )
    with suppress(CoordError):  # the session may be gone
        client.send(details["session"], "warn", f"Your edits are in {ref}", body=f"git diff {ref}^ {ref}")
    return [report]
