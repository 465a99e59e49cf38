"""What shell commands do to files, caught by its effect: no command line tells what a program is going to write.

Before and after a shell tool the worktree is looked at (`effect_state.py`). What the command changed is locked
after the fact where it is free. A file that another session holds was stomped only if that is proven: its
content is not the holder's last one, none of the holder's tools was under way, and no other shell ran beside
this one (`effect_calls.py`). Otherwise its author is unknown: that is told, and the file is left alone.
"""

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from coord.agents.effect_calls import Call, CallFolder, Calls, read_file, remove, write_file
from coord.agents.effect_content import forget_content, keep_content
from coord.agents.effect_state import Change, State, changes, keep_index, look
from coord.agents.effect_verdict import Judge
from coord.agents.git.run import Git
from coord.agents.hooks.clean import differing_from_head
from coord.agents.hooks.settings import WATCHED
from coord.core.call_commands import BeginCall
from coord.core.commands import CheckLocks
from coord.core.errors import CoordError, Invalid
from coord.core.path import literal_path
from coord.core.replies import Checked, LockReply, LockShown, Outcome
from coord.core.resource import parse_resource
from coord.host.repository import git_dir_of
from coord.sdk.connection import Connection

CHANGES_MAX = 1024
LOCKS_MAX = 256
CHECKED_AT_ONCE = 256
LOCKED_AT_ONCE = 64
LEASE_MS = 660_000
REASON = "changed by a shell command"


class Place(NamedTuple):
    """A worktree, and a call in it."""

    connection: Connection
    git: Git
    folder: CallFolder
    session: str
    call: str

    @property
    def state(self) -> str:
        """The file that says how things stood before the call."""
        return self.folder.file("before", self.session, self.call)

    @property
    def old_index(self) -> str:
        """The index from before the call."""
        return self.folder.file("index", self.session, self.call)


def before(
    connection: Connection,
    worktree: str,
    session: str,
    call: str,
    *,
    shell: bool,
    lasts_s: float = 660.0,
    watched: Sequence[str] = WATCHED,
) -> None:
    """Take note of a call that may write, and for a shell of how the files stand; a failure stops nothing."""
    with suppress(CoordError, OSError):
        place = _place(connection, worktree, session, call)
        with place.folder.turn() as calls:
            calls.begin(call, session, shell=shell, now_s=time.time(), lasts_s=lasts_s)
        if shell:
            keep_index(git_dir_of(worktree), place.old_index)
            write_file(place.state, look(place.git, place.old_index, watched))


def after(
    connection: Connection,
    worktree: str,
    session: str,
    call: str,
    *,
    shell: bool,
    wrote: Sequence[str] = (),
    watched: Sequence[str] = WATCHED,
    restore: bool = False,
) -> str:
    """Look at what a call did, and return what its agent should know; `wrote` names the files of an editor."""
    try:
        place = _place(connection, worktree, session, call)
        try:
            if shell:
                return _look_again(place, watched, restore=restore)
            keep_content(place.git, place.folder, session, wrote)
        finally:
            _end(place)
    except (CoordError, OSError) as error:
        return f"coord: what this command changed could not be looked at: {error}" if shell else ""
    return ""


def _place(connection: Connection, worktree: str, session: str, call: str) -> Place:
    folder = CallFolder(connection.place.folder, worktree)
    return Place(connection, Git(worktree), folder, session, call)


def _end(place: Place) -> None:
    with place.folder.turn() as calls:
        calls.end(place.call, place.session)
    remove(place.state)
    remove(place.old_index)
    for file in place.folder.sweep(time.time()):
        forget_content(place.git, file)


def _look_again(place: Place, watched: Sequence[str], *, restore: bool) -> str:
    state = read_file(place.state, State)
    if state is None:  # it could not be looked at before, either
        return ""
    found = changes(place.git, place.old_index, state, watched)
    if not found:
        return ""
    with place.folder.turn() as calls:
        mine = calls.find(place.call, place.session)
    if mine is None:
        return ""
    return _sort_out(place, found, mine, calls, restore=restore)


