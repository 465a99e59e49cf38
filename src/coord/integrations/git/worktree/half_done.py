"""Worktrees that a killed command left half made or half removed.

`git worktree add` first makes a folder below `.git/worktrees`; `git worktree remove` removes the files first
and that folder last. So this folder shows what is missing. A file in it marks a worktree whose removal has
begun, after everything in it was found to be saved.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress

from coord.core.errors import Refused
from coord.integrations.git.run import Git, GitFailed, nul_terminated
from coord.integrations.git.unfinished import (
    Note,
    clear_locks,
    forget,
    names_of,
    own_process,
    running,
    unfinished,
)

REMOVING = "coord-removing"
ADD = "worktree-add"
"""The kind of note for a worktree that is being made."""
SETUP = "worktree-setup"
"""The kind of note for a worktree whose files are being checked out."""
REMOVE = "worktree-remove"
"""The kind of note for a worktree that git removes."""
BRANCH = "worktree-branch"
"""The kind of note for a branch that is deleted with its worktree."""


def repository_dir(git: Git) -> str:
    """Return the git directory that all worktrees share."""
    return git.must("rev-parse", "--path-format=absolute", "--git-common-dir").text


def admin_folders(main_dir: str) -> Iterator[tuple[str, str]]:
    """Yield the folder of each linked worktree below the git directory, and the worktree that it names."""
    top = f"{main_dir}/worktrees"
    for name in sorted(os.listdir(top)) if os.path.isdir(top) else ():
        yield f"{top}/{name}", os.path.dirname(_read(f"{top}/{name}/gitdir").strip())


def admin_of(main_dir: str, path: str) -> str:
    """Return the folder of a worktree below the git directory; empty if there is none."""
    return next((admin for admin, named in admin_folders(main_dir) if named == path), "")


def owner_of_removal(admin: str) -> str:
    """Return the session whose worktree is half removed; empty if its removal has not begun."""
    return _read(f"{admin}/{REMOVING}").strip() if admin else ""


def begin_removal(admin: str, owner: str) -> None:
    """Mark a worktree: everything in it is saved, and it may go."""
    with open(f"{admin}/{REMOVING}", "w", encoding="utf-8") as file:
        file.write(f"{owner}\n")


def cancel_removal(admin: str) -> None:
    """Keep a worktree after all."""
    with suppress(FileNotFoundError):
        os.unlink(f"{admin}/{REMOVING}")


def remaining_work(git: Git, admin: str, path: str) -> int:
    """Return how many files of a half-removed worktree differ from its commit, besides missing ones."""
    inside = Git(git.folder, in_hook=True, environ=_plain(git, admin, path if os.path.isdir(path) else ""))
    staged = inside.must("diff-index", "--cached", "--name-only", "-z", "--no-renames", "HEAD", "--").names
    if not os.path.isdir(path):
        return len(staged)
    listed = ("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all")
    entries = inside.must(*listed, "--ignore-submodules=dirty").names
    return len({*staged, *(entry[3:] for entry in entries if entry[1] != "D")})


def finish_removal(git: Git, admin: str, path: str) -> None:
    """Remove what is left of a worktree."""
    if os.path.isdir(path) and not os.path.lexists(f"{path}/.git"):
        _write_link(admin, path)
    remove_folder(git, admin, path, "--force", "--force")


def remove_folder(git: Git, admin: str, path: str, *options: str) -> None:
    """Let git remove a worktree: its files first, then its folder below the git directory."""
    words = ("worktree", "remove", *options, path)
    with running(repository_dir(git), Note(REMOVE, own_process(), target=admin, files=[path])) as noted:
        done = git.run(*words, starter=noted.starter())
    if done.code:
        raise GitFailed(words, done.code, done.stderr)


def restore_files(admin: str, path: str) -> None:
    """Bring back the files of a half-removed worktree that are missing; others stay as they are."""
    if os.path.islink(path):
        raise Refused(f"{path} is a symlink now", hint="remove it, and run the command again")
    os.makedirs(path, exist_ok=True)
    if not os.path.lexists(f"{path}/.git"):
        _write_link(admin, path)
    inside = Git(path)
    missing = inside.must("ls-files", "--deleted", "-z").names
    inside.must("checkout-index", "-z", "--stdin", stdin=nul_terminated(missing))
    cancel_removal(admin)


def recover_worktrees(git: Git) -> None:
    """Remove worktrees that a killed `coord worktree add` had only begun; they have no files yet.

    Also delete the branches that a killed `coord worktree clean` had begun to delete.
    """
    main_dir = repository_dir(git)
    _finish_deletions(git, main_dir)
    for left in unfinished(main_dir):
        if left.note.kind != ADD:
            continue
        for admin, named in list(admin_folders(main_dir)):
            begun = os.stat(admin).st_mtime_ns >= os.stat(left.path).st_mtime_ns
            if named not in ("", left.note.target) or not begun or os.path.lexists(f"{admin}/index"):
                continue
            if named and os.path.exists(f"{named}/.git") and not _incomplete(admin):
                continue  # complete: the next `add` continues there
            if named:
                with suppress(OSError):
                    os.unlink(f"{named}/.git")
                with suppress(OSError):  # somebody has put files there
                    os.rmdir(named)
            shutil.rmtree(admin, ignore_errors=True)
        lock = f"{main_dir}/refs/heads/{left.note.ref}.lock"
        clear_locks(left, git.folder, [lock])
        forget(left)


def clear_setup_locks(admin: str, path: str) -> bool:
    """Remove the index lock of a killed checkout of a new worktree; return whether there was one."""
    left = [each for each in unfinished(admin) if each.note.kind == SETUP]
    for each in left:
        clear_locks(each, path, [f"{admin}/index.lock"])
        forget(each)
    return bool(left)


def delete_branch(git: Git, branch: str, tip: str) -> None:
    """Delete the branch of a removed worktree, unless somebody has committed to it."""
    main_dir = repository_dir(git)
    with running(main_dir, Note(BRANCH, own_process(), head=tip, ref=f"refs/heads/{branch}")) as noted:
        git.run("update-ref", "-d", f"refs/heads/{branch}", tip, starter=noted.starter())


def _finish_deletions(git: Git, main_dir: str) -> None:
    """Finish what a killed `coord worktree clean` had begun to delete: its folder in `.git`, its branch."""
    for left in unfinished(main_dir):
        if left.note.kind == REMOVE:
            (path,) = names_of(left.note.files)
            if not os.path.lexists(path):  # git was removing its own folder already
                shutil.rmtree(left.note.target, ignore_errors=True)
            forget(left)
        if left.note.kind == BRANCH:
            clear_locks(
                left, git.folder, [f"{main_dir}/packed-refs.lock", f"{main_dir}/{left.note.ref}.lock"]
            )
            git.run("update-ref", "-d", left.note.ref, left.note.head)
            forget(left)


def _incomplete(admin: str) -> bool:
    """Whether git had not yet written all that a worktree needs."""
    return not all(_read(f"{admin}/{name}").strip() for name in ("HEAD", "commondir", "gitdir"))


def _write_link(admin: str, path: str) -> None:
    with open(f"{path}/.git", "x", encoding="utf-8", errors="surrogateescape") as file:
        file.write(f"gitdir: {admin}\n")


def _plain(git: Git, admin: str, path: str) -> dict[str, str]:
    given = {name: value for name, value in git.environ.items() if not name.startswith("GIT_")}
    return {**given, "GIT_DIR": admin, **({"GIT_WORK_TREE": path} if path else {})}


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(8192)
    except OSError:
        return ""
