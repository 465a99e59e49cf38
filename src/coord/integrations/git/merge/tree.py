"""Merge in memory: no worktree and no index is touched; conflicts are reported, never resolved."""

import os
import tempfile
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from coord.core.errors import Unsupported
from coord.integrations.git.run import Git, GitFailed

GIT_MIN = (2, 38)
COORDINATION = (".coord", ".claude/settings.local.json", ".claude/subagent-status",
                ".claude/agent-claims.json", ".claude/plans/task-status.json")  # fmt: skip
"""Files about the work in one worktree; they mean nothing in another one, so they are not merged."""
OBJECTS_MAX = 1000


class MergedTree(NamedTuple):
    """The merged tree of two commits; with conflicts the tree is unusable."""

    tree: str
    conflicts: tuple[str, ...] = ()


class Party(NamedTuple):
    """The session or author that changed a file on one side."""

    who: str
    commit: str
    branch: str


def check_git(git: Git) -> None:
    """Raise if this git cannot merge in memory."""
    words = git.must("version").text.split()
    numbers = tuple(int(part) for part in words[2].split(".")[:2]) if len(words) > 2 else (0,)
    if numbers < GIT_MIN:
        raise Unsupported(
            f"git {'.'.join(map(str, numbers))} cannot merge in memory", hint="install git 2.38 or newer"
        )


def merge_trees(git: Git, onto: str, tip: str) -> MergedTree:
    """Return the merge of a tip into a commit; coordination files stay as in the commit."""
    side = without_coordination(git, onto, tip)
    done = git.run("merge-tree", "--write-tree", "-z", "--name-only", onto, side)
    if done.code not in (0, 1):
        raise GitFailed(("merge-tree",), done.code, done.stderr)
    tree, *names = (os.fsdecode(part) for part in done.out.split(b"\0"))
    return MergedTree(tree, tuple(names[: names.index("")]) if done.code else ())


def without_coordination(git: Git, onto: str, tip: str) -> str:
    """Return the tip, or a commit on top of it with the coordination files of `onto` if they differ."""
    theirs, ours = _coordination(git, onto), _coordination(git, tip)
    if theirs == ours:
        return tip
    zero = "0" * len(tip)
    gone = [f"0 {zero}\t".encode() + path for path in ours]
    kept = [entry + b"\t" + path for path, entry in theirs.items()]
    with tempfile.TemporaryDirectory(prefix="coord-index-") as folder:
        index = f"{folder}/index"
        git.must("read-tree", tip, GIT_INDEX_FILE=index)
        entries = b"".join(line + b"\0" for line in (*gone, *kept))
        git.must("update-index", "--replace", "-z", "--index-info", stdin=entries, GIT_INDEX_FILE=index)
        tree = git.must("write-tree", GIT_INDEX_FILE=index).text
    return commit_tree(git, tree, [tip], "without coordination files")


def _coordination(git: Git, commit: str) -> dict[bytes, bytes]:
    """Return the coordination files of a commit: mode, kind and object, by path."""
    done = git.must("ls-tree", "-r", "-z", "--full-tree", commit, "--", *COORDINATION)
    lines = [line.partition(b"\t") for line in done.out.split(b"\0") if line]
    return {path: entry for entry, _, path in lines}


def commit_tree(git: Git, tree: str, parents: Iterable[str], message: str) -> str:
    """Make a commit, in the name of coord if git has no user."""
    on = [word for parent in parents for word in ("-p", parent)]
    text = message.encode("utf-8", "replace")
    done = git.run("commit-tree", tree, *on, "-F", "-", stdin=text)
    if done.code:
        names = {"GIT_AUTHOR_NAME": "coord", "GIT_AUTHOR_EMAIL": "coord@localhost"}
        both = {**names, "GIT_COMMITTER_NAME": "coord", "GIT_COMMITTER_EMAIL": "coord@localhost"}
        done = git.must("commit-tree", tree, *on, "-F", "-", stdin=text, **both)
    return done.text


def changed_files(git: Git, before: str, after: str) -> list[str]:
    """Return the files in which two commits or trees differ."""
    return git.must("diff-tree", "-r", "-z", "--no-renames", "--name-only", before, after).names


def parties(git: Git, onto: str, tip: str, files: Sequence[str], names: tuple[str, str]) -> list[Party]:
    """Return who changed these files on either side since the common commit; `names`: the two branches."""
    found: dict[tuple[str, str], Party] = {}
    for range_, branch in zip((f"{tip}..{onto}", f"{onto}..{tip}"), names, strict=True):
        shape = "%h%x00%(trailers:key=Coord-Session,valueonly,separator=%x20)%x00%an"
        log = git.must(
            "log", "--no-merges", f"--max-count={OBJECTS_MAX}", f"--format={shape}",
            range_, "--", *files[:OBJECTS_MAX], GIT_LITERAL_PATHSPECS="1",
        )  # fmt: skip
        for line in log.text.splitlines():
            commit, session, author = line.split("\0")
            who = session.split(" ")[-1] or author
            found.setdefault((who, branch), Party(who, commit, branch))
    return list(found.values())
