"""What a gate has to judge: what is about to be committed, and commits that are new to a branch."""

from collections.abc import Sequence
from typing import NamedTuple

from coord.agents.git.run import Git
from coord.agents.git.trailers import NO_TRAILERS, Trailers, read_trailers


class Judged(NamedTuple):
    """A commit, or with no id what is about to be committed."""

    commit: str
    paths: tuple[str, ...]
    trailers: Trailers = NO_TRAILERS


def staged(git: Git) -> Judged:
    """Return what the index has changed against HEAD; for `commit --only` git names an index of its own."""
    head = git.run("rev-parse", "--verify", "-q", "HEAD").text
    if not head:  # nothing was ever committed: compared with the tree that has nothing
        head = git.must("hash-object", "-t", "tree", "--stdin").text
    done = git.must(
        "diff-index", "--cached", "--name-only", "--no-renames", "--ignore-submodules=none", "-z", head, "--"
    )
    return Judged("", tuple(done.names))


def new_commits(git: Git, new: str, known: Sequence[str]) -> list[Judged]:
    """Return the commits that can be reached from `new` but not from what is known, oldest first.

    A merge is judged for what neither side had: what one of its sides did is in that side's own commits.
    """
    revisions = "\n".join([new, *(f"^{each}" for each in known), ""])
    log = git.must(
        "log",
        "--stdin",
        "--topo-order",
        "--reverse",
        "--no-show-signature",
        "--format=%H%x00%(trailers:only,unfold)%x00",
        stdin=revisions.encode(),
    )
    tokens = log.text.split("\0")
    found = {commit.strip(): trailers for commit, trailers in zip(tokens[::2], tokens[1::2], strict=False)}
    paths: dict[str, list[str]] = {commit: [] for commit in found}
    asked = (
        "diff-tree",
        "--stdin",
        "-r",
        "-c",
        "--root",
        "--name-only",
        "--no-renames",
        "--ignore-submodules=none",
        "-z",
    )
    current = ""
    for name in git.must(*asked, stdin="".join(f"{commit}\n" for commit in found).encode()).names:
        if name in paths:
            current = name
        else:
            paths[current].append(name)
    return [
        Judged(commit, tuple(paths[commit]), read_trailers(trailers.splitlines()))
        for commit, trailers in found.items()
    ]


def tips(git: Git, *patterns: str) -> list[str]:
    """Return the commits at which refs stand that match one of the patterns."""
    if not patterns:
        return []
    done = git.must("for-each-ref", "--format=%(objectname)", *patterns)
    return list(dict.fromkeys(done.text.split()))
