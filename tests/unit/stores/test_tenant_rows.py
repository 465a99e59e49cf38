"""No query of one tenant touches another's rows, at each of three levels, as the server itself sees it."""

import re
from contextlib import closing
from typing import Any

import psycopg
import pytest

import coord
from coord.core.errors import CoordError, Unavailable
from coord.stores.open import open_store
from coord.stores.postgres.table_store import PostgresDatabase
from tests.support.servers.postgres import PostgresServer
from tests.support.servers.server import PASSWORD
from tests.support.stores.steps import write

# The tripwire: whoever so much as visits a row of another log than its own is ended with an error. A policy
# is asked of every row that a statement looks at and that its index did not rule out.
TRIPWIRE = """
CREATE FUNCTION public.trip(log int) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF log <> current_setting('test.log')::int THEN RAISE EXCEPTION 'tripped over log %', log; END IF;
    RETURN true;
END $$;
ALTER TABLE coord.log ENABLE ROW LEVEL SECURITY;
ALTER TABLE coord.record ENABLE ROW LEVEL SECURITY;
ALTER TABLE coord.entry ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON coord.log USING (public.trip(id));
CREATE POLICY own ON coord.record USING (public.trip(log));
CREATE POLICY own ON coord.entry USING (public.trip(log));
"""
TENANTS = ("acme", "other")


class Guarded:
    """A store that two tenants share, and a role that is held by the tripwire."""

    def __init__(self, server: PostgresServer) -> None:
        self.admin = server.fresh_url()
        self.role = f"{self.admin.rpartition('/')[2]}_agent"
        for tenant in TENANTS:
            work(self.admin, tenant)
        with psycopg.connect(self.admin, autocommit=True) as sql:
            sql.execute(TRIPWIRE)
            sql.execute(f"CREATE ROLE {self.role} LOGIN PASSWORD '{PASSWORD}'")
            sql.execute(f"GRANT USAGE ON SCHEMA coord TO {self.role}")
            sql.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA coord TO {self.role}")
            self.logs: dict[str, int] = dict(sql.execute("SELECT tenant, id FROM coord.log").fetchall())

    def url(self, tenant: str) -> str:
        """The url of an agent that may see one tenant's rows only."""
        options = f"options=-ctest.log%3D{self.logs[tenant]}"
        return f"{re.sub(r'//[^:]+:', f'//{self.role}:', self.admin)}?{options}"

    def rows(self, tenant: str) -> list[Any]:
        """All rows that a tenant has."""
        log = self.logs[tenant]
        with psycopg.connect(self.admin) as sql:
            return [
                sql.execute(f"SELECT * FROM coord.{table} WHERE {column} = %s ORDER BY 2", (log,)).fetchall()
                for table, column in (("log", "id"), ("record", "log"), ("entry", "log"))
            ]


def work(url: str, tenant: str) -> None:
    """A bit of everything that a tenant does: sessions, locks, messages, tasks, claims, upkeep, the log."""
    with coord.connect(url, session="s1", agent="ada", project="shop", tenant=tenant) as ada:
        ada.register(task="T")
        ada.acquire("name:release", ttl_s=60)
        with coord.connect(url, session="s2", agent="bob", project="shop", tenant=tenant) as bob:
            bob.register()
            bob.acquire("name:release")
            bob.send("s1", "status", "hello")
            bob.peers()
        ada.recv()
        ada.locks()
        ada.add_task("A-001-login", description="the login")
        ada.next_task()
        ada.sweep()
        ada.unlock("name:release")
        tasks = coord.TaskCoordinator(ada.database)
        task = (tenant, "shop", "B-001-search")
        claim = tasks.claim_task(*task, "ada", "s1").claim
        assert claim is not None
        tasks.renew_lease(*task, "s1", claim.generation)
        tasks.submit_result(*task, "s1", claim.generation, {"a": 1})
        tasks.reset_task(*task)
        tasks.get_claim_history(*task)
        log = ada.database.log(tenant)
        assert log.wait(0, 60)
        assert log.tail(log.seen.offset - 3, 1000)
        log.scan("", by="index_key", limit=1000)
        log.trim(log.seen.offset - 2)


