"""List the worktrees that coord made, and remove those without unsaved work."""

import os

import msgspec

from coord.core.errors import Busy, NotFound
from coord.integrations.git.changes import changes
from coord.integrations.git.run import Git, GitFailed
from coord.integrations.git.salvage.salvage import ref_name, save_to_ref
from coord.integrations.git.worktree.half_done import (
    admin_of,
    begin_removal,
    cancel_removal,
    delete_branch,
    finish_removal,
    owner_of_removal,
    recover_worktrees,
    remaining_work,
    remove_folder,
    repository_dir,
)
from coord.integrations.git.worktree.worktree import (
    GONE,
    MARK,
    Worktree,
    commit_of,
    exclusive,
    git_dir,
    git_of,
    liveness_of,
    operation_in_progress,
    record_ownership,
    worktrees,
)
from coord.integrations.git.writable import require_writable_git
from coord.sdk.client.client import Client


class WorktreeInfo(msgspec.Struct, frozen=True):
    """A worktree with its owner and the work that no branch has."""

    name: str
    path: str
    branch: str
    owner: str
    liveness: str
    changed: int
    unmerged: int
    note: str = ""

    @property
    def orphan(self) -> bool:
        """Whether its session is gone."""
        return self.liveness in GONE


class CleanReport(msgspec.Struct, frozen=True):
    """The removed worktrees, their salvage refs, and the kept ones with the reason."""

    removed: list[str]
    salvaged: dict[str, str]
    kept: dict[str, str]


def list_worktrees(client: Client, into: str = "") -> list[WorktreeInfo]:
    """Return the worktrees that coord made; `into` (default: HEAD of the main tree) counts as merged."""
    git = git_of(client)
    made = [each for each in worktrees(git) if each.owner]
    if not made and not into:  # HEAD need not have a commit yet
        return []
    target = commit_of(git, into or "HEAD")
    return [_describe(client, git, each, target) for each in made]


def clean(
    client: Client, names: list[str], *, into: str = "", salvage: bool = False, dry_run: bool = False
) -> CleanReport:
    """Remove worktrees of sessions that are gone, or those named, if they are merged and unchanged.

    With `salvage` changes go into a salvage ref and an unmerged branch stays, so that the folder can go. A
    worktree of another live session is never touched.
    """
    git = git_of(client)
    target = commit_of(git, into or "HEAD")
    if not dry_run:
        require_writable_git(client.location.repository, "coord worktree clean")
    recover_worktrees(git)
    own = client.heartbeat().session_id
    made = {os.path.basename(each.path): each for each in worktrees(git) if each.owner}
    for name in names:
        if name not in made:
            raise NotFound(f"there is no worktree {name}", hint=f"choose from: {', '.join(made) or 'none'}")
    removed: list[str] = []
    salvaged: dict[str, str] = {}
    kept: dict[str, str] = {}
    for name, each in made.items():
        info = _describe(client, git, each, target)
        if not info.orphan and not (each.owner == own and name in names):
            if name in names:
                kept[name] = f"it belongs to {each.owner}, who is {info.liveness}"
            continue
        if names and name not in names:
            continue
        half = owner_of_removal(admin_of(repository_dir(git), each.path))
        gone = not each.present and (half or name in names)  # a moved one is kept, unless somebody names it
        why = "" if half or gone else _reason_to_keep(info, salvage)
        if not why and not dry_run:
            why = _remove_exclusively(
                client, git, each, target, salvaged if salvage else None, resume=bool(half or gone)
            )
        if why:
            kept[name] = why
            continue
        removed.append(name)
        if each.owner == own and not dry_run:
            record_ownership(client, git, each)
    return CleanReport(removed, salvaged, kept)


def _describe(client: Client, git: Git, each: Worktree, target: str) -> WorktreeInfo:
    counted = git.run("rev-list", "--count", each.head, f"^{target}", "--") if each.head else None
    unmerged = int(counted.text) if counted is not None and not counted.code else 1
    name, life = os.path.basename(each.path), liveness_of(client, each.owner).value
    if not each.present:
        return WorktreeInfo(
            name, each.path, each.branch, each.owner, life, 0, unmerged, "its folder is missing"
        )
    inside = Git(each.path)
    note = operation_in_progress(inside)
    if owner_of_removal(admin_of(repository_dir(git), each.path)):
        note = "its removal has begun"
    return WorktreeInfo(name, each.path, each.branch, each.owner, life, len(changes(inside)), unmerged, note)


