"""Open the store of a location: only the pinned one; the first use creates it where that is safe."""

import os
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from typing import Any

from coord.core.errors import Corrupt, Invalid, NotFound, Unsupported
from coord.core.ids import short_repr
from coord.host.caller import find_tenant, shows_agent
from coord.host.high_water import HighWater
from coord.host.pin import replace_damaged
from coord.host.runtime.hub_socket import hub_socket
from coord.host.store_location import (
    StoreLocation,
    check_confirmed,
    check_pinned,
    check_store_exists,
    find_location,
    local_path,
    lost_store,
    move_pin,
    new_store_command,
    new_store_location,
    pinned_location,
    propose_location,
    restore_pin,
    store_exists,
    write_pin,
)
from coord.stores.contract import OlderFormat
from coord.stores.database import Database
from coord.stores.open import OPEN_TIMEOUT_S, install, migrator, open_store
from coord.stores.urls import is_hub, redact, scheme_of

CONNECT_TIMEOUT_S = OPEN_TIMEOUT_S
"""How long a client tries to reach a server by default."""
UNUSED = "unused"
"""The id of a repository in which coord was never used: nothing is locked there."""
CONNECT_TIMEOUT_S_MAX = 3600.0


def open_timeout_s(environ: Mapping[str, str]) -> float:
    """Return how long to retry an unreachable server, in seconds: COORD_CONNECT_TIMEOUT or the default."""
    given = environ.get("COORD_CONNECT_TIMEOUT", "")
    try:
        seconds = float(given or OPEN_TIMEOUT_S)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= CONNECT_TIMEOUT_S_MAX:
        raise Invalid(
            f"COORD_CONNECT_TIMEOUT is {short_repr(given)}",
            hint=f"give seconds, 0 to {CONNECT_TIMEOUT_S_MAX:g}",
        )
    return seconds


def open_location(
    location: StoreLocation, timeout: float = OPEN_TIMEOUT_S
) -> tuple[Database[Any], StoreLocation]:
    """Open the store of a location; return it and the location as it is pinned now.

    A server that cannot be reached is tried again for `timeout` seconds.
    """
    check_confirmed(location)
    _check_kept(location)
    check_store_exists(location)
    try:
        database = open_url(location, timeout)
    except NotFound as error:
        if not location.pinned:
            raise
        raise lost_store(location, "is gone") from error
    except OlderFormat as error:
        error.hint = _after_older(location)
        raise
    try:
        if not location.pinned:
            location = write_pin(
                location._replace(
                    store_id=database.store_id,
                    epoch=database.epoch,
                    repository_id=database.repository_id or location.repository_id,
                )
            )
        if check_pinned(location, database.store_id, database.epoch):
            location = move_pin(location, epoch=database.epoch)
        restore_pin(location)
        database.marks = HighWater(location.folder, redact(location.url))
    except BaseException:
        database.close()
        raise
    return database, location


def open_url(location: StoreLocation, timeout: float) -> Database[Any]:
    """Open the store that a location names; `http://` is a hub."""
    if not is_hub(location.url):
        return open_store(location.url, tenants=location.tenants, timeout=timeout)
    from coord.sdk.remote.open import open_http

    return open_http(location.url, os.environ, timeout=timeout, repository_id=location.repository_id)


def open_named(
    location: StoreLocation, timeout: float = OPEN_TIMEOUT_S
) -> tuple[Database[Any], StoreLocation]:
    """Open a store that only a url names, and no pin; return it and the location with its store id.

    A location that has a store id already means that store and no other.
    """
    if is_hub(location.url):
        raise Invalid(
            f"{redact(location.url)} is a hub, and a hub serves no other hub",
            hint="name a store, or start coord serve where the store is",
        )
    if scheme_of(location.url) == "memory":
        raise Invalid("memory: forgets everything when the hub ends", hint="name a file or a server")
    check_store_exists(location)
    database = open_store(location.url, timeout=timeout)
    try:
        if location.pinned:
            check_pinned(location, database.store_id, database.epoch)
    except BaseException:
        database.close()
        raise
    return database, location._replace(store_id=database.store_id, epoch=database.epoch)


def open_for_use(
    location: StoreLocation, timeout: float, environ: Mapping[str, str], tenant: str
) -> tuple[Database[Any], StoreLocation]:
    """Open the store of a location through this user's hub if one runs, or else itself."""
    socket = hub_socket(environ) if location.pinned and not is_hub(location.url) else ""
    if socket:
        from coord.sdk.remote.open import open_through_hub

        check_confirmed(location)
        found, why = open_through_hub(socket, location, tenant, lambda: open_location(location, timeout)[0])
        if found is not None:
            return found, location
        _start_hub(location, environ)
        database, location = open_location(location, timeout)
        database.notice = f"{why}, so this command uses the store itself" if why else ""
        return database, location
    _start_hub(location, environ)
    return open_location(location, timeout)


def _start_hub(location: StoreLocation, environ: Mapping[str, str]) -> None:
    """Start the hub of this user for later commands, if the user wants it; an agent's command never does.

    The command of an agent may run in a sandbox, which the hub would inherit.
    """
    repository = location.repository
    if not location.pinned or repository is None or environ.get("COORD_HUB") or is_hub(location.url):
        return
    from coord.host.runtime.start_hub import start_hub

    if not shows_agent(environ):
        start_hub(environ, repository.root or repository.commondir)


