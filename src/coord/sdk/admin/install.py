"""Preparing stores: that of a repository, any other by its url, and those that tenants have of their own."""

from collections.abc import Mapping
from contextlib import closing

import msgspec

from coord.core.errors import Invalid, NotFound
from coord.host.store_location import StoreLocation, find_location, store_exists
from coord.sdk.client.open import open_location, open_timeout_s
from coord.stores.open import grants, install, kind_of, open_store
from coord.stores.tenants import check_tenants, url_of
from coord.stores.urls import redact


class PreparedStore(msgspec.Struct, frozen=True):
    """A store that is ready; `made`: it was not there before. In a dry run such a one has no id."""

    url: str
    tenant: str
    made: bool
    store_id: str = ""
    epoch: int = 0


def prepare(
    cwd: str, environ: Mapping[str, str], *, url: str = "", tenant: str = "", dry_run: bool = False
) -> PreparedStore:
    """Prepare a store, or that of a repository; with a tenant, the store of its own that coord.toml names."""
    url, tenants = _asked(cwd, environ, url)
    target = _target(url, tenants, tenant)
    timeout = open_timeout_s(environ)
    found = _found(target, timeout)
    if not dry_run:
        install(url, tenant=tenant, tenants=tenants, timeout=timeout)
    there = found if dry_run else _found(target, timeout)
    made = found is None
    return msgspec.structs.replace(
        there or PreparedStore(redact(target), tenant, made), tenant=tenant, made=made
    )


def required_grants(cwd: str, environ: Mapping[str, str], *, url: str = "", tenant: str = "") -> list[str]:
    """Return what an administrator runs first, so that a store can be prepared and used; asks no server."""
    url, tenants = _asked(cwd, environ, url)
    return grants(_target(url, tenants, tenant))


def _asked(cwd: str, environ: Mapping[str, str], url: str) -> tuple[str, Mapping[str, str]]:
    """Return the url that is meant, and tenants with stores of their own; a pinned store must be there."""
    location = find_location(cwd, environ)
    if url:
        kind_of(url)
        return url, location.tenants
    if location.pinned:  # to prepare one that is lost would hide that
        open_location(location._replace(tenants={}), open_timeout_s(environ))[0].close()
    return location.url, location.tenants


def _target(url: str, tenants: Mapping[str, str], tenant: str) -> str:
    if not tenant:
        return url
    check_tenants(tenants)
    own = url_of(tenant, tenants)
    if not own:
        raise Invalid(
            f"tenant {tenant} shares the store of the others",
            hint="there is nothing to prepare; to give it one of its own, name it in coord.toml: [tenants]",
        )
    return own


def _found(url: str, timeout: float) -> PreparedStore | None:
    """Return the store at a url, or None where there is none; looking makes none."""
    if url.startswith("memory:") or not store_exists(StoreLocation(url, "", None, "", 0, "")):
        return None
    try:
        with closing(open_store(url, timeout=timeout)) as database:
            return PreparedStore(
                redact(url), "", made=False, store_id=database.store_id, epoch=database.epoch
            )
    except NotFound:
        return None
