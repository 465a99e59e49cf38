"""What a branch or a commit changes, for people who look from outside: bounded in size and time.

Names are checked before git sees them, and become hashes before they reach a diff. A branch is looked up
below `refs/heads/` only. No attribute, filter, pager or external diff of the repository runs.
"""

import re
from typing import NamedTuple

from coord.core.errors import Invalid, NotFound
from coord.core.ids import short_repr
from coord.integrations.git.run import Git, GitFailed

TEXT_BYTES_MAX = 1024 * 1024
NAMES_BYTES_MAX = 256 * 1024
FILES_MAX = 1000
DIFF_S = 10.0
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./@+=#,-]{0,249}")
_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all", "-M", "-r", "--root")

_LETTERS = ("-c", "core.quotePath=false")
"""Names keep the letters of all languages; git quotes control characters only."""


class ChangedFile(NamedTuple):
    """A file, and how many lines were added and deleted; -1 for a binary one."""

    path: str
    added: int
    deleted: int


class BranchDiff(NamedTuple):
    """The changes between two commits; `whole`: neither text nor files were cut."""

    base: str
    tip: str
    files: list[ChangedFile]
    text: str
    whole: bool


def branch_diff(git: Git, branch: str, into: str) -> BranchDiff:
    """Return what a branch has that the other one lacks, since both parted."""
    tip, other = find_commit(git, branch), find_commit(git, into)
    base = _one(git, "merge-base", "--end-of-options", other, tip)
    if not base:
        raise NotFound(f"{branch} and {into} have nothing in common", hint="choose another branch")
    return _diff(git, base, tip, base, tip)


def commit_diff(git: Git, name: str) -> BranchDiff:
    """Return what a commit changed; a merge, compared with the branch that it was made on."""
    commit = find_commit(git, name)
    return _diff(git, "", commit, "--diff-merges=first-parent", "--no-commit-id", commit)


def find_commit(git: Git, name: str) -> str:
    """Return the hash of a branch or of a whole hash; refuse every other expression of git."""
    if _HASH.fullmatch(name):
        wanted = name
    elif _NAME.fullmatch(name) and ".." not in name and "@{" not in name and not name.endswith(".lock"):
        wanted = f"refs/heads/{name}"
    else:
        raise Invalid(f"{short_repr(name)} is no branch", hint="name a branch, or a whole commit hash")
    found = _one(git, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{wanted}^{{commit}}")
    if not _HASH.fullmatch(found):
        raise NotFound(f"there is no branch or commit {short_repr(name)}", hint="git branch lists them")
    return found


def _one(git: Git, *arguments: str) -> str:
    """Return the line that git prints; "" if there is none."""
    try:
        out, _ = git.at_most(200, DIFF_S, *arguments)
    except GitFailed:
        return ""
    return out.decode("ascii", "replace").strip()


def _diff(git: Git, base: str, tip: str, *which: str) -> BranchDiff:
    text, text_whole = git.at_most(
        TEXT_BYTES_MAX, DIFF_S, *_LETTERS, "diff-tree", "-p", *_PLAIN, *which, "--"
    )
    listed, names_whole = git.at_most(
        NAMES_BYTES_MAX, DIFF_S, "diff-tree", "--numstat", "-z", *_PLAIN, *which, "--"
    )
    files = _files(listed)
    whole = text_whole and names_whole and len(files) <= FILES_MAX
    return BranchDiff(base, tip, files[:FILES_MAX], text.decode("utf-8", "replace"), whole)


def _files(listed: bytes) -> list[ChangedFile]:
    """Return the files of `--numstat -z`; a renamed one has an empty path and two names behind it."""
    parts = iter(listed.split(b"\0"))
    found: list[ChangedFile] = []
    for part in parts:
        fields = part.split(b"\t", 2)
        if len(fields) != 3:
            continue
        added, deleted, path = fields
        if not path:
            next(parts, b"")
            path = next(parts, b"")
        counts = [int(each) if each.isdigit() else -1 for each in (added, deleted)]
        found.append(ChangedFile(path.decode("utf-8", "replace"), counts[0], counts[1]))
    return found
