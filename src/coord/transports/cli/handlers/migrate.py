"""`coord migrate`: move the store of a repository."""

from types import SimpleNamespace

from coord.core.errors import Invalid
from coord.sdk.admin.migrate import Migrated, cancel_migration
from coord.sdk.admin.migrate import migrate as move
from coord.transports.cli.output import Answer, fields_of, say

TOLD_EVERY = 10_000
"""Records between two lines about the progress."""


def migrate(options: SimpleNamespace, given: SimpleNamespace) -> Answer:
    """Move the store of a repository to another url, or take that back."""
    if options.url:
        raise Invalid("migrate begins at the pinned store", hint="name the new one: --to-url URL")
    if given.cancel == bool(given.to_url):
        raise Invalid("give either --to-url or --cancel", hint="coord migrate --to-url URL --dry-run")
    if given.cancel:
        return _cancelled(cancel_migration())
    told = 0

    def tell(tenant: str, count: int) -> None:
        nonlocal told
        if count // TOLD_EVERY != told:
            told = count // TOLD_EVERY
            say(f"{tenant}: {count} records copied")

    moved = move(given.to_url, dry_run=given.dry_run, progress=tell)
    rows = [
        {"tenant": tenant, "kind": kind, "records": count}
        for tenant, kinds in moved.records.items()
        for kind, count in kinds.items()
    ]
    return Answer(fields_of(moved), _line(moved), rows, ("tenant", "kind", "records"))


def _line(moved: Migrated) -> str:
    count = sum(sum(kinds.values()) for kinds in moved.records.values())
    if not moved.moved:
        return f"would move {count} records from {moved.from_url} to {moved.to_url}; nothing was changed"
    return f"moved {count} records to {moved.to_url}; {moved.from_url} takes no more commits and can be kept"


def _cancelled(was_shut: bool) -> Answer:
    line = "the store takes commits again" if was_shut else "no migration was under way"
    return Answer({"cancelled": was_shut}, line)
