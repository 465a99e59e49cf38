"""`coord commit`: commit exactly the files that a session holds, and nothing that others have staged.

`git commit --only` makes the commit, so every hook of the repository runs. The commit is then compared with
the expected files, and only a commit that matches them is recorded in the log.
"""

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from coord.core.errors import CoordError, Invalid, LockLost, NotOwner, Refused
from coord.core.git_log import RecordCommit
from coord.core.locks.commands import CheckLocks, ListLocks, LockInfo, RenewLocks
from coord.host.repository import git_dir_of
from coord.integrations.git.changes import Change, CoveredPaths, changes, literal_name, pathspecs, write_locks
from coord.integrations.git.commit.recover import recover_commits
from coord.integrations.git.gate.sign import sign_message
from coord.integrations.git.gate.trailers import read_message
from coord.integrations.git.run import Git, GitFailed, OnWait, as_text, nul_terminated
from coord.integrations.git.unfinished import Note, Running, own_process, running
from coord.integrations.git.writable import require_writable_git
from coord.sdk.client.client import Client

RENEW_BELOW_S = 60.0
"""A lock with less time left is renewed first, so that it does not expire during the commit."""
LOCKS_MAX = 256
MESSAGE_BYTES_MAX = 64 * 1024
FILES_MAX = 100
NOT_COMMITTED = "Not committed:"
"""How the warning about held files begins that are not in the commit because they did not change."""
SUBJECT_CHARS_MAX = 200
_COMMIT_LINE = re.compile(
    r"\[(?:detached HEAD|(?P<branch>[^\n]*?))(?: \(root-commit\))? (?P<commit>[0-9a-f]{7,64})\] "
)
"""The line that git prints for a new commit: `[main 1a2b3c4] subject`."""


class CommitReport(msgspec.Struct, frozen=True):
    """A new commit, and how it differs from the expected one."""

    commit: str
    branch: str
    subject: str
    files: list[str]
    missing: list[str] = []
    unexpected: list[str] = []
    left_out: list[str] = []
    locks: list[str] = []
    recorded: bool = True
    warnings: list[str] = []


class _Selection(msgspec.Struct, frozen=True):
    """The files and locks of a commit, and the files that stay out of it."""

    files: list[Change]
    locks: list[LockInfo]
    unchanged: list[str]
    left_out: list[str]


def commit(
    client: Client,
    message: str,
    files: Sequence[str] = (),
    *,
    fence: int | None = None,
    hooks_timeout_s: float | None = None,
    notify: Callable[[str], None] = lambda _: None,
) -> CommitReport:
    """Commit the held files that differ from HEAD, new and deleted ones too; or only those named.

    `fence`: the newest fence that the caller knows; a lock that was granted later stops the commit. Hooks may
    run without limit, as in git, unless `hooks_timeout_s` is given; `notify` gets a line while they run.
    """
    if not message.strip() or len(os.fsencode(message)) > MESSAGE_BYTES_MAX or "\0" in message:
        hint = f"use coord commit -m 'what and why', at most {MESSAGE_BYTES_MAX} bytes"
        raise Invalid("the commit message is empty or too long", hint=hint)
    repository = client.location.repository
    if repository is None or repository.root is None:
        raise Invalid("this folder is not a git worktree", hint="run coord commit inside one")
    require_writable_git(repository, "coord commit")
    git = Git(repository.root)
    recovered = recover_commits(client, git)
    own = write_locks(client.call(ListLocks(client.caller, own=True)))
    try:
        selection = _select(git, client, own, client.resolve_paths(files))
    except Refused as error:
        raise _after_recovery(error, recovered) from error
    _verify_locks(client, selection.locks, fence)

    def on_wait(passed_s: float) -> None:
        """Report that hooks are running, and renew the locks."""
        notify(f"the hooks of the commit have been running for {passed_s:.0f} s")
        with suppress(CoordError):  # the locks are checked again after the commit
            _renew(client, selection.locks)

    text = sign_message(git, client, client.caller, message, [change.path for change in selection.files])
    with running(git_dir_of(git.folder), _note(git, text, selection.files)) as note:
        branch, made = _run_commit(git, client, text, selection.files, (hooks_timeout_s, on_wait), note)
        report = _verify_commit(git, client, branch, made, selection, own)
    return msgspec.structs.replace(report, warnings=[*recovered, *report.warnings])


