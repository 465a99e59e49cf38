"""The targets of a call: the stores that it concerns, and the locks that it needs in each.

A file that an edit or a shell command writes gets a lock. Some writes of a shell command are only checked
against the locks of others: many files at once, files that git ignores, and commands of git that put
committed content into a worktree.
"""

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from coord.core.errors import CoordError, Invalid, Unavailable
from coord.host.paths import path_in_resource, repository_path
from coord.host.repository import Repository, find_repository
from coord.host.runtime.seen_files import real_path
from coord.host.runtime.switched_on import is_mirror_path
from coord.host.store_location import StoreLocation, find_location, user_location
from coord.integrations.hooks.config import Settings
from coord.integrations.hooks.events import Event
from coord.integrations.hooks.named_locks import locks_for, locks_for_paths

if TYPE_CHECKING:
    from coord.integrations.shell_commands.line import CommandLine

BRANCH_BYTES_MAX = 1024
LOCKS_MAX = 64
"""The files that a call locks; a command that writes more of them is checked only."""


class Target(NamedTuple):
    """The locks that a call needs in one worktree of a store."""

    location: StoreLocation
    worktree: str
    resources: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()
    """The resources, also of `checked` and `committed`, that are single files."""
    checked: tuple[str, ...] = ()
    """Files that must not be locked by others."""
    committed: tuple[str, ...] = ()
    """Files that git overwrites with committed content: nobody else may hold them in this worktree."""
    runs: bool = False
    """Whether a shell command runs in this worktree."""


class _Path(NamedTuple):
    """A path that a call writes."""

    path: str
    tree: bool = False
    committed: bool = False
    shell: bool = False
    """Whether a command line writes it, and not a tool that edits files."""


def home_location(event: Event, environ: Mapping[str, str]) -> StoreLocation | None:
    """Return the store of the session; None if coord is not in use there."""
    if not event.cwd or find_repository(event.cwd) is None:
        return None
    location = find_location(event.cwd, environ)
    return location if _in_use(location, event) else None


def _in_use(location: StoreLocation, event: Event) -> bool:
    """Whether coord is in use there; raise if it was set up and its store is gone."""
    if location.pinned or not event.installed_for or location.repository is None:
        return location.pinned
    if real_path(event.installed_for) == real_path(location.repository.commondir):
        raise Unavailable(
            f"coord was set up in this repository, but {location.folder} is gone",
            hint="ask the person you work for to run coord init",
        )
    return False


def targets_of(
    event: Event,
    environ: Mapping[str, str],
    home: StoreLocation | None,
    settings: Settings,
    line: "CommandLine | None" = None,
) -> list[Target]:
    """Return the locks of a call by worktree; the session's worktree comes first, even without a lock.

    A lock counts in all worktrees, but whether its file is clean depends on the worktree.
    """
    return _Targets(event, environ, home, settings, line).find()


