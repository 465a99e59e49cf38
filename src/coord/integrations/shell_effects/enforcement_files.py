"""The files that enforcement rests on, before and after a call: settings of hooks, hooks of git, coord.toml.

A command can change them by means that no parser sees. Then they are put back, unless `coord init` and the
like changed them, which also write their journal. A program may change other parts of the same files: a tool
stores permissions in its settings, and git stores branches in its configuration.
"""

import os
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from coord.core.errors import CoordError
from coord.core.messages.commands import SendMessage
from coord.host.runtime.environment import environment
from coord.integrations.git.run import Git
from coord.integrations.shell_effects.call_log import CallFolder, read_file, write_file
from coord.integrations.shell_effects.saved_content import (
    BYTES_MAX,
    SavedFile,
    keep_private,
    saved_bytes,
)
from coord.integrations.shell_effects.worktree_state import file_stat, read_content
from coord.sdk.client.connection import Connection
from coord.stores.local.folders import make_readable_folder

JOURNAL = "setup.json"
"""What `coord init` has written; every command that changes hooks writes it, too."""
INCIDENTS = "incidents"
INCIDENTS_MAX = 50
HOOK_FIELDS = ("hooks", "disableAllHooks", "allowManagedHooksOnly", "hooksConfig")
"""The fields of settings in JSON that decide which hooks run."""
GIT_KEYS = (
    *("core.hookspath", "include.", "includeif.", "hook.", "extensions.", "core.worktree", "core.bare"),
    *("core.repositoryformatversion", "core.sshcommand", "core.gitproxy"),
)
"""Keys of git's configuration that decide which hooks run, whether git works here, and whom gates ask."""
SAMPLE = ".sample"

State = dict[bytes, SavedFile | None]


class Incident(msgspec.Struct, frozen=True):
    """A change that was put back, or could not be."""

    at_s: float
    session: str
    path: str
    restored: bool


def enforcement_files(worktree: str, commondir: str, settings: Iterable[str]) -> list[str]:
    """Return the files, as absolute paths; `settings`: those of tools, absolute or below the worktree."""
    hooks = f"{commondir}/hooks"
    found = [os.path.join(worktree, name) for name in (*settings, "coord.toml")]
    found += [f"{commondir}/config", f"{commondir}/config.worktree"]
    with suppress(OSError):
        found += [f"{hooks}/{name}" for name in os.listdir(hooks) if not name.endswith(SAMPLE)]
    return [*found, *(os.path.realpath(path) for path in found if os.path.islink(path))]


def record_files(folder: CallFolder, paths: Sequence[str]) -> State:
    """Return the files as they are; contents that are not known yet are kept in private copies."""
    known = read_file(f"{folder.path}/enforcement", dict[bytes, SavedFile]) or {}
    found: State = {}
    news = False
    for path in (*paths, f"{folder.coord_folder}/{JOURNAL}"):
        name, now = os.fsencode(path), file_stat("", path)
        saved = known.get(name)
        if now is not None and (saved is None or not saved.file_stat.same_stat(now)):
            content = read_content("", path, BYTES_MAX)
            saved = None if content is None else SavedFile(now, keep_private(folder, content))
            news = news or saved is not None
        found[name] = None if now is None else saved
    if news:
        kept = {name: each for name, each in {**known, **found}.items() if each is not None}
        write_file(f"{folder.path}/enforcement", kept)
    return found


