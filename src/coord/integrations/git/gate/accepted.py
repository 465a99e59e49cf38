"""The commits that the gates of a repository have accepted, for each protected branch.

A gate does not check a commit again that a protected branch has. But some commands of git move a branch
without running a hook (`branch -C`, `symbolic-ref`), and files can be edited. So each gate writes down which
commit it accepts, and trusts a branch only where it was left. No other ref counts: anybody may write it.
"""

import os
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import quote

from coord.integrations.git.run import Git

FOLDER = "coord/accepted"
NOWHERE = "0"


class ProtectedBranch(NamedTuple):
    """A protected branch, the commits that the gates accepted for it, and the ref that holds it."""

    ref: str
    tip: str
    """Empty if the branch does not exist."""
    accepted: tuple[str, ...]
    """The tip before the last accepted move, and after it; empty if nobody has written them down."""
    target: str = ""
    """The ref that a symbolic ref leads to."""

    @property
    def bypassed(self) -> bool:
        """Whether the branch was moved without a gate."""
        return bool(self.tip and self.accepted) and self.tip not in self.accepted

    @property
    def known(self) -> tuple[str, ...]:
        """The commits whose history needs no further check."""
        return self.accepted if self.bypassed or not self.tip else (self.tip,)


def protected_branches(git: Git, commondir: str, patterns: tuple[str, ...]) -> list[ProtectedBranch]:
    """Return the protected branches that exist, or that a gate remembers."""
    if not patterns:
        return []
    shape = "--format=%(refname)%00%(objectname)%00%(symref)"
    lines = git.must(
        "for-each-ref", shape, *(f"refs/heads/{branch}" for branch in patterns)
    ).text.splitlines()
    found = {}
    for ref, tip, target in (line.split("\0") for line in lines):
        found[ref] = ProtectedBranch(ref, tip, _present(git, _read(commondir, ref), tip), target)
    for branch in patterns:
        ref = f"refs/heads/{branch}"
        if ref not in found and (record := _read(commondir, ref)):  # it was deleted
            found[ref] = ProtectedBranch(ref, "", _present(git, record, ""))
    return list(found.values())


def note_branches(git: Git, commondir: str, patterns: tuple[str, ...]) -> None:
    """Accept the protected branches as they are, if no gate has accepted anything yet."""
    for branch in protected_branches(git, commondir, patterns):
        if not branch.accepted:
            accept(commondir, branch, branch.tip)


def accept(commondir: str, branch: ProtectedBranch, new: str) -> None:
    """Write down that a gate lets a branch move; the move itself may still fail."""
    before = branch.accepted[0] if branch.bypassed else branch.tip
    path = _path(commondir, branch.ref)
    draft = f"{path}.{os.getpid()}"
    with suppress(OSError):  # without the note the next gate checks more, never less
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(draft, "w", encoding="utf-8") as file:
            file.write(f"{before or NOWHERE}\n{new}\n")
        os.replace(draft, path)


def _present(git: Git, commits: tuple[str, ...], tip: str) -> tuple[str, ...]:
    """Leave out commits that git no longer has; look only where the branch was moved."""
    if not commits or tip in commits:
        return commits
    asked = "".join(f"{commit}^{{commit}}\n" for commit in commits).encode()
    lines = git.must("cat-file", "--batch-check=%(objecttype)", stdin=asked).text.splitlines()
    return tuple(commit for commit, line in zip(commits, lines, strict=True) if line == "commit")


def _read(commondir: str, ref: str) -> tuple[str, ...]:
    try:
        with open(_path(commondir, ref), encoding="utf-8", errors="replace") as file:
            lines = file.read(1024).split("\n")
    except OSError:
        return ()
    if len(lines) < 3:  # the note was cut off
        return ()
    return tuple(line for line in lines[:2] if line.strip("0") and line.isalnum())


def _path(commondir: str, ref: str) -> str:
    return f"{commondir}/{FOLDER}/{quote(ref, safe='')}"
