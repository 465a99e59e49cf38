"""Give each worktree the untracked files that its agents read: their hook settings and guides.

`coord init` keeps a template of each file below `.git/coord/worktree`, and a `post-checkout` hook copies them
into a new worktree. Git runs no hook for `git worktree add --no-checkout`, some agents switch hooks off when
they create a worktree, and `git clean -x` removes the files. The next command of coord, the start of a
session and the end of a shell command therefore look for missing files; without any, that costs a few system
calls per worktree.
"""

import os
import stat
from _thread import get_native_id  # a hub answers in many threads
from collections.abc import Iterator
from contextlib import suppress

from coord.stores.local.folders import make_readable_folder

FOLDER = "coord/worktree"
"""The templates, below the common git directory."""
_GIT_FILE_BYTES = 8192


def restore_templates(commondir: str) -> list[str]:
    """Copy templates that are missing in a worktree of a repository; return the new files."""
    folder = f"{commondir}/{FOLDER}"
    names = list(_names(folder))
    made: list[str] = []
    for root in worktree_roots(commondir) if names else ():
        made += [f"{root}/{name}" for name in names if _copy(f"{folder}/{name}", root, name)]
    return made


def _names(folder: str) -> Iterator[str]:
    """Return the templates, relative to their folder."""
    for top, _, files in os.walk(folder):
        for name in files:
            yield os.path.relpath(f"{top}/{name}", folder)


def worktree_roots(commondir: str) -> Iterator[str]:
    """Return the top folders of all worktrees that exist."""
    main = commondir.removesuffix("/.git")
    if main != commondir:
        yield main
    with suppress(OSError):
        for name in os.listdir(f"{commondir}/worktrees"):
            root = _root_named_in(f"{commondir}/worktrees/{name}")
            if root and os.path.lexists(f"{root}/.git"):
                yield root


def _root_named_in(git_dir: str) -> str:
    """Return the top folder of the worktree of a git directory; relative names start there."""
    try:
        with open(f"{git_dir}/gitdir", encoding="utf-8", errors="surrogateescape") as file:
            named = file.read(_GIT_FILE_BYTES).strip()
    except OSError:
        return ""
    return os.path.dirname(os.path.normpath(os.path.join(git_dir, named)))


def _copy(template: str, root: str, name: str) -> bool:
    """Copy one template, unless the file exists or its folder is a link; return whether it was copied."""
    path = f"{root}/{name}"
    if os.path.lexists(path):
        return False
    folder = os.path.dirname(path)
    inside = os.path.realpath(root)
    if not f"{os.path.realpath(folder)}/".startswith(f"{inside}/"):
        return False
    draft = f"{path}.coord-{get_native_id()}"
    try:
        with open(template, "rb") as file:
            data, mode = file.read(), stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        make_readable_folder(folder)
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb") as file:
            file.write(data)
        os.link(draft, path)  # another process may have made it by now
    except OSError:
        return False
    finally:
        with suppress(OSError):
            os.unlink(draft)
    return True