class _Targets:
    """Collects the targets of one call."""

    def __init__(
        self,
        event: Event,
        environ: Mapping[str, str],
        home: StoreLocation | None,
        settings: Settings,
        line: "CommandLine | None",
    ) -> None:
        self.event = event
        self.environ = environ
        self.home = home
        self.settings = settings
        self.line = line
        self._found: dict[tuple[str, str], Target] = {}
        self._repositories: dict[str, Repository | None] = {}

    def find(self) -> list[Target]:
        paths = _written(self.event, self.line)
        if self.home is not None:
            names = _named(self.home, self.settings, self.line)
            written = [(each.path, each.tree) for each in paths]
            names += locks_for_paths(written, self.settings.actions, _home_folder(self.environ))
            self._add(Target(self.home, worktree_of(self.home), tuple(dict.fromkeys(names))))
        for path in paths:
            self._add_path(path)
        for folder in self.line.folders if self.line is not None else ():
            self._add_folder(folder)
        targets = [self._without_ignored(target) for target in self._found.values()]
        return [each for target in map(_bounded, targets) for each in _of_host(target, self.environ)]

    def _add(self, target: Target) -> None:
        where = (target.location.folder, target.worktree)
        known = self._found.get(where)
        if known is None:
            self._found[where] = target
            return
        self._found[where] = known._replace(
            resources=tuple(dict.fromkeys((*known.resources, *target.resources))),
            exact=tuple(dict.fromkeys((*known.exact, *target.exact))),
            committed=tuple(dict.fromkeys((*known.committed, *target.committed))),
            runs=known.runs or target.runs,
        )

    def _add_path(self, path: _Path) -> None:
        try:
            found = self._located(path)
        except Invalid:  # a tool gets the reason; a command line may well write outside of the worktree
            if not path.shell:
                raise
            return
        if found is None:
            return
        location, worktree, texts = found
        texts = tuple(text for text in texts if not is_mirror_path(location.folder, path_in_resource(text)))
        if not texts:
            return
        exact = () if path.tree else texts
        if path.committed:
            self._add(Target(location, worktree, committed=texts, exact=exact))
        else:
            self._add(Target(location, worktree, texts, exact))

    def _located(self, path: _Path) -> tuple[StoreLocation, str, tuple[str, ...]] | None:
        """Return the store, the worktree and the resources of a path; None if no store is concerned."""
        text = path.path
        if "\0" in text:
            raise Invalid("a file name contains NUL", hint="remove it from the name")
        for each in dict.fromkeys((text, real_path(text))):
            repository = self._repository(each if path.tree else os.path.dirname(each))
            if repository is None and path.tree and self.home is not None and self._contains_home(each):
                return self.home, worktree_of(self.home), ("file:.",)
            if repository is None or repository.root is None:
                continue
            location = self._location(repository)
            if location is None:
                continue
            texts = _texts(repository, each)
            if texts is not None:
                return location, repository.root, texts
        return None

    def _contains_home(self, folder: str) -> bool:
        """Whether the session's worktree lies inside of a folder: `rm -rf ..`."""
        root = worktree_of(self.home) if self.home is not None else ""
        return bool(root) and f"{root}/".startswith(f"{real_path(folder).rstrip('/')}/")

    def _repository(self, folder: str) -> Repository | None:
        if folder not in self._repositories:
            self._repositories[folder] = find_repository(folder)
        return self._repositories[folder]

    def _location(self, repository: Repository) -> StoreLocation | None:
        """Return the store of a repository; None if coord is not in use there."""
        home = self.home
        if (
            home is not None
            and home.repository is not None
            and home.repository.commondir == repository.commondir
        ):
            location = home
        else:
            location = find_location(repository.root or "", self.environ)
        return location if _in_use(location, self.event) else None

    def _add_folder(self, folder: str) -> None:
        """Add the worktree in which a command runs, so that its effects are seen there."""
        try:
            repository = self._repository(folder)
            location = None if repository is None or repository.root is None else self._location(repository)
        except CoordError:  # another repository that is damaged is no reason to stop
            return
        if location is not None and repository is not None:
            self._add(Target(location, repository.root or "", runs=True))

    def _without_ignored(self, target: Target) -> Target:
        """Move the files that git ignores to the checked ones: a build folder is nobody's work.

        Files that a tool edits, and those that the repository wants to be observed, keep their lock.
        """
        if self.line is None or not self.line.writes or not target.worktree:
            return target
        files = [text for text in target.resources if text.startswith("file:")]
        if not files or len(files) > LOCKS_MAX:
            return target
        ignored = _ignored(target.worktree, [path_in_resource(text) for text in files])
        kept = {text for path in _edited(self.event, self.line) for text in files if path.endswith(text[5:])}
        moved = tuple(
            text
            for text in files
            if path_in_resource(text) in ignored
            and text not in kept
            and not _is_watched(path_in_resource(text), self.settings.watched)
        )
        rest = tuple(text for text in target.resources if text not in moved)
        return target._replace(resources=rest, checked=moved)


