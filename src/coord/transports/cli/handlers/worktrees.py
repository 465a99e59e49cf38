"""Commands about worktrees."""

from types import SimpleNamespace

from coord.integrations.git.worktree import clean as worktree_clean
from coord.integrations.git.worktree import worktree
from coord.sdk.client.client import Client
from coord.transports.cli.output import Answer, fields_of, say

COLUMNS = ("name", "branch", "owner", "liveness", "changed", "unmerged", "note")


def add(client: Client, given: SimpleNamespace) -> Answer:
    """Make a worktree, or go on in it."""
    return _entered(
        worktree.add(
            client,
            given.name,
            branch=given.branch,
            path=given.path,
            start=getattr(given, "from"),
            setup=given.setup,
            or_shared=given.or_shared,
        )
    )


def enter(client: Client, given: SimpleNamespace) -> Answer:
    """Go on in a worktree."""
    return _entered(worktree.enter(client, given.name, force=given.force))


def list_(client: Client, given: SimpleNamespace) -> Answer:
    """List the worktrees that coord made."""
    found = worktree_clean.standings(client, given.into)
    rows = [fields_of(each) | {"orphan": each.orphan} for each in found]
    orphans = sum(each.orphan for each in found)
    return Answer(
        {"worktrees": rows}, f"{len(found)} worktrees, {orphans} of sessions that are gone", rows, COLUMNS
    )


def clean(client: Client, given: SimpleNamespace) -> Answer:
    """Remove worktrees of which nothing would be lost."""
    done = worktree_clean.clean(
        client, given.name, into=given.into, salvage=given.salvage, dry_run=given.dry_run
    )
    for name, why in done.kept.items():
        say(f"{name} is kept: {why}")
    would = "would be " if given.dry_run else ""
    return Answer(fields_of(done), f"{len(done.removed)} {would}removed, {len(done.kept)} kept")


def _entered(entered: worktree.Entered) -> Answer:
    for warning in entered.warnings:
        say(f"Warning: {warning}")
    word = "Made" if entered.new else "Entered"
    return Answer(fields_of(entered), f"{word} {entered.path} on {entered.branch or 'no branch'}")
