"""Commits, worktrees, salvaged work and the git gate."""

import os
from collections.abc import Sequence

from coord.core.errors import CoordError, Invalid
from coord.core.locks.commands import ReleaseLocks
from coord.integrations.git.run import Git
from coord.integrations.git.salvage import checkpoint
from coord.integrations.git.salvage import drop as dropping
from coord.integrations.git.salvage.salvage import list_salvages
from coord.integrations.git.worktree import clean as cleaning
from coord.integrations.git.worktree import worktree
from coord.sdk.client.client import Client
from coord.transports.arguments import duration
from coord.transports.cli.args import Args, Options
from coord.transports.cli.output import Answer, count, fields_of, say


class CommitArgs(Args, frozen=True):
    """The arguments of `coord commit`."""

    files: list[str]
    message: str
    fence: int | None
    unlock: bool
    hooks_timeout_s: float | None


def commit(client: Client, args: CommitArgs) -> Answer:
    """Commit the files that this session has locked."""
    from coord.integrations.git.commit.commit import NOT_COMMITTED
    from coord.integrations.git.commit.commit import commit as commit_locked

    timeout_s = args.hooks_timeout_s or _configured_timeout(client)
    done = commit_locked(
        client, args.message, args.files, fence=args.fence, hooks_timeout_s=timeout_s, notify=say
    )
    fields = fields_of(done)
    for warning in done.warnings:
        say(warning if warning.startswith(NOT_COMMITTED) else f"Warning: {warning}")
    if args.unlock:
        fields["unlocked"] = _unlocked(client, done.locks)
    return Answer(fields, f"Committed ✓ {done.commit[:12]} {done.subject}")


def _configured_timeout(client: Client) -> float | None:
    """Return the time limit for hooks in `coord.toml`, if there is one."""
    file = client.configuration.file
    table = client.configuration.tables.get("commit", {})
    text = table.get("hooks_timeout") if isinstance(table, dict) else table
    if text is None:
        return None
    if not isinstance(text, str | int) or isinstance(text, bool):
        raise Invalid(f"hooks_timeout in {file} is {text!r}", hint='[commit] hooks_timeout = "10m"')
    return duration(str(text))


def _unlocked(client: Client, resources: list[str]) -> list[str]:
    """Release locks; a lost lock is only a warning, because the commit is done."""
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
    """Create a worktree, or enter an existing one."""
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
    """Enter a worktree."""
    return _entered(worktree.enter(client, args.name, force=args.force))


class WorktreeListArgs(Args, frozen=True):
    """The arguments of `coord worktree list`."""

    into: str


def worktree_list(client: Client, args: WorktreeListArgs) -> Answer:
    """List the worktrees that coord created."""
    found = cleaning.list_worktrees(client, args.into)
    rows = [fields_of(each) | {"orphan": each.orphan} for each in found]
    orphans = sum(each.orphan for each in found)
    return Answer(
        {"worktrees": rows},
        f"{count(len(found), 'worktree')}, {orphans} of ended sessions",
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
    """Remove worktrees whose work is saved elsewhere."""
    done = cleaning.clean(client, args.names, into=args.into, salvage=args.salvage, dry_run=args.dry_run)
    for name, why in done.kept.items():
        say(f"Kept {name}: {why}")
    removed = (
        f"Dry run: {len(done.removed)} would be removed" if args.dry_run else f"{len(done.removed)} removed"
    )
    from coord.host.repository import folder_is_gone

    gone = "; you stand in a folder that was deleted: cd to another one" if folder_is_gone() else ""
    return Answer(fields_of(done), f"{removed}, {len(done.kept)} kept{gone}")


def _entered(entered: worktree.WorktreeEntry) -> Answer:
    for warning in entered.warnings:
        say(f"Warning: {warning}")
    word = "Created" if entered.new else "Entered"
    return Answer(fields_of(entered), f"{word} {entered.path} on {entered.branch or 'no branch'}")


SALVAGE_COLUMNS = ("ref", "at", "why")


def salvage_list(_options: Options, _args: Args) -> Answer:
    """List salvaged work."""
    rows = [each._asdict() for each in list_salvages(Git(os.getcwd()))]
    return Answer({"salvage": rows}, count(len(rows), "salvage ref"), rows, SALVAGE_COLUMNS)


class SalvageShowArgs(Args, frozen=True):
    """The arguments of `coord salvage show`."""

    ref: str


def salvage_show(_options: Options, args: SalvageShowArgs) -> Answer:
    """Show the files of salvaged work."""
    found = dropping.describe(Git(os.getcwd()), args.ref)
    has = "a branch contains all of it" if found.in_branch else "no branch contains all of it"
    line = f"{found.ref}, {found.at}: {found.why}; {has}"
    return Answer({"salvage": fields_of(found)}, line, found.files, ("state", "path"))


class SalvageDropArgs(Args, frozen=True):
    """The arguments of `coord salvage drop`."""

    refs: list[str]
    force: bool


def salvage_drop(_options: Options, args: SalvageDropArgs) -> Answer:
    """Delete salvaged work."""
    return _dropped(dropping.drop(Git(os.getcwd()), args.refs, force=args.force))


class SalvagePruneArgs(Args, frozen=True):
    """The arguments of `coord salvage prune`."""

    older_than_s: float | None
    merged: bool
    dry_run: bool


def salvage_prune(_options: Options, args: SalvagePruneArgs) -> Answer:
    """Delete salvaged work that is old or merged."""
    git, older_s = Git(os.getcwd()), args.older_than_s
    found = dropping.prune(git, older_s=older_s, merged=args.merged, dry_run=args.dry_run)
    return _dropped(found, dry_run=args.dry_run)


def _dropped(found: list[dropping.SalvageInfo], *, dry_run: bool = False) -> Answer:
    rows = [{"ref": each.ref, "commit": each.commit, "why": each.why} for each in found]
    if found and not dry_run:
        say("To restore one before git collects garbage: git update-ref REF COMMIT")
    return Answer(
        {"dropped": rows},
        f"Dry run: {len(rows)} would be deleted" if dry_run else f"Deleted {count(len(rows), 'ref')}",
        rows,
        ("ref", "commit", "why"),
    )


class SalvageKeepArgs(Args, frozen=True):
    """The arguments of `coord salvage keep`."""

    why: str


def salvage_keep(client: Client, args: SalvageKeepArgs) -> Answer:
    """Save a copy of this session's changes."""
    ref = checkpoint.save_checkpoint(client, args.why)
    return Answer({"ref": ref}, f"Saved in {ref}" if ref else "Nothing to save: no locked file has changed")


class SalvageRestoreArgs(Args, frozen=True):
    """The arguments of `coord salvage restore`."""

    ref: str
    files: list[str]


def salvage_restore(client: Client, args: SalvageRestoreArgs) -> Answer:
    """Restore salvaged files."""
    restored, before = checkpoint.restore(client, args.ref, args.files)
    if before:
        say(f"The previous files are saved in {before}")
    return Answer({"restored": restored, "before": before}, f"Restored {', '.join(restored)}")


class GateArgs(Args, frozen=True):
    """The arguments of `coord gate`."""

    folder: str
    protect: Sequence[str]


def gate(client: Client, args: GateArgs) -> Answer:
    """Install the push gate in a shared bare repository."""
    from coord.integrations.setup.shared_gate import install_gate

    shared = install_gate(
        client.location, args.folder, args.protect, tenant=client.tenant, by=client.caller.tool
    )
    return Answer(
        shared._asdict(),
        f"Pushes to {shared.folder} are now checked against this repository's locks and claims",
    )
