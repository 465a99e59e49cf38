"""The rights that `grants` names are enough for what a role does, and for nothing else."""

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest

import coord
from coord.core.errors import NotFound, Unavailable
from coord.stores.open import grants, open_store
from tests.servers.postgres import PostgresServer
from tests.servers.server import PASSWORD

OWNER, AGENT = "rights_owner", "coord_agent"


@pytest.fixture
def blank(postgres_server: PostgresServer) -> Iterator[str]:
    """The url of an empty database, as its owner-to-be would write it; the roles go with the test."""
    url = postgres_server.blank_url()
    database = url.rpartition("/")[2]
    yield as_role(url, OWNER)
    with postgres_server.admin() as admin:
        admin.execute(f"DROP DATABASE {database} WITH (FORCE)")
        admin.execute(f"DROP ROLE IF EXISTS {OWNER}")
        admin.execute(f"DROP ROLE IF EXISTS {AGENT}")


def as_role(url: str, role: str) -> str:
    return re.sub(r"//[^:]+:", f"//{role}:", url)


def run_as(url: str, statements: list[str]) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def refused(url: str, statement: str) -> bool:
    """Whether the server does not allow a statement."""
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        run_as(url, [statement])
    return True


def installed(server: PostgresServer, url: str) -> str:
    """Carry out all that `grants` says, each part as whom it says; return the url of an agent."""
    statements = grants(url)
    after = next(place for place, text in enumerate(statements) if "Then coord install" in text)
    admin = server.url(url.rpartition("/")[2])
    passwords = [f"ALTER ROLE {role} PASSWORD '{PASSWORD}'" for role in (OWNER, AGENT)]
    run_as(admin, [*statements[:after], *passwords])
    coord.install(url)
    run_as(url, statements[after:])
    return as_role(url, AGENT)


def test_an_agent_works_and_can_do_nothing_else(postgres_server: PostgresServer, blank: str) -> None:
    """TEN-1: least privilege: an agent claims, locks, waits and trims; it drops nothing and leaves its schema."""
    agent = installed(postgres_server, blank)
    with coord.connect(agent, session="s1", agent="ada", project="shop") as client:
        client.register()
        assert client.acquire("name:release").locks
        client.send("s1", "status", "hello")
        client.sweep()
        log = client.database.log("local")
        assert log.wait(0, 5)
        log.trim(log.seen.offset)
    with psycopg.connect(agent) as sql:
        assert sql.execute("SELECT count(*) FROM coord.coord_history").fetchall() == [(1,)]
    with psycopg.connect(blank, autocommit=True) as owner:
        owner.execute("CREATE SCHEMA elsewhere")
        owner.execute("CREATE TABLE elsewhere.secret (value text)")
    assert refused(agent, "DROP SCHEMA coord CASCADE")
    assert refused(agent, "DROP TABLE coord.record")
    assert refused(agent, "TRUNCATE coord.record")
    assert refused(agent, "DELETE FROM coord.log")
    assert refused(agent, "UPDATE coord.entry SET at = 0")
    assert refused(agent, "UPDATE coord.meta SET value = ''")
    assert refused(agent, "CREATE TABLE coord.mine (a int)")
    assert refused(agent, "CREATE SCHEMA mine")
    assert refused(agent, "SELECT * FROM elsewhere.secret")
    assert refused(
        agent, "CREATE OR REPLACE FUNCTION coord.as_json(value bytea) RETURNS jsonb AS '' LANGUAGE sql"
    )


def test_an_agent_may_call_install(postgres_server: PostgresServer, blank: str) -> None:
    """`coord init` prepares what it opens: for who owns nothing there, that changes nothing and fails nowhere."""
    agent = installed(postgres_server, blank)
    run_as(blank, ["DELETE FROM coord.meta WHERE name = 'views'"])
    coord.install(agent)
    with closing(open_store(agent)) as database:
        assert "views" not in database.notes


def test_an_agent_cannot_install(postgres_server: PostgresServer, blank: str) -> None:
    """Where nothing is prepared, the agent is told by whom it is prepared, and nothing is made."""
    agent = as_role(blank, AGENT)
    statements = grants(blank)
    passwords = [f"ALTER ROLE {role} PASSWORD '{PASSWORD}'" for role in (OWNER, AGENT)]
    admin = postgres_server.url(blank.rpartition("/")[2])
    run_as(admin, [*statements[:4], *passwords])
    with pytest.raises(NotFound, match=r"coord install postgresql://coord_agent:\*\*\*@"):
        open_store(agent)
    with pytest.raises(Unavailable, match="permission denied"):
        coord.install(agent)


def test_names_are_quoted(postgres_server: PostgresServer) -> None:
    """A name from a url is text, whatever it holds; passwords are in no statement."""
    url = 'postgresql://a%22%3B%20DROP:secret@host/da"ta?schema=team_a'
    told = "\n".join(grants(url))
    assert '"a""; DROP"' in told
    assert '"da""ta"' in told
    assert '"team_a".record' in told
    assert "secret" not in told


def test_stores_in_files_need_no_rights() -> None:
    """What is a path on this machine has the rights of the path."""
    kinds: list[Any] = [grants("sqlite:///x.db"), grants("file:///x"), grants("memory:")]
    assert kinds == [[], [], []]
