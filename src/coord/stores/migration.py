"""Migrating a store: what a backend offers for it beside the contract, and how a migrated store refuses.

A store keeps *metadata* beside its id, outside of every log. A store that is migrated away is *sealed*: it
refuses every commit, also from processes that opened it before, until it is reopened. The new store takes in
records with their versions, because fences are versions, and then starts its log at the last entry of the
old one. `sdk/admin/migrate.py` drives the steps.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from coord.core.errors import NotFound, Unavailable
from coord.stores.contract import Entry, Record

MIGRATED_URL, MIGRATED_ID, MIGRATION_COMPLETE = "migrated_url", "migrated_id", "migration_complete"
"""Metadata of the old store: the new url without passwords, the id of the new store, the copy is complete."""
COPYING_FROM, COPIED_FROM = "copying_from", "copied_from"
"""Metadata of the new store: the id of the store that is being copied, or was copied."""
EARLIER_IDS = "earlier_ids"
"""Metadata of a complete copy: the ids of the stores before it, oldest first. They are sealed for good."""

_MIGRATED = "this store was migrated to "


class Migrator(Protocol):
    """The steps of a migration on one store."""

    def heads(self) -> dict[str, int]:
        """Return every tenant that has data, with its newest offset."""

    def metadata(self) -> dict[str, str]:
        """Return the metadata of the store."""

    def set_metadata(self, **values: str) -> None:
        """Change metadata; an empty value deletes the name."""

    def set_epoch(self, epoch: int) -> None:
        """Give new logs the offsets of this epoch. An open store sees it when it is opened again."""

    def seal(self, url: str, store_id: str) -> None:
        """Refuse every commit from every process, because the store migrated to this url."""

    def reopen(self) -> None:
        """Accept commits again."""

    def clear(self, tenant: str) -> None:
        """Remove everything that was copied of a tenant."""

    def add(self, tenant: str, records: Sequence[Record]) -> None:
        """Add records with their versions. Nobody sees them before `begin`."""

    def begin(self, tenant: str, entry: Entry) -> None:
        """Start the log with this entry: earlier entries count as trimmed, later ones have higher offsets."""


def not_installed_error(url: str) -> NotFound:
    """Return the error for a server without a store; the url must be safe to show."""
    return NotFound(f"{url} has no store", hint=f"prepare it: coord install {url}")


def migrated_message(url: str) -> str:
    """Return the message of a sealed store; a server can raise it as text."""
    return f"{_MIGRATED}{url}"


def migrated_error(url: str) -> Unavailable:
    """Return the error for a commit to a sealed store."""
    return Unavailable(
        migrated_message(url), hint=f"connect again; if that fails: coord migrate --to-url {url}"
    )


def unavailable_error(message: str) -> Unavailable:
    """Return the error for a refused commit; the server's message shows whether the store was migrated."""
    _, found, url = message.partition(_MIGRATED)
    return migrated_error(url.split()[0]) if found else Unavailable(message)


def check_not_migrating(url: str, metadata: dict[str, str]) -> None:
    """Refuse a store that was migrated away, and a copy that is not complete."""
    if MIGRATED_URL in metadata:
        raise migrated_error(metadata[MIGRATED_URL])
    if COPYING_FROM in metadata:
        raise Unavailable(
            f"{url} is an incomplete copy of another store",
            hint=f"finish the migration where it was started: coord migrate --to-url {url}",
        )


def earlier_ids(metadata: Mapping[str, str]) -> list[str]:
    """Return the ids of the stores from which a complete copy was made, oldest first."""
    return (metadata.get(EARLIER_IDS) or metadata.get(COPIED_FROM, "")).split()
