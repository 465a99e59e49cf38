"""Write the files of a mirror, and find out what others did to them.

The manifest decides what is ours. A file of others is never overwritten or removed. A file of ours that
somebody changed is reported and written again. Before a file is written or removed, the manifest says so:
whatever is killed in between, the next run knows whose the file is.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from hashlib import sha256
from typing import NamedTuple

from coord.core.errors import CoordError
from coord.core.messages.quoting import quote_names
from coord.followers.mirrors.state import FileNote, MirrorState, Root, StateFile
from coord.stores.local.safe_folder import Blocked, Folder

logger = logging.getLogger("coord.mirrors")
NAMED_MAX = 3
CHANGED = "changed by somebody else; a mirror only shows what coord knows, so coord writes it again"
REMOVED = "removed by somebody else; a mirror only shows what coord knows, so coord writes it again"
OTHERS = "not written: coord did not make what is there, and leaves it alone"


class Tree(NamedTuple):
    """What has to be below one folder: files by path, and folders that stay when they are empty."""

    files: Mapping[str, bytes] = {}
    folders: Sequence[str] = ()


def write_mirror(state_file: StateFile, state: MirrorState, wanted: Mapping[str, Tree], now: int) -> None:
    """Make the files below each folder as wanted; those of things that are gone are removed.

    A folder that cannot be written keeps no other one from being written.
    """
    for path in [path for path in state.roots if path not in wanted and not os.path.isdir(path)]:
        del state.roots[path]  # a worktree that was removed with all its files
    errors: list[CoordError] = []
    for path in list(dict.fromkeys((*wanted, *state.roots))):
        try:
            with closing(Folder(path)) as folder:
                _RootWriter(folder, state, state_file, now).write(wanted.get(path, Tree()))
        except CoordError as error:
            errors.append(error)
            continue
        if path not in wanted:
            del state.roots[path]
    if errors:
        raise errors[0]


def foreign_paths(state: MirrorState) -> list[str]:
    """Return the files of a mirror that are not as coord wrote them."""
    found = []
    for path, root in state.roots.items():
        with suppress(CoordError), closing(Folder(path)) as folder:
            found += [f"{path}/{name}" for name in root.files if _Seen(folder, root, name).is_changed]
    return found


def paths_of_others(state: MirrorState, wanted: Mapping[str, Tree]) -> list[str]:
    """Return the wanted paths where something is that coord did not write."""
    found = []
    for path, tree in wanted.items():
        root = state.roots.get(path, Root())
        ours = root.files.keys() | root.drafts.keys()
        with closing(Folder(path)) as folder:
            found += [f"{path}/{name}" for name in tree.files if name not in ours and folder.exists(name)]
    return found


class _Seen:
    """A file of ours as it is now."""

    def __init__(self, folder: Folder, root: Root, name: str) -> None:
        self.note = root.files.get(name)
        self.blocked = False
        self.digest: str | None = None
        try:
            signature = folder.signature(name)
            self.is_untouched = (
                self.note is not None and signature is not None and self.note.signature == signature
            )
            if self.is_untouched and self.note is not None:
                self.digest = self.note.digest
            elif signature is not None:
                self.digest = digest_of(folder.read(name) or b"")
        except Blocked:
            self.blocked, self.is_untouched = True, False

    @property
    def is_changed(self) -> bool:
        """Whether it differs from what coord wrote."""
        return self.note is not None and (self.blocked or self.digest != self.note.digest)


class _RootWriter:
    """Writes the files below one folder."""

    def __init__(self, folder: Folder, state: MirrorState, state_file: StateFile, now: int) -> None:
        self._folder = folder
        self._state = state
        self._state_file = state_file
        self._now = now
        self._root = state.roots.setdefault(folder.path, Root())
        self._reports: dict[str, list[str]] = {}

    def write(self, wanted: Tree) -> None:
        self._finish_drafts()
        root, files = self._root, wanted.files
        gone = [name for name in root.files if name not in files]
        for name in gone:
            self._check(name, _Seen(self._folder, root, name))
        todo = {name: seen for name in files if (seen := self._to_write(name, files[name])) is not None}
        folders = (*wanted.folders, *(name.rpartition("/")[0] for name in todo))
        missing = [each for folder in folders for each in self._folder.missing_folders(folder)]
        if gone or todo or missing:
            root.drafts = {**{name: digest_of(files[name]) for name in todo}, **dict.fromkeys(gone, "")}
            root.folders = list(dict.fromkeys((*root.folders, *missing)))
            self._state_file.save(self._state)
            for name in gone:
                self._remove(name)
            for name, seen in todo.items():
                self._write(name, files[name], seen)
            for folder in wanted.folders:
                with suppress(Blocked):
                    self._folder.make_folder(folder)
            root.drafts = {}
            self._remove_folders(wanted)
        self._say()

    def _finish_drafts(self) -> None:
        """Find out what a process did that was killed while it wrote."""
        root = self._root
        for name, digest in root.drafts.items():
            self._folder.remove_draft(name)
            seen = _Seen(self._folder, root, name)
            if digest and seen.digest == digest:
                root.files[name] = FileNote(digest)
            elif seen.note is not None:  # half an append, or a removal that happened: nobody else's doing
                root.files[name] = FileNote(seen.digest or "")
        root.drafts = {}

    def _to_write(self, name: str, data: bytes) -> _Seen | None:
        """Return the file as it is if it has to be written; report what others did to it."""
        seen = _Seen(self._folder, self._root, name)
        if seen.note is None and (seen.blocked or seen.digest is not None):
            self._report_once(name, OTHERS)
            return None
        self._check(name, seen)
        if name in self._root.blocked:
            self._root.blocked.remove(name)
        return None if seen.digest == digest_of(data) and not seen.blocked else seen

    def _check(self, name: str, seen: _Seen) -> None:
        if seen.is_changed and not (seen.note is not None and seen.note.digest == ""):
            gone = seen.digest is None and not seen.blocked
            self._report(name, REMOVED if gone else CHANGED)

    def _report_once(self, name: str, what: str) -> None:
        if name not in self._root.blocked:
            self._root.blocked.append(name)
            self._report(name, what)

    def _report(self, name: str, what: str) -> None:
        path = f"{self._folder.path}/{name}"
        self._state.note_change(path, what, self._now)
        self._reports.setdefault(what, []).append(path)

    def _say(self) -> None:
        for what, paths in self._reports.items():
            logger.warning("mirror: %s %s", quote_names(paths, NAMED_MAX), what)

    def _write(self, name: str, data: bytes, seen: _Seen) -> None:
        note = seen.note
        size = note.signature.size if note is not None and note.signature is not None else 0
        grows = name.endswith(".log") and seen.is_untouched and note is not None and size < len(data)
        try:
            if grows and note is not None and digest_of(data[:size]) == note.digest:
                signature = self._folder.append(name, data[size:])
            else:
                signature = self._folder.write(name, data)
        except Blocked as error:
            self._root.files.pop(name, None)
            self._report_once(name, f"not written: {error.message}")
            return
        self._root.files[name] = FileNote(digest_of(data), signature)

    def _remove(self, name: str) -> None:
        try:
            self._folder.remove(name)
        except Blocked as error:
            self._report_once(name, f"not removed: {error.message}")
        del self._root.files[name]

    def _remove_folders(self, wanted: Tree) -> None:
        """Remove the folders that coord made and that nothing is left in."""
        needed = {*wanted.folders, *(name.rpartition("/")[0] for name in wanted.files)}
        kept = []
        for folder in sorted(self._root.folders, key=lambda name: -name.count("/")):
            in_use = any(f"{each}/".startswith(f"{folder}/") for each in needed)
            if in_use or not self._folder.remove_folder(folder):
                kept.append(folder)
        self._root.folders = sorted(kept)


def digest_of(data: bytes) -> str:
    """Return the digest of a content."""
    return sha256(data).hexdigest()[:32]
