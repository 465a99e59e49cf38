"""What was put aside is given up only when somebody says so, and by default only if a branch has it all."""

import time
from collections.abc import Sequence
from datetime import datetime

import msgspec

from coord.core.errors import Invalid, NotFound, Refused
from coord.integrations.git.run import Git, as_text
from coord.integrations.git.salvage.salvage import PREFIX, Salvage, list_salvages

_STATES = {"A": "new", "D": "deleted", "T": "changed", "M": "changed"}


class SalvageInfo(msgspec.Struct, frozen=True):
    """A salvage ref, its files, and whether every byte of them is in the history of a branch."""

    ref: str
    commit: str
    at: str
    why: str
    files: list[dict[str, str]]
    in_branch: bool


def describe(git: Git, ref: str) -> SalvageInfo:
    """Return what a ref holds."""
    return _describe(git, _find(git, ref))


def drop(git: Git, refs: Sequence[str], *, force: bool) -> list[SalvageInfo]:
    """Give up what these refs hold, all or nothing; what no branch has only by force."""
    found = [_describe(git, _find(git, ref)) for ref in dict.fromkeys(refs)]
    for each in found:
        if not each.in_branch and not force:
            raise Refused(
                f"no branch has all of {each.ref}", hint="coord salvage show; or drop it by --force"
            )
    return _dropped(git, found)


def prune(git: Git, *, older_s: float | None, merged: bool, dry_run: bool = False) -> list[SalvageInfo]:
    """Give up all that is older and in a branch, as far as these are asked for; one of them has to be."""
    if older_s is None and not merged:
        raise Invalid("what is to be given up?", hint="coord salvage prune --merged, or --older-than 30d")
    now_s = time.time()
    old = [each for each in list_salvages(git) if older_s is None or now_s - _created_s(each) >= older_s]
    found = [describe for each in old if (describe := _describe(git, each)).in_branch or not merged]
    return found if dry_run else _dropped(git, found)


def _dropped(git: Git, found: list[SalvageInfo]) -> list[SalvageInfo]:
    """Delete refs as they were looked at; git refuses all of them if one was changed since."""
    orders = "".join(f"delete {each.ref}\0{each.commit}\0" for each in found)
    git.must("update-ref", "--stdin", "-z", stdin=orders.encode())
    return found


def _find(git: Git, ref: str) -> Salvage:
    name = ref if ref.startswith(f"{PREFIX}/") else f"{PREFIX}/{ref}"
    for each in list_salvages(git):
        if each.ref == name:
            return each
    raise NotFound(f"there is no {name}", hint="coord salvage list")


def _describe(git: Git, each: Salvage) -> SalvageInfo:
    parents = git.must("show", "--no-patch", "--format=%P", each.commit).text.split()
    base = parents[0] if parents else git.must("mktree").text
    changed = _differing(git, base, each.commit)
    for staged in parents[1:]:
        changed += _differing(git, base, staged)
    files = {
        path: {"path": as_text(path), "state": _STATES.get(state, "changed")} for state, _, path in changed
    }
    contents = {blob for _, blob, _ in changed if blob.strip("0")}
    in_branch = contents <= _in_branches(git, list(files)) if contents else True
    return SalvageInfo(each.ref, each.commit, each.at, each.why, list(files.values()), in_branch)


def _differing(git: Git, base: str, commit: str) -> list[tuple[str, str, str]]:
    """Return for each file that differs its state, its content there and its path."""
    words = git.must("diff-tree", "-r", "-z", "--no-renames", base, commit).names
    return [
        (about.split(" ")[4], about.split(" ")[3], path)
        for about, path in zip(words[::2], words[1::2], strict=True)
    ]


def _in_branches(git: Git, paths: list[str]) -> set[str]:
    """Return all contents that these files ever had in a branch of this repository."""
    words = ("rev-list", "--objects", "--no-object-names", "--full-history", "--branches")
    names = [f":(top,literal){path}" for path in paths]
    if any("\n" in name for name in names):  # git reads such names as arguments only
        done = git.must(*words, "--", *names)
    else:
        asked = "".join(f"{line}\n" for line in ("--", *names))
        done = git.must(*words, "--stdin", stdin=asked.encode("utf-8", "surrogateescape"))
    return set(done.text.split())


def _created_s(each: Salvage) -> float:
    return datetime.fromisoformat(each.at).timestamp()
