"""Undo a `coord merge` that was killed while git moved a branch and updated its worktree.

Git writes the files, then the index, then the branch. If the branch has not moved, files that are already as
in the merge go back to what they were; whatever somebody has changed since stays.
"""

import os
import tempfile
from contextlib import suppress

from coord.integrations.git.changes import pathspecs
from coord.integrations.git.run import Git, nul_terminated
from coord.integrations.git.unfinished import clear_locks, forget, lock_files, unfinished

CHECKOUT, REF_ONLY = "merge", "merge-ref"
"""The kinds of notes: with a worktree that has the branch, and without."""


def recover_moves(git: Git, git_dir: str) -> list[str]:
    """Undo the killed merges of a worktree, or accept those that are complete; return a line for each."""
    done: list[str] = []
    for left in unfinished(git_dir):
        note = left.note
        if note.kind not in (CHECKOUT, REF_ONLY):
            continue
        clear_locks(left, git.folder, lock_files(git, git_dir, left))
        name = note.ref.removeprefix("refs/heads/")
        if not git.run("merge-base", "--is-ancestor", note.target, note.ref).code:
            done.append(f"a coord merge was killed after it had moved {name} to {note.target[:10]}")
        else:
            if note.kind == CHECKOUT and git.run("rev-parse", note.ref).text == note.head:
                undo_checkout(git, note.head, note.target)
            done.append(f"a coord merge was killed before it had moved {name}, and was undone")
        forget(left)
    return done


def undo_checkout(git: Git, before: str, after: str) -> None:
    """Restore the files that are as in `after` to `before`; HEAD is `before`, and the index follows."""
    listed = git.must("diff-tree", "-r", "-z", "--no-renames", "--name-status", before, after).names
    states = dict(zip(listed[1::2], listed[::2], strict=True))
    with tempfile.TemporaryDirectory(prefix="coord-index-") as folder:
        index = f"{folder}/index"
        git.must("read-tree", after, GIT_INDEX_FILE=index)
        git.run("update-index", "-q", "--refresh", GIT_INDEX_FILE=index)
        differing = set(git.must("diff-files", "--name-only", "-z", GIT_INDEX_FILE=index).names)
        arrived = [path for path, state in states.items() if state != "D" and path not in differing]
        gone = [
            path
            for path, state in states.items()
            if state == "D" and not os.path.lexists(f"{git.folder}/{path}")
        ]
        git.must("read-tree", before, GIT_INDEX_FILE=index)
        restored = [path for path in arrived if states[path] != "A"] + gone
        git.must(
            *("checkout-index", "--force", "-z", "--stdin"),
            stdin=nul_terminated(restored),
            GIT_INDEX_FILE=index,
        )
    for path in arrived:
        if states[path] == "A":
            _remove_file(git.folder, path)
    if states:
        git.retry_on_race(
            *("reset", "--quiet", "--pathspec-from-file=-", "--pathspec-file-nul"), stdin=pathspecs(states)
        )


def _remove_file(folder: str, path: str) -> None:
    """Remove a file that a commit has, and folders that only it was in."""
    with suppress(OSError):
        os.unlink(f"{folder}/{path}")
        while path := os.path.dirname(path):
            os.rmdir(f"{folder}/{path}")
