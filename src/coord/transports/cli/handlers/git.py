"""Commit, worktrees, salvaged work, merges and the git gate."""

import os
import shlex
from collections.abc import Sequence
from typing import Any

from coord.core.errors import CoordError, Invalid
from coord.core.locks.commands import ReleaseLocks
from coord.host.config import configuration_file, read_configuration
from coord.integrations.git.commit.commit import commit as commit_held
from coord.integrations.git.gate.stubs import PROTECTED
from coord.integrations.git.merge import merge as merging
from coord.integrations.git.merge.merge import MergeReport, MergeRequest, Outcome, Verdict
from coord.integrations.git.run import Git, as_text
from coord.integrations.git.salvage import checkpoint
from coord.integrations.git.salvage import drop as dropping
from coord.integrations.git.salvage.salvage import list_salvages
from coord.integrations.git.worktree import clean as cleaning
from coord.integrations.git.worktree import worktree
from coord.sdk.client.client import Client
from coord.transports import exit_codes as render
from coord.transports.arguments import duration
from coord.transports.cli.args import Args, Options
from coord.transports.cli.output import Answer, fields_of, say

MERGE_COLUMNS = ("branch", "verdict", "commit", "why")
SHORT = 10


class MergeArgs(Args, frozen=True):
    """The arguments of `coord merge`."""

    branches: list[str]
    into: str
    check: str
    check_timeout_s: float
    any_file: bool
    wait_s: float


def merge(client: Client, args: MergeArgs) -> Answer:
    """Merge branches, and say of each what became of it."""
    git = Git(os.getcwd())
    try:
        check = tuple(shlex.split(args.check))
    except ValueError as error:
        raise Invalid(f"--check {args.check!r}: {error}", hint="quote it as for a shell") from error
    into = args.into or merging.default_branch(git, PROTECTED)
    wanted = MergeRequest(tuple(args.branches), into, check, args.check_timeout_s, args.any_file, args.wait_s)
    return answer_of(merging.merge(client, git, wanted))


def answer_of(merged: MergeReport) -> Answer:
    """Return the answer of a merge; it failed if one branch is left out."""
    rows = [{**fields, "why": _why(fields)} for fields in map(_outcome_fields, merged.outcomes)]
    fields: dict[str, Any] = {
        "into": as_text(merged.into),
        "before": merged.before,
        "after": merged.after,
        "branches": [_outcome_fields(outcome) for outcome in merged.outcomes],
        "warnings": [as_text(warning) for warning in merged.warnings],
    }
    if merged.ok:
        return Answer(fields, _merged_line(merged), rows, MERGE_COLUMNS)
    first = next(row for row in rows if row["verdict"] not in (Verdict.MERGED, Verdict.NOTHING_NEW))
    failure = render.Failure(
        render.REFUSED,
        first["verdict"],
        f"{first['branch']} is not merged into {fields['into']}: {first['why']}",
        first["findings"][0]["next_step"] if first["findings"] else _NEXT[Verdict(first["verdict"])],
    )
    return Answer(fields, f"coord: {failure.message} ({failure.hint})", rows, MERGE_COLUMNS, failure)


_NEXT = {
    Verdict.CONFLICT: "merge the other branch into yours, resolve it there under locks, and merge again",
    Verdict.CHECK_FAILED: "mend it on the branch, and merge again",
}


def _outcome_fields(outcome: Outcome) -> dict[str, Any]:
    return {
        "branch": as_text(outcome.branch),
        "tip": outcome.tip,
        "verdict": outcome.verdict.value,
        "commit": outcome.commit,
        "files": [as_text(path) for path in outcome.files],
        "parties": [
            {name: as_text(value) for name, value in party._asdict().items()} for party in outcome.parties
        ],
        "findings": [
            {name: as_text(value) for name, value in each._asdict().items()} for each in outcome.findings
        ],
        "said": outcome.said,
    }


def _why(fields: dict[str, Any]) -> str:
    if fields["findings"]:
        return "; ".join(finding["what"] for finding in fields["findings"])
    if fields["verdict"] == Verdict.CONFLICT:
        who = ", ".join(dict.fromkeys(f"{party['who']} ({party['branch']})" for party in fields["parties"]))
        return f"both sides changed {', '.join(fields['files'])}; by {who or 'nobody known'}"
    if fields["verdict"] == Verdict.CHECK_FAILED:
        return f"the check fails: {(fields['said'].splitlines() or [''])[-1]}"
    return f"{len(fields['files'])} files" if fields["files"] else ""