def _select(git: Git, client: Client, own: list[LockInfo], named: Sequence[str]) -> _Selection:
    """Return the held files that differ from HEAD; named files have to be held."""
    held, wanted = CoveredPaths(lock.resource for lock in own), CoveredPaths(named)
    chosen: list[Change] = []
    needed: set[str] = set()
    left_out: list[str] = []
    for change in changes(git):
        resource = held.covering(change.path)
        if named and change.path not in wanted:
            continue
        if resource is not None:
            chosen.append(change)
            needed.add(resource)
        elif named:
            raise _lost(client, [change.path]) or NotOwner(
                f"{as_text(change.path)} is not locked by this session", hint="run coord lock first"
            )
        else:
            left_out.append(change.path)
    if not chosen:
        number = len(left_out)
        others = f" ({number} other {'file does' if number == 1 else 'files do'})" if left_out else ""
        raise _lost(client, left_out) or Refused(
            f"nothing to commit: no file that this session holds differs from HEAD{others}",
            hint="run coord lock for the files that you changed; coord status shows your locks",
        )
    if len(needed) > LOCKS_MAX:
        raise Invalid(
            f"a commit cannot use {len(needed)} locks", hint=f"name fewer files; at most {LOCKS_MAX} locks"
        )
    expected = named or [lock.resource for lock in own]
    locks = [lock for lock in own if lock.resource in needed]
    return _Selection(chosen, locks, _unchanged(git, expected, chosen), left_out)


def _lost(client: Client, paths: Sequence[str]) -> LockLost | None:
    """Return why the session may not commit one of these files any more: its claim lost the lock."""
    from coord.core.lifecycle.commands import GetSessionMemory

    memory = client.call(GetSessionMemory(caller=client.caller, tenant=client.tenant))
    resources = {f"file:{as_text(path)}" for path in paths}
    for claim in memory.lost:
        if claim.note.partition(" was lost")[0] in resources:
            return LockLost(
                f"task {claim.task_id} (generation {claim.generation}) ended: {claim.note}",
                hint=f"coord task claim {claim.task_id} gets task and files again",
            )
    return None


def _unchanged(git: Git, expected: Sequence[str], chosen: list[Change]) -> list[str]:
    """Return the expected files that do not differ from HEAD."""
    paths = {change.path for change in chosen}
    names = [name for resource in expected if (name := literal_name(resource)) is not None]
    return [name for name in names if name not in paths and os.path.isfile(f"{git.folder}/{name}")]


def _verify_locks(client: Client, locks: list[LockInfo], fence: int | None) -> None:
    """Raise unless each lock is held under its fence; renew locks that expire soon."""
    repository = client.location.repository_id
    for lock in locks:
        if fence is not None and lock.fence > fence:
            raise LockLost(
                f"{lock.resource} was granted again (fence {lock.fence}) after fence {fence}",
                hint=f"coord log locks {lock.resource} shows who held it in between; read the file again",
            )
    _renew(client, [lock for lock in locks if lock.expires_in_s < RENEW_BELOW_S])
    for number in sorted({lock.fence for lock in locks}):
        texts = tuple(lock.resource for lock in locks if lock.fence == number)
        if not client.call(CheckLocks(client.caller, repository, texts, "", number)).free:
            raise LockLost(
                f"{', '.join(texts)} is not held under fence {number}", hint="run coord lock again"
            )


def _renew(client: Client, locks: list[LockInfo]) -> None:
    for lock in locks:
        if not lock.preempted_by:
            command = RenewLocks(client.caller, client.location.repository_id, (lock.resource,), lock.fence)
            client.call(command)