@pytest.fixture(scope="module")
def guarded(postgres_server: PostgresServer) -> Guarded:
    """A shared store with the tripwire."""
    return Guarded(postgres_server)


@pytest.mark.parametrize(("tenant", "others"), [TENANTS, TENANTS[::-1]])
def test_no_statement_visits_the_rows_of_another(guarded: Guarded, tenant: str, others: str) -> None:
    """TEN-1: in shared tables whatever a tenant does reads and writes rows of its own log alone."""
    before, own = guarded.rows(others), guarded.rows(tenant)
    work(guarded.url(tenant), tenant)
    assert guarded.rows(others) == before
    assert guarded.rows(tenant) != own


def test_the_tripwire_holds(guarded: Guarded) -> None:
    """TEN-1: the test above would notice: to open another's log, or to ask without naming one, trips."""
    with closing(PostgresDatabase(guarded.url("acme"))) as database:
        with pytest.raises(CoordError, match="tripped over log"):
            database.log("other")
        for statement in (
            "SELECT * FROM coord.record",
            "SELECT * FROM coord.entry",
            "SELECT * FROM coord.log",
        ):
            with pytest.raises(CoordError, match="tripped over log"):
                database.ask(statement)


@pytest.fixture
def schemas(postgres_server: PostgresServer) -> dict[str, str]:
    """The urls of two tenants' schemas in one database, each for a role that has rights there alone."""
    blank = postgres_server.blank_url()
    name = blank.rpartition("/")[2]
    urls, template = {}, {"*": f"{blank}?schema=coord_{{tenant}}"}
    for tenant in TENANTS:
        coord.install(blank, tenant=tenant, tenants=template)
        role, schema = f"{name}_{tenant}", f"coord_{tenant}"
        with psycopg.connect(blank, autocommit=True) as sql:
            sql.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
            for granted in (schema, "coord"):
                sql.execute(f"GRANT USAGE ON SCHEMA {granted} TO {role}")
            sql.execute(f"GRANT SELECT ON coord.meta TO {role}")
            sql.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}")
        urls[tenant] = re.sub(r"//[^:]+:", f"//{role}:", blank)
    return urls


def test_a_role_works_in_its_own_schema_alone(schemas: dict[str, str]) -> None:
    """TEN-2: a schema for each tenant: the role of one is let into no other's, by the server itself."""
    for tenant, url in schemas.items():
        (other,) = set(TENANTS) - {tenant}
        tenants = {"*": f"{url}?schema=coord_{{tenant}}"}
        with coord.TaskCoordinator.open(url, tenants=tenants) as tasks:
            assert tasks.claim_task(tenant, "shop", "A-001-login", "ada", "s1").claim
            with pytest.raises(Unavailable, match="permission denied"):
                tasks.claim_task(other, "shop", "A-001-login", "ada", "s1")
            with pytest.raises(Unavailable, match="permission denied"):
                tasks.claim_task("local", "shop", "A-001-login", "ada", "s1")


def test_a_database_of_its_own(postgres_server: PostgresServer) -> None:
    """TEN-3: an instance for each tenant: what connects for one is refused where the other lives."""
    shared, urls = postgres_server.fresh_url(), {}
    for tenant in TENANTS:
        urls[tenant] = postgres_server.blank_url()
        coord.install(shared, tenant=tenant, tenants=urls)
    role = f"{shared.rpartition('/')[2]}_acme"
    with psycopg.connect(urls["acme"], autocommit=True) as sql:
        sql.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
        sql.execute(f"REVOKE CONNECT ON DATABASE {urls['other'].rpartition('/')[2]} FROM PUBLIC")
        sql.execute(f"GRANT USAGE ON SCHEMA coord TO {role}")
        sql.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA coord TO {role}")
    restricted = {tenant: re.sub(r"//[^:]+:", f"//{role}:", url) for tenant, url in urls.items()}
    with closing(open_store(shared, tenants=restricted)) as routed:
        write(routed.log("acme"), {"k": b"1"})
        with pytest.raises(Unavailable, match="permission denied for database"):
            routed.log("other")
