"""Read the commits that a gate checks: the staged change, and commits that are new to a branch."""

from collections.abc import Sequence
from typing import NamedTuple

from coord.integrations.git.gate.trailers import NO_TRAILERS, Trailers, read_trailers
from coord.integrations.git.run import Git


class CommitUnderReview(NamedTuple):
    """A commit to check; without an id, the staged change."""

    commit: str
    paths: tuple[str, ...]
    trailers: Trailers = NO_TRAILERS


def staged(git: Git) -> CommitUnderReview:
    """Return the staged change; git names another index for `commit --only`."""
    head = git.run("rev-parse", "--verify", "-q", "HEAD").text
    if not head:  # before the first commit, compare with the empty tree
        head = git.must("hash-object", "-t", "tree", "--stdin").text
    done = git.must(
        "diff-index", "--cached", "--name-only", "--no-renames", "--ignore-submodules=none", "-z", head, "--"
    )
    return CommitUnderReview("", tuple(done.names))


def new_commits(git: Git, new: str, known: Sequence[str]) -> list[CommitUnderReview]:
    """Return the commits that are reachable from `new` but not from the known ones, oldest first.

    Of a merge commit only the changes count that git would not have made by itself; all others are in the
    commits of its sides.
    """
    revisions = "\n".join([new, *(f"^{each}" for each in known), ""])
    log = git.must(
        "log",
        "--stdin",
        "--topo-order",
        "--reverse",
        "--format=%H%x00%P%x00%(trailers:only,unfold)%x00",
        stdin=revisions.encode(),
    )
    tokens = log.text.split("\0")
    found = {commit.strip(): trailers for commit, trailers in zip(tokens[::3], tokens[2::3], strict=False)}
    paths: dict[str, dict[str, None]] = {commit: {} for commit in found}
    these = "".join(f"{commit}\n" for commit in found).encode()
    raw = ("--stdin", "-r", "--raw", "-z", "--no-renames", "--ignore-submodules=none")
    _add_paths(paths, git.must("diff-tree", "-c", "--root", *raw, stdin=these).names)
    merges = ("log", "--no-walk=unsorted", "--merges", "--remerge-diff", "--format=%H")
    if any(" " in parents for parents in tokens[1::3]):
        _add_paths(paths, git.must(*merges, *raw, stdin=these).names)
    return [
        CommitUnderReview(commit, tuple(paths[commit]), read_trailers(trailers.splitlines()))
        for commit, trailers in found.items()
    ]


def _add_paths(paths: dict[str, dict[str, None]], words: Sequence[str]) -> None:
    """Add files to their commits; git prints `:100644 …` before each file name."""
    current, rest = "", iter(words)
    for word in rest:
        if word.lstrip("\n").startswith(":"):
            paths[current][next(rest)] = None
        else:
            current = word.strip()


def tips(git: Git, *patterns: str) -> list[str]:
    """Return the commits of the refs that match one of the patterns."""
    if not patterns:
        return []
    done = git.must("for-each-ref", "--format=%(objectname)", *patterns)
    return list(dict.fromkeys(done.text.split()))
