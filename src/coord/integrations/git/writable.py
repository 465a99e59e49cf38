"""Whether git can write its index here: in a sandbox the git directory may be read-only."""

import os

from coord.core.errors import Unavailable
from coord.host.repository import Repository


def require_writable_git(repository: Repository | None, what: str) -> None:
    """Raise Unavailable, before anything changes, if git cannot write what `what` needs."""
    if repository is None:
        return
    own = _git_folder(repository)
    for folder in (own, repository.commondir, f"{repository.commondir}/objects"):
        if not os.access(folder, os.W_OK):
            raise Unavailable(
                f"{what} needs git, and {folder} is read-only here; nothing was changed",
                hint=f"in a sandbox: run {what} again with the approval of a person, or ask the person "
                "to run it outside of the sandbox; your locks stay; elsewhere: check who owns the folder",
            )


def _git_folder(repository: Repository) -> str:
    """Return the folder with the index of this worktree."""
    link = f"{repository.root}/.git"
    if not os.path.isfile(link):
        return repository.commondir
    with open(link, encoding="utf-8", errors="surrogateescape") as file:
        named = file.read().removeprefix("gitdir:").strip()
    return os.path.normpath(os.path.join(repository.root or "", named))
