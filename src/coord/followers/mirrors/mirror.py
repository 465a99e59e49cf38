"""The mirrors as followers: after each change they write the present state of the store into files.

The files do not depend on the log, except for the text logs: those have the lines of each entry once. The
state with the offset is written after them, and a text log counts only as far as the state says.
"""

import os
from abc import abstractmethod
from typing import ClassVar

from coord.core.errors import CoordError, Invalid, Unavailable
from coord.followers.follower import LocalFollower, LogSource
from coord.followers.mirrors.agent_claims import agent_claims_files
from coord.followers.mirrors.claude_coord import claude_coord_files
from coord.followers.mirrors.contract import contract_files
from coord.followers.mirrors.log_lines import Line, LogReader
from coord.followers.mirrors.present import Present, read_present
from coord.followers.mirrors.state import MirrorState, StateFile
from coord.followers.mirrors.text_logs import TextLogs
from coord.followers.mirrors.writer import Tree, write_mirror
from coord.host.runtime.switched_on import MIRROR_PATHS, switched_on
from coord.integrations.git.worktree.templates import worktree_roots
from coord.sdk.log_reader import LoggedEvent
from coord.stores.local.safe_folder import DRAFT, make_private_folder

PREFIX = "mirror-"
DUE_NOW = 1
"""While the files are being written: a process that is killed leaves them to the next one."""
CLAUDE_COORD = "/tmp/claude-coord"  # noqa: S108 - the document's; `make_private_folder` checks whose it is


class Mirror(LocalFollower):
    """A follower that writes files on this machine."""

    parts: ClassVar[frozenset[str]] = frozenset()
    """What it shows besides locks and sessions."""
    drafts: ClassVar[tuple[str, ...]] = ()
    """Folders beside those of `MIRROR_PATHS` in which a file may be half written."""
    in_repository: ClassVar[bool] = True

    def __init__(self, source: LogSource) -> None:
        super().__init__(source)
        self.state_file = StateFile(source.location.folder, self.name)

    @classmethod
    def wanted(cls, source: LogSource) -> bool:
        """Whether a person switched it on for this store and tenant."""
        if cls.name not in switched_on(source.location.folder):
            return False
        try:
            state = StateFile(source.location.folder, cls.name).load()
        except CoordError:  # it fails alone, when it begins
            return True
        return state is not None and state.tenant == source.tenant

    @classmethod
    def excluded(cls) -> list[str]:
        """Return the patterns of what git has to ignore."""
        paths = MIRROR_PATHS.get(cls.name, ())
        return [f"/{path}" for path in (*paths, *(f"{folder}/{DRAFT}" for folder in cls.drafts))]

    def resume(self) -> int:
        state = self.state_file.load()
        return state.offset if state is not None else 0

    def act(self, now: int) -> int:
        """Write the files, if something changed since they were written."""
        with self.state_file.exclusively():
            state = self.state_file.load()
            if state is None or state.tenant != self.source.tenant:
                return 0  # switched off, or that of another tenant
            if not self.is_due(state, now):
                return state.due_ms
            return self.write(state, now)

    def is_due(self, state: MirrorState, now: int) -> bool:
        """Whether something may have to be written."""
        return self.offset != state.offset or bool(state.due_ms and now >= state.due_ms)

    def write(self, state: MirrorState, now: int) -> int:
        """Write the files and the state; the caller excludes other processes."""
        self.take_events(state)

        present = read_present(self.source.engine, state.project, now, self.parts)
        trees = self.trees(state, present)
        state.offset, state.due_ms = max(self.offset, state.offset), DUE_NOW
        try:
            write_mirror(self.state_file, state, trees, now)
            state.due_ms = present.due_ms
        finally:
            self.state_file.save(state)
        return state.due_ms

    def take_events(self, state: MirrorState) -> None:
        """Take what was read of the log into the state."""

    @abstractmethod
    def trees(self, state: MirrorState, present: Present) -> dict[str, Tree]:
        """Return what has to be below each folder."""

    def top(self) -> str:
        """Return the top folder of the repository."""
        repository = self.source.location.repository
        top = repository.commondir.removesuffix("/.git") if repository is not None else ""
        if repository is None or top == repository.commondir:
            raise Invalid(
                f"{self.name.removeprefix(PREFIX)} is a mirror of a repository with a worktree",
                hint="run this in one, or use coord mirror on claude-coord",
            )
        return top


class ContractMirror(Mirror):
    """`.contract/` at the top of the repository."""

    name = "mirror-contract"
    about = "the files of .contract/"
    parts = frozenset(("queue",))

    def __init__(self, source: LogSource) -> None:
        super().__init__(source)
        self._entry: list[LoggedEvent] = []
        self._lines: list[Line] = []
        self._reader: LogReader | None = None
        self._base = 0
        """The offset after which it has lines."""

    def resume(self) -> int:

        state = self.state_file.load()
        self._reader = LogReader(*((state.reader,) if state else ()), verbose=bool(state and state.verbose))
        self._base = state.offset if state else 0
        return self._base

    def apply(self, logged: LoggedEvent) -> None:
        if self._entry and self._entry[0].offset != logged.offset:
            self._read_entry()
        self._entry.append(logged)

    def _read_entry(self) -> None:
        if self._reader is not None and self._entry:
            self._lines += self._reader.read(self._entry)
        self._entry = []

    def take_events(self, state: MirrorState) -> None:
        """Append the lines of the entries that no process has written yet."""

        self._read_entry()
        if state.offset < self._base:
            raise Unavailable("the mirror was switched on again")  # the runner begins again from there
        if self._reader is not None and self.offset > state.offset:
            logs = TextLogs(self.state_file.folder, state)
            logs.append([line for line in self._lines if line.offset > state.offset])
            state.reader = self._reader.dump()
        self._lines, self._base = [], max(self.offset, state.offset)

    def write(self, state: MirrorState, now: int) -> int:
        due_ms = super().write(state, now)

        TextLogs(self.state_file.folder, state).remove_old()
        return due_ms

    def trees(self, state: MirrorState, present: Present) -> dict[str, Tree]:

        top = self.top()
        tree = contract_files(present, top)
        logs = TextLogs(self.state_file.folder, state).files()
        files = {**tree.files, **{f".contract/logs/{name}": data for name, data in logs.items()}}
        return {top: tree._replace(files=files)}


class ClaudeCoordMirror(Mirror):
    """`/tmp/claude-coord/`, or another folder."""

    name = "mirror-claude-coord"
    about = "the files of /tmp/claude-coord/"
    parts = frozenset(("messages",))
    in_repository = False

    def trees(self, state: MirrorState, present: Present) -> dict[str, Tree]:

        return {make_private_folder(state.folder or CLAUDE_COORD): claude_coord_files(present)}


class AgentClaimsMirror(Mirror):
    """`.claude/agent-claims.json` and the files beside it, in every worktree."""

    name = "mirror-agent-claims"
    about = "the files of .claude/ in every worktree"
    parts = frozenset(("tasks",))
    drafts = (".claude", ".claude/plans")

    def trees(self, state: MirrorState, present: Present) -> dict[str, Tree]:

        del state
        repository = self.source.location.repository
        if repository is None:
            self.top()
            return {}
        tree = agent_claims_files(present)
        roots = dict.fromkeys(map(os.path.realpath, worktree_roots(repository.commondir)))
        return {root: tree for root in roots if root.isprintable() and os.path.isdir(root)}
