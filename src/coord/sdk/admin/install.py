"""Prepare a store for use: the one of a repository, one by its URL, or the separate one of a tenant."""

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
    """A store that is ready; `made` if it did not exist before. In a dry run a new store has no id."""

    url: str
    tenant: str
    made: bool
    store_id: str = ""
    epoch: int = 0


def prepare(
    cwd: str, environ: Mapping[str, str], *, url: str = "", tenant: str = "", dry_run: bool = False
) -> PreparedStore:
    """Prepare the store at `url` or of the repository; with `tenant` its separate store in coord.toml."""
    url, tenants = _requested(cwd, environ, url)
    target = _target(url, tenants, tenant)
    timeout = open_timeout_s(environ)
    found = _existing(target, timeout)
    if not dry_run:
        install(url, tenant=tenant, tenants=tenants, timeout=timeout)
        with closing(open_store(target, timeout=timeout)) as database:
            database.install_views()
    there = found if dry_run else _existing(target, timeout)
    made = found is None
    return msgspec.structs.replace(
        there or PreparedStore(redact(target), tenant, made), tenant=tenant, made=made
    )


def required_grants(cwd: str, environ: Mapping[str, str], *, url: str = "", tenant: str = "") -> list[str]:
    """Return the statements that an administrator runs before `prepare`; asks no server."""
    url, tenants = _requested(cwd, environ, url)
    return grants(_target(url, tenants, tenant))


def _requested(cwd: str, environ: Mapping[str, str], url: str) -> tuple[str, Mapping[str, str]]:
    """Return the URL to prepare and the URLs of tenants with separate stores; a pinned store must exist."""
    location = find_location(cwd, environ)
    if url:
        kind_of(url)
        return url, location.tenants
    if location.pinned:  # preparing a lost store again would hide the loss
        open_location(location._replace(tenants={}), open_timeout_s(environ))[0].close()
    return location.url, location.tenants


def _target(url: str, tenants: Mapping[str, str], tenant: str) -> str:
    if not tenant:
        return url
    check_tenants(tenants)
    own = url_of(tenant, tenants)
    if not own:
        raise Invalid(
            f"tenant {tenant} has no separate store",
            hint="nothing to prepare; to give it one, name its URL under [tenants] in coord.toml",
        )
    return own


def _existing(url: str, timeout: float) -> PreparedStore | None:
    """Return the store at a URL, or None; does not create one."""
    if url.startswith("memory:") or not store_exists(StoreLocation(url, "", None, "", 0, "")):
        return None
    try:
        with closing(open_store(url, timeout=timeout)) as database:
            return PreparedStore(
                redact(url), "", made=False, store_id=database.store_id, epoch=database.epoch
            )
    except NotFound:
        return None
