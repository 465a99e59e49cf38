"""The rights that `grants` names are enough for what a role does, and for nothing else."""

import re
from collections.abc import Callable
from contextlib import closing
from typing import Any

import psycopg
import pytest

import coord
from coord.core.errors import NotFound, Unavailable
from coord.stores.log.snapshot import snapshot_of
from coord.stores.open import grants, open_store
from coord.stores.postgres.grants import AGENT
from tests.support.servers.postgres import SHAPES, PostgresServer
from tests.support.servers.server import PASSWORD
from tests.support.stores.steps import head, write


class Roles:
    """Roles of a test's own, on a server that others use too, in place of those that `grants` speaks of."""

    def __init__(self, server: PostgresServer, shaped: Callable[[str], str] = str) -> None:
        self._admin = server.blank_url()
        name = self._admin.rpartition("/")[2]
        self._names = (f"{name}_owner", f"{name}_agent")
        self.owner, self.agent = (
            shaped(re.sub(r"//[^:]+:", f"//{role}:", self._admin)) for role in self._names
        )
        texts = [text.replace(AGENT, f"{name}_agent") for text in grants(self.owner)]
        after = next(place for place, text in enumerate(texts) if "Then coord install" in text)
        self._before, self._after = texts[:after], texts[after:]

    def make(self) -> None:
        """Carry out what an administrator does."""
        passwords = [f"ALTER ROLE {role} PASSWORD '{PASSWORD}'" for role in self._names]
        run_as(self._admin, [*self._before, *passwords])

    def install(self) -> None:
        """Carry out all that `grants` says, each part as whom it says."""
        self.make()
        coord.install(self.owner)
        run_as(re.sub("^[^:]+", "postgresql", self.owner), self._after)


@pytest.fixture
def roles(postgres_server: PostgresServer) -> Roles:
    """Two roles and a database where nothing is installed."""
    return Roles(postgres_server)


def run_as(url: str, statements: list[str]) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def is_refused(url: str, statement: str) -> bool:
    """Whether the server does not allow a statement."""
    try:
        run_as(url, [statement])
    except psycopg.errors.InsufficientPrivilege:
        return True
    return False


def test_an_agent_works_and_can_do_nothing_else(roles: Roles) -> None:
    """Least privilege: an agent claims, locks, waits and trims; it drops nothing, and sees no more."""
    roles.install()
    agent = roles.agent
    with coord.connect(agent, session="s1", agent="ada", project="shop") as client:
        client.register()
        assert client.acquire("name:release").locks
        client.send("s1", "status", "hello")
        client.sweep()
        log = client.database.log("local")
        assert log.wait(0, 60)
        log.trim(log.seen.offset)
    with psycopg.connect(agent) as sql:
        assert sql.execute("SELECT count(*) FROM coord.coord_history").fetchall() == [(1,)]
    run_as(roles.owner, ["CREATE SCHEMA elsewhere", "CREATE TABLE elsewhere.secret (value text)"])
    for statement in (
        "DROP SCHEMA coord CASCADE",
        "DROP TABLE coord.record",
        "TRUNCATE coord.record",
        "DELETE FROM coord.log",
        "UPDATE coord.entry SET at = 0",
        "UPDATE coord.meta SET value = ''",
        "CREATE TABLE coord.mine (a int)",
        "ALTER FUNCTION coord.commit RENAME TO mine",
        "CREATE SCHEMA mine",
        "SELECT * FROM elsewhere.secret",
    ):
        assert is_refused(agent, statement), statement


@pytest.mark.parametrize("shape", SHAPES)
def test_the_grants_are_enough(shape: str, postgres_server: PostgresServer) -> None:
    """A role with these rights and no others commits, reads, keeps large values, and trims."""
    roles = Roles(postgres_server, SHAPES[shape])
    roles.install()
    with closing(open_store(roles.agent)) as database:
        store = database.log("local")
        write(store, {"k": b"1", "large": b"x" * 9000})
        write(store, {"large": b""}, deletes=["k"])
        assert head(store) == 2
        if shape == "log":
            assert store._snapshots.write(snapshot_of(store._state), wait=True) > 0
        store.trim(2)
        assert [entry.offset for entry in store.tail(1, 9)] == [2]


def test_an_agent_may_call_install(roles: Roles) -> None:
    """`coord init` prepares what it opens: who owns nothing there changes nothing, and nothing fails."""
    roles.install()
    run_as(roles.owner, ["DELETE FROM coord.meta WHERE name = 'views'"])
    coord.install(roles.agent)
    with closing(open_store(roles.agent)) as database:
        assert "views" not in database.metadata


def test_an_agent_cannot_install(roles: Roles) -> None:
    """Where nothing is prepared, the agent is told how that is done, and has not the rights for it."""
    roles.make()
    with pytest.raises(NotFound, match=r"coord install postgresql://\w+_agent:\*\*\*@"):
        open_store(roles.agent)
    with pytest.raises(Unavailable, match="permission denied"):
        coord.install(roles.agent)


def test_names_are_quoted() -> None:
    """A name from a url is text, whatever it holds; passwords are in no statement."""
    told = "\n".join(grants('postgresql://a%22%3B%0ADROP%20{agent}:secret@host/da"ta?schema=team_a'))
    assert told.count('"a"";\nDROP {agent}"') == 2
    assert '"da""ta"' in told
    assert '"team_a".record' in told
    assert "secret" not in told


def test_stores_in_files_need_no_rights() -> None:
    """What is a path on this machine has the rights of the path."""
    kinds: list[Any] = [grants("sqlite:///x.db"), grants("file:///x"), grants("memory:")]
    assert kinds == [[], [], []]
