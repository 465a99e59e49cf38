"""Create and enter a worktree and a branch for each agent or task.

A worktree of coord is locked with `git worktree lock`, with its session as the reason, so that
`git worktree prune` does not remove it. A file in its git directory marks it as complete; until then nobody
works there, and the next `add` continues after a crash.
"""

import fcntl
import os
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import msgspec

from coord.core.errors import Busy, CoordError, Denied, Invalid, NotFound, Refused
from coord.core.keys import digest
from coord.core.sessions.schema import Liveness
from coord.host.repository import find_repository
from coord.integrations.git.changes import changes
from coord.integrations.git.index_lock import remove_stale
from coord.integrations.git.run import Git, GitFailed, as_text
from coord.integrations.git.salvage.salvage import ref_name
from coord.integrations.git.salvage.swap import salvage_paths
from coord.integrations.git.unfinished import Note, own_process, running
from coord.integrations.git.worktree.half_done import (
    ADD,
    SETUP,
    admin_of,
    clear_setup_locks,
    owner_of_removal,
    recover_worktrees,
    repository_dir,
    restore_files,
)
from coord.integrations.git.worktree.templates import restore_templates
from coord.integrations.git.writable import require_writable_git
from coord.sdk.client.client import Client
from coord.stores.local.folders import make_private_folder

PATH = ".worktrees/{name}"
BRANCH = "agent/{name}"
SETTINGS = {"path": "coord.worktreePath", "branch": "coord.worktreeBranch", "setup": "coord.worktreeSetup"}
"""The `git config` keys of the templates and of the set-up command."""
MARK = "coord: "
READY = "coord-ready"
SETUP_S = 1800.0
GONE = frozenset((Liveness.DEAD, Liveness.ENDED))
_OPERATIONS = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply")


class Worktree(msgspec.Struct, frozen=True):
    """A worktree as git lists it; `owner` is its session, or "" if coord did not make it."""

    path: str
    branch: str
    head: str
    owner: str = ""
    main: bool = False

    @property
    def present(self) -> bool:
        """Whether its folder exists."""
        return os.path.exists(f"{self.path}/.git")


class WorktreeEntry(msgspec.Struct, frozen=True):
    """A worktree that is ready for work."""

    path: str
    branch: str
    new: bool
    shared: bool = False
    warnings: list[str] = []


def worktrees(git: Git) -> list[Worktree]:
    """Return all worktrees of a repository, the main one first."""
    found, main_dir = list[Worktree](), ""
    for block in git.must("worktree", "list", "--porcelain", "-z").out.split(b"\0\0"):
        pairs = [os.fsdecode(line).partition(" ") for line in block.split(b"\0") if line]
        fields = {name: value for name, _, value in pairs}
        if "worktree" in fields and "bare" not in fields:
            reason = fields.get("locked", "")
            branch = fields.get("branch", "").removeprefix("refs/heads/")
            owner = reason.removeprefix(MARK) if reason.startswith(MARK) else ""
            if found and not owner:  # a removal unlocks it first
                main_dir = main_dir or repository_dir(git)
                owner = owner_of_removal(admin_of(main_dir, fields["worktree"]))
            found.append(Worktree(fields["worktree"], branch, fields.get("HEAD", ""), owner, not found))
    return found


def add(
    client: Client,
    name: str = "",
    *,
    branch: str = "",
    path: str = "",
    start: str = "HEAD",
    setup: str = "",
    or_shared: bool = False,
) -> WorktreeEntry:
    """Create or take over the worktree of this name for this session.

    With `or_shared` the shared tree is returned, with a warning, if no worktree can be made.
    """
    git = git_of(client)
    owner = client.heartbeat().session_id
    name = ref_name(name or client.caller.agent or owner)
    try:
        commit_of(git, start)
        require_writable_git(client.location.repository, "coord worktree add")
        target, branch = _target(git, path, name), _branch(git, branch, name)
        with exclusive(client, target):
            recover_worktrees(git)
            return _add(client, git, owner, target, branch, start, setup)
    except Denied:
        raise
    except CoordError as error:
        if not or_shared:
            raise
        warning = f"NOT isolated, this is the shared tree: {error.message}"
        return WorktreeEntry(
            git.folder, git.run("symbolic-ref", "-q", "--short", "HEAD").text, False, True, [warning]
        )


def enter(client: Client, name: str = "", *, force: bool = False) -> WorktreeEntry:
    """Enter an existing worktree by its folder or branch; without a name, the one of this session.

    `force`: also take it from a session that is silent but not proven dead.
    """
    git = git_of(client)
    owner = client.heartbeat().session_id
    made = [each for each in worktrees(git) if each.owner]
    mine = [each for each in made if each.owner == owner]
    found = (
        [each for each in made if name in (os.path.basename(each.path), each.branch, each.path)]
        if name
        else mine
    )
    if len(found) != 1:
        known = ", ".join(os.path.basename(each.path) for each in made) or "none"
        raise NotFound(f"{len(found)} worktrees match {name or owner}", hint=f"choose from: {known}")
    require_writable_git(client.location.repository, "coord worktree enter")
    with exclusive(client, found[0].path):
        return _take_over(client, git, owner, found[0], "", force=force)


