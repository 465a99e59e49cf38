"""Files that others hold, as they are before a command: so that they can always be restored.

The content of a clean file is in the index, and the last content of a holder with hooks is saved. Only what
others hold and neither of them knows is saved here.
"""

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from coord.core.errors import CoordError, Invalid
from coord.core.locks.commands import CheckLocks, CheckReply, LockInfo
from coord.core.locks.paths import literal_path
from coord.core.locks.resources import parse_resource
from coord.core.messages.commands import SendMessage
from coord.integrations.git.run import Git
from coord.integrations.shell_effects.call_log import CallFolder, Calls
from coord.integrations.shell_effects.saved_content import (
    SavedFile,
    is_blob,
    save_content,
    saved_by,
    show_saved,
)
from coord.integrations.shell_effects.worktree_state import FileStat
from coord.sdk.client.connection import Connection

CHECKED_AT_ONCE = 256
FILES_MAX = 256
"""How many changed files are looked up before a command."""
OBSERVED = "coord.observed"
"""The name under which contents are saved that no hook of their holder has saved."""
UNPRINTABLE = "_"


def resource_of(path: str) -> str:
    """Return the lock of exactly one file; raise Invalid if its name cannot be locked."""
    text = f"file:{literal_path(path).spelled}"
    parse_resource(text, "any")
    return text


def resource_like(path: str) -> str:
    """Return a lock that the same folders and patterns cover, for a name that cannot be locked."""
    plain = "".join(char if char.isprintable() else UNPRINTABLE for char in path)
    return resource_of(plain.encode("utf-8", "replace").decode())


def holders_of(
    connection: Connection, texts: Sequence[str], folders: Iterable[str] = ()
) -> dict[str, list[LockInfo]]:
    """Return the locks of others that block writing these files; `folders`: texts that are no files."""
    caller, repository = connection.caller, connection.location.repository_id
    wide = set(folders)
    found: dict[str, list[LockInfo]] = {}
    for start in range(0, len(texts), CHECKED_AT_ONCE):
        some = texts[start : start + CHECKED_AT_ONCE]
        exact = tuple(text for text in some if text not in wide)
        checked: CheckReply = connection.call(
            CheckLocks(caller, repository, tuple(some), "write", exact=exact)
        )
        for lock in checked.holders:
            for text in overlapping(some, lock, repository, wide):
                found.setdefault(text, []).append(lock)
    return found


def overlapping(texts: Iterable[str], lock: LockInfo, repository: str, folders: set[str]) -> list[str]:
    """Return the resources that a lock overlaps."""
    (held,) = parse_resource(lock.resource, repository, lock.exact)
    return [
        text
        for text in texts
        if held.overlaps(parse_resource(text, repository, exact=text not in folders)[0])
    ]


def record_held(
    connection: Connection, git: Git, folder: CallFolder, files: Mapping[bytes, FileStat | None], calls: Calls
) -> dict[bytes, SavedFile]:
    """Return the content of changed files that others hold, and save what is not saved yet."""
    names: dict[str, str] = {}
    for name in list(files)[:FILES_MAX]:
        if files[name] is not None:
            with suppress(Invalid):
                names[os.fsdecode(name)] = resource_of(os.fsdecode(name))
    holders = holders_of(connection, list(names.values())) if names else {}
    found: dict[bytes, SavedFile] = {}
    unsaved: dict[str, list[LockInfo]] = {}
    for path, text in names.items():
        if text in holders:
            known = _known(folder, path, files[os.fsencode(path)], holders[text])
            if known is not None:
                found[os.fsencode(path)] = known
            else:
                unsaved[path] = holders[text]
    if unsaved:
        for path, each in save_content(git, folder, OBSERVED, list(unsaved)).items():
            found[os.fsencode(path)] = each
            _report_unseen_change(connection, git, folder, calls, path, each, unsaved[path])
    return found


def _known(
    folder: CallFolder, path: str, now: FileStat | None, holders: Sequence[LockInfo]
) -> SavedFile | None:
    """Return the saved content of a file that has not changed since."""
    for session in (*dict.fromkeys(lock.owner for lock in holders), OBSERVED):
        saved = saved_by(folder, session).of(path)
        if saved is not None and saved.file_stat.same_stat(now):
            return saved
    return None


def _report_unseen_change(
    connection: Connection,
    git: Git,
    folder: CallFolder,
    calls: Calls,
    path: str,
    now: SavedFile,
    holders: Sequence[LockInfo],
) -> None:
    """Warn the holder of a file that changed after its last call: a background process may have written."""
    for lock in holders:
        left = saved_by(folder, lock.owner).of(path)
        changed_s = now.file_stat.ctime_ns / 1e9
        if left is None or is_blob(git, path, left.blob) or not calls.is_idle_since(lock.owner, changed_s):
            continue
        at = time.strftime("%H:%M:%S UTC", time.gmtime(changed_s))
        message = SendMessage(
            connection.caller,
            to=lock.owner,
            kind="warn",
            subject=f"{path[:120]} was changed, author unknown",
            body=f"It changed at {at}, after your last call ended. A background process or an editor may "
            f"have written it. Nothing was restored. Your last content: {show_saved(folder, left)}",
            blob={"path": path, "worktree": git.folder, "restored": False},
        )
        with suppress(CoordError):  # the holder is gone, or its inbox is full
            connection.call(message)
