"""Plan the changes of a setup, show them as a diff, and apply all of them or none.

The planner starts from each file without the part of coord (its base). A setup adds to the base, and a
removal leaves it. So a second setup, with other options or a newer coord, equals a first one.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from difflib import unified_diff
from typing import NamedTuple

import msgspec

from coord.core.errors import Busy, Refused
from coord.integrations.setup.files import Content, read_file, write_file
from coord.integrations.setup.journal import Edit, Journal, digest, read_journal, setup_lock, write_journal
from coord.integrations.setup.marked_block import HASH, MARKDOWN, has_block, without_block
from coord.integrations.setup.tools import OUR_COMMANDS, without_hooks

FORMER_SUFFIX = ".coord-former"


class Change(NamedTuple):
    """The current and the planned content of a file; None: no file."""

    path: str
    current: Content | None
    planned: Content | None


class Plan(NamedTuple):
    """All changes of one setup, and the journal that can undo them."""

    folder: str
    changes: list[Change]
    journal: Journal
    previous: Journal
    notes: list[str]
    removable_folders: tuple[str, ...] = ()
    """Folders to remove if they are empty afterwards."""

    def diff(self) -> str:
        """Return all changes as a diff."""
        return "".join(_diff(change) for change in self.changes)

    def summary(self) -> list[tuple[str, str]]:
        """Return each file with the number of lines that come and go."""
        return [(change.path, _line_counts(change)) for change in self.changes]

    def apply(self, *, by: str = "") -> None:
        """Make all changes, unless a file changed since they were planned.

        `by`: the calling agent tool. It may run the first setup, but not change the hooks that control it.
        """
        if by and self.previous.edits and self.changes:
            raise Refused(
                f"only people may change installed hooks, and {by} is an agent",
                hint="ask the person you work for to run this command",
            )
        with setup_lock(self.folder):
            if read_journal(self.folder) != self.previous:
                raise Busy("another coord init or uninstall finished first", hint="run this command again")
            for change in self.changes:
                if read_file(change.path) != change.current:
                    raise Busy(
                        f"{change.path} has changed; nothing was written", hint="run this command again"
                    )
            kept = [edit for edit in self.previous.edits if self.journal.find(edit.path) is None]
            folders = tuple(dict.fromkeys((*self.journal.folders, *self.previous.folders)))
            write_journal(
                self.folder,
                msgspec.structs.replace(self.journal, edits=(*self.journal.edits, *kept), folders=folders),
            )
            for change in self.changes:
                write_file(change.path, change.planned)
            _remove_empty({*folders, *self.removable_folders} - {*self.journal.folders})
            write_journal(self.folder, self.journal)


class Planner:
    """Collects the planned content of each file."""

    def __init__(self, folder: str, strip_config: Callable[[Content, Content | None], Content]) -> None:
        """`folder` has the journal; `strip_config` removes our part from a git configuration."""
        self.previous = read_journal(folder)
        self.notes: list[str] = []
        self._folder = folder
        self._strip_config = strip_config
        self._base: dict[str, Content | None] = {}
        self._removable: set[str] = set()
        self._planned: dict[str, tuple[str, Content | None]] = {}

    def base(self, path: str) -> Content | None:
        """Return a file without the part of coord."""
        if path not in self._base:
            edit = self.previous.find(path)
            self._base[path] = read_file(path) if edit is None else self._without_edit(edit)
        return self._base[path]

    def plan_file(self, path: str, how: str, content: Content) -> None:
        """Plan the content of a file; `how` names the way to find our part in it later."""
        self.base(path)
        self._planned[path] = (how, content)

    def set_base(self, path: str, content: Content | None) -> None:
        """Set the base of a file that has an unrecorded part of coord."""
        self._base[path] = content

    def has_plan_for(self, path: str) -> bool:
        """Whether this plan writes a file."""
        return path in self._planned

    def created_below(self, root: str) -> list[str]:
        """Return the files below a folder that exist only for coord, relative to it."""
        made = [path for path in self._planned if self._base[path] is None]
        return [path.removeprefix(f"{root}/") for path in made if path.startswith(f"{root}/")]

    def plan_copy_removal(self, root: str, name: str, template: str) -> None:
        """Plan to remove a file that our hook copied into a new worktree."""
        path, copied = f"{root}/{name}", self.previous.find(template)
        current = read_file(path)
        if (
            self.previous.find(path) is None
            and copied is not None
            and current is not None
            and _is_copy(current, copied)
        ):
            self._base[path] = self._without_edit(Edit(path, copied.how, None, digest(read_file(template))))
            while path := path.rpartition("/")[0].removesuffix(root):
                self._removable.add(path)

    def finish(
        self,
        scope: str = "local",
        tools: Iterable[str] = (),
        protected: Iterable[str] = (),
        tenant: str = "",
    ) -> Plan:
        """Return the plan: the planned files, and the base of all others."""
        for edit in self.previous.edits:
            self.base(edit.path)
        edits, changes = list[Edit](), list[Change]()
        for path, base in self._base.items():
            current = read_file(path)
            how, planned = self._planned.get(path, ("", base))
            if planned != base:
                edits.append(Edit(path, how, base, digest(planned)))
            if planned != current:
                changes.append(Change(path, current, planned))
        folders = self._new_folders(edits)
        options = (scope, tuple(tools), tuple(protected), tenant)
        journal = Journal(tuple(edits), folders, *options) if edits else Journal()
        return Plan(self._folder, changes, journal, self.previous, self.notes, tuple(self._removable))

    def _new_folders(self, edits: list[Edit]) -> tuple[str, ...]:
        """Return the folders that exist only for our files."""
        found: dict[str, None] = {}
        for edit in edits:
            folder = os.path.dirname(edit.path)
            while not os.path.isdir(folder) or folder in self.previous.folders:
                found[folder] = None
                folder = os.path.dirname(folder)
        return tuple(found)

    def _without_edit(self, edit: Edit) -> Content | None:
        """Return a file without our edit; keep later changes of others."""
        current = read_file(edit.path)
        if edit.how == "former":
            return self._former_hook(edit, current)
        if digest(current) == edit.digest:
            return self._before(edit)
        if current is None or current == edit.before:
            return current
        before = edit.before
        self.notes.append(f"somebody else changed {edit.path}; coord removes only its part")
        if edit.how == "json":
            text = without_hooks(current.text, edit.path, before.text if before else "")
            return None if before is None and text.strip() == "{}" else current.with_text(text)
        if edit.how == "block":
            text = without_block(current.text, marks_for(edit.path))
            return None if before is None and not text.strip() else current.with_text(text)
        if edit.how == "config":
            return self._strip_config(current, before)
        self.notes[-1] = f"somebody else changed {edit.path}; coord leaves it unchanged"
        return current

    def _before(self, edit: Edit) -> Content | None:
        """Return a file as it was; a renamed hook may have newer content under its new name."""
        aside = read_file(edit.path + FORMER_SUFFIX) if edit.how == "hook" and edit.before else None
        return aside or edit.before

    def _former_hook(self, edit: Edit, current: Content | None) -> Content | None:
        """Return the hook from before coord; None if it can get its old name back."""
        stub = self.previous.find(edit.path.removesuffix(FORMER_SUFFIX))
        if stub is None or digest(read_file(stub.path)) == stub.digest:
            return None
        if current is not None:
            self.notes.append(f"coord keeps {edit.path}, the hook from before: another hook has its name now")
        return current


def _is_copy(content: Content, template: Edit) -> bool:
    """Whether a file is a copy of a template, or contains a part of coord."""
    if digest(content) == template.digest:
        return True
    if template.how == "json":
        return any(mark in content.text for mark in OUR_COMMANDS)
    return template.how == "block" and has_block(content.text, marks_for(template.path))


def marks_for(path: str) -> tuple[str, str]:
    """Return the comment syntax of a file."""
    return MARKDOWN if path.endswith(".md") else HASH


def _remove_empty(folders: Iterable[str]) -> None:
    """Remove the folders that are empty."""
    for folder in sorted(folders, key=len, reverse=True):
        with suppress(OSError):
            os.rmdir(folder)


def _line_counts(change: Change) -> str:
    rows = _diff(change).splitlines()[2:]
    more, less = (sum(row.startswith(sign) for row in rows) for sign in "+-")
    if change.current is None:
        return f"new, {more} lines"
    return "removed" if change.planned is None else f"+{more} -{less} lines"


def _diff(change: Change) -> str:
    current, planned = ((content.text if content else "") for content in (change.current, change.planned))
    names = [change.path if content else "/dev/null" for content in (change.current, change.planned)]
    lines = unified_diff(
        current.splitlines(keepends=True), planned.splitlines(keepends=True), names[0], names[1]
    )
    text = "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace") or f"{names[1]}: mode changed\n"