def _add(
    client: Client, git: Git, owner: str, target: str, branch: str, start: str, setup: str
) -> WorktreeEntry:
    there = next((each for each in worktrees(git) if each.path == target), None)
    if there is None:
        if os.path.lexists(target) and (not os.path.isdir(target) or os.listdir(target)):
            raise Refused(f"{target} exists and is not a worktree", hint="choose another with --path")
        _check_folder(os.path.dirname(target))
        _ignore_folder(git, target)
        known = not git.run("rev-parse", "--quiet", "--verify", f"refs/heads/{branch}").code
        made = [target, branch] if known else ["-b", branch, target, start]
        words = ("worktree", "add", "--quiet", "--no-checkout", "--lock", "--reason", MARK + owner, *made)
        note = Note(ADD, own_process(), ref=branch, target=target)
        with running(repository_dir(git), note) as noted:
            done = git.run(*words, starter=noted.starter())
        if done.code:
            raise GitFailed(words, done.code, done.stderr)
        there = Worktree(target, branch, "", owner)
        entered = _take_over(client, git, owner, there, setup)
        return msgspec.structs.replace(entered, new=True)
    if there.branch != branch:
        raise Refused(
            f"{target} is on {there.branch or 'no branch'}, not {branch}", hint="use coord worktree enter"
        )
    return _take_over(client, git, owner, there, setup)


def _take_over(
    client: Client, git: Git, owner: str, there: Worktree, setup: str, *, force: bool = False
) -> WorktreeEntry:
    """Give a worktree to a session unless another live session has it; finish its set-up."""
    if there.owner != owner:
        life = liveness_of(client, there.owner) if there.owner else Liveness.ENDED
        if life not in GONE and not force:
            raise Denied(
                f"{there.path} belongs to {there.owner}, who is {life}",
                hint=f"if that session is gone: coord worktree enter {os.path.basename(there.path)} --force",
            )
        git.run("worktree", "unlock", there.path)
        git.must("worktree", "lock", "--reason", MARK + owner, there.path)
    admin = admin_of(repository_dir(git), there.path)
    if owner_of_removal(admin):
        restore_files(admin, there.path)
        git.run("worktree", "lock", "--reason", MARK + owner, there.path)
    if not there.present:
        raise Refused(
            f"the folder {there.path} is missing",
            hint="if it was moved, run git worktree repair; if it was deleted, coord worktree clean "
            + os.path.basename(there.path),
        )
    inside = Git(there.path)
    ready = f"{git_dir(inside)}/{READY}"
    warnings = [] if os.path.exists(ready) else _finish_setup(inside, git, there, setup, ready)
    record_ownership(client, git, there)
    return WorktreeEntry(there.path, there.branch, False, warnings=warnings)


def record_ownership(client: Client, git: Git, there: Worktree) -> None:
    """Add a worktree and its branch to what this session owns, or drop what no longer exists (GIT-26)."""
    owned, path = client.show().owned_resources, as_text(there.path)
    folders, branches = owned.get("worktrees"), owned.get("branches")
    folders = {**folders} if isinstance(folders, dict) else {}
    branches = [name for name in branches if name != there.branch] if isinstance(branches, list) else []
    folders.pop(path, None)
    if there.present:
        folders[path] = there.branch
    if there.branch and not git.run("rev-parse", "--quiet", "--verify", f"refs/heads/{there.branch}").code:
        branches.append(there.branch)
    client.update(owned={"worktrees": folders, "branches": branches})


def _finish_setup(inside: Git, git: Git, there: Worktree, setup: str, ready: str) -> list[str]:
    """Check out the files and run the set-up command; salvage files that a crash left unfinished."""
    folder = os.path.dirname(ready)
    if clear_setup_locks(folder, there.path):
        inside.retry_on_race("read-tree", "HEAD")  # git writes the index last, but some files are there
    remove_stale(f"{folder}/index.lock", there.path)
    warnings: list[str] = []
    with running(folder, Note(SETUP, own_process())) as noted:
        if os.path.exists(f"{folder}/index"):  # a former set-up did not finish
            inside.retry_on_race("reset", "--quiet", starter=noted.starter())
            paths = [change.path for change in changes(inside) if not change.new]
            ref, _ = salvage_paths(
                inside, f"unfinished-{ref_name(there.branch)}", paths, "an unfinished worktree"
            )
            warnings += [f"the former content is in {ref}"] if ref else []
        else:
            inside.retry_on_race("read-tree", "-m", "-u", "HEAD", starter=noted.starter())
    repository = find_repository(there.path)
    if repository is not None:  # git runs no hook with --no-checkout, so nobody else has copied them
        restore_templates(repository.commondir)
    command = setup or setting(git, "setup")
    if command:
        _run_setup(command, there, git.folder)
    with open(ready, "w", encoding="utf-8"):
        pass
    return warnings


