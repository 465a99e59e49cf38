"""Find the git repository of a folder without running git."""

import os

import msgspec

from coord.core.errors import Invalid
from coord.host.runtime.seen_files import once_per_hook, real_path

GIT_FILE_BYTES = 8192


class Repository(msgspec.Struct, frozen=True):
    """A git repository, seen from one of its worktrees. All paths are resolved, without symlinks."""

    root: str | None
    """The top of the worktree; None in a bare repository and inside the git directory itself."""
    commondir: str
    """The git directory that all worktrees share."""

    @property
    def is_submodule(self) -> bool:
        """Whether its git directory lies inside that of another repository."""
        outer = self.commondir
        while "/modules/" in outer:
            outer = outer.rpartition("/modules/")[0]
            if _is_git_dir(outer):
                return True
        return False

    @property
    def folder(self) -> str:
        """The folder of the repository, the same in every worktree, as valid text."""
        return self.commondir.removesuffix("/.git").encode("utf-8", "backslashreplace").decode()

    @property
    def name(self) -> str:
        """The name of the repository's folder, the same in every worktree."""
        folder, last = os.path.split(self.commondir)
        return os.path.basename(folder) if last == ".git" else last.removesuffix(".git")


def current_folder() -> str:
    """Return the folder of this process; refuse to go on if somebody has deleted it."""
    try:
        return os.getcwd()
    except FileNotFoundError as error:
        raise Invalid("the current folder was deleted", hint="cd to a folder that exists") from error


def folder_is_gone() -> bool:
    """Return whether the folder of this process was deleted."""
    try:
        current_folder()
    except Invalid:
        return True
    return False


@once_per_hook
def find_repository(start: str) -> Repository | None:
    """Return the repository that contains a folder; like git, the nearest one going up."""
    folder = real_path(start)
    while True:
        found = repository_at(folder)
        if found is None and _is_git_dir(folder):
            found = Repository(None, _commondir(folder))
        if found is not None or folder == os.path.dirname(folder):
            return found
        folder = os.path.dirname(folder)


def repository_at(folder: str) -> Repository | None:
    """Return the repository whose worktree starts at this folder (a resolved path)."""
    git = f"{folder}/.git"
    if os.path.isdir(git):
        git_dir = real_path(git)
        return Repository(folder, _commondir(git_dir)) if _is_git_dir(git_dir) else None
    if os.path.isfile(git):
        return Repository(folder, _commondir(_git_dir_named_in(git)))
    return None


def git_dir_of(root: str) -> str:
    """Return the git directory of a worktree; a linked worktree has a separate one."""
    git = f"{root}/.git"
    return real_path(git) if os.path.isdir(git) else _git_dir_named_in(git)


def _git_dir_named_in(file: str) -> str:
    """Return the git directory that the `.git` file of a linked worktree or submodule names."""
    text = _read(file)
    git_dir = real_path(os.path.join(os.path.dirname(file), text.removeprefix("gitdir:").strip()))
    if not text.startswith("gitdir:") or not _is_git_dir(git_dir):
        raise Invalid(
            f"{file} does not name a git directory",
            hint="repair it (git worktree repair), or remove it",
        )
    return git_dir


def _commondir(git_dir: str) -> str:
    link = f"{git_dir}/commondir"
    return real_path(os.path.join(git_dir, _read(link).strip())) if os.path.isfile(link) else git_dir


def _is_git_dir(folder: str) -> bool:
    if not os.path.lexists(f"{folder}/HEAD"):
        return False
    return os.path.isfile(f"{folder}/commondir") or (
        os.path.isdir(f"{folder}/objects") and os.path.isdir(f"{folder}/refs")
    )


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(GIT_FILE_BYTES)
    except OSError as error:
        raise Invalid(
            f"{path} cannot be read: {error.strerror}", hint="run git status for details"
        ) from error
