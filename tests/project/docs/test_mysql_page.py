"""The how-to for MariaDB and MySQL is carried out as written."""

import re
from pathlib import Path
from typing import Any

import pymysql
import pytest

import coord
from tests.project.docs.test_examples import MYSQL_PAGE, run
from tests.support.docs.pages import Example, blocks_in, examples_in
from tests.support.servers.mariadb import MariadbServer


def test_the_mysql_page_is_true(mariadb_server: MariadbServer, tmp_path: Path) -> None:
    """Every step of the how-to is carried out as written, on a real server, with the rights it names."""
    users_and_database, grants = blocks_in(MYSQL_PAGE, "sql")
    install, use = (here(example, mariadb_server) for example in examples_in(MYSQL_PAGE))
    url = re.findall(r"mysql://[^\"]+", use.code)[0]
    with mariadb_server.admin() as admin:
        try:
            execute_all(admin, users_and_database)
            with pytest.raises(coord.Unavailable, match="denied"):
                coord.open_store(url)
            run(install, tmp_path)
            run(install, tmp_path)
            execute_all(admin, grants)
            assert run(use, tmp_path) == use.output
            check_agents_rights(url)
        finally:
            execute_all(admin, "DROP DATABASE coord_store; DROP USER coord_owner; DROP USER coord_agent;")


def check_agents_rights(url: str) -> None:
    """Every operation of an agent is allowed, and trimming is not."""
    task = ("acme", "shop", "B-001-search")
    with coord.TaskCoordinator.open(url) as tasks:
        claim = tasks.force_claim(*task, "ada", "session-1", reason="a test of rights").claim
        assert claim is not None
        assert tasks.renew_lease(*task, "session-1", claim.generation).success
        assert tasks.release_claim(*task, "session-1", claim.generation).success
        assert [past.release_reason for past in tasks.get_claim_history(*task)] == ["VOLUNTARY"]
        log = tasks.database.log("acme")
        assert log.wait(0, 60)
        with pytest.raises(coord.Unavailable, match="denied"):
            log.trim(log.seen.offset)


def here(example: Example, server: MariadbServer) -> Example:
    """The example with the private server in place of the one on the page."""
    return example._replace(code=example.code.replace("db.example.org:3306", f"127.0.0.1:{server.port}"))


def execute_all(connection: "pymysql.Connection[Any]", statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements.split(";")[:-1]:
            cursor.execute(statement)
