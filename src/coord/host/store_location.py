"""Find the store of a repository, as it was pinned when coord was first used there.

Environment and `coord.toml` propose a store only while none is pinned. Later they must agree with the pin,
because callers with different stores would all be granted the same lock.
"""

import os
import re
import stat
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from coord.core.errors import Corrupt, Invalid, Unsupported
from coord.core.ids import short_repr
from coord.host import presets
from coord.host.consent import CONFIRM, Configuration, read_consented, state_folder
from coord.host.pin import FORMAT, Pin, create_pin, read_copy, read_pin, replace_pin, write_copy
from coord.host.pin import NAME as PIN
from coord.host.processes import this_machine
from coord.host.repository import Repository, find_repository
from coord.host.runtime.seen_files import real_path
from coord.stores.urls import quoted, redact, scheme_of, unquoted

STORE_FOLDER = "store"
"""Beside a pin: the files of its store and nothing else, so that a sandbox can let agents write here."""
BELOW_THE_PIN = f"sqlite:./{STORE_FOLDER}/coord.db"
"""In a pin, the store below its folder: it stays valid when the repository is moved."""
EARLIER_BELOW_THE_PIN = "sqlite:./coord.db"
"""The same in a pin of an older coord, whose store has a format that is refused."""

LOCAL = ("sqlite", "file")


class StoreLocation(NamedTuple):
    """A store and the repository that uses it; not pinned while `store_id` is empty."""

    url: str
    repository_id: str
    repository: Repository | None
    store_id: str
    epoch: int
    folder: str
    """The folder of the pin; empty if only a url names the store."""
    tenants: Mapping[str, str] = {}
    """The URLs of tenants with separate stores."""
    host_locks: tuple[str, ...] = presets.HOST_LOCKS
    """The locks that belong to the machine and not to this repository (LCK-64, LCK-65)."""
    project: str = ""
    """The project that a plan has named for this repository."""
    notice: str = ""
    """Why the settings in `coord.toml` do not count; empty if they do."""
    refusal: str = ""
    """Why this store may not be opened: only an unconfirmed `coord.toml` names it."""

    @property
    def pinned(self) -> bool:
        """Whether the store is pinned, rather than proposed."""
        return bool(self.store_id)

    @property
    def is_default(self) -> bool:
        """Whether the store is the file that coord creates if nobody names another."""
        return _same_store(self.url, _below(self.folder))

    @property
    def local(self) -> bool:
        """Whether the store serves one machine only."""
        return scheme_of(self.url) in LOCAL


def find_location(cwd: str, environ: Mapping[str, str]) -> StoreLocation:
    """Return the location of the store for a folder: its repository's, or else the user's."""
    repository = find_repository(cwd)
    if repository is None:
        return user_location(environ)
    configuration = read_consented(repository, environ)
    named = _named_by_environment(repository, environ)
    location = _location(
        f"{repository.commondir}/coord", repository, {**_named_by_file(configuration), **named}
    )
    return _with_configuration(location, configuration, named=location.pinned or any(named.values()))


def pinned_location(cwd: str) -> StoreLocation:
    """Return the store that a repository is pinned to, even if its configuration names another."""
    repository = find_repository(cwd)
    if repository is None:
        raise Invalid(f"{cwd} is not in a git repository", hint="run this inside one")
    return _location(f"{repository.commondir}/coord", repository, {})


def propose_location(cwd: str, environ: Mapping[str, str]) -> StoreLocation:
    """Return the store that would be used if nothing were pinned; for a new start after damage."""
    repository = find_repository(cwd)
    if repository is None:
        return _proposal(state_folder(environ), None, {})
    configuration = read_consented(repository, environ)
    named = _named_by_environment(repository, environ)
    proposals = {**_named_by_file(configuration), **named}
    location = _proposal(f"{repository.commondir}/coord", repository, proposals)
    return _with_configuration(location, configuration, named=any(named.values()))


def user_location(environ: Mapping[str, str]) -> StoreLocation:
    """Return the user's store, which is always on this machine."""
    return _location(state_folder(environ), None, {})


def write_pin(location: StoreLocation) -> StoreLocation:
    """Pin a proposal after its store was opened; return the pin, which another process may have written."""
    repository_id = location.repository_id
    if not repository_id and location.repository is not None:
        repository_id = location.store_id  # the store's only repository: a lost pin then keeps its locks
    pinned = location._replace(repository_id=repository_id)
    if create_pin(location.folder, _pin(pinned)):
        _write_copy(pinned)
        return pinned
    earlier = _location(location.folder, location.repository, {"the store just opened": location.url})
    return earlier._replace(tenants=location.tenants, host_locks=location.host_locks)


def move_pin(
    location: StoreLocation, *, url: str = "", store_id: str = "", epoch: int | None = None
) -> StoreLocation:
    """Change the URL, store or epoch of a pin; arguments that are left out keep their value."""
    moved = location._replace(
        url=url or location.url,
        store_id=store_id or location.store_id,
        epoch=location.epoch if epoch is None else epoch,
    )
    replace_pin(location.folder, _pin(moved))
    _write_copy(moved)
    return moved


