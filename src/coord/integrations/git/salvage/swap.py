"""Putting other content in the place of files, without losing a byte whoever writes them at that moment.

A file is taken away by renaming it, which takes whatever is there then; the new one comes by a link, which
overwrites nothing. Only then is it looked at what was taken: what no ref has yet is kept in one.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from coord.core.errors import Refused
from coord.integrations.git.run import Git, ended_by_nul
from coord.integrations.git.salvage.salvage import (
    TRIES,
    head_of,
    index_of,
    keep,
    keep_taken,
    known,
    snapshot,
    tree_of,
)


class StillWritten(Refused):
    """Somebody still writes what is to be put aside."""


def put_aside(git: Git, name: str, paths: Sequence[str], why: str) -> tuple[str, list[str]]:
    """Keep what differs from HEAD and restore it; return the ref ("": none) and what was restored."""
    for _ in range(TRIES):
        ref = keep(git, name, paths, why)
        if not ref:
            return "", []
        try:
            more, restored = put_back(git, paths, kept_in=ref, name=name)
        except StillWritten:
            continue
        return more or ref, restored
    raise StillWritten("the files change faster than they can be put aside", hint="stop who writes them")


def put_back(git: Git, paths: Sequence[str], *, kept_in: str, name: str) -> tuple[str, list[str]]:
    """Restore paths to HEAD, in the index too; return the ref of what `kept_in` had not, and those restored.

    A file that HEAD does not know is left; so is one where something else stands in its way, and one with a
    conflict, which would be taken for solved. Nothing is restored unless the ref has what is there now.
    """
    head = head_of(git)
    if not head:
        return "", []
    if snapshot(git, head, paths) != tree_of(git, kept_in):
        raise StillWritten(
            f"{kept_in} has not what is there now", hint="somebody still writes; put it aside again"
        )
    open_ = {entry.partition("\t")[2] for entry in git.must("ls-files", "--unmerged", "-z").names}
    wanted = [
        path
        for path in known(git, head, paths)
        if path not in open_ and not stands_in_the_way(git.folder, path)
    ]
    if not wanted:
        return "", []
    git.patient(
        *("restore", "--source=HEAD", "--staged", "--pathspec-from-file=-", "--pathspec-file-nul"),
        stdin=ended_by_nul(wanted),
        GIT_LITERAL_PATHSPECS="1",
    )
    return exchange(git, head, wanted, kept_in=kept_in, name=name)


def exchange(
    git: Git, source: str, paths: Sequence[str], *, kept_in: str, name: str
) -> tuple[str, list[str]]:
    """Make files those of a commit; return the ref of what `kept_in` had not, and those that are so now.

    What the commit does not have is removed. Where a file came just now, or no folder can be, it is left.
    """
    with _folder_beside(git) as work:
        _write_out(git, source, known(git, source, paths), f"{work}/new/")
        try:
            done = [path for path in paths if _replaced(git.folder, path, work)]
        except OSError as error:
            raise Refused(
                f"a file could not be replaced: {error}", hint=f"what was there is in {kept_in} and in {work}"
            ) from error
        taken = [path for path in paths if os.path.lexists(f"{work}/taken/{path}")]
        why = f"written while {kept_in} was made"
        more = keep_taken(git, name, f"{work}/taken", taken, beside=kept_in, why=why)
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


def take_place(folder: int, name: str, new: str, taken: str) -> bool:
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


def stands_in_the_way(root: str, path: str) -> bool:
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


def _replaced(root: str, path: str, work: str) -> bool:
    new, taken, name = f"{work}/new/{path}", f"{work}/taken/{path}", os.path.basename(path)
    if os.path.isdir(new) and not os.path.islink(new):  # a repository inside: git alone knows how to
        return False
    folder = open_folder(root, os.path.dirname(path), make=os.path.lexists(new))
    if folder is None:
        return not os.path.lexists(new)
    os.makedirs(os.path.dirname(taken), exist_ok=True)
    try:
        done = take_place(folder, name, new, taken)
        if os.path.isdir(taken) and not os.path.islink(taken):  # it became a folder just now: whoever made it
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)
            os.rename(taken, name, dst_dir_fd=folder)
            return False
        return done
    finally:
        os.close(folder)


@contextmanager
def _folder_beside(git: Git) -> Iterator[str]:
    """A folder on the disk of the worktree; it stays where something in it could not be kept."""
    above = git.must("rev-parse", "--absolute-git-dir").text
    if os.stat(above).st_dev != os.stat(git.folder).st_dev:  # nothing can be renamed from disk to disk
        above = git.folder
    work = f"{above}/.coord-taken-{os.urandom(8).hex()}"
    os.makedirs(f"{work}/taken")
    yield work
    shutil.rmtree(work)


def _write_out(git: Git, source: str, paths: Sequence[str], before: str) -> None:
    with index_of(git, source) as index:
        words = ("checkout-index", "-z", "--stdin", f"--prefix={before}")
        git.must(*words, stdin=ended_by_nul(paths), GIT_INDEX_FILE=index)