def _run_setup(command: str, there: Worktree, main: str) -> None:
    environ = {
        **os.environ,
        "COORD_WORKTREE": there.path,
        "COORD_BRANCH": there.branch,
        "COORD_MAIN_WORKTREE": main,
    }
    try:
        done = subprocess.run(
            ["sh", "-c", command], cwd=there.path, env=environ, timeout=SETUP_S, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise Refused(
            f"the set-up did not end within {SETUP_S:.0f} s", hint="run coord worktree add again to continue"
        ) from error
    if done.returncode:
        last = (done.stdout.decode("utf-8", "replace").strip().splitlines() or [""])[-1]
        raise Refused(
            f"the set-up of {there.path} failed with exit code {done.returncode}: {last}",
            hint="fix the command, then run the same coord worktree add again",
        )


def git_of(client: Client) -> Git:
    """Return the git of the main worktree, which paths of worktrees are relative to."""
    repository = client.location.repository
    if repository is None:
        raise Invalid("this folder is in no git repository", hint="run the command inside one")
    here = Git(repository.root or repository.commondir)
    main = worktrees(here)
    return Git(main[0].path) if main and main[0].present else here


def git_dir(git: Git) -> str:
    """Return the git directory of one worktree."""
    return git.must("rev-parse", "--absolute-git-dir").text


def liveness_of(client: Client, session: str) -> Liveness:
    """Return the liveness of a session; an unknown session has ended."""
    try:
        return client.show(session).liveness
    except NotFound:
        return Liveness.ENDED


def operation_in_progress(git: Git) -> str:
    """Return the unfinished operation of git in a worktree (a merge, a rebase), or ""."""
    folder = git_dir(git)
    return next((name for name in _OPERATIONS if os.path.exists(f"{folder}/{name}")), "")


def setting(git: Git, name: str) -> str:
    """Return a worktree setting of `git config`."""
    return git.run("config", "--get", SETTINGS[name]).text


def commit_of(git: Git, name: str) -> str:
    """Return the commit that a caller names; git must never take the name for an option."""
    words = ("rev-parse", "--quiet", "--verify", "--end-of-options", f"{name}^{{commit}}")
    found = git.run(*words) if name and not name.startswith("-") else None
    if found is None or found.code:
        raise NotFound(f"there is no commit {name!r}", hint="git branch --all lists branches")
    return found.text


def _target(git: Git, path: str, name: str) -> str:
    filled = _fill(path or setting(git, "path") or PATH, name)
    root, plain = os.path.realpath(git.folder), os.path.normpath(os.path.join(git.folder, filled))
    real = os.path.realpath(plain)
    if f"{plain}/".startswith(f"{git.folder}/") and not f"{real}/".startswith(f"{root}/"):
        raise Refused(
            f"{filled} leads out of the repository, to {real}",
            hint="remove the symlink, or name that folder with --path",
        )
    return real


def _check_folder(folder: str) -> None:
    """Raise if others could replace what is in a folder."""
    if not os.path.isdir(folder):
        return
    found = os.stat(folder)
    foreign = os.geteuid() != 0 and found.st_uid not in (0, os.geteuid())
    if foreign or (found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX):
        what = "belongs to another user" if foreign else "is writable for everybody"
        raise Refused(f"{folder} {what}", hint=f"chmod o-w {folder}, or choose another with --path")


def _branch(git: Git, branch: str, name: str) -> str:
    filled = _fill(branch or setting(git, "branch") or BRANCH, name)
    if filled.startswith("-") or git.run("check-ref-format", f"refs/heads/{filled}").code:
        raise Invalid(f"{filled!r} is not a branch name", hint="use for example agent/{name}")
    return filled


def _fill(template: str, name: str) -> str:
    if not {"{", "}"}.isdisjoint(template.replace("{name}", "")):
        raise Invalid(
            f"{template!r} has a placeholder other than {{name}}", hint="use for example .worktrees/{name}"
        )
    return template.replace("{name}", name)


def _ignore_folder(git: Git, target: str) -> None:
    """Hide the folder of worktrees from git with a `.gitignore` inside it."""
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        os.makedirs(folder, exist_ok=True)
        os.chmod(folder, stat.S_IMODE(os.stat(folder).st_mode) & ~stat.S_IWOTH)  # whatever the umask says
    others = [name for name in os.listdir(folder) if name != os.path.basename(target)]
    if f"{folder}/".startswith(f"{os.path.realpath(git.folder)}/") and not others:
        # Another process may create it first.
        with suppress(FileExistsError), open(f"{folder}/.gitignore", "x", encoding="utf-8") as file:
            file.write("*\n")


@contextmanager
def exclusive(client: Client, target: str) -> Iterator[None]:
    """Hold the file lock for creating, taking over or removing a worktree."""
    repository = client.location.repository
    assert repository is not None, "checked before"
    folder = f"{repository.commondir}/coord"
    make_private_folder(folder)
    with open(f"{folder}/worktree-{digest(as_text(target))}.lock", "w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Busy(
                f"another process works on the worktree {target}", hint="try again in a minute"
            ) from error
        yield