def _merged_line(merged: MergeReport) -> str:
    new = [as_text(each.branch) for each in merged.outcomes if each.verdict is Verdict.MERGED]
    if not new:
        return f"Nothing new for {as_text(merged.into)}"
    warned = "".join(f"; {as_text(warning)}" for warning in merged.warnings)
    return f"Merged ✓ {', '.join(new)} into {as_text(merged.into)} ({merged.after[:SHORT]}){warned}"


class CommitArgs(Args, frozen=True):
    """The arguments of `coord commit`."""

    files: list[str]
    message: str
    fence: int | None
    unlock: bool
    hooks_timeout_s: float | None


def commit(client: Client, args: CommitArgs) -> Answer:
    """Commit what this session holds."""
    timeout_s = args.hooks_timeout_s or _configured_timeout(client)
    done = commit_held(
        client, args.message, args.files, fence=args.fence, hooks_timeout_s=timeout_s, notify=say
    )
    fields = fields_of(done)
    for warning in done.warnings:
        say(f"Warning: {warning}")
    if args.unlock:
        fields["unlocked"] = _unlocked(client, done.locks)
    return Answer(fields, f"Committed ✓ {done.commit[:12]} {done.subject}")


def _configured_timeout(client: Client) -> float | None:
    """Return how long hooks may take by `coord.toml`; None: as long as they want."""
    file = configuration_file(client.location.repository)
    table = read_configuration(file).get("commit", {})
    text = table.get("hooks_timeout") if isinstance(table, dict) else table
    if text is None:
        return None
    if not isinstance(text, str | int) or isinstance(text, bool):
        raise Invalid(f"hooks_timeout in {file} is {text!r}", hint='[commit] hooks_timeout = "10m"')
    return duration(str(text))


def _unlocked(client: Client, resources: list[str]) -> list[str]:
    """Give locks back; one that was lost meanwhile is no reason to say that the commit failed."""
    try:
        command = ReleaseLocks(client.caller, client.location.repository_id, tuple(resources))
        return list(client.call(command).released)
    except CoordError as error:
        say(f"Warning: {error.message}")
        return []


WORKTREE_COLUMNS = ("name", "branch", "owner", "liveness", "changed", "unmerged", "note")


class WorktreeAddArgs(Args, frozen=True):
    """The arguments of `coord worktree add`."""

    name: str
    branch: str
    path: str
    start: str
    setup: str
    or_shared: bool


def worktree_add(client: Client, args: WorktreeAddArgs) -> Answer:
    """Make a worktree, or go on in it."""
    return _entered(
        worktree.add(
            client,
            args.name,
            branch=args.branch,
            path=args.path,
            start=args.start,
            setup=args.setup,
            or_shared=args.or_shared,
        )
    )


class WorktreeEnterArgs(Args, frozen=True):
    """The arguments of `coord worktree enter`."""

    name: str
    force: bool


def worktree_enter(client: Client, args: WorktreeEnterArgs) -> Answer:
    """Go on in a worktree."""
    return _entered(worktree.enter(client, args.name, force=args.force))


class WorktreeListArgs(Args, frozen=True):
    """The arguments of `coord worktree list`."""

    into: str


def worktree_list(client: Client, args: WorktreeListArgs) -> Answer:
    """List the worktrees that coord made."""
    found = cleaning.list_worktrees(client, args.into)
    rows = [fields_of(each) | {"orphan": each.orphan} for each in found]
    orphans = sum(each.orphan for each in found)
    return Answer(
        {"worktrees": rows},
        f"{len(found)} worktrees, {orphans} of sessions that are gone",
        rows,
        WORKTREE_COLUMNS,
    )


class WorktreeCleanArgs(Args, frozen=True):
    """The arguments of `coord worktree clean`."""

    names: list[str]
    into: str
    salvage: bool
    dry_run: bool


