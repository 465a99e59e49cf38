"""Large values of a files store: each is a file named by its SHA-256; memory and log have only the hash."""

import hashlib
from collections.abc import Iterable

from coord.core.errors import Corrupt
from coord.stores.contract import RECORD_BYTES, Commit, Put
from coord.stores.files.folder import TenantFolder
from coord.stores.log.snapshot import INLINE_BYTES, Reference


def split_large(commit: Commit) -> tuple[Commit, dict[Reference, bytes]]:
    """Return the commit with references in place of its large values, and these values."""
    values: dict[Reference, bytes] = {}
    puts: dict[str, Put] = {}
    for key, put in commit.puts.items():
        if len(put.value) > INLINE_BYTES:
            reference = Reference(hashlib.sha256(put.value).digest())
            values[reference] = put.value
            puts[key] = Put(reference, put.index_key)
    if not puts:
        return commit, values
    puts = {**commit.puts, **puts}
    return Commit(commit.expected_versions, puts, commit.deletes, commit.events, commit.at, commit.id), values


class LargeValues:
    """The value files of one tenant. The caller holds the tenant's lock to write or remove them."""

    def __init__(self, folder: TenantFolder) -> None:
        self._folder = folder
        self._layer = folder.layer

    def write(self, values: dict[Reference, bytes]) -> None:
        """Make values durable. This happens before the entry with their references is written."""
        with self._folder.opened("values") as folder:
            for reference, value in values.items():
                with self._folder.written("value", [value]) as (name, _):
                    try:
                        self._layer.link(name, self._folder.tmp, reference.hex(), folder)
                    except FileExistsError:
                        continue  # the same content, from an earlier commit
            self._layer.sync_folder(folder)

    def read(self, reference: Reference) -> bytes | None:
        """Return the value; None if its file is missing."""
        try:
            with self._folder.opened("values") as folder:
                value = self._layer.read_file(reference.hex(), folder, RECORD_BYTES)
        except FileNotFoundError:
            return None
        if hashlib.sha256(value).digest() != reference:
            raise Corrupt(
                f"{self.path(reference)} is damaged: its content does not match its name",
                hint="restore the folder from a copy; nothing was changed",
            )
        return value

    def path(self, reference: Reference) -> str:
        return f"{self._folder.path}/values/{reference.hex()}"

    def keep_only(self, references: Iterable[Reference]) -> None:
        """Remove the values without a reference."""
        kept = {reference.hex() for reference in references}
        with self._folder.opened("values") as folder:
            for name in self._layer.names(folder):
                if name not in kept:
                    self._folder.remove(name, folder)