def worktree_of(location: StoreLocation) -> str:
    """Return the worktree of a location; "" if it has none."""
    return location.repository.root or "" if location.repository is not None else ""


def _written(event: Event, line: "CommandLine | None") -> list[_Path]:
    """Return the paths that a call writes, absolute: those of a tool, and those of a command line."""
    edited = _edited(event, line)
    folders = any(map(os.path.isdir, edited))
    # Tools write files. A folder among the paths may be moved to a path that does not exist yet.
    found = [_Path(path, tree=folders and not os.path.isfile(path)) for path in edited]
    if line is not None:
        found += [_Path(*write, True) for write in line.writes]
    return list(dict.fromkeys(found))


def _edited(event: Event, line: "CommandLine | None") -> list[str]:
    """Return the files that a tool names, also below the folders that a command line enters."""
    folders = [event.cwd] if line is None or not event.writes else line.folders
    found = (os.path.join(folder, os.path.expanduser(path)) for path in event.writes for folder in folders)
    return list(dict.fromkeys(found))


def _home_folder(environ: Mapping[str, str]) -> str:
    return environ.get("HOME", "") or os.path.expanduser("~")


def _texts(repository: Repository, path: str) -> tuple[str, ...] | None:
    """Return the resources of a file; None if it is a link to another repository."""
    try:
        return tuple(
            f"file:{each}" for each in repository_path(repository, path, repository.root or "", literal=True)
        )
    except Invalid:
        real = real_path(path)
        if real != path and find_repository(os.path.dirname(real)) != repository:
            return None
        raise


def _ignored(worktree: str, names: Iterable[str]) -> set[str]:
    """Return the files that git ignores; none if git cannot say."""
    from coord.integrations.git.run import Git, nul_terminated

    try:
        return set(Git(worktree).quick("check-ignore", "-z", "--stdin", stdin=nul_terminated(names)).names)
    except CoordError:  # git fails if it ignores none of them
        return set()


def _is_watched(name: str, watched: Iterable[str]) -> bool:
    from fnmatch import fnmatchcase

    return any(
        fnmatchcase(name, pattern) or fnmatchcase(os.path.basename(name), pattern) for pattern in watched
    )


def _bounded(target: Target) -> Target:
    """Return a target that locks no more files than a request may name: many are checked only."""
    files = tuple(text for text in target.resources if text.startswith("file:"))
    if len(target.resources) <= LOCKS_MAX:
        return target
    names = tuple(text for text in target.resources if text not in set(files))
    return target._replace(resources=names, checked=(*target.checked, *files))


def _named(home: StoreLocation, settings: Settings, line: "CommandLine | None") -> tuple[str, ...]:
    if line is None:
        return ()
    repository = home.repository
    main_tree = repository is not None and real_path(f"{repository.root}/.git") == repository.commondir
    branch = _branch(repository.root) if repository is not None and "push" in line.text else ""
    return locks_for(line.words(), settings.actions, branch=branch, main_tree=main_tree)


def _branch(root: str | None) -> str:
    """Return the branch that is checked out, or ""."""
    git = f"{root}/.git"
    try:
        if os.path.isfile(git):
            with open(git, encoding="utf-8", errors="replace") as file:
                git = os.path.join(root or "", file.read(BRANCH_BYTES_MAX).removeprefix("gitdir:").strip())
        with open(f"{git}/HEAD", encoding="utf-8", errors="replace") as file:
            return file.read(BRANCH_BYTES_MAX).strip().partition("ref: refs/heads/")[2]
    except OSError:
        return ""


def _of_host(target: Target, environ: Mapping[str, str]) -> list[Target]:
    """Return a target, split into its own locks and those that the whole machine shares."""
    of_host = tuple(text for text in target.resources if text in target.location.host_locks)
    if not of_host:
        return [target]
    rest = tuple(text for text in target.resources if text not in target.location.host_locks)
    return [target._replace(resources=rest), Target(user_location(environ), target.worktree, of_host)]