def remember_project(location: StoreLocation, project: str) -> StoreLocation:
    """Let later commands in this repository use a project unless they name another; "" forgets it."""
    pin = read_pin(location.folder)
    if pin is None or location.repository is None or pin.project == project:
        return location
    renamed = location._replace(project=project)
    replace_pin(location.folder, msgspec.structs.replace(pin, project=project))
    _write_copy(renamed)
    return renamed


def _write_copy(location: StoreLocation) -> None:
    """Keep a second copy of a repository's pin outside of its folder, which somebody may remove."""
    if location.repository is not None:
        write_copy(location.folder, _pin(location))


def store_exists(location: StoreLocation) -> bool:
    """Return whether a local store exists, without creating it; a server always counts as existing."""
    if not location.local:
        return True
    path = local_path(location.url)
    if scheme_of(location.url) == "file":
        return os.path.isfile(f"{path}/format")
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size > 0


def new_store_location(location: StoreLocation) -> StoreLocation:
    """Return where the successor of a lost store goes: in its place, but not in that of an older coord."""
    earlier = location.local and _same_store(location.url, _earlier(location.folder))
    return location._replace(url=_below(location.folder)) if earlier else location


def check_store_exists(location: StoreLocation) -> None:
    """Raise `Corrupt` if a pinned store is missing: opening it would create an empty one without locks."""
    if location.pinned and not store_exists(location):
        raise lost_store(location, "is gone")


def check_pinned(location: StoreLocation, database_store_id: str, database_epoch: int) -> bool:
    """Raise `Corrupt` if a store is not the pinned one; return whether its newer epoch has to be pinned."""
    if database_store_id != location.store_id:
        raise lost_store(location, f"is a different store ({database_store_id}, not {location.store_id})")
    if database_epoch < location.epoch:
        raise lost_store(
            location, f"went back from epoch {location.epoch} to {database_epoch}, like an old copy"
        )
    return database_epoch > location.epoch


def local_path(url: str) -> str:
    """Return the path in the URL of a local store."""
    path = unquoted(url.partition(":")[2].removeprefix("//").removeprefix("localhost"))
    return "/" + path.lstrip("/")


def _location(folder: str, repository: Repository | None, proposals: Mapping[str, str]) -> StoreLocation:
    pin = read_pin(folder) or (None if repository is None else read_copy(folder))
    if pin is None:
        return _proposal(folder, repository, proposals)
    below = {BELOW_THE_PIN: _below, EARLIER_BELOW_THE_PIN: _earlier}.get(pin.url)
    url = below(folder) if below else pin.url
    _check_machine(pin, url, folder)
    url = _agreed({f"the pin {folder}/coord.id": url, **proposals})
    return StoreLocation(
        url, pin.repository_id, repository, pin.store_id, pin.epoch, folder, project=pin.project
    )


def _proposal(folder: str, repository: Repository | None, proposals: Mapping[str, str]) -> StoreLocation:
    below = _below(folder)
    url = _agreed(proposals) or below
    return StoreLocation(url, _new_repository_id(repository, url, below), repository, "", 0, folder)


def _below(folder: str) -> str:
    try:
        return f"sqlite://{quoted(folder)}/{STORE_FOLDER}/coord.db"
    except UnicodeEncodeError as error:
        raise Invalid(
            f"{folder!r} is not UTF-8", hint="rename the folder, or set COORD_URL to another store"
        ) from error


def _earlier(folder: str) -> str:
    return _below(folder).removesuffix(f"/{STORE_FOLDER}/coord.db") + "/coord.db"


def _pin(location: StoreLocation) -> Pin:
    below = _same_store(location.url, _below(location.folder))
    url = BELOW_THE_PIN if below else location.url
    machine = this_machine().machine if location.local else ""
    names = (location.store_id, location.epoch, location.repository_id, machine, location.project)
    return Pin(FORMAT, url, *names)


def _check_machine(pin: Pin, url: str, folder: str) -> None:
    here = this_machine().machine
    if scheme_of(url) in LOCAL and pin.machine and here and pin.machine != here:
        raise Unsupported(
            f"{redact(url)} belongs to another machine, a local store serves only one ({folder}/coord.id)",
            hint="reach it through a hub there, or run coord init --new-store here",
        )


def _agreed(sources: Mapping[str, str]) -> str:
    """Return the URL that all sources agree on, in the last spelling that names a user."""
    named = [(source, url) for source, url in sources.items() if url]
    for source, url in named[1:]:
        first, first_url = named[0]
        if not _same_store(first_url, url):
            raise Invalid(
                f"two stores for one repository: {first} says {redact(first_url)}, "
                f"{source} says {redact(url)}",
                hint="make them agree; coord migrate moves a repository to another store",
            )
    urls = [url for _, url in named]
    return next((url for url in reversed(urls) if "@" in url), urls[-1] if urls else "")


