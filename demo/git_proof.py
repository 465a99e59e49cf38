"""The proof of the last act: compares the log with the answers to the agents, and git with the log.

It reads the repository with git itself, and uses no code of coord for that.
"""

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from demo.author import environment
from demo.git_act import Landing
from demo.log import Event


def find_overwrite_faults(folder: Path, landing: Landing, events: Iterable[Event]) -> list[str]:
    """Return each side of an overwrite that got no message, or whose work is lost."""
    overwrite = landing.overwrite
    if overwrite is None:
        return ["no overwrite was caught"]
    faults = []
    sent = [
        event
        for event in events
        if event.name == "message.sent"
        and (event.fields["kind"], event.fields["session"]) == ("overwrite", overwrite.writer)
    ]
    if not any(overwrite.holder in event.fields["to"] for event in sent):
        faults.append(f"the log has no word to {overwrite.holder} about the overwrite of {overwrite.path}")
    if overwrite.path not in overwrite.holder_told or overwrite.writer not in overwrite.holder_told:
        faults.append(f"{overwrite.holder} was not told that {overwrite.writer} wrote over {overwrite.path}")
    if overwrite.path not in overwrite.writer_told or overwrite.holder not in overwrite.writer_told:
        faults.append(f"{overwrite.writer} was not told that {overwrite.path} is held by {overwrite.holder}")
    if overwrite.found != overwrite.kept:
        faults.append(f"{overwrite.path} is not as {overwrite.holder} left it")
    if overwrite.wrote not in _lines(folder, overwrite.aside, overwrite.path):
        faults.append(f"what {overwrite.writer} wrote over {overwrite.path} is lost")
    if not any(
        told.merged and (told.session, told.path) == (overwrite.holder, overwrite.path)
        for told in landing.told
    ):
        faults.append(f"what {overwrite.holder} wrote into {overwrite.path} did not land")
    return faults


def find_log_faults(landing: Landing, events: Iterable[Event]) -> list[str]:
    """Return merges under a lost lock, refusals under a valid one, and answers that differ from the log."""
    faults = []
    newest: dict[str, int] = {}
    resources: dict[int, set[str]] = {}
    fences: dict[str, Sequence[int]] = {}
    logged = set()
    for event in events:
        fields = event.fields
        if event.name == "lock.acquired":
            newest[fields["resource"]] = event.offset  # the offset is the fence of the lock
            resources.setdefault(event.offset, set()).add(fields["resource"])
        elif event.name == "git.committed":
            fences[fields["commit"]] = fields["fences"]
        elif event.name in ("git.merged", "git.merge_refused"):
            merged, tip = event.name == "git.merged", fields["tip"]
            logged.add((fields["branch"], tip, merged))
            under = fences.get(tip, ())
            lost = [fence for fence in under for name in resources.get(fence, ()) if newest[name] > fence]
            if merged and (lost or not under):
                faults.append(
                    f"{fields['branch']} was merged, though its lock had passed to another or was none"
                )
            elif not merged and (not lost or fields["status"] != "refused"):
                faults.append(
                    f"{fields['branch']} was turned away, but not for a lock that had passed to another"
                )
    told = {(each.branch, each.tip, each.merged) for each in landing.told}
    faults += [
        f"what was told of the merge of {branch} is not what the log says" for branch, *_ in told ^ logged
    ]
    if {each.merged for each in landing.told} != {True, False}:
        faults.append("there was no merge that landed, or none that was refused")
    return sorted(faults)


def find_git_faults(folder: Path, landing: Landing, events: Iterable[Event]) -> list[str]:
    """Return differences between main and the accepted merges, and refused work that is gone."""
    merges = [event.fields["commit"] for event in events if event.name == "git.merged"]
    faults = []
    if _git(folder, "rev-list", "--first-parent", "--reverse", f"{landing.began_at}..main") != merges:
        faults.append("main is not what the accepted merges made of it")
    if _git(folder, "rev-parse", "main") != (merges[-1:] or [landing.began_at]):
        faults.append("main does not stand where the last accepted merge left it")
    if _git(folder, "status", "--porcelain", "--untracked-files=no"):
        faults.append("the files of main's worktree are not what main has")
    within = _git(folder, "rev-list", "main")
    trees = _git(folder, "worktree", "list", "--porcelain")
    for told in landing.told:
        if told.merged != (told.tip in within) or told.merged != (
            told.line in _lines(folder, "main", told.path)
        ):
            faults.append(f"main has {'lost' if told.merged else 'taken in'} what {told.session} wrote")
        if _git(folder, "rev-parse", told.branch) != [told.tip]:
            faults.append(f"{told.branch} is not where {told.session} left it")
        if f"branch refs/heads/{told.branch}" not in trees:
            faults.append(f"the worktree of {told.branch} is gone")
    return faults


def _lines(folder: Path, commit: str, path: str) -> list[str]:
    return _git(folder, "show", f"{commit}:{path}")


def _git(folder: Path, *words: str) -> list[str]:
    """Return the output lines of a git command; none if it fails."""
    done = subprocess.run(
        ["git", *words], cwd=folder, env=environment(), check=False, capture_output=True, text=True
    )
    return [] if done.returncode else done.stdout.splitlines()
