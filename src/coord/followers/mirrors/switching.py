"""Switch mirrors on and off, and list them."""

import os

import msgspec

from coord.core.errors import CoordError, Invalid, Refused
from coord.core.ids import short_repr
from coord.core.messages.quoting import quote_names
from coord.followers.direct import log_source, runner_name
from coord.followers.follower import LogSource
from coord.followers.mirrors.exclude import exclude_from_git
from coord.followers.mirrors.mirror import CLAUDE_COORD, DUE_NOW, PREFIX, Mirror
from coord.followers.mirrors.present import read_present
from coord.followers.mirrors.state import ForeignChange, MirrorState, StateFile
from coord.followers.mirrors.writer import foreign_paths, paths_of_others, write_mirror
from coord.followers.registry import FOLLOWERS, follower_class
from coord.followers.runner import Runner
from coord.host.repository import Repository
from coord.host.runtime.switched_on import switch, switched_on
from coord.host.store_location import StoreLocation
from coord.sdk.client.connection import Connection
from coord.stores.local.safe_folder import make_private_folder

NAMES = tuple(name.removeprefix(PREFIX) for name in FOLLOWERS if name.startswith(PREFIX))
NAMED_MAX = 3


class MirrorInfo(msgspec.Struct, frozen=True):
    """A mirror on this machine."""

    name: str
    on: bool
    folders: list[str] = []
    files: int = 0
    offset: int = 0
    changed: list[str] = []
    """Its files that are not as coord wrote them."""
    changes: list[ForeignChange] = []
    """The newest changes by others, which coord has overwritten or left alone."""


def mirror_on(
    connection: Connection, name: str, project: str, *, folder: str = "", verbose: bool = False
) -> MirrorInfo:
    """Switch a mirror on, and write it."""
    kind, source = _kind(name), log_source(connection)
    if folder and kind.in_repository:
        raise Invalid(f"{name} has its place in the repository", hint="omit --folder")
    mirror = kind(source)
    with mirror.state_file.exclusively():
        state = mirror.state_file.load()
        if state is None:
            state = MirrorState(source.tenant, project)
        _check_same(state, source.tenant, folder, name)
        state.verbose, state.due_ms = verbose or state.verbose, DUE_NOW
        state.folder = _folder(mirror, state, folder)
        present = read_present(source.engine, project, source.now(), kind.parts)
        _check_free(name, paths_of_others(state, mirror.trees(state, present)))
        mirror.state_file.save(state)
        _exclude(source.location, {*switched_on(source.location.folder), mirror.name})
        switch(source.location.folder, mirror.name, on=True)
    _catch_up(source, kind)
    return mirror_info(source.location.folder, name)


def mirror_off(location: StoreLocation, name: str, now: int) -> MirrorInfo:
    """Switch a mirror off, and remove what coord wrote for it."""
    kind = _kind(name)
    state_file = StateFile(location.folder, kind.name)
    with state_file.exclusively():
        before = mirror_info(location.folder, name)
        switch(location.folder, kind.name, on=False)
        state = state_file.load()
        if state is not None:
            write_mirror(state_file, state, {}, now)
            if state.made_folder:
                _remove_folder(state.folder)
        _exclude(location, switched_on(location.folder))
        state_file.forget()
        _remove_folder(os.path.dirname(state_file.folder))  # unless another mirror is on
    return before


def mirror_info(store_folder: str, name: str) -> MirrorInfo:
    """Return a mirror as it is on this machine."""
    kind = _kind(name)
    state = StateFile(store_folder, kind.name).load()
    on = kind.name in switched_on(store_folder)
    if state is None:
        return MirrorInfo(name, on)
    files = sum(len(root.files) for root in state.roots.values())
    return MirrorInfo(name, on, list(state.roots), files, state.offset, foreign_paths(state), state.changes)


def list_mirrors(location: StoreLocation) -> list[MirrorInfo]:
    """Return all mirrors."""
    return [mirror_info(location.folder, name) for name in NAMES]


def _kind(name: str) -> type[Mirror]:
    if name not in NAMES:
        raise Invalid(f"there is no mirror {short_repr(name)}", hint=f"use one of {', '.join(NAMES)}")
    kind = follower_class(f"{PREFIX}{name}")
    assert issubclass(kind, Mirror), "all of them are"
    return kind


def _check_same(state: MirrorState, tenant: str, folder: str, name: str) -> None:
    if state.tenant != tenant or (folder and state.folder not in ("", os.path.abspath(folder))):
        where = state.folder or f"tenant {state.tenant}"
        raise Refused(f"{name} is on for {where}", hint=f"coord mirror off {name} ends that")


def _folder(mirror: Mirror, state: MirrorState, folder: str) -> str:
    """Return the folder of a mirror outside of the repository, made and checked."""
    if mirror.in_repository:
        return ""
    wanted = os.path.abspath(folder or state.folder or CLAUDE_COORD)
    state.made_folder = state.made_folder or not os.path.lexists(wanted)
    return make_private_folder(wanted)


def _check_free(name: str, others: list[str]) -> None:
    if others:
        raise Refused(
            f"{name} would overwrite what coord did not write: {quote_names(others, NAMED_MAX)}",
            hint="move that away, then switch the mirror on",
        )


def _exclude(location: StoreLocation, names: "set[str] | tuple[str, ...]") -> None:
    repository: Repository | None = location.repository
    if repository is None:
        return
    kinds = [follower_class(each) for each in sorted(names) if each.startswith(PREFIX)]
    exclude_from_git(
        repository.commondir, [path for kind in kinds if issubclass(kind, Mirror) for path in kind.excluded()]
    )


def _catch_up(source: LogSource, kind: type[Mirror]) -> None:
    runner = Runner(source, [kind], runner_name())
    (run,) = runner.runs
    runner.step()
    if run.failure is not None:
        raise run.failure


def _remove_folder(path: str) -> None:
    try:
        os.rmdir(path)
    except OSError:  # it has files of others
        return


def remove_mirrors(location: StoreLocation) -> None:
    """Switch every mirror of a store off."""
    for name in NAMES:
        if f"{PREFIX}{name}" in switched_on(location.folder):
            mirror_off(location, name, 0)


def examine_mirrors(folder: str) -> list[tuple[str, str]]:
    """Return a line about each mirror that is on, and what to do if others change it."""
    found = []
    for name in NAMES:
        if f"{PREFIX}{name}" not in switched_on(folder):
            continue
        try:
            info = mirror_info(folder, name)
        except CoordError as error:
            found.append((error.message, error.hint))
            continue
        if not info.folders:
            again = f"remove its files by hand, then coord mirror off {name} and on again"
            found.append((f"{name} is on, and nobody knows its files: {folder}/mirrors is gone", again))
            continue
        paths = list(dict.fromkeys((*info.changed, *(each.path for each in info.changes))))
        changed = f"others changed {quote_names(paths, NAMED_MAX)}" if paths else "nobody changed it"
        hint = "coord never reads it: let its readers only read it" if paths else ""
        found.append((f"{name} is on, {changed}", hint))
    return found
