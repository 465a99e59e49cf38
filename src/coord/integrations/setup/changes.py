"""Plan the changes of a setup, show them as a diff, and apply them.

The planner starts from each file without the part of coord (its base). A setup adds to the base, and a
removal leaves it. So a second setup, with other options or a newer coord, equals a first one.

The journal is written before the first file and names what is under way. A setup that was killed at any
point is therefore finished, or undone, by the next one.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from difflib import unified_diff
from typing import NamedTuple

import msgspec

from coord.core.errors import Busy, CoordError, Refused, Unavailable
from coord.integrations.setup.files import Content, read_file, remove_draft, write_file
from coord.integrations.setup.journal import (
    INIT,
    NAME,
    UNINSTALL,
    Edit,
    Journal,
    digest,
    read_journal,
    setup_lock,
    write_journal,
)
from coord.integrations.setup.text.marked_block import HASH, MARKDOWN, without_block
from coord.integrations.setup.tools import without_hooks

FORMER_SUFFIX = ".coord-former"
SIGNATURE = b"written by coord "
"""Every hook file of coord contains these bytes."""


class Problem(NamedTuple):
    """The reason why a tool is not protected, or a file cannot be restored, and the next step."""

    subject: str
    message: str
    hint: str

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


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
    problems: tuple[Problem, ...] = ()
    """The tools that stay unprotected, and the files that stay as they are."""
    removes: bool = False
    """Whether this is a removal."""

    def diff(self) -> str:
        """Return all changes as a diff."""
        return "".join(_diff(change) for change in self.changes)

    def summary(self) -> list[tuple[str, str]]:
        """Return each file with the number of lines that come and go."""
        return [(change.path, _line_counts(change)) for change in self.changes]

    def apply(self, *, by: str = "") -> None:
        """Make all changes, unless a file changed since they were planned.

        `by`: the calling agent tool. It may run the first setup, but not change the hooks that control it.
        If a file cannot be written, the others are written all the same, and the error is raised at the end.
        """
        installed = self.previous.edits and self.previous.unfinished != INIT
        if by and self.changes and (installed or self.removes):
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
            under_way = self._journal_under_way()
            if self.changes:
                write_journal(self.folder, under_way)
            for path in (f"{self.folder}/{NAME}", *(edit.path for edit in under_way.edits)):
                remove_draft(path)
            failures = [error for change in self._ordered_changes() if (error := _carry_out(change))]
            _remove_empty({*under_way.folders} - {*self.journal.folders})
            if failures:
                raise failures[0]
            if self.changes or self.journal != self.previous:
                write_journal(self.folder, self.journal)

    def _journal_under_way(self) -> Journal:
        """Return the journal that can undo every state between the current files and the planned ones."""
        known = {edit.path for edit in (*self.journal.edits, *self.previous.edits)}
        kept = [edit for edit in self.previous.edits if self.journal.find(edit.path) is None]
        unrecorded = [
            Edit(change.path, "whole", change.planned, digest(change.current))
            for change in self.changes
            if change.path not in known
        ]
        return msgspec.structs.replace(
            self.journal if self.journal.edits else self.previous,
            edits=(*self.journal.edits, *kept, *unrecorded),
            folders=tuple(
                dict.fromkeys((*self.journal.folders, *self.previous.folders, *self.removable_folders))
            ),
            unfinished=UNINSTALL if self.removes else INIT,
        )

    def _ordered_changes(self) -> list[Change]:
        """Return the changes in an order in which a former hook always has one of its two names."""
        removals = [change for change in self.changes if change.planned is None]
        writes = [change for change in self.changes if change.planned is not None]
        return [*sorted(writes, key=lambda change: not change.path.endswith(FORMER_SUFFIX)), *removals]


def _carry_out(change: Change) -> Unavailable | None:
    """Write one file; return the error."""
    try:
        write_file(change.path, change.planned, durable=change.current is not None)
    except Unavailable as error:
        return error
    return None


class Planner:
    """Collects the planned content of each file."""

    def __init__(self, folder: str, strip_config: Callable[[Content, Content | None], Content]) -> None:
        """`folder` has the journal; `strip_config` removes our part from a git configuration."""
        self.previous = read_journal(folder)
        self.notes: list[str] = []
        self.problems: dict[str, Problem] = {}
        self._kept: set[str] = set()
        self._unrecorded: set[str] = set()
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
        self._unrecorded.add(path)

    def keep(self, path: str) -> None:
        """Leave a file as it is, and keep what the journal says about it."""
        self._kept.add(path)

    @contextmanager
    def reporting(self, path: str, subject: str) -> Iterator[None]:
        """Record an error inside the block as the reason why a file stays as it is."""
        try:
            yield
        except CoordError as error:
            self.problems.setdefault(path, Problem(subject, error.message, error.hint))
            if path not in self._planned:
                self._kept.add(path)

    def has_plan_for(self, path: str) -> bool:
        """Whether this plan writes a file."""
        return path in self._planned

    def created_below(self, root: str) -> list[str]:
        """Return the files below a folder that exist only for coord, relative to it."""
        made = [path for path in self._planned if self._base[path] is None]
        return [path.removeprefix(f"{root}/") for path in made if path.startswith(f"{root}/")]

    def remove_unrecorded(self, path: str, content: Content | None, root: str) -> None:
        """Plan a file without a part of coord that no journal names; None removes it and empty folders."""
        self._base[path] = content
        while content is None and (path := os.path.dirname(path)).startswith(f"{root}/"):
            self._removable.add(path)

    def finish(
        self,
        scope: str = "local",
        tools: Iterable[str] = (),
        protected: Iterable[str] = (),
        tenant: str = "",
        ephemeral: str = "",
        removes: bool = False,
        http: Iterable[str] = (),
    ) -> Plan:
        """Return the plan: the planned files, and the base of all others."""
        edits, changes = list[Edit](), list[Change]()
        for edit in self.previous.edits:
            with self.reporting(edit.path, "files"):
                self.base(edit.path)
            if edit.path in self._kept:
                edits.append(edit)
        for path, base in self._base.items():
            if path in self._kept:
                continue
            current = read_file(path)
            how, planned = self._planned.get(path, ("", base))
            if planned != base:
                edits.append(Edit(path, how, base, digest(planned)))
            if planned != current:
                changes.append(Change(path, current, planned))
        folders = self._new_folders(edits)
        options = (scope, tuple(tools), tuple(protected), tenant)
        journal = Journal(tuple(edits), folders, *options, ephemeral=ephemeral, http=tuple(http))
        journal = journal if edits else Journal()
        problems = tuple(dict.fromkeys(self.problems.values()))
        removable = tuple(self._removable)
        return Plan(self._folder, changes, journal, self.previous, self.notes, removable, problems, removes)

    def _new_folders(self, edits: list[Edit]) -> tuple[str, ...]:
        """Return the folders that exist only for our files."""
        found: dict[str, None] = {}
        ours = {edit.path for edit in edits if edit.before is None}
        for edit in edits:
            folder = os.path.dirname(edit.path)
            while self._is_new(folder) or self._has_only(folder, ours):
                found[folder] = None
                ours.add(folder)
                folder = os.path.dirname(folder)
        return tuple(found)

    def _is_new(self, folder: str) -> bool:
        return not os.path.isdir(folder) or folder in self.previous.folders

    def _has_only(self, folder: str, ours: set[str]) -> bool:
        """Whether a folder has nothing but files that an earlier, unrecorded setup created."""
        if not self._unrecorded:
            return False
        found = {f"{folder}/{name}" for name in os.listdir(folder)}
        return bool(found) and found <= ours

    def _without_edit(self, edit: Edit) -> Content | None:
        """Return a file without our edit; keep later changes of others."""
        current = read_file(edit.path)
        if edit.how == "former":
            return self._former_hook(edit, current)
        if digest(current) == edit.digest:
            return self._before(edit)
        if current is None and edit.how == "hook" and edit.before:  # its owner's hook is under the other name
            return read_file(edit.path + FORMER_SUFFIX)
        if current is None or current == edit.before:
            return current
        if edit.how == "hook" and SIGNATURE in current.data:  # a killed setup did not get this far
            return self._before(edit)
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
        named = None if stub is None else read_file(stub.path)
        if named is None or named == current or SIGNATURE in named.data:
            return None
        if current is not None:
            self.notes.append(f"coord keeps {edit.path}, the hook from before: another hook has its name now")
        return current


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