class EnforcementCheck:
    """Puts back what one call changed in these files."""

    def __init__(
        self, connection: Connection, git: Git, folder: CallFolder, session: str, text: str, cwd: str
    ) -> None:
        self._connection = connection
        self._git = git
        self._folder = folder
        self._session = session
        self._text = text
        self._cwd = cwd

    def check(self, before: State) -> list[str]:
        """Put changed files back, notify everybody, and return the notes for the agent."""
        changed = [path for path in map(os.fsdecode, before) if not self._is_same(path, before)]
        journal = f"{self._folder.coord_folder}/{JOURNAL}"
        if not changed or journal in changed:
            return []
        return [note for path in changed if (note := self._check_file(path, before[os.fsencode(path)]))]

    def _is_same(self, path: str, before: State) -> bool:
        was, now = before[os.fsencode(path)], file_stat("", path)
        if was is None or now is None:
            return was is None and now is None
        return was.file_stat.same_stat(now)

    def _check_file(self, path: str, was: SavedFile | None) -> str:
        now_stat = file_stat("", path)
        former = None if was is None else saved_bytes(self._git, self._folder, was)
        now = read_content("", path, BYTES_MAX)
        if (was is not None and former is None) or (now is None and now_stat is not None):
            return ""
        same_mode = was is None or now_stat is None or was.file_stat.mode == now_stat.mode
        if not _changes_enforcement(path, former, now, same_mode=same_mode):
            return ""
        if _needs_proof(path) and (self._is_from_git(path) or not self._is_proven(path, former, now)):
            return ""
        kept = f" What was written: `cat {self._folder.path}/{self._keep(now)}`." if now is not None else ""
        done = self._put_back(path, 0 if was is None else was.file_stat.mode, former)
        self._report(path, restored=done)
        did = (
            "coord put it back, and everybody here was notified." if done else "coord could not put it back."
        )
        return (
            f"coord: this call changed {path}, which decides whether locks are enforced; agents may not "
            f"change it. {did}{kept} Next: ask a person to change it."
        )

    def _keep(self, content: bytes) -> str:
        return keep_private(self._folder, content)

    def _is_from_git(self, path: str) -> bool:
        """Whether git has checked the file out."""
        words = ("--literal-pathspecs", "diff", "--quiet", "--no-ext-diff", "HEAD", "--", path)
        tracked = self._git.run("--literal-pathspecs", "ls-files", "--error-unmatch", "--", path)
        return tracked.code == 0 and self._git.run(*words).code == 0

    def _is_proven(self, path: str, former: bytes | None, now: bytes | None) -> bool:
        from coord.integrations.shell_effects.evidence import wrote_it  # slow to import

        folder, name = os.path.split(path)
        return wrote_it(self._text, self._cwd or folder, folder, name, former, now)

    def _put_back(self, path: str, mode: int, content: bytes | None) -> bool:
        try:
            if content is None:
                os.unlink(path)
                return True
            make_readable_folder(os.path.dirname(path))
            new = f"{path}.coord-{os.urandom(4).hex()}"
            if stat.S_ISLNK(mode):
                os.symlink(content, os.fsencode(new))
                os.replace(new, path)
                return True
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with open(os.open(new, flags, 0o600), "wb") as file:
                file.write(content)
                os.fchmod(file.fileno(), mode & 0o777)
            os.replace(new, path)
        except OSError:
            return False
        return True

    def _report(self, path: str, *, restored: bool) -> None:
        """Write an incident down for `coord doctor`, and send a message to everybody."""
        incident = Incident(time.time(), self._session, path, restored)
        log = incidents_of(self._folder.coord_folder)
        write_file(f"{self._folder.coord_folder}/{INCIDENTS}", [*log, incident][-INCIDENTS_MAX:])
        did = "coord put it back" if restored else "coord could not put it back"
        message = SendMessage(
            self._connection.caller,
            kind="warn",
            subject=f"session {self._session} changed {path[-120:]}",
            body=f"This file decides whether locks are enforced, and agents may not change it. {did}.",
            blob={"path": path, "worktree": self._git.folder, "restored": restored},
        )
        with suppress(CoordError):
            self._connection.call(message)


def incidents_of(coord_folder: str) -> list[Incident]:
    """Return the changes of agents to these files, the newest last."""
    return read_file(f"{coord_folder}/{INCIDENTS}", list[Incident]) or []


def _needs_proof(path: str) -> bool:
    """Whether people edit a file by hand while agents work, so that it takes proof to put it back."""
    return path.endswith(("/coord.toml", "/.codex/config.toml"))


def _changes_enforcement(path: str, before: bytes | None, now: bytes | None, *, same_mode: bool) -> bool:
    """Whether a change of a file may change which hooks run."""
    if before == now:
        return not same_mode and os.path.basename(os.path.dirname(path)) == "hooks"
    if path.endswith(".json"):
        return _hook_fields(before) != _hook_fields(now)
    if os.path.basename(path) in ("config", "config.worktree") or path.endswith("gitconfig"):
        return _git_settings(before) != _git_settings(now)
    return True


def _hook_fields(content: bytes | None) -> Mapping[str, Any] | str:
    """Return the part of settings that decides which hooks run."""
    if not content or not content.strip():
        return {}
    import json

    try:
        found = json.loads(content)
    except ValueError:
        return "unreadable"
    return {name: found.get(name) for name in HOOK_FIELDS if name in found} if isinstance(found, dict) else {}


def _git_settings(content: bytes | None) -> list[str]:
    """Return the settings in a git configuration that enforcement rests on; git itself parses it."""
    git = Git("/", environ={**environment(), "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"})
    listed = git.run("config", "--file", "-", "--list", "-z", stdin=content or b"")
    return ["unreadable"] if listed.code else [each for each in listed.names if each.startswith(GIT_KEYS)]