def _run_commit(
    git: Git,
    client: Client,
    text: str,
    files: list[Change],
    patience: tuple[float | None, OnWait],
    note: Running,
) -> tuple[str, str]:
    """Commit exactly these files; return the branch ("": none) and the short id of the commit."""
    paths, new = [change.path for change in files], [change.path for change in files if change.new]
    who = {"COORD_SESSION_ID": client.caller.session, "COORD_AGENT": client.caller.agent}
    with open(note.message, "wb") as file:  # with many trailers it is too long for an argument
        file.write(os.fsencode(text))
    if new:  # git commits only tracked files; intent-to-add changes nothing for others
        git.retry_on_race(
            *("add", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul"),
            stdin=pathspecs(new),
            starter=note.starter(),
        )
    try:
        done = git.retry_on_race(
            *("commit", "--only", f"--file={note.message}", "--pathspec-from-file=-", "--pathspec-file-nul"),
            stdin=pathspecs(paths),
            timeout_s=patience[0],
            on_wait=patience[1],
            starter=note.starter(),
            **{name: value for name, value in who.items() if value},
        )
    except CoordError:  # otherwise the next `git commit --all` would contain the new files
        git.run("update-index", "--force-remove", "-z", "--stdin", stdin=nul_terminated(new))
        raise
    found = _COMMIT_LINE.match(done.text)
    return (found["branch"] or "", found["commit"]) if found else ("", "HEAD")


def _note(git: Git, text: str, files: list[Change]) -> Note:
    """Return what the next command has to know if this one is killed."""
    return Note(
        "commit",
        own_process(),
        head=git.run("rev-parse", "--verify", "--quiet", "HEAD").text,
        ref=git.run("symbolic-ref", "--quiet", "HEAD").text,
        files=[change.path for change in files],
        new=[change.path for change in files if change.new],
        session=read_message(text).session,
    )


def _after_recovery(error: Refused, recovered: list[str]) -> Refused:
    """Return why there is nothing to commit, if a killed commit has done it."""
    if recovered:
        error.message = f"{'; '.join(recovered)}; {error.message}"
    return error


def _verify_commit(
    git: Git, client: Client, branch: str, made: str, selection: _Selection, own: list[LockInfo]
) -> CommitReport:
    """Compare a commit with the expected files, and record it in the log."""
    expected = [change.path for change in selection.files]
    warnings: list[str] = []
    try:
        commit_id, subject, found = _look(git, made)
        recorded = True
    except GitFailed as error:
        warnings.append(f"the commit could not be checked and is not in the log: {error.message}")
        commit_id, subject, found, recorded = made, "", expected, False
    held = CoveredPaths(lock.resource for lock in own)
    missing = sorted({*expected, *selection.unchanged} - set(found))
    unexpected = [path for path in found if path not in expected and path not in held]
    absent = [path for path in missing if path in expected]
    warnings += _report("expected file(s) not found in commit", absent)
    unchanged = [path for path in missing if path not in expected]
    warnings += [f"{NOT_COMMITTED} {_few(unchanged)} (held, unchanged here)"] if unchanged else []
    warnings += _report("file(s) in the commit that this session does not hold", unexpected)
    warnings += _report("changed file(s) left out, which this session does not hold", selection.left_out)
    if recorded:
        recorded = not unexpected and _record(
            client, commit_id, branch, subject, found, selection.locks, warnings
        )
    return CommitReport(
        commit=commit_id,
        branch=as_text(branch),
        subject=as_text(subject),
        files=list(map(as_text, found)),
        missing=list(map(as_text, missing)),
        unexpected=list(map(as_text, unexpected)),
        left_out=list(map(as_text, selection.left_out)),
        locks=[lock.resource for lock in selection.locks],
        recorded=recorded,
        warnings=warnings,
    )


def _look(git: Git, commit: str) -> tuple[str, str, list[str]]:
    """Return the full id of a commit, its subject and its files."""
    shown = ("log", "-1", "-z", "--no-renames", "--name-only", "--format=%H%x00%s%x00", commit, "--")
    commit_id, subject, _, *files = git.must(*shown).text.split("\0")
    return (
        commit_id,
        subject,
        [name.removeprefix("\n") if not number else name for number, name in enumerate(files) if name],
    )


def _record(
    client: Client,
    commit_id: str,
    branch: str,
    subject: str,
    files: list[str],
    locks: list[LockInfo],
    warnings: list[str],
) -> bool:
    command = RecordCommit(
        client.caller,
        client.location.repository_id,
        tuple(lock.resource for lock in locks),
        fences=tuple(lock.fence for lock in locks),
        commit=commit_id,
        branch=as_text(branch),
        subject=as_text(subject)[:SUBJECT_CHARS_MAX],
        files=tuple(map(as_text, files[:FILES_MAX])),
        file_count=len(files),
    )
    try:
        client.call(command)
    except CoordError as error:  # the commit exists, so an error would be wrong
        warnings.append(f"the commit is not in the log: {error.message}; git show {commit_id[:12]}")
        return False
    return True


def _report(what: str, paths: list[str]) -> list[str]:
    return [f"{len(paths)} {what}: {_few(paths)}"] if paths else []


def _few(paths: list[str]) -> str:
    return ", ".join(map(as_text, paths[:10])) + (", …" if len(paths) > 10 else "")
