"""Work put aside where git never loses it: `refs/coord/salvage/<name>/<n>`.

Such a ref is a commit on top of HEAD with the present content of some paths, deletions included, and what is
staged of them as its second parent where that differs. So `git diff HEAD <ref>` shows the work, and
`git checkout <ref> -- <path>` brings it back. Paths are those of files, from the top of the worktree.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from coord.core.errors import Refused
from coord.integrations.git.run import Git, nul_terminated

PREFIX = "refs/coord/salvage"
NAME_CHARS_MAX = 100
PATHS_AT_ONCE = 500
"""So many names fit on a command line, however long each one is allowed to be."""
TRIES = 20
COORD = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
         for what, value in (("NAME", "coord"), ("EMAIL", "coord@localhost"))}  # fmt: skip


class Salvage(NamedTuple):
    """A salvage ref: what it holds, and since when."""

    ref: str
    commit: str
    at: str
    why: str
    tree: str


def save_to_ref(git: Git, name: str, paths: Sequence[str], why: str) -> str:
    """Put the present content of paths into a ref and return it; "" where it is that of HEAD.

    What is kept already under this name is not kept twice, so that a crash in between costs nothing.
    """
    head = head_of(git)
    present, staged = snapshot(git, head, paths), _staged(git, head, paths)
    base = tree_of(git, head)
    if present == base and staged in ("", base):
        return ""
    staged = "" if staged in (base, present) else staged
    found = list_salvages(git, name)
    for each in found:
        if each.tree == present and _shape(git, each.commit) == (present, head, staged):
            return each.ref
    parents = [head] if head else []
    if staged:
        parents.append(_commit(git, staged, parents, f"staged: {why}"))
    return _write_ref(git, name, _commit(git, present, parents, why), found)


def _write_ref(git: Git, name: str, commit: str, found: Sequence[Salvage]) -> str:
    """Put a commit into the next ref of a name, after those found."""
    start = max((int(each.ref.rpartition("/")[2]) for each in found), default=0) + 1
    for number in range(start, start + TRIES):
        ref = f"{PREFIX}/{ref_name(name)}/{number}"
        # An empty old value: it must not exist, for another process may be putting something aside, too.
        if not git.run("update-ref", "-m", "coord: put aside", ref, commit, "").code:
            return ref
    raise Refused(f"{PREFIX}/{ref_name(name)} cannot be written", hint="what does git fsck say?")


def save_removed(git: Git, name: str, folder: str, paths: Sequence[str], *, beside: str, why: str) -> str:
    """Put files that were taken out of the worktree into a ref, unless the commit `beside` has them so."""
    tree = snapshot(git, beside, paths, GIT_DIR=git.must("rev-parse", "--absolute-git-dir").text,
                     GIT_WORK_TREE=folder)  # fmt: skip
    if tree == tree_of(git, beside):
        return ""
    head = head_of(git)
    return _write_ref(git, name, _commit(git, tree, [head] if head else [], why), list_salvages(git, name))


def list_salvages(git: Git, name: str = "") -> list[Salvage]:
    """Return what was put aside, under one name or all; the oldest first."""
    below = f"{PREFIX}/{ref_name(name)}/" if name else f"{PREFIX}/"
    shape = "%(refname)%00%(objectname)%00%(creatordate:iso-strict)%00%(contents:subject)%00%(tree)"
    lines = git.must("for-each-ref", "--sort=creatordate", f"--format={shape}", below).text.splitlines()
    found = [Salvage(*line.split("\0")) for line in lines]
    return [each for each in found if each.ref.rpartition("/")[2].isdigit()]


def ref_name(text: str) -> str:
    """Return a part of a ref's name that resembles a text.

    >>> ref_name("ada@host:12-3~2"), ref_name("..lock"), ref_name("x.lock")
    ('ada@host-12-3-2', 'lock', 'x-lock')
    """
    plain = re.sub(r"[^A-Za-z0-9_.@+-]+", "-", text).replace("@{", "-").replace(".lock", "-lock")
    return re.sub(r"\.{2,}", ".", plain)[:NAME_CHARS_MAX].strip(".-@") or "unnamed"


def paths_in_tree(git: Git, tree: str, paths: Sequence[str]) -> list[str]:
    """Return which of these files a tree has."""
    found: set[str] = set()
    for some in _chunks(paths):
        listed = ("ls-tree", "-r", "-z", "--full-tree", "--name-only", tree, "--", *some)
        found.update(git.must(*listed, GIT_LITERAL_PATHSPECS="1").names)
    return [path for path in dict.fromkeys(paths) if path in found]


def head_of(git: Git) -> str:
    """Return the commit that HEAD is; "" before the first one."""
    return git.run("rev-parse", "--quiet", "--verify", "HEAD^{commit}").text


@contextmanager
def index_of(git: Git, tree: str) -> Iterator[str]:
    """An index of one's own that has what a tree has; the real one stays as it is."""
    import tempfile  # slow to come, and hooks need only the names that refs have

    with tempfile.TemporaryDirectory(prefix="coord-index-") as folder:
        path = f"{folder}/index"
        git.must("read-tree", *([tree] if tree else ["--empty"]), GIT_INDEX_FILE=path)
        yield path


