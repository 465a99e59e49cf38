"""The root folder of a files store. Its `format` file contains the format, the store's id and metadata."""

import contextlib
import fcntl
import os
import secrets

import msgspec

from coord.core.errors import Corrupt, Invalid, Unavailable
from coord.stores.contract import FORMAT, check_format
from coord.stores.files.io import FileErrors, FileLayer
from coord.stores.local.fair_lock import lock_within

TIMEOUT_S = 5.0
FORMAT_BYTES = 256 * 1024
"""Enough for the ids of `tenants.OWN_STORES_MAX` stores."""
DRAFT = ".format-"


class FormatFile(msgspec.Struct, frozen=True):
    """The content of the format file, in JSON."""

    format: int
    store_id: str = ""
    epoch: int = 0
    metadata: dict[str, str] = {}


class RootFolder:
    """The open root of a files store; an empty folder becomes a store with a new id."""

    def __init__(self, layer: FileLayer, path: str) -> None:
        self.path = path
        self._layer = layer
        with FileErrors(path):
            self.folder = self._open()
            try:
                self.format = self._read() or self._make()
                self._make_tenants()
            except BaseException:
                self.close()
                raise

    def _open(self) -> int:
        try:
            return self._layer.open_folder(self.path)
        except FileNotFoundError:
            self._make_folders(self.path)
            return self._layer.open_folder(self.path)

    def _make_folders(self, path: str) -> None:
        parent = os.path.dirname(path)
        if not os.path.exists(parent):
            self._make_folders(parent)
            self._sync(os.path.dirname(parent))
        with contextlib.suppress(FileExistsError):
            self._layer.make_folder(path)

    def _sync(self, path: str) -> None:
        folder = self._layer.open_folder(path)
        try:
            self._layer.sync_folder(folder)
        finally:
            self._layer.close(folder)

    def _read(self) -> FormatFile | None:
        where = f"{self.path}/format"
        try:
            data = self._layer.read_file("format", self.folder, FORMAT_BYTES)
        except FileNotFoundError:
            return None
        try:
            found = msgspec.json.decode(data, type=FormatFile)
        except msgspec.MsgspecError as error:
            raise Corrupt(f"{where} is damaged: {error}", hint="restore it from a copy") from error
        check_format(found.format, where)
        if not found.store_id:
            raise Corrupt(f"{where} is damaged: it has no store id", hint="restore it from a copy")
        return found

    def _make(self) -> FormatFile:
        if not lock_within(self.folder, TIMEOUT_S):
            raise Unavailable(
                f"another process is still creating {self.path}", hint="check whether it is stopped"
            )
        try:
            found = self._read()
            if found is not None:
                return found
            self._check_empty()
            made = FormatFile(FORMAT, secrets.token_hex(16), 0)
            draft = DRAFT + secrets.token_hex(8)
            self._layer.write_file(draft, self.folder, [msgspec.json.encode(made), b"\n"])
            self._layer.link(draft, self.folder, "format", self.folder)
            self._layer.unlink(draft, self.folder)
            return made
        finally:
            fcntl.flock(self.folder, fcntl.LOCK_UN)

    def set_metadata(self, values: dict[str, str], epoch: int | None = None) -> None:
        """Change metadata in the format file; an empty value deletes the name."""
        with FileErrors(self.path):
            if not lock_within(self.folder, TIMEOUT_S):
                raise Unavailable(f"another process is still changing {self.path}", hint="try again")
            try:
                found = self._read() or self.format
                metadata = {name: text for name, text in {**found.metadata, **values}.items() if text}
                draft = DRAFT + secrets.token_hex(8)
                number = found.epoch if epoch is None else epoch
                self.format = msgspec.structs.replace(found, metadata=metadata, epoch=number)
                self._layer.write_file(draft, self.folder, [msgspec.json.encode(self.format), b"\n"])
                self._layer.replace(draft, "format", self.folder)
                self._layer.sync_folder(self.folder)
            finally:
                fcntl.flock(self.folder, fcntl.LOCK_UN)

    def metadata(self) -> dict[str, str]:
        """Return the current metadata."""
        with FileErrors(self.path):
            return dict((self._read() or self.format).metadata)

    def _check_empty(self) -> None:
        names = self._layer.names(self.folder)
        if "tenants" in names:
            raise Corrupt(f"{self.path}/format is missing", hint="restore it from a copy")
        for name in names:
            if not name.startswith(DRAFT):
                raise Invalid(
                    f"{self.path} is not empty and is not a coord store",
                    hint="use an empty or new folder",
                )
            self._layer.unlink(name, self.folder)

    def _make_tenants(self) -> None:
        """Create the folder of tenants. If it exists, the root and its format file are durable."""
        try:
            self._layer.close(self._layer.open_folder("tenants", self.folder))
        except FileNotFoundError:
            with contextlib.suppress(PermissionError):  # a folder that cannot be listed cannot be synced
                self._sync(os.path.dirname(self.path))
            self._layer.sync_folder(self.folder)
            with contextlib.suppress(FileExistsError):
                self._layer.make_folder("tenants", self.folder)

    def close(self) -> None:
        self._layer.close(self.folder)