def _sort_out(place: Place, found: list[Change], mine: Call, calls: Calls, *, restore: bool) -> str:
    """Lock what is free, and judge what others hold."""
    names, nameless = _named(found[:CHANGES_MAX])
    holders = _holders(place.connection, list(names.values()))
    changed = {change.path: change for change in found}
    free = [path for path in names if names[path] not in holders]
    dirty = _dirty(place.git.folder, free)
    locked, taken = _lock(place, {path: names[path] for path in dirty[:LOCKS_MAX]})
    holders.update(taken)
    if not any(call.shell for call in calls.beside(mine)):  # else it may be another's content
        keep_content(place.git, place.folder, place.session, locked)
    judge = Judge(place.connection, place.git, place.folder, place.old_index, mine, calls)
    for path, text in names.items():
        if text in holders:
            judge.hear(changed[path], holders[text])
    said = judge.close(restore=restore)
    unlocked = len(dirty[LOCKS_MAX:]) + len(nameless) + len(found[CHANGES_MAX:])
    if unlocked:
        said.append(
            f"coord: {unlocked} more files were changed by this command and are not locked: there are too many "
            "of them, or their names cannot be locked."
        )
    return "\n".join(said)


def _named(found: Sequence[Change]) -> tuple[dict[str, str], list[str]]:
    """Return how files are locked, by path, and those that cannot be."""
    names: dict[str, str] = {}
    nameless: list[str] = []
    for change in found:
        try:
            text = f"file:{literal_path(change.path).spelled}"
            parse_resource(text, "any")
            names[change.path] = text
        except Invalid:
            nameless.append(change.path)
    return names, nameless


def _holders(connection: Connection, texts: list[str]) -> dict[str, list[LockShown]]:
    """Return who stands in the way of writing these files."""
    repository, found = connection.place.repository_id, dict[str, list[LockShown]]()
    for start in range(0, len(texts), CHECKED_AT_ONCE):
        some = texts[start : start + CHECKED_AT_ONCE]
        checked: Checked = connection.call(CheckLocks(connection.caller, repository, tuple(some), "write"))
        for text in some if checked.holders else ():
            [wanted] = parse_resource(text, repository)
            meeting = [
                lock
                for lock in checked.holders
                if any(each.meets(wanted) for each in parse_resource(lock.resource, repository))
            ]
            if meeting:
                found[text] = meeting
    return found


def _dirty(worktree: str, paths: list[str]) -> list[str]:
    """Return which files are not as HEAD has them: nobody has to keep off the others."""
    found: list[str] = []
    for start in range(0, len(paths), CHECKED_AT_ONCE):
        some = paths[start : start + CHECKED_AT_ONCE]
        dirty = differing_from_head(worktree, some)
        found += some if dirty is None else dirty
    return found


def _lock(place: Place, names: dict[str, str]) -> tuple[list[str], dict[str, list[LockShown]]]:
    """Lock files after the fact; return those, and who has just taken others."""
    locked: list[str] = []
    taken: dict[str, list[LockShown]] = {}
    left = list(names)
    while left:
        some, left = left[:LOCKED_AT_ONCE], left[LOCKED_AT_ONCE:]
        for _ in range(len(some) + 1):
            reply = _try(place, [names[path] for path in some])
            if reply.ok:
                locked += some
                break
            if reply.outcome is Outcome.CHANGED:  # refused once, because the file changed: it did, by us
                continue
            if reply.holder is None:
                break
            lost = _meeting(place, [names[path] for path in some], reply.holder)
            taken.update({text: [reply.holder] for text in lost})
            some = [path for path in some if names[path] not in lost]
            if not lost or not some:
                break
    return locked, taken


def _try(place: Place, texts: list[str]) -> LockReply:
    command = BeginCall(
        place.connection.caller,
        place.connection.place.repository_id,
        tuple(texts),
        call=place.call,
        lease_ms=LEASE_MS,
        worktree=place.git.folder,
        reason=REASON,
    )
    reply: LockReply = place.connection.call(command)
    return reply


def _meeting(place: Place, texts: list[str], holder: LockShown) -> list[str]:
    repository = place.connection.place.repository_id
    held = parse_resource(holder.resource, repository)
    return [text for text in texts if any(each.meets(parse_resource(text, repository)[0]) for each in held)]