def snapshot(git: Git, head: str, paths: Sequence[str], **environ: str) -> str:
    """Return a tree: that of HEAD, with these paths as they are in the worktree now."""
    with index_of(git, head) as index:
        add = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
        git.must(*add, stdin=nul_terminated(paths), GIT_INDEX_FILE=index, **environ)
        return git.must("write-tree", GIT_INDEX_FILE=index).text


def _staged(git: Git, head: str, paths: Sequence[str]) -> str:
    """Return a tree: that of HEAD, with these paths as they are staged; "" while a merge leaves that open."""
    lines: list[bytes] = []
    for some in _chunks(paths):
        lines += git.must("ls-files", "--stage", "-z", "--", *some, GIT_LITERAL_PATHSPECS="1").out.split(
            b"\0"
        )
    meant = {os.fsencode(path) for path in paths}  # a name also stands for what is below it
    entries = [line for line in lines if line.partition(b"\t")[2] in meant]
    if any(not line.partition(b"\t")[0].endswith(b" 0") for line in entries):
        return ""
    staged = {os.fsdecode(line.partition(b"\t")[2]) for line in entries}
    gone = [path for path in paths if path not in staged]
    with index_of(git, head) as index:
        git.must(
            "update-index",
            "--force-remove",
            "-z",
            "--stdin",
            stdin=nul_terminated(gone),
            GIT_INDEX_FILE=index,
        )
        entered = b"".join(line + b"\0" for line in entries)
        git.must(
            "update-index", "--add", "--replace", "-z", "--index-info", stdin=entered, GIT_INDEX_FILE=index
        )
        return git.must("write-tree", GIT_INDEX_FILE=index).text


def _commit(git: Git, tree: str, parents: Sequence[str], why: str) -> str:
    on = [word for parent in parents for word in ("-p", parent)]
    return git.must("commit-tree", tree, *on, "-F", "-", stdin=why.encode("utf-8", "replace"), **COORD).text


def tree_of(git: Git, commit: str) -> str:
    """Return the tree of a commit; of none the empty one."""
    return git.must("rev-parse", f"{commit}^{{tree}}").text if commit else git.must("mktree").text


def _shape(git: Git, commit: str) -> tuple[str, str, str]:
    """Return what a salvage commit holds: its tree, the HEAD it was made on, and the tree that was staged."""
    tree, parents = git.must("show", "--no-patch", "--format=%T%n%P", commit).text.split("\n")
    head, _, staged = parents.partition(" ")
    return tree, head, tree_of(git, staged) if staged else ""


def _chunks(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(paths), PATHS_AT_ONCE):
        yield paths[start : start + PATHS_AT_ONCE]
