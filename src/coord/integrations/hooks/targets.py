"""The targets of a call: the stores that it concerns and the locks that it needs in each."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from coord.core.errors import Invalid, Unavailable
from coord.host.paths import repository_path
from coord.host.repository import Repository, find_repository
from coord.host.store_location import StoreLocation, find_location, user_location
from coord.integrations.hooks.config import Settings
from coord.integrations.hooks.events import Event
from coord.integrations.hooks.named_locks import locks_for
from coord.integrations.hooks.shell_parser import folders_entered

BRANCH_BYTES_MAX = 1024


class Target(NamedTuple):
    """The locks that a call needs in one worktree of a store."""

    location: StoreLocation
    worktree: str
    resources: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()
    """The resources that are single files."""


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
    if os.path.realpath(event.installed_for) == os.path.realpath(location.repository.commondir):
        raise Unavailable(
            f"coord was set up in this repository, but {location.folder} is gone",
            hint="ask the person you work for to run coord init",
        )
    return False


def targets_of(
    event: Event, environ: Mapping[str, str], home: StoreLocation | None, settings: Settings
) -> list[Target]:
    """Return the locks of a call by worktree; the session's worktree comes first, even without a lock.

    A lock counts in all worktrees, but whether its file is clean depends on the worktree.
    """
    found: dict[tuple[str, str], Target] = {}
    if home is not None:
        found[home.folder, worktree_of(home)] = Target(home, worktree_of(home), _named(event, home, settings))
    paths = _written(event)
    folders = any(map(os.path.isdir, paths))
    for path in paths:
        target = _target_of(path, environ, home, event)
        if target is not None:
            where = (target.location.folder, target.worktree)
            known = found.get(where, target._replace(resources=()))
            resources = dict.fromkeys((*known.resources, *target.resources))
            # Tools write files. A folder among the paths may be moved to a path that does not exist yet.
            exact = target.resources if os.path.isfile(path) or not folders else ()
            single = dict.fromkeys((*known.exact, *exact))
            found[where] = target._replace(resources=tuple(resources), exact=tuple(single))
    return [each for target in found.values() for each in _of_host(target, environ)]


def worktree_of(location: StoreLocation) -> str:
    """Return the worktree of a location; "" if it has none."""
    return location.repository.root or "" if location.repository is not None else ""


def _written(event: Event) -> list[str]:
    """Return the written files as absolute paths, also below the folders that a command line enters."""
    folders = [event.cwd]
    if event.command and event.writes:
        folders += [os.path.join(event.cwd, folder) for folder in folders_entered(event.command)]
    found = (os.path.join(folder, os.path.expanduser(path)) for path in event.writes for folder in folders)
    return list(dict.fromkeys(found))


def _target_of(
    path: str, environ: Mapping[str, str], home: StoreLocation | None, event: Event
) -> Target | None:
    """Return the target of a file; None if no repository with coord contains it."""
    if "\0" in path:
        raise Invalid("a file name contains NUL", hint="remove it from the name")
    for each in dict.fromkeys((path, os.path.realpath(path))):
        repository = find_repository(os.path.dirname(each))
        if repository is None or repository.root is None:
            continue
        same = home is not None and home.repository is not None
        same = same and home.repository.commondir == repository.commondir  # type: ignore[union-attr]
        location = home if same else find_location(repository.root, environ)
        assert location is not None, "the session's location, or one just found"
        if not _in_use(location, event):
            continue
        texts = _texts(repository, each)
        if texts is not None:
            return Target(location, repository.root, texts)
    return None


def _texts(repository: Repository, path: str) -> tuple[str, ...] | None:
    """Return the resources of a file; None if it is a link to another repository."""
    try:
        return tuple(
            f"file:{each}" for each in repository_path(repository, path, repository.root or "", literal=True)
        )
    except Invalid:
        real = os.path.realpath(path)
        if real != path and find_repository(os.path.dirname(real)) != repository:
            return None
        raise


def _named(event: Event, home: StoreLocation, settings: Settings) -> tuple[str, ...]:
    if not event.command:
        return ()
    repository = home.repository
    main_tree = repository is not None and os.path.realpath(f"{repository.root}/.git") == repository.commondir
    branch = _branch(repository.root) if repository is not None and "push" in event.command else ""
    return locks_for(event.command, settings.actions, branch=branch, main_tree=main_tree)


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