def worktree_clean(client: Client, args: WorktreeCleanArgs) -> Answer:
    """Remove worktrees of which nothing would be lost."""
    done = cleaning.clean(client, args.names, into=args.into, salvage=args.salvage, dry_run=args.dry_run)
    for name, why in done.kept.items():
        say(f"{name} is kept: {why}")
    would = "would be " if args.dry_run else ""
    return Answer(fields_of(done), f"{len(done.removed)} {would}removed, {len(done.kept)} kept")


def _entered(entered: worktree.WorktreeEntry) -> Answer:
    for warning in entered.warnings:
        say(f"Warning: {warning}")
    word = "Made" if entered.new else "Entered"
    return Answer(fields_of(entered), f"{word} {entered.path} on {entered.branch or 'no branch'}")


SALVAGE_COLUMNS = ("ref", "at", "why")


def salvage_list(_options: Options, _args: Args) -> Answer:
    """List what was put aside."""
    rows = [each._asdict() for each in list_salvages(Git(os.getcwd()))]
    return Answer({"salvage": rows}, f"{len(rows)} put aside", rows, SALVAGE_COLUMNS)


class SalvageShowArgs(Args, frozen=True):
    """The arguments of `coord salvage show`."""

    ref: str


def salvage_show(_options: Options, args: SalvageShowArgs) -> Answer:
    """Show one thing that was put aside."""
    found = dropping.describe(Git(os.getcwd()), args.ref)
    has = "a branch has all of it" if found.in_branch else "no branch has all of it"
    line = f"{found.ref}, {found.at}: {found.why}; {has}"
    return Answer({"salvage": fields_of(found)}, line, found.files, ("state", "path"))


class SalvageDropArgs(Args, frozen=True):
    """The arguments of `coord salvage drop`."""

    refs: list[str]
    force: bool


def salvage_drop(_options: Options, args: SalvageDropArgs) -> Answer:
    """Give up what some refs hold."""
    return _dropped(dropping.drop(Git(os.getcwd()), args.refs, force=args.force))


class SalvagePruneArgs(Args, frozen=True):
    """The arguments of `coord salvage prune`."""

    older_than_s: float | None
    merged: bool
    dry_run: bool


def salvage_prune(_options: Options, args: SalvagePruneArgs) -> Answer:
    """Give up what is old, or in a branch."""
    git, older_s = Git(os.getcwd()), args.older_than_s
    found = dropping.prune(git, older_s=older_s, merged=args.merged, dry_run=args.dry_run)
    return _dropped(found, "would be " if args.dry_run else "")


def _dropped(found: list[dropping.SalvageInfo], would: str = "") -> Answer:
    rows = [{"ref": each.ref, "commit": each.commit, "why": each.why} for each in found]
    if found and not would:
        say("Until git collects garbage: git update-ref REF COMMIT brings one back")
    return Answer({"dropped": rows}, f"{len(rows)} {would}dropped", rows, ("ref", "commit", "why"))


class SalvageKeepArgs(Args, frozen=True):
    """The arguments of `coord salvage keep`."""

    why: str


def salvage_keep(client: Client, args: SalvageKeepArgs) -> Answer:
    """Put a copy of what this session changed aside."""
    ref = checkpoint.save_checkpoint(client, args.why)
    return Answer({"ref": ref}, f"Kept in {ref}" if ref else "Nothing that this session holds is changed")


class SalvageRestoreArgs(Args, frozen=True):
    """The arguments of `coord salvage restore`."""

    ref: str
    files: list[str]


def salvage_restore(client: Client, args: SalvageRestoreArgs) -> Answer:
    """Bring files back."""
    restored, before = checkpoint.restore(client, args.ref, args.files)
    if before:
        say(f"What was there is in {before}")
    return Answer({"restored": restored, "before": before}, f"Restored {', '.join(restored)}")


class GateArgs(Args, frozen=True):
    """The arguments of `coord gate`."""

    folder: str
    protect: Sequence[str]


def gate(client: Client, args: GateArgs) -> Answer:
    """Put the gate before a shared bare repository."""
    from coord.integrations.setup.shared_gate import share

    shared = share(client.location, args.folder, args.protect, tenant=client.tenant, by=client.caller.tool)
    return Answer(
        shared._asdict(), f"Pushes to {shared.folder} are judged by the locks and claims of this repository"
    )
