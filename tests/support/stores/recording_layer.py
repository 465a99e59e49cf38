"""A file layer that writes down what it does, and a disk that forgets: what a power cut could leave behind.

`RecordingLayer` does every operation for real and records it. `Disk` replays a recording and knows, at any
moment, what is certain to be on the disk and what is only hoped for: the data of a file since its last sync,
and each name made or removed in a folder since that folder's last sync. `Disk.crashes` gives the states that
a power cut could leave: any of those may be there or not.
"""

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from coord.stores.files.io import FileLayer
from tests.conftest import SOAK

Tree = dict[str, bytes | None]
"""Paths with the content of files; None for a folder."""

SYNCS = ("sync_file", "sync_folder")
SCATTERED = 40 if SOAK else 1
"""How many times a random part of what is not certain survives."""


class SwiftLayer(FileLayer):
    """Does everything but wait for the disk."""

    def sync_file(self, file: int) -> None:
        pass

    def sync_folder(self, folder: int) -> None:
        pass


@dataclass(frozen=True)
class Operation:
    """Something that happened to the disk, or (`begun`, `done`) a step of the test."""

    kind: str
    path: str = ""
    data: bytes = b""
    place: int = 0
    target: str = ""


class RecordingLayer(SwiftLayer):
    """Records what it does below a base folder."""

    def __init__(self, base: Path) -> None:
        self.base = str(base)
        self.operations: list[Operation] = []
        self.failing_folder_syncs = 0
        self._paths: dict[int, str] = {}

    def note(self, kind: str, step: int) -> None:
        self.operations.append(Operation(kind, place=step))

    def _record(self, kind: str, path: str, **more: object) -> None:
        self.operations.append(Operation(kind, path, **more))  # type: ignore[arg-type]

    def _path(self, name: str, folder: int | None) -> str:
        if folder is None:
            return os.path.relpath(name, self.base)
        return os.path.normpath(f"{self._paths[folder]}/{name}")

    def open(self, name: str, flags: int, folder: int | None = None) -> int:
        path = self._path(name, folder)
        made = bool(flags & os.O_CREAT) and not os.path.lexists(f"{self.base}/{path}")
        file = super().open(name, flags, folder)
        self._paths[file] = path
        if made:
            self._record("make_file", path)
        return file

    def write(self, file: int, data: bytes) -> None:
        super().write(file, data)
        place = os.lseek(file, 0, os.SEEK_CUR) - len(data)
        self._record("write", self._paths[file], data=bytes(data), place=place)

    def write_at(self, file: int, data: bytes, place: int) -> None:
        super().write_at(file, data, place)
        self._record("write", self._paths[file], data=bytes(data), place=place)

    def sync_file(self, file: int) -> None:
        self._record("sync_file", self._paths[file])

    def sync_folder(self, folder: int) -> None:
        if self.failing_folder_syncs:
            self.failing_folder_syncs -= 1
            raise OSError(5, "the disk failed")
        self._record("sync_folder", self._paths[folder])

    def link(self, name: str, folder: int, new_name: str, new_folder: int) -> None:
        super().link(name, folder, new_name, new_folder)
        self._record("link", self._path(name, folder), target=self._path(new_name, new_folder))

    def unlink(self, name: str, folder: int) -> None:
        super().unlink(name, folder)
        self._record("remove", self._path(name, folder))

    def make_folder(self, name: str, folder: int | None = None) -> None:
        super().make_folder(name, folder)
        self._record("make_folder", self._path(name, folder))

    def remove_folder(self, name: str, folder: int) -> None:
        super().remove_folder(name, folder)
        self._record("remove", self._path(name, folder))


@dataclass(eq=False)
class File:
    """Data as written, and as certain."""

    data: bytes = b""
    certain: bytes = b""


@dataclass(eq=False)
class Change:
    """A name that was made or (without a node) removed, and not synced since."""

    name: str
    node: "File | Folder | None"
    passing: bool
    """In a folder that is never synced, where anything may be left behind."""


@dataclass(eq=False)
class Folder:
    """Names as they are, and as certain, with the changes in between."""

    names: dict[str, "File | Folder"] = field(default_factory=dict)
    certain: dict[str, "File | Folder"] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)