def _counted(number: int, noun: str) -> str:
    return f"1 {noun} is" if number == 1 else f"{number} {noun}s are"


def _reason_to_keep(info: WorktreeInfo, salvage: bool) -> str:
    if info.note:
        return f"{info.note}: finish that first"
    if info.unmerged and not info.branch:
        return f"{_counted(info.unmerged, 'commit')} on no branch"
    if salvage:
        return ""
    if info.changed:
        return f"{_counted(info.changed, 'file')} changed (--salvage saves them)"
    if info.unmerged:
        return f"{_counted(info.unmerged, 'commit')} not merged (--salvage keeps the branch)"
    return ""


def _remove_exclusively(
    client: Client,
    git: Git,
    each: Worktree,
    target: str,
    salvaged: dict[str, str] | None,
    *,
    resume: bool = False,
) -> str:
    """Remove a worktree unless somebody has taken it over; `resume`: finish a removal that was killed."""
    if os.path.realpath(each.path) != each.path:
        return f"it leads to {os.path.realpath(each.path)} through a symlink"
    try:
        with exclusive(client, each.path):
            owner = next((now.owner for now in worktrees(git) if now.path == each.path), "")
            if owner != each.owner:
                return "somebody took it over"
            return _resume(git, each, target) if resume else _remove(git, each, target, salvaged)
    except Busy as error:
        return error.message


def _remove(git: Git, each: Worktree, target: str, salvaged: dict[str, str] | None) -> str:
    """Remove a worktree and its merged branch; return why that failed, or ""."""
    inside = Git(each.path)
    name = os.path.basename(each.path)
    try:
        if inside.must("rev-parse", "HEAD").text != each.head:
            return "somebody has just committed there"
        changed = [change.path for change in changes(inside)]
        if changed and salvaged is None:
            return "somebody has just changed it"
        force = []
        if changed and salvaged is not None:
            if _has_repositories(inside, changed):
                return "it contains another repository, which git would not save"
            ref = save_to_ref(
                inside, f"worktree-{ref_name(name)}", changed, f"left in the worktree {name} of {each.owner}"
            )
            salvaged[name] = ref
            if {change.path for change in changes(inside)} != set(changed) or save_to_ref(
                inside, f"worktree-{ref_name(name)}", changed, "again"
            ) != ref:
                return "somebody writes there"
            force = ["--force"]
        admin = git_dir(inside)
        begin_removal(admin, each.owner)
        git.must("worktree", "unlock", each.path)
        try:
            remove_folder(git, admin, each.path, *force)  # without force git checks once more
        except GitFailed:
            git.must("worktree", "lock", "--reason", MARK + each.owner, each.path)
            cancel_removal(admin)
            raise
        _delete_branch(git, each, target)
    except GitFailed as error:
        return error.message
    return ""


def _delete_branch(git: Git, each: Worktree, target: str) -> None:
    """Delete the branch of a worktree if it is merged, and nobody has committed to it."""
    if each.branch and each.head and not git.run("merge-base", "--is-ancestor", each.head, target).code:
        delete_branch(git, each.branch, each.head)


def _resume(git: Git, each: Worktree, target: str) -> str:
    """Finish the removal of a worktree; return why it has to stay, or ""."""
    admin = admin_of(repository_dir(git), each.path)
    try:
        unmerged = git.run("rev-list", "--count", each.head, f"^{target}", "--").text
        if not each.branch and unmerged != "0":
            return "it has commits on no branch"
        if work := remaining_work(git, admin, each.path):
            again = f"coord worktree add {os.path.basename(each.path)} restores it"
            return f"{_counted(work, 'file')} changed in what is left of it ({again})"
        finish_removal(git, admin, each.path)
        _delete_branch(git, each, target)
    except GitFailed as error:
        return error.message
    return ""


def _has_repositories(inside: Git, changed: list[str]) -> bool:
    """Whether a worktree contains a submodule or another repository."""
    if any(path.endswith("/") for path in changed) or os.path.isdir(f"{git_dir(inside)}/modules"):
        return True
    entries = inside.must("ls-files", "--stage", "-z").names
    links = (entry.partition("\t")[2] for entry in entries if entry.startswith("160000 "))
    return any(os.path.lexists(f"{inside.folder}/{path}/.git") for path in links)
