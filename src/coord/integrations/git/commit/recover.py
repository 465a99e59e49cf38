"""Finish or undo a `coord commit` that was killed.

If git had made the commit, it is recorded in the log now. Otherwise nothing of it stays: no lock file, and no
new file in the index.
"""

from contextlib import suppress

from coord.core.errors import CoordError
from coord.core.git_log import RecordCommit
from coord.core.locks.commands import ListLocks
from coord.host.repository import git_dir_of
from coord.integrations.git.changes import CoveredPaths, pathspecs, write_locks
from coord.integrations.git.gate.trailers import read_message
from coord.integrations.git.interrupted_move import recover_moves
from coord.integrations.git.run import Git, as_text, nul_terminated
from coord.integrations.git.unfinished import (
    Unfinished,
    clear_locks,
    forget,
    lock_files,
    names_of,
    unfinished,
)
from coord.sdk.client.client import Client
from coord.sdk.reports import activity

FILES_MAX = 100
EVENTS_MAX = 100
SUBJECT_CHARS_MAX = 200


def recover_commits(client: Client, git: Git) -> list[str]:
    """Finish or undo the killed commits of a worktree; return what was done, one line each."""
    git_dir = git_dir_of(git.folder)
    done = recover_moves(git, git_dir)
    for left in unfinished(git_dir):
        if left.note.kind != "commit":
            continue
        cleared = clear_locks(left, git.folder, lock_files(git, git_dir, left))
        made = _commit_made(git, left)
        if made:
            if cleared:  # git had not got to write the index
                git.retry_on_race(
                    *("reset", "--quiet", "--pathspec-from-file=-", "--pathspec-file-nul"),
                    stdin=pathspecs(names_of(left.note.files)),
                )
            _record(client, git, left, made)
            done.append(f"a coord commit was killed after it had made {made[:12]}, which is in the log now")
        else:
            _remove_intended(git, left)
            done.append("a coord commit was killed before it had made a commit, and was undone")
        forget(left)
    return done


def _commit_made(git: Git, left: Unfinished) -> str:
    """Return the commit that the killed command made: the next one after its HEAD, by its session."""
    note = left.note
    span = f"{note.head}..{note.ref or 'HEAD'}" if note.head else note.ref or "HEAD"
    listed = git.run("rev-list", "--first-parent", "--reverse", "--parents", span, "--")
    first = listed.text.splitlines()[0].split() if not listed.code and listed.text else []
    if not first or first[1:] != ([note.head] if note.head else []):
        return ""
    shown = git.must("log", "-1", "-z", "--no-renames", "--name-only", "--format=%B%x00", first[0], "--")
    message, _, names = shown.text.partition("\0")
    files = {name.strip("\n") for name in names.split("\0") if name.strip("\n")}
    ours = read_message(message).session == note.session
    return first[0] if ours and files and files <= set(names_of(note.files)) else ""


def _record(client: Client, git: Git, left: Unfinished, commit: str) -> None:
    """Record a commit, if its locks are still held and the killed command has not recorded it."""
    known = activity.newest_events(client, activity.event_filter(client, op="git.committed"), EVENTS_MAX)
    if any(event.details.get("commit") == commit for event in known.events):
        return
    files = names_of(left.note.files)
    own = write_locks(client.call(ListLocks(client.caller, own=True)))
    covered = CoveredPaths(lock.resource for lock in own)
    needed = {resource for name in files if (resource := covered.covering(name)) is not None}
    locks = [lock for lock in own if lock.resource in needed]
    subject = git.must("log", "-1", "--format=%s", commit, "--").text
    command = RecordCommit(
        client.caller,
        client.location.repository_id,
        tuple(lock.resource for lock in locks),
        fences=tuple(lock.fence for lock in locks),
        commit=commit,
        branch=as_text(left.note.ref.removeprefix("refs/heads/")),
        subject=as_text(subject)[:SUBJECT_CHARS_MAX],
        files=tuple(map(as_text, files[:FILES_MAX])),
        file_count=len(files),
    )
    with suppress(CoordError):  # the commit exists, whether or not the log has it
        client.call(command)


def _remove_intended(git: Git, left: Unfinished) -> None:
    """Remove new files from the index that are only announced there, as `git add --intent-to-add` does."""
    new = names_of(left.note.new)
    if not new:
        return
    entries = git.must("ls-files", "--stage", "-z", "--", *new, GIT_LITERAL_PATHSPECS="1").names
    empty = git.must("hash-object", "-t", "blob", "--stdin").text
    announced = [entry.partition("\t")[2] for entry in entries if entry.split(" ")[1] == empty]
    staged = git.must("diff", "--cached", "--name-only", "-z", "--no-renames").names
    gone = [name for name in announced if name not in staged]
    if gone:
        git.retry_on_race("update-index", "--force-remove", "-z", "--stdin", stdin=nul_terminated(gone))
