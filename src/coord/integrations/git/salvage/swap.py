"""Swap the content of files without losing a byte, even if others write them at the same time.

A rename moves the old file away with its latest content; a link puts the new file in place, because a link
overwrites nothing. Then the old content is compared with the refs, and saved if no ref has it.
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
    """A process still writes the files that are to be salvaged."""


def salvage_paths(git: Git, name: str, paths: Sequence[str], why: str) -> tuple[str, list[str]]:
    """Save files that differ from HEAD and restore them; return the ref ("": none) and the restored files."""
    for _ in range(TRIES):
        ref = save_to_ref(git, name, paths, why)
        if not ref:
            return "", []
        try:
            more, restored = restore_to_head(git, paths, saved_in=ref, name=name)
        except StillChanging:
            continue
        return more or ref, restored
    raise StillChanging(
        "the files change faster than coord can salvage them", hint="stop the process that writes them"
    )


def restore_to_head(git: Git, paths: Sequence[str], *, saved_in: str, name: str) -> tuple[str, list[str]]:
    """Restore paths to HEAD, also in the index; return the ref of later content and the restored paths.

    Left alone: files that HEAD does not have, files that something else blocks, and files with a conflict,
    which would look resolved. Nothing is restored unless the ref has the present content.
    """
    head = head_of(git)
    if not head:
        return "", []
    if snapshot(git, head, paths) != tree_of(git, saved_in):
        raise StillChanging(
            f"{saved_in} does not have the present content", hint="a process still writes; salvage again"
        )
    conflicts = {entry.partition("\t")[2] for entry in git.must("ls-files", "--unmerged", "-z").names}
    wanted = [
        path
        for path in paths_in_tree(git, head, paths)
        if path not in conflicts and not is_blocked(git.folder, path)
    ]
    if not wanted:
        return "", []
    git.retry_on_race(
        *("restore", "--source=HEAD", "--staged", "--pathspec-from-file=-", "--pathspec-file-nul"),
        stdin=nul_terminated(wanted),
        GIT_LITERAL_PATHSPECS="1",
    )
    return swap_files(git, head, wanted, saved_in=saved_in, name=name)


def swap_files(
    git: Git, source: str, paths: Sequence[str], *, saved_in: str, name: str
) -> tuple[str, list[str]]:
    """Replace files with those of a commit; return the ref of content that `saved_in` lacks, and the paths.

    A file that the commit does not have is removed. A file that appears during the swap stays.
    """
    with _work_folder(git) as work:
        _check_out(git, source, paths_in_tree(git, source, paths), f"{work}/new/")
        try:
            done = [path for path in paths if _replace_file(git.folder, path, work)]
        except OSError as error:
            raise Refused(
                f"a file could not be replaced: {error}",
                hint=f"the old content is in {saved_in} and in {work}",
            ) from error
        taken = [path for path in paths if os.path.lexists(f"{work}/taken/{path}")]
        why = f"written while {saved_in} was made"
        more = save_removed(git, name, f"{work}/taken", taken, beside=saved_in, why=why)
    return more, done


def open_folder(root: str, folder: str, *, make: bool = False) -> int | None:
    """Open a folder below a root without following links; None if it is not a folder."""
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
    """Rename a file away and link a new one in its place; False if another file appeared in between.

    Names are relative to the folder, or absolute. If `new` is missing, the name is free afterwards.
    """
    with suppress(FileNotFoundError):
        os.rename(name, taken, src_dir_fd=folder, dst_dir_fd=folder)
    try:
        os.link(new, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return True
    except FileExistsError:
        return False
    except OSError:  # a file system without links; undo the rename
        with suppress(OSError):
            os.rename(taken, name, src_dir_fd=folder, dst_dir_fd=folder)
        raise
    return True


def is_blocked(root: str, path: str) -> bool:
    """Whether a directory has the name of the file, or something else the name of its directory."""
    if os.path.isdir(f"{root}/{path}") and not os.path.islink(f"{root}/{path}"):
        return True
    above = os.path.dirname(path)
    while above:
        parent = f"{root}/{above}"
        if os.path.islink(parent) or (os.path.lexists(parent) and not os.path.isdir(parent)):
            return True
        above = os.path.dirname(above)
    return False


def _replace_file(root: str, path: str, work: str) -> bool:
    new, taken, name = f"{work}/new/{path}", f"{work}/taken/{path}", os.path.basename(path)
    if os.path.isdir(new) and not os.path.islink(new):  # a nested repository, which only git can replace
        return False
    folder = open_folder(root, os.path.dirname(path), make=os.path.lexists(new))
    if folder is None:
        return not os.path.lexists(new)
    os.makedirs(os.path.dirname(taken), exist_ok=True)
    try:
        done = swap_file(folder, name, new, taken)
        if os.path.isdir(taken) and not os.path.islink(taken):  # somebody has just turned it into a folder
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)
            os.rename(taken, name, dst_dir_fd=folder)
            return False
        return done
    finally:
        os.close(folder)


@contextmanager
def _work_folder(git: Git) -> Iterator[str]:
    """Yield a folder on the disk of the worktree; after an error it stays with its content."""
    above = git.must("rev-parse", "--absolute-git-dir").text
    if os.stat(above).st_dev != os.stat(git.folder).st_dev:  # a rename cannot cross disks
        above = git.folder
    work = f"{above}/.coord-taken-{os.urandom(8).hex()}"
    os.makedirs(f"{work}/taken")
    yield work
    shutil.rmtree(work)


def _check_out(git: Git, source: str, paths: Sequence[str], before: str) -> None:
    with index_of(git, source) as index:
        words = ("checkout-index", "-z", "--stdin", f"--prefix={before}")
        git.must(*words, stdin=nul_terminated(paths), GIT_INDEX_FILE=index)
