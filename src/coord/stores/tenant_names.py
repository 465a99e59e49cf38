"""A tenant as a part of other names: of schemas, files, notes."""

import re

_PLAIN = re.compile(r"[a-z][a-z0-9]{0,31}")
_READABLE = 8


def name_of(tenant: str) -> str:
    """Return a tenant as a part of any name: small letters, digits and _; no two tenants have the same.

    Whatever is not plain has a _ and a digest of its own, so that it meets neither a plain one nor another.

    >>> name_of("acme"), name_of("Acme.EU")
    ('acme', 'acmeeu_5874855eaf7a81f228ef885ed9cc79d7')
    """
    if _PLAIN.fullmatch(tenant):
        return tenant
    from hashlib import sha256

    readable = "".join(re.findall("[a-z0-9]", tenant.lower()))[:_READABLE]
    return f"{readable}_{sha256(tenant.encode()).hexdigest()[:32]}"
