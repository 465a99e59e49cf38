"""Where tenants live: in tables that all share, in a schema or file of their own, on a server of their own.

A mapping from tenants to urls says which of them have stores of their own; `*` stands for every tenant that
is not named, except `local`, and its url has `{tenant}` in it. The shared store notes the id of each such
store when it is installed. So nobody can take another store for it, or look for it in the shared one: two
callers with two stores would both be granted the same claim.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from coord.core.errors import Corrupt, Invalid, LimitReached, NotFound, Refused
from coord.stores.database import TENANT, Database
from coord.stores.health import Check
from coord.stores.migrated import LIVES_IN, check_lives_here, note_of
from coord.stores.migration import Mover
from coord.stores.tenant_names import name_of
from coord.stores.urls import shown

EVERY, PLACE = "*", "{tenant}"
AT_HOME = "local"
"""The tenant of who names none: it stays in the store of the repository, unless it is named."""
NOTED_MAX = 1000


def check_tenants(urls: Mapping[str, str]) -> None:
    """Refuse a mapping that names no tenant, or one url for all of them."""
    for tenant, url in urls.items():
        if not isinstance(url, str) or not url:
            raise Invalid(f"tenant {tenant} has no url", hint='write acme = "postgresql://…"')
        if tenant != EVERY and not TENANT.fullmatch(tenant):
            raise Invalid(
                f"{tenant!r} is not a tenant", hint='1 to 128 letters, digits and . _ @ + = ~ -, or "*"'
            )
        if (tenant == EVERY) != (PLACE in url):
            raise Invalid(
                f"the url of {tenant}, {shown(url)}, {'lacks' if tenant == EVERY else 'has'} {PLACE}",
                hint=f'{PLACE} belongs into the url of "*", and only there',
            )


def url_of(tenant: str, urls: Mapping[str, str]) -> str:
    """Return where a tenant has a store of its own; empty where it shares one."""
    if not TENANT.fullmatch(tenant):  # before it becomes part of a url
        raise Invalid(f"{tenant!r} is not a tenant", hint="1 to 128 letters, digits and . _ @ + = ~ -")
    if tenant in urls or tenant == AT_HOME:
        return urls.get(tenant, "")
    return urls.get(EVERY, "").replace(PLACE, name_of(tenant))


def settle(tenant: str, shared: Database[Any], mover: Mover, own: Database[Any]) -> None:
    """Note for good that a tenant lives in a store of its own; one that has anything elsewhere cannot."""
    note, notes = note_of(tenant), mover.notes()
    if notes.get(note) == own.store_id:
        return
    if note in notes:
        raise Refused(
            f"tenant {tenant} lives in another store, {notes[note]}, and not in {shown(own.url)}",
            hint="name that one; if it is lost, restore it",
        )
    if own.store_id == shared.store_id:
        raise Invalid(f"{shown(own.url)} is the shared store", hint="give the tenant a store of its own")
    if sum(name.startswith(LIVES_IN) for name in notes) >= NOTED_MAX:
        raise LimitReached(f"{NOTED_MAX} tenants have stores of their own", hint="begin another shared store")
    mover.note(**{note: own.store_id})
    if tenant in mover.heads():  # looked at afterwards, so that who begins at this moment is seen
        mover.note(**{note: ""})
        raise Refused(
            f"tenant {tenant} has records in the shared store, {shown(shared.url)}",
            hint="it can only get a store of its own before it is used",
        )


class RoutedDatabase(Database[Any]):
    """A shared store, and those that tenants have of their own; each is opened when it is first asked for."""

    def __init__(
        self, shared: Database[Any], urls: Mapping[str, str], open_url: Callable[[str], Database[Any]]
    ) -> None:
        super().__init__(shared.url, shared.store_id, shared.epoch)
        self.notes = shared.notes
        self._shared = shared
        self._urls = dict(urls)
        self._open_url = open_url
        self._own: dict[str, Database[Any]] = {}

    def _log_of(self, tenant: str) -> Any:
        url, notes = url_of(tenant, self._urls), self._shared.newest_notes(again=bool(self._logs))
        if not url:
            check_lives_here(tenant, notes)
            return self._shared.log(tenant)
        if note_of(tenant) not in notes:
            raise NotFound(
                f"the store of tenant {tenant} is not installed", hint=f"coord install --tenant {tenant}"
            )
        if url not in self._own:
            self._own[url] = self._open(tenant, url)
        return self._own[url].log(tenant)

    def _open(self, tenant: str, url: str) -> Database[Any]:
        own, noted = self._open_url(url), self._shared.notes[note_of(tenant)]
        if own.store_id != noted:
            own.close()
            raise Corrupt(
                f"the store of tenant {tenant}, {shown(url)}, is another one ({own.store_id}, not {noted})",
                hint="restore it, or name the right one in coord.toml below [tenants]",
            )
        return own

    def turn(self) -> AbstractContextManager[None]:
        return self._shared.turn()

    def checks(self) -> list[Check]:
        return [check for database in (self._shared, *self._own.values()) for check in database.checks()]

    def close(self) -> None:
        super().close()
        for database in (*self._own.values(), self._shared):
            database.close()
