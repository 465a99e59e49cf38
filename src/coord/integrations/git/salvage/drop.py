"""Show and delete salvage refs; without force only those whose content a branch has."""

import time
from collections.abc import Sequence
from datetime import datetime

import msgspec

from coord.core.errors import Invalid, NotFound, Refused
from coord.integrations.git.run import Git, as_text
from coord.integrations.git.salvage.salvage import PREFIX, Salvage, list_salvages

_STATES = {"A": "new", "D": "deleted", "T": "changed", "M": "changed"}


class SalvageInfo(msgspec.Struct, frozen=True):
    """A salvage ref, its files, and whether the history of a branch has all their content."""

    ref: str
    commit: str
    at: str
    why: str
    files: list[dict[str, str]]
    in_branch: bool


def describe(git: Git, ref: str) -> SalvageInfo:
    """Return the content of a salvage ref."""
    return _describe(git, _find(git, ref))


def drop(git: Git, refs: Sequence[str], *, force: bool) -> list[SalvageInfo]:
    """Delete these refs, all or none; refs with unmerged content only by force."""
    found = [_describe(git, _find(git, ref)) for ref in dict.fromkeys(refs)]
    for each in found:
        if not each.in_branch and not force:
            raise Refused(
                f"no branch has all of {each.ref}", hint="look at it with coord salvage show, or use --force"
            )
    return _dropped(git, found)


def prune(git: Git, *, older_s: float | None, merged: bool, dry_run: bool = False) -> list[SalvageInfo]:
    """Delete refs that are older than `older_s` or merged into a branch; one condition is required."""
    if older_s is None and not merged:
        raise Invalid("no condition given", hint="use coord salvage prune --merged or --older-than 30d")
    now_s = time.time()
    old = [each for each in list_salvages(git) if older_s is None or now_s - _created_s(each) >= older_s]
    found = [describe for each in old if (describe := _describe(git, each)).in_branch or not merged]
    return found if dry_run else _dropped(git, found)


def _dropped(git: Git, found: list[SalvageInfo]) -> list[SalvageInfo]:
    """Delete refs; git refuses all of them if one has changed."""
    orders = "".join(f"delete {each.ref}\0{each.commit}\0" for each in found)
    git.must("update-ref", "--stdin", "-z", stdin=orders.encode())
    return found


def _find(git: Git, ref: str) -> Salvage:
    name = ref if ref.startswith(f"{PREFIX}/") else f"{PREFIX}/{ref}"
    for each in list_salvages(git):
        if each.ref == name:
            return each
    raise NotFound(f"there is no {name}", hint="coord salvage list shows the refs")


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
    """Return state, blob and path of each file that differs."""
    words = git.must("diff-tree", "-r", "-z", "--no-renames", base, commit).names
    return [
        (about.split(" ")[4], about.split(" ")[3], path)
        for about, path in zip(words[::2], words[1::2], strict=True)
    ]


def _in_branches(git: Git, paths: list[str]) -> set[str]:
    """Return all blobs that these files ever had in a branch."""
    words = ("rev-list", "--objects", "--no-object-names", "--full-history", "--branches")
    names = [f":(top,literal){path}" for path in paths]
    if any("\n" in name for name in names):  # git accepts such names only as arguments
        done = git.must(*words, "--", *names)
    else:
        asked = "".join(f"{line}\n" for line in ("--", *names))
        done = git.must(*words, "--stdin", stdin=asked.encode("utf-8", "surrogateescape"))
    return set(done.text.split())


def _created_s(each: Salvage) -> float:
    return datetime.fromisoformat(each.at).timestamp()
