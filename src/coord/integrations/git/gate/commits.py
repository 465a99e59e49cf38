"""What a gate has to judge: what is about to be committed, and commits that are new to a branch."""

from collections.abc import Sequence
from typing import NamedTuple

from coord.integrations.git.gate.trailers import NO_TRAILERS, Trailers, read_trailers
from coord.integrations.git.run import Git


class CommitUnderReview(NamedTuple):
    """A commit, or with no id what is about to be committed."""

    commit: str
    paths: tuple[str, ...]
    trailers: Trailers = NO_TRAILERS


def staged(git: Git) -> CommitUnderReview:
    """Return what the index has changed against HEAD; for `commit --only` git names an index of its own."""
    head = git.run("rev-parse", "--verify", "-q", "HEAD").text
    if not head:  # nothing was ever committed: compared with the tree that has nothing
        head = git.must("hash-object", "-t", "tree", "--stdin").text
    done = git.must(
        "diff-index", "--cached", "--name-only", "--no-renames", "--ignore-submodules=none", "-z", head, "--"
    )
    return CommitUnderReview("", tuple(done.names))


def new_commits(git: Git, new: str, known: Sequence[str]) -> list[CommitUnderReview]:
    """Return the commits that can be reached from `new` but not from what is known, oldest first.

    A merge is judged for what neither side had, and for what git alone would have made otherwise, such as
    leaving out what one side did; the rest is in the commits of its sides.
    """
    revisions = "\n".join([new, *(f"^{each}" for each in known), ""])
    log = git.must(
        "log",
        "--stdin",
        "--topo-order",
        "--reverse",
        "--no-show-signature",
        "--format=%H%x00%P%x00%(trailers:only,unfold)%x00",
        stdin=revisions.encode(),
    )
    tokens = log.text.split("\0")
    found = {commit.strip(): trailers for commit, trailers in zip(tokens[::3], tokens[2::3], strict=False)}
    paths: dict[str, dict[str, None]] = {commit: {} for commit in found}
    these = "".join(f"{commit}\n" for commit in found).encode()
    raw = ("--stdin", "-r", "--raw", "-z", "--no-renames", "--ignore-submodules=none")
    _add_paths(paths, git.must("diff-tree", "-c", "--root", *raw, stdin=these).names)
    merges = ("log", "--no-walk=unsorted", "--merges", "--remerge-diff", "--no-show-signature", "--format=%H")
    if any(" " in parents for parents in tokens[1::3]):
        _add_paths(paths, git.must(*merges, *raw, stdin=these).names)
    return [
        CommitUnderReview(commit, tuple(paths[commit]), read_trailers(trailers.splitlines()))
        for commit, trailers in found.items()
    ]


def _add_paths(paths: dict[str, dict[str, None]], words: Sequence[str]) -> None:
    """Sort files to commits: git says `:100644 …` before each file, which may have any name."""
    current, rest = "", iter(words)
    for word in rest:
        if word.lstrip("\n").startswith(":"):
            paths[current][next(rest)] = None
        else:
            current = word.strip()


def tips(git: Git, *patterns: str) -> list[str]:
    """Return the commits at which refs stand that match one of the patterns."""
    if not patterns:
        return []
    done = git.must("for-each-ref", "--format=%(objectname)", *patterns)
    return list(dict.fromkeys(done.text.split()))
