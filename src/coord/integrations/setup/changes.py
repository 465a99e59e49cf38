"""What a set-up changes: worked out first, shown, and then done as a whole.

Every file is thought of as it would be without us (its base). A set-up adds to that; taking everything out
leaves it. So setting up again, in another way or with a newer coord, is as doing it for the first time.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from difflib import unified_diff
from typing import NamedTuple

import msgspec

from coord.core.errors import Busy, Refused
from coord.integrations.setup.files import Content, put, read
from coord.integrations.setup.journal import Edit, Record, digest, exclusively, read_record, write_record
from coord.integrations.setup.marked_block import HASH, MARKDOWN, has_block, without_block
from coord.integrations.setup.tools import OURS, without_hooks

FORMER = ".coord-former"


class Change(NamedTuple):
    """A file that is to become another."""

    path: str
    now: Content | None
    then: Content | None


class Plan(NamedTuple):
    """All that is to be done."""

    folder: str
    changes: list[Change]
    record: Record
    old: Record
    notes: list[str]
    spare: tuple[str, ...] = ()
    """Folders that go if nothing is left in them."""

    def diff(self) -> str:
        """Return all changes as a diff."""
        return "".join(_shown(change) for change in self.changes)

    def apply(self, *, by: str = "") -> None:
        """Do it, unless something changed since it was planned.

        `by`: the agent tool that wants it. It may set up for the first time, but not change what holds it.
        """
        if by and self.old.edits and self.changes:
            raise Refused(
                f"hooks that are set up are changed by people, and this is {by}",
                hint="ask the person you work for to run it",
            )
        with exclusively(self.folder):
            if read_record(self.folder) != self.old:
                raise Busy("another coord init or uninstall was quicker", hint="run this one again")
            for change in self.changes:
                if read(change.path) != change.now:
                    raise Busy(
                        f"{change.path} was changed by somebody else; nothing was done", hint="run it again"
                    )
            kept = [edit for edit in self.old.edits if self.record.find(edit.path) is None]
            folders = tuple(dict.fromkeys((*self.record.folders, *self.old.folders)))
            write_record(
                self.folder,
                msgspec.structs.replace(self.record, edits=(*self.record.edits, *kept), folders=folders),
            )
            for change in self.changes:
                put(change.path, change.then)
            _remove_empty({*folders, *self.spare} - {*self.record.folders})
            write_record(self.folder, self.record)


class Planner:
    """Collects what is wanted, file by file."""

    def __init__(self, folder: str, strip_config: Callable[[Content, Content | None], Content]) -> None:
        """`folder` has the record; `strip_config` takes what is ours out of git's configuration."""
        self.old = read_record(folder)
        self.notes: list[str] = []
        self._folder = folder
        self._strip_config = strip_config
        self._base: dict[str, Content | None] = {}
        self._spare: set[str] = set()
        self._wanted: dict[str, tuple[str, Content | None]] = {}

    def base(self, path: str) -> Content | None:
        """Return a file as it is without us."""
        if path not in self._base:
            edit = self.old.find(path)
            self._base[path] = read(path) if edit is None else self._undone(edit)
        return self._base[path]

    def want(self, path: str, how: str, content: Content) -> None:
        """Plan what a file shall be; `how` says what will find our part in it."""
        self.base(path)
        self._wanted[path] = (how, content)

    def rebase(self, path: str, content: Content | None) -> None:
        """Say what a file is without us, where it has something of ours that nobody recorded."""
        self._base[path] = content

    def wants(self, path: str) -> bool:
        """Whether a file is to be changed."""
        return path in self._wanted

    def made_below(self, root: str) -> list[str]:
        """Return the files below a folder that are there only because of us, as named there."""
        made = [path for path in self._wanted if self._base[path] is None]
        return [path.removeprefix(f"{root}/") for path in made if path.startswith(f"{root}/")]

    def forget_copy(self, root: str, name: str, template: str) -> None:
        """Plan that what a hook of ours copied into a new worktree is taken out again."""
        path, copied = f"{root}/{name}", self.old.find(template)
        now = read(path)
        if self.old.find(path) is None and copied is not None and now is not None and _is_copy(now, copied):
            self._base[path] = self._undone(Edit(path, copied.how, None, digest(read(template))))
            while path := path.rpartition("/")[0].removesuffix(root):
                self._spare.add(path)

    def done(
        self,
        scope: str = "local",
        tools: Iterable[str] = (),
        protected: Iterable[str] = (),
        tenant: str = "",
    ) -> Plan:
        """Return the plan: what is wanted, and all else as it is without us."""
        for edit in self.old.edits:
            self.base(edit.path)
        edits, changes = list[Edit](), list[Change]()
        for path, base in self._base.items():
            now = read(path)
            how, then = self._wanted.get(path, ("", base))
            if then != base:
                edits.append(Edit(path, how, base, digest(then)))
            if then != now:
                changes.append(Change(path, now, then))
        made = self._folders_for(edits)
        asked = (scope, tuple(tools), tuple(protected), tenant)
        record = Record(tuple(edits), made, *asked) if edits else Record()
        return Plan(self._folder, changes, record, self.old, self.notes, tuple(self._spare))

    def _folders_for(self, edits: list[Edit]) -> tuple[str, ...]:
        """Return the folders that are there for our files only."""
        found: dict[str, None] = {}
        for edit in edits:
            folder = os.path.dirname(edit.path)
            while not os.path.isdir(folder) or folder in self.old.folders:
                found[folder] = None
                folder = os.path.dirname(folder)
        return tuple(found)

    def _undone(self, edit: Edit) -> Content | None:
        """Return a file as it is without our edit; what others did to it since then stays."""
        now = read(edit.path)
        if edit.how == "former":
            return self._undone_former(edit, now)
        if digest(now) == edit.digest:
            return self._before(edit)
        if now is None or now == edit.before:
            return now
        before = edit.before
        self.notes.append(f"{edit.path} was changed by somebody else; only what coord put there is taken out")
        if edit.how == "json":
            text = without_hooks(now.text, edit.path, before.text if before else "")
            return None if before is None and text.strip() == "{}" else now.with_text(text)
        if edit.how == "block":
            text = without_block(now.text, marks_for(edit.path))
            return None if before is None and not text.strip() else now.with_text(text)
        if edit.how == "config":
            return self._strip_config(now, before)
        self.notes[-1] = f"{edit.path} was changed by somebody else, and is left as it is"
        return now

    def _before(self, edit: Edit) -> Content | None:
        """Return what a file was; a hook that was moved aside may have been changed there."""
        aside = read(edit.path + FORMER) if edit.how == "hook" and edit.before else None
        return aside or edit.before

    def _undone_former(self, edit: Edit, now: Content | None) -> Content | None:
        """Return whether a hook stays aside: it does where another one came into its place."""
        stub = self.old.find(edit.path.removesuffix(FORMER))
        if stub is None or digest(read(stub.path)) == stub.digest:
            return None
        if now is not None:
            self.notes.append(
                f"{edit.path} is the hook from before coord, and stays: another one is in its place"
            )
        return now


def _is_copy(content: Content, template: Edit) -> bool:
    """Whether a file is the copy of a template, be it changed since, or has something of ours at least."""
    if digest(content) == template.digest:
        return True
    if template.how == "json":
        return any(mark in content.text for mark in OURS)
    return template.how == "block" and has_block(content.text, marks_for(template.path))


def marks_for(path: str) -> tuple[str, str]:
    """Return how comments look in a file."""
    return MARKDOWN if path.endswith(".md") else HASH


def _remove_empty(folders: Iterable[str]) -> None:
    """Remove folders that were made for us, unless somebody put something there."""
    for folder in sorted(folders, key=len, reverse=True):
        with suppress(OSError):
            os.rmdir(folder)


def _shown(change: Change) -> str:
    now, then = ((content.text if content else "") for content in (change.now, change.then))
    names = [change.path if content else "/dev/null" for content in (change.now, change.then)]
    lines = unified_diff(now.splitlines(keepends=True), then.splitlines(keepends=True), names[0], names[1])
    difference = "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
    return (
        difference.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        or f"{names[1]}: another mode\n"
    )
