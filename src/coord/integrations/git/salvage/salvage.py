"""Save work in refs that git never loses: `refs/coord/salvage/<name>/<n>`.

A salvage commit is on top of HEAD and has the present content of some paths, deletions included; its second
parent has the staged content if that differs. `git diff HEAD <ref>` shows the work, and
`git checkout <ref> -- <path>` restores it. Paths name files, from the top of the worktree.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from coord.core.errors import Refused
from coord.integrations.git.run import Git, nul_terminated

PREFIX = "refs/coord/salvage"
NAME_CHARS_MAX = 100
PATHS_AT_ONCE = 500
"""This many names fit on a command line at any length."""
TRIES = 20
COORD = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
         for what, value in (("NAME", "coord"), ("EMAIL", "coord@localhost"))}  # fmt: skip


class Salvage(NamedTuple):
    """A salvage ref with its commit, time and reason."""

    ref: str
    commit: str
    at: str
    why: str
    tree: str


def save_to_ref(git: Git, name: str, paths: Sequence[str], why: str) -> str:
    """Save the present content of paths in a ref and return the ref; "" if nothing differs from HEAD.

    Content that a ref of this name has already is not saved twice, so a repeat after a crash is safe.
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


def save_blobs(git: Git, name: str, files: Mapping[str, tuple[str, str]], why: str) -> str:
    """Save files, by mode and blob, in a ref on top of HEAD and return the ref; no filter changes a byte."""
    head = head_of(git)
    lines = (f"{mode} {blob} 0\t".encode() + os.fsencode(path) for path, (mode, blob) in files.items())
    with index_of(git, head) as index:
        entered = b"".join(line + b"\0" for line in lines)
        git.must(
            "update-index", "--add", "--replace", "-z", "--index-info", stdin=entered, GIT_INDEX_FILE=index
        )
        tree = git.must("write-tree", GIT_INDEX_FILE=index).text
    found = list_salvages(git, name)
    for each in found:
        if each.tree == tree:
            return each.ref
    return _write_ref(git, name, _commit(git, tree, [head] if head else [], why), found)


def _write_ref(git: Git, name: str, commit: str, found: Sequence[Salvage]) -> str:
    """Write a commit to the next free ref of a name."""
    start = max((int(each.ref.rpartition("/")[2]) for each in found), default=0) + 1
    for number in range(start, start + TRIES):
        ref = f"{PREFIX}/{ref_name(name)}/{number}"
        # The empty old value means that the ref must not exist: another process may salvage as well.
        if not git.run("update-ref", "-m", "coord: salvage", ref, commit, "").code:
            return ref
    raise Refused(f"{PREFIX}/{ref_name(name)} cannot be written", hint="run git fsck")


def save_removed(git: Git, name: str, folder: str, paths: Sequence[str], *, beside: str, why: str) -> str:
    """Save files that were moved out of the worktree, unless the commit `beside` has the same content."""
    tree = snapshot(git, beside, paths, GIT_DIR=git.must("rev-parse", "--absolute-git-dir").text,
                     GIT_WORK_TREE=folder)  # fmt: skip
    if tree == tree_of(git, beside):
        return ""
    head = head_of(git)
    return _write_ref(git, name, _commit(git, tree, [head] if head else [], why), list_salvages(git, name))


def list_salvages(git: Git, name: str = "") -> list[Salvage]:
    """Return the salvage refs of one name or of all, the oldest first."""
    below = f"{PREFIX}/{ref_name(name)}/" if name else f"{PREFIX}/"
    shape = "%(refname)%00%(objectname)%00%(creatordate:iso-strict)%00%(contents:subject)%00%(tree)"
    lines = git.must("for-each-ref", "--sort=creatordate", f"--format={shape}", below).text.splitlines()
    found = [Salvage(*line.split("\0")) for line in lines]
    return [each for each in found if each.ref.rpartition("/")[2].isdigit()]


def ref_name(text: str) -> str:
    """Return a text as a valid part of a ref name.

    >>> ref_name("ada@host:12-3~2"), ref_name("..lock"), ref_name("x.lock")
    ('ada@host-12-3-2', 'lock', 'x-lock')
    """
    plain = re.sub(r"[^A-Za-z0-9_.@+-]+", "-", text).replace("@{", "-").replace(".lock", "-lock")
    return re.sub(r"\.{2,}", ".", plain)[:NAME_CHARS_MAX].strip(".-@") or "unnamed"


def paths_in_tree(git: Git, tree: str, paths: Sequence[str]) -> list[str]:
    """Return the files that a tree contains."""
    found: set[str] = set()
    for some in _chunks(paths):
        listed = ("ls-tree", "-r", "-z", "--full-tree", "--name-only", tree, "--", *some)
        found.update(git.must(*listed, GIT_LITERAL_PATHSPECS="1").names)
    return [path for path in dict.fromkeys(paths) if path in found]


def head_of(git: Git) -> str:
    """Return the commit of HEAD; "" before the first commit."""
    return git.run("rev-parse", "--quiet", "--verify", "HEAD^{commit}").text


@contextmanager
def index_of(git: Git, tree: str) -> Iterator[str]:
    """Yield a temporary index with the content of a tree."""
    import tempfile  # slow to import, and hooks need only the names of refs

    with tempfile.TemporaryDirectory(prefix="coord-index-") as folder:
        path = f"{folder}/index"
        git.must("read-tree", *([tree] if tree else ["--empty"]), GIT_INDEX_FILE=path)
        yield path


def snapshot(git: Git, head: str, paths: Sequence[str], **environ: str) -> str:
    """Return the tree of HEAD with these paths as they are in the worktree."""
    with index_of(git, head) as index:
        add = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
        git.must(*add, stdin=nul_terminated(paths), GIT_INDEX_FILE=index, **environ)
        return git.must("write-tree", GIT_INDEX_FILE=index).text


def _staged(git: Git, head: str, paths: Sequence[str]) -> str:
    """Return the tree of HEAD with these paths as they are staged; "" if one has a conflict."""
    lines: list[bytes] = []
    for some in _chunks(paths):
        lines += git.must("ls-files", "--stage", "-z", "--", *some, GIT_LITERAL_PATHSPECS="1").out.split(
            b"\0"
        )
    meant = {os.fsencode(path) for path in paths}  # git also lists the files below a name
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
    """Return the tree of a commit; the empty tree for ""."""
    return git.must("rev-parse", f"{commit}^{{tree}}").text if commit else git.must("mktree").text


def _shape(git: Git, commit: str) -> tuple[str, str, str]:
    """Return the tree, the parent and the staged tree of a salvage commit."""
    tree, parents = git.must("show", "--no-patch", "--format=%T%n%P", commit).text.split("\n")
    head, _, staged = parents.partition(" ")
    return tree, head, tree_of(git, staged) if staged else ""


def _chunks(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(paths), PATHS_AT_ONCE):
        yield paths[start : start + PATHS_AT_ONCE]