def open_existing(
    location: StoreLocation, timeout: float = OPEN_TIMEOUT_S
) -> tuple[Database[Any], StoreLocation]:
    """Open a store that is not pinned, for reading only; create and pin nothing.

    A repository in which coord was never used shows as empty. A store that somebody named has to exist.
    """
    check_confirmed(location)
    if is_hub(location.url):
        database = open_url(location, timeout)
        return database, location._replace(repository_id=database.repository_id)
    if not store_exists(location):
        if not location.is_default:
            raise NotFound(f"there is no store at {redact(location.url)}", hint="coord init creates it")
        return open_store("memory:"), location._replace(repository_id=location.repository_id or UNUSED)
    database = open_store(location.url, tenants=location.tenants, timeout=timeout)
    return database, location._replace(repository_id=location.repository_id or database.store_id)


def initialise(
    cwd: str, environ: Mapping[str, str], *, url: str = "", new_store: bool = False
) -> StoreLocation:
    """Create and pin the store of a repository; `new_store` replaces a pinned store that is lost."""
    proposed = {**environ, "COORD_URL": url} if url else environ
    timeout = open_timeout_s(environ)
    if new_store:
        return _start_afresh(cwd, proposed, timeout)
    location = find_location(cwd, proposed)
    _check_repository(location, cwd)
    check_confirmed(location)
    if not location.pinned and not is_hub(location.url):  # preparing a lost store would hide the loss
        install(location.url, timeout=timeout)
    database, location = open_location(location, timeout)
    with closing(database), suppress(NotFound):  # a tenant whose own store is not installed yet
        database.log(find_tenant(environ))  # a process that may only read cannot create it
    return location


def _check_kept(location: StoreLocation) -> None:
    if not location.pinned and scheme_of(location.url) == "memory":
        raise Invalid(
            "memory: forgets everything when the command ends, so it cannot be the store of a repository",
            hint="omit it, or name a file or a server",
        )


def _check_repository(location: StoreLocation, cwd: str) -> None:
    if location.repository is None:
        raise Invalid(f"{cwd} is not in a git repository", hint="git init creates one")


def _start_afresh(cwd: str, environ: Mapping[str, str], timeout: float) -> StoreLocation:
    """Pin a new store in a later epoch, so that earlier fences and generations stay invalid."""
    location, successor = _predecessor(cwd, environ)
    check_confirmed(successor or location)
    if location.pinned:
        if store_exists(location) and _opens_as_pinned(location, find_tenant(environ), timeout):
            raise Invalid(
                "the pinned store is intact, so no new one is needed",
                hint="coord migrate --to-url URL moves to another store",
            )
        if successor is not None:
            location = location._replace(url=successor.url)
        else:
            location = new_store_location(location)
            if location.local:
                set_aside(local_path(location.url))
    epoch = location.epoch + 1
    try:
        install(location.url, timeout=timeout)
    except OlderFormat as error:
        error.hint = _after_older(location)
        raise
    with closing(open_store(location.url, timeout=timeout)) as database:
        store = migrator(database)
        if database.epoch < epoch and store.heads():
            raise Invalid(
                "another store at that URL is not empty",
                hint="move it away, or use another URL: coord init --new-store --url URL",
            )
        if database.epoch < epoch:
            store.set_epoch(epoch)
    with closing(open_store(location.url, timeout=timeout)) as database:
        if location.repository is not None and not location.repository_id:  # no pin has named it
            location = location._replace(repository_id=database.store_id)
        return move_pin(location, store_id=database.store_id, epoch=database.epoch)


def _predecessor(cwd: str, environ: Mapping[str, str]) -> tuple[StoreLocation, StoreLocation | None]:
    """Return the store that a new one follows, and the place of the new one if it has to be another."""
    try:
        location = find_location(cwd, environ)
    except Corrupt:
        return _with_damaged_pin(cwd, environ), None
    except Unsupported:  # the pin belongs to another machine
        return propose_location(cwd, environ), None
    except Invalid:  # --url or coord.toml name another store than the pin
        return pinned_location(cwd), propose_location(cwd, environ)
    if not location.pinned:  # outside of repositories, the store of the user may need a successor
        _check_repository(location, cwd)
    return location, None


def _after_older(location: StoreLocation) -> str:
    """Return the next step if an older coord made a store; on a server it stays where it is."""
    where = "" if location.local else " --url URL, with another database, schema, prefix or stream"
    return f"an older coord made it; create a new one: {new_store_command(location)}{where}"


def _with_damaged_pin(cwd: str, environ: Mapping[str, str]) -> StoreLocation:
    """Return the location that the copy of a damaged pin names, or the place of a new store."""
    proposed = propose_location(cwd, environ)
    if replace_damaged(proposed.folder):
        return find_location(cwd, environ)
    if not proposed.local or not store_exists(proposed):
        return proposed
    with suppress(Corrupt, OlderFormat), closing(open_store(proposed.url)) as database:
        proposed = proposed._replace(epoch=database.epoch)
    set_aside(local_path(proposed.url))
    return proposed


def _opens_as_pinned(location: StoreLocation, tenant: str, timeout: float) -> bool:
    try:
        database, _ = open_location(location, timeout)
        with closing(database), suppress(NotFound):
            database.log(tenant)
    except (Corrupt, OlderFormat):
        return False
    return True


def set_aside(path: str) -> str:
    """Rename whatever is in the place of a local store, with the files beside it; return its new path."""
    aside = f"{path}.damaged-{time.strftime('%Y%m%dT%H%M%S')}-{os.urandom(2).hex()}"
    for end in ("-wal", "-shm", ""):
        with suppress(FileNotFoundError):
            os.rename(path + end, aside + end)
    return aside