class Disk:
    """Replays a recording. It begins with what a folder holds, all of it certain."""

    def __init__(self, base: Path | None = None) -> None:
        self.root = Folder() if base is None else _certain(base)

    def apply(self, operation: Operation) -> None:
        path = operation.path
        match operation.kind:
            case "make_file":
                self._change(path, File())
            case "make_folder":
                self._change(path, Folder())
            case "remove":
                self._change(path, None)
            case "link":
                self._change(operation.target, self._node(path))
            case "write":
                file = self._node(path)
                assert isinstance(file, File)
                end = operation.place + len(operation.data)
                file.data = file.data[: operation.place] + operation.data + file.data[end:]
            case "sync_file":
                file = self._node(path)
                assert isinstance(file, File)
                file.certain = file.data
            case "sync_folder":
                folder = self._node(path)
                assert isinstance(folder, Folder)
                folder.certain = dict(folder.names)
                folder.changes.clear()

    def _node(self, path: str) -> "File | Folder":
        node: File | Folder = self.root
        for name in path.split("/"):
            if name != ".":
                assert isinstance(node, Folder)
                node = node.names[name]
        return node

    def _change(self, path: str, node: "File | Folder | None") -> None:
        parent, _, name = path.rpartition("/")
        folder = self._node(parent or ".")
        assert isinstance(folder, Folder)
        passing = parent.endswith("/tmp") or name.startswith(".")
        folder.changes.append(Change(name, node, passing))
        if node is None:
            del folder.names[name]
        else:
            folder.names[name] = node

    # What a power cut could leave.

    def crashes(self, seed: int, *, thorough: bool = True) -> Iterator[Tree]:
        """Yield states of the disk, each once; unless thorough, only those that lose all of a kind."""
        seen = set()
        for kept in self._survivals(random.Random(seed), thorough):
            for data in ("written", "certain", "half", "garbage") if thorough else ("written", "garbage"):
                tree: Tree = {}
                _collect(self.root, "", kept, data, tree)
                state = frozenset(tree.items())
                if state not in seen:
                    seen.add(state)
                    yield tree

    def as_written(self) -> Tree:
        """Return what a process sees that goes on where another has died."""
        tree: Tree = {}
        _collect(self.root, "", {id(change) for change in _changes(self.root, set())}, "written", tree)
        return tree

    def _survivals(self, dice: random.Random, thorough: bool) -> Iterator[set[int]]:
        """Yield sets of changes (by identity) that reach the disk although nobody asked for it."""
        changes = list(_changes(self.root, set()))
        every = {id(change) for change in changes}
        passing = {id(change) for change in changes if change.passing}
        made = {id(change) for change in changes if change.node is not None}
        yield set()
        yield every
        yield made
        yield every - made
        if not thorough:
            return
        for change in changes:
            if not change.passing:
                yield {id(change)} | passing
                yield every - {id(change)}
        for _ in range(SCATTERED):
            yield {id(change) for change in changes if dice.random() < 0.5}


def _certain(path: Path) -> Folder:
    names: dict[str, File | Folder] = {}
    for entry in sorted(path.iterdir()):
        if entry.is_dir():
            names[entry.name] = _certain(entry)
        else:
            names[entry.name] = File(entry.read_bytes(), entry.read_bytes())
    return Folder(names, dict(names))


def _changes(folder: Folder, seen: set[int]) -> Iterator[Change]:
    if id(folder) in seen:
        return
    seen.add(id(folder))
    yield from folder.changes
    inner = [*folder.names.values(), *folder.certain.values(), *(change.node for change in folder.changes)]
    for node in inner:
        if isinstance(node, Folder):
            yield from _changes(node, seen)


def _collect(folder: Folder, path: str, kept: set[int], data: str, tree: Tree) -> None:
    names = dict(folder.certain)
    for change in folder.changes:
        if id(change) in kept:
            if change.node is None:
                names.pop(change.name, None)
            else:
                names[change.name] = change.node
    for name, node in names.items():
        if isinstance(node, Folder):
            tree[f"{path}{name}"] = None
            _collect(node, f"{path}{name}/", kept, data, tree)
        else:
            tree[f"{path}{name}"] = _surviving(node, data)


def _surviving(file: File, data: str) -> bytes:
    if file.data == file.certain or data == "written":
        return file.data
    if data == "certain":
        return file.certain
    if data == "half":
        return file.data[: len(file.data) // 2]
    return bytes(0xA5 ^ byte for byte in file.data)


def put_on_disk(tree: Tree, base: Path) -> None:
    """Make a state real."""
    base.mkdir()
    for name, content in tree.items():
        path = f"{base}/{name}"
        if content is None:
            os.mkdir(path)
        else:
            with open(path, "wb") as file:
                file.write(content)