def _named_by_environment(repository: Repository, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the store URLs that the environment names, weakest first."""
    found: dict[str, str] = {}
    if backend := environ.get("COORD_BACKEND", ""):
        variable = f"COORD_{backend.upper()}_URL"
        url = environ.get(variable, "")
        if url:
            found[variable] = url
        elif backend.lower() != "sqlite":
            raise Invalid(f"COORD_BACKEND is {backend!r}, but {variable} is not set", hint=f"set {variable}")
        else:
            found["COORD_BACKEND=sqlite"] = _below(f"{repository.commondir}/coord")
    found["COORD_URL or --url"] = environ.get("COORD_URL", "")
    return found


def _named_by_file(configuration: Configuration) -> dict[str, str]:
    """Return the store URL that `coord.toml` names; one that is no text counts only if it was confirmed."""
    store = configuration.proposed.get("store", {})
    url = store.get("url", "") if isinstance(store, dict) else None
    if not isinstance(url, str) and configuration.confirmed:
        raise Invalid("[store] in coord.toml has no url", hint='write [store] and below it url = "…"')
    return {configuration.file: url} if isinstance(url, str) else {}


def _with_configuration(
    location: StoreLocation, configuration: Configuration, *, named: bool
) -> StoreLocation:
    """Return a location with what `coord.toml` adds to it; `named`: pin or environment name the store."""
    if configuration.confirmed:
        tables = configuration.tables
        if not tables:
            return location
        return location._replace(tenants=_tenants(tables), host_locks=presets.host_locks(tables))
    refusal = ""
    if configuration.proposed.get("tenants"):
        refusal = f"{configuration.file} names stores of tenants, and nobody has confirmed it here"
    elif not named and "store" in configuration.proposed:
        url = short_repr(redact(location.url))
        refusal = f"{configuration.file} names the store {url}, and nobody has confirmed it here"
    elif not named and configuration.problem:
        refusal = configuration.problem
    return location._replace(notice=configuration.notice, refusal=refusal)


def restore_pin(location: StoreLocation) -> None:
    """Write a lost pin again from its copy, once its store has been opened and is the right one."""
    if location.pinned and not os.path.lexists(f"{location.folder}/{PIN}"):
        create_pin(location.folder, _pin(location))


def check_confirmed(location: StoreLocation) -> None:
    """Raise `Invalid` if only an unconfirmed `coord.toml` names this store: a person has to confirm it."""
    if location.refusal:
        raise Invalid(location.refusal, hint=CONFIRM)


def _tenants(configuration: Mapping[str, Any]) -> dict[str, str]:
    tenants = configuration.get("tenants", {})
    if not isinstance(tenants, dict):
        raise Invalid(
            "[tenants] in coord.toml is not a table", hint='write [tenants] and below it acme = "…"'
        )
    return tenants


def _new_repository_id(repository: Repository | None, url: str, below: str) -> str:
    """Return the id of a repository: on a server from its origin, so that clones share it; else random."""
    if repository is None or _same_store(url, below):
        return ""
    origin = None if scheme_of(url) in LOCAL else _origin(repository)
    if origin is None:
        return os.urandom(8).hex()
    from hashlib import sha256  # noqa: PLC0415 - once per repository

    readable = re.sub(r"[^A-Za-z0-9._]+", "-", origin)[:80].strip("-.")
    return f"{readable or 'origin'}-{sha256(origin.encode(errors='surrogateescape')).hexdigest()[:16]}"


def _origin(repository: Repository) -> str | None:
    from coord.host.remote import normalised_origin, origin_url  # noqa: PLC0415 - once per repository

    origin = normalised_origin(origin_url(repository.commondir) or "")
    # A folder is the same folder only on the same machine.
    return this_machine().machine + origin if origin and origin.startswith("/") else origin


def _same_store(a: str, b: str) -> bool:
    if scheme_of(a) != scheme_of(b):
        return False
    if scheme_of(a) in LOCAL:
        return real_path(local_path(a)) == real_path(local_path(b))
    return _without_user(a) == _without_user(b)


def _without_user(url: str) -> str:
    """Return a server URL without user and password, which may differ between callers."""
    return re.sub(r"^[^:]*://([^/]*@)?", "", redact(url))


def lost_store(location: StoreLocation, what: str) -> Corrupt:
    """Return the error for a pinned store that is missing or differs from the pin."""
    return Corrupt(
        f"the store {redact(location.url)} {what}, so its locks are unknown",
        hint=f"restore it, or create a new one with {new_store_command(location)}",
    )


def new_store_command(location: StoreLocation) -> str:
    """Return the command that replaces a lost store; the user's store is that of no repository."""
    return "coord init --new-store" + ", outside of repositories" * (location.repository is None)
