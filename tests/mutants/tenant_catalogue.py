"""Mutants of what keeps tenants apart, and of what SQL sees."""

from tests.mutants.mutant import Mutant

TENANTS, MOVED, NAME = "stores/tenants.py", "stores/migrated.py", "stores/tenant_names.py"
ROUTED = "tests/unit/stores/test_tenants.py"

TENANT_MUTANTS = [
    Mutant(
        "a statement of Postgres looks at the rows of all tenants",
        "stores/postgres/table_statements.py",
        "WHERE log = l.id AND (line, key) > (r.low, r.low_key)",
        "WHERE (line, key) > (r.low, r.low_key)",
        ("tests/unit/stores/test_tenant_rows.py", "-k", "visits"),
    ),
    Mutant(
        "any store is taken for that of a tenant",
        TENANTS,
        "        if own.store_id != noted:\n",
        "        if False:\n",
        (ROUTED, "-k", "another_store"),
    ),
    Mutant(
        "who lacks the configuration finds a tenant in the shared store",
        MOVED,
        "    if note_of(tenant) in notes:\n",
        "    if False:\n",
        (ROUTED, "-k", "nobody_looks"),
    ),
    Mutant(
        "a tenant is cut off from its records",
        TENANTS,
        "    if tenant in mover.heads():",
        "    if False:",
        (ROUTED, "-k", "who_has_records"),
    ),
    Mutant(
        "two tenants meet in one schema",
        NAME,
        'return f"{readable}_{sha256(tenant.encode()).hexdigest()[:32]}"',
        'return f"{readable}_{0:032d}"',
        (ROUTED, "-k", "look_alike"),
    ),
    Mutant(
        "a migration forgets where tenants live",
        "sdk/admin/migrate.py",
        "ARRIVED: self._source.store_id, **homes})",
        "ARRIVED: self._source.store_id})",
        ("tests/unit/sdk/admin/test_migrate.py", "-k", "where_tenants_live"),
    ),
]
