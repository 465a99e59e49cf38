"""Moving a store elsewhere: what each kind gives for it beside the contract.

Notes are kept with the store's id, outside of every log. A store that moves away is *shut*: from then on
every commit is refused, also of who opened it before, until it is reopened. Its copy takes in records with
their versions, since fences are versions, and then begins its log at the last entry of the old.
"""

from collections.abc import Sequence
from typing import Protocol

from coord.stores.contract import Entry, Record


class Mover(Protocol):
    """What moving needs of a store."""

    def heads(self) -> dict[str, int]:
        """Return every tenant that has anything, with its newest offset."""

    def notes(self) -> dict[str, str]:
        """Return what the store says of itself."""

    def note(self, **values: str) -> None:
        """Say more of the store, or less: an empty value takes a note away."""

    def set_epoch(self, epoch: int) -> None:
        """Let the logs that begin from now on have the offsets of an epoch; open the store anew to see it."""

    def shut(self, url: str, store_id: str) -> None:
        """Refuse every commit from now on, wherever it comes from; it went to this url."""

    def reopen(self) -> None:
        """Take commits again."""

    def clear(self, tenant: str) -> None:
        """Forget what was copied of a tenant."""

    def add(self, tenant: str, records: Sequence[Record]) -> None:
        """Take in records with their versions; nobody sees them before the log begins."""

    def begin(self, tenant: str, entry: Entry) -> None:
        """Begin the log with this entry: what was before it is forgotten, what comes has higher offsets."""
