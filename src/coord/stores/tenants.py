"""Where each tenant lives: in the shared store, or in a separate one.

A mapping from tenants to urls names the tenants with their own stores. `*` stands for every tenant that is
not named, except `local`, and its url has `{tenant}`. `install` writes the id of each such store into the
metadata of the shared store. So nobody can mistake another store for it, or look for the tenant in the shared
store: two callers with two stores would both be granted the same claim.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from coord.core.errors import Invalid, LimitReached, Refused, Unavailable
from coord.stores.migration import Migrator
from coord.stores.urls import redact

if TYPE_CHECKING:
    from coord.stores.database import Database

TENANT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@+=~-]{0,127}")
EVERY, PLACEHOLDER = "*", "{tenant}"
DEFAULT_TENANT = "local"
"""The tenant of callers that name none. It stays in the store of the repository unless it is mapped."""
STORE_ID_PREFIX = "tenant/"
"""Before the slug of a tenant: metadata of the shared store with the id of the tenant's own store."""
OWN_STORES_MAX = 1000

_PLAIN = re.compile(r"[a-z][a-z0-9]{0,31}")
_READABLE_CHARS = 8


def check_tenant(tenant: str) -> None:
    """Refuse text that is not the name of a tenant."""
    if not TENANT.fullmatch(tenant):
        raise Invalid(f"{tenant!r} is not a tenant", hint="1 to 128 letters, digits and . _ @ + = ~ -")


def tenant_slug(tenant: str) -> str:
    """Return a tenant as part of a schema, file or metadata name; no two tenants have the same slug.

    A tenant that is not a plain lower-case word gets a digest, which a plain one cannot contain.

    >>> tenant_slug("acme"), tenant_slug("Acme.EU")
    ('acme', 'acmeeu_5874855eaf7a81f228ef885ed9cc79d7')
    """
    if _PLAIN.fullmatch(tenant):
        return tenant
    from hashlib import sha256

    readable = "".join(re.findall("[a-z0-9]", tenant.lower()))[:_READABLE_CHARS]
    return f"{readable}_{sha256(tenant.encode()).hexdigest()[:32]}"


def store_id_key(tenant: str) -> str:
    """Return the metadata name under which the shared store keeps the id of a tenant's own store."""
    return STORE_ID_PREFIX + tenant_slug(tenant)


def check_in_shared_store(tenant: str, metadata: dict[str, str]) -> None:
    """Refuse to look in the shared store for a tenant that has its own store."""
    if store_id_key(tenant) in metadata:
        raise Unavailable(
            f"tenant {tenant} has its own store, and no url for it is configured here",
            hint="add its url to coord.toml below [tenants], as on the machine that installed it",
        )


def check_tenants(urls: Mapping[str, str]) -> None:
    """Refuse a mapping with an invalid tenant, an empty url, or `{tenant}` in the wrong place."""
    for tenant, url in urls.items():
        if not isinstance(url, str) or not url:
            raise Invalid(f"tenant {tenant} has no url", hint='write acme = "postgresql://…"')
        if tenant != EVERY and not TENANT.fullmatch(tenant):
            raise Invalid(
                f"{tenant!r} is not a tenant", hint='1 to 128 letters, digits and . _ @ + = ~ -, or "*"'
            )
        if (tenant == EVERY) != (PLACEHOLDER in url):
            raise Invalid(
                f"the url of {tenant}, {redact(url)}, {'lacks' if tenant == EVERY else 'has'} {PLACEHOLDER}",
                hint=f'use {PLACEHOLDER} in the url of "*", and only there',
            )


def url_of(tenant: str, urls: Mapping[str, str]) -> str:
    """Return the url of a tenant's own store; empty if it uses the shared one."""
    check_tenant(tenant)  # before it becomes part of a url
    if tenant in urls or tenant == DEFAULT_TENANT:
        return urls.get(tenant, "")
    return urls.get(EVERY, "").replace(PLACEHOLDER, tenant_slug(tenant))


def assign_store(tenant: str, shared: "Database[Any]", migrator: Migrator, own: "Database[Any]") -> None:
    """Record that a tenant lives in its own store; refuse a tenant that already has data elsewhere."""
    key, metadata = store_id_key(tenant), migrator.metadata()
    if metadata.get(key) == own.store_id:
        return
    if key in metadata:
        raise Refused(
            f"tenant {tenant} lives in another store ({metadata[key]}), not in {redact(own.url)}",
            hint="use the url of that store; if it is lost, restore it",
        )
    if own.store_id == shared.store_id:
        raise Invalid(f"{redact(own.url)} is the shared store", hint="give the tenant a separate store")
    if sum(name.startswith(STORE_ID_PREFIX) for name in metadata) >= OWN_STORES_MAX:
        raise LimitReached(
            f"{OWN_STORES_MAX} tenants have their own stores", hint="install another shared store"
        )
    migrator.set_metadata(**{key: own.store_id})
    if tenant in migrator.heads():  # checked last, so that a concurrent first commit is seen
        migrator.set_metadata(**{key: ""})
        raise Refused(
            f"tenant {tenant} has records in the shared store, {redact(shared.url)}",
            hint="a tenant can get its own store only before its first use",
        )
