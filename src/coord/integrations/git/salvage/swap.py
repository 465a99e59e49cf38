"""Putting other content in the place of files, without losing a byte whoever writes them at that moment.

A file is taken away by renaming it, which takes whatever is there then; the new one comes by a link, which
overwrites nothing. Only then is it looked at what was taken: what no ref has yet is kept in one.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from coord.core.errors import Refused
from coord.integrations.git.run import Git, nul_terminated
from coord.integrations.git.salvage.salvage import (
    TRIES,
    head_of,
    index_of,
    paths_in_tree,
    save_removed,
    save_to_ref,
    snapshot,
    tree_of,
)


class StillChanging(Refused):
    """Somebody still writes what is to be put aside."""


def salvage_paths(git: Git, name: str, paths: Sequence[str], why: str) -> tuple[str, list[str]]:
    """Keep what differs from HEAD and restore it; return the ref ("": none) and what was restored."""
    for _ in range(TRIES):
        ref = save_to_ref(git, name, paths, why)
        if not ref:
            return "", []
        try:
            more, restored = restore_to_head(git, paths, saved_in=ref, name=name)
        except StillChanging:
            continue
        return more or ref, restored
    raise StillChanging("the files change faster than they can be put aside", hint="stop who writes them")


def restore_to_head(git: Git, paths: Sequence[str], *, saved_in: str, name: str) -> tuple[str, list[str]]:
    """Restore paths to HEAD, in the index too; return the ref of what `saved_in` had not, and those restored.

    A file that HEAD does not know is left; so is one where something else stands in its way, and one with a
    conflict, which would be taken for solved. Nothing is restored unless the ref has what is there now.
    """
    head = head_of(git)
    if not head:
        return "", []
    if snapshot(git, head, paths) != tree_of(git, saved_in):
        raise StillChanging(
            f"{saved_in} has not what is there now", hint="somebody still writes; put it aside again"
        )
    open_ = {entry.partition("\t")[2] for entry in git.must("ls-files", "--unmerged", "-z").names}
    wanted = [
        path
        for path in paths_in_tree(git, head, paths)
        if path not in open_ and not is_blocked(git.folder, path)
    ]
    if not wanted:
        return "", []
    git.retry_on_index_lock(
        *("restore", "--source=HEAD", "--staged", "--pathspec-from-file=-", "--pathspec-file-nul"),
        stdin=nul_terminated(wanted),
        GIT_LITERAL_PATHSPECS="1",
    )
    return swap_files(git, head, wanted, saved_in=saved_in, name=name)


def swap_files(
    git: Git, source: str, paths: Sequence[str], *, saved_in: str, name: str
) -> tuple[str, list[str]]:
    """Make files those of a commit; return the ref of what `saved_in` had not, and those that are so now.

    What the commit does not have is removed. Where a file came just now, or no folder can be, it is left.
    """
    with _work_folder(git) as work:
        _check_out(git, source, paths_in_tree(git, source, paths), f"{work}/new/")
        try:
            done = [path for path in paths if _replace_file(git.folder, path, work)]
        except OSError as error:
            raise Refused(
                f"a file could not be replaced: {error}",
                hint=f"what was there is in {saved_in} and in {work}",
            ) from error
        taken = [path for path in paths if os.path.lexists(f"{work}/taken/{path}")]
        why = f"written while {saved_in} was made"
        more = save_removed(git, name, f"{work}/taken", taken, beside=saved_in, why=why)
    return more, done


def open_folder(root: str, folder: str, *, make: bool = False) -> int | None:
    """Open a folder below a root without following a link; None where it is none."""
    found = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in folder.split("/") if folder else ():
        above = found
        try:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=above)
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            found = os.open(part, flags, dir_fd=above)
        except OSError:
            return None
        finally:
            os.close(above)
    return found


def swap_file(folder: int, name: str, new: str, taken: str) -> bool:
    """Rename what has a name, and give that name to a new file; False where another one came in between.

    All names are those in the folder, or absolute. `new` may be missing: then the name is free afterwards.
    """
    with suppress(FileNotFoundError):
        os.rename(name, taken, src_dir_fd=folder, dst_dir_fd=folder)
    try:
        os.link(new, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return True
    except FileExistsError:
        return False
    except OSError:  # a disk without links: all stays as it was
        with suppress(OSError):
            os.rename(taken, name, src_dir_fd=folder, dst_dir_fd=folder)
        raise
    return True


def is_blocked(root: str, path: str) -> bool:
    """Whether a directory is where the file should be, or something else where its directory should."""
    if os.path.isdir(f"{root}/{path}") and not os.path.islink(f"{root}/{path}"):
        return True
    above = os.path.dirname(path)
    while above:
        place = f"{root}/{above}"
        if os.path.islink(place) or (os.path.lexists(place) and not os.path.isdir(place)):
            return True
        above = os.path.dirname(above)
    return False


def _replace_file(root: str, path: str, work: str) -> bool:
    new, taken, name = f"{work}/new/{path}", f"{work}/taken/{path}", os.path.basename(path)
    if os.path.isdir(new) and not os.path.islink(new):  # a repository inside: git alone knows how to
        return False
    folder = open_folder(root, os.path.dirname(path), make=os.path.lexists(new))
    if folder is None:
        return not os.path.lexists(new)
    os.makedirs(os.path.dirname(taken), exist_ok=True)
    try:
        done = swap_file(folder, name, new, taken)
        if os.path.isdir(taken) and not os.path.islink(taken):  # it became a folder just now: whoever made it
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)
            os.rename(taken, name, dst_dir_fd=folder)
            return False
        return done
    finally:
        os.close(folder)


@contextmanager
def _work_folder(git: Git) -> Iterator[str]:
    """A folder on the disk of the worktree; it stays where something in it could not be kept."""
    above = git.must("rev-parse", "--absolute-git-dir").text
    if os.stat(above).st_dev != os.stat(git.folder).st_dev:  # nothing can be renamed from disk to disk
        above = git.folder
    work = f"{above}/.coord-taken-{os.urandom(8).hex()}"
    os.makedirs(f"{work}/taken")
    yield work
    shutil.rmtree(work)


def _check_out(git: Git, source: str, paths: Sequence[str], before: str) -> None:
    with index_of(git, source) as index:
        words = ("checkout-index", "-z", "--stdin", f"--prefix={before}")
        git.must(*words, stdin=nul_terminated(paths), GIT_INDEX_FILE=index)
