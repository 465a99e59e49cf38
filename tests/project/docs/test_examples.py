"""Every Python example of the documents runs, and prints what its page says."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

import coord
from coord.stores.nats.database import grants
from tests.support.docs.pages import Example, blocks_in, examples_in, page_names
from tests.support.servers.nats import NatsServer
from tests.support.servers.postgres import PostgresServer, for_psycopg
from tests.support.servers.server import running

POSTGRES_PAGES = ["docs/how-to/use-postgres.md", "docs/how-to/use-postgres-log.md"]
POSTGRES_URL = r"postgresql[^\"]+"
MYSQL_PAGE = "docs/how-to/use-mysql.md"
NATS_PAGE = "docs/how-to/use-nats.md"
SERVER_PAGES = (*POSTGRES_PAGES, MYSQL_PAGE, NATS_PAGE, "docs/how-to/use-redis.md")
"""They need a server; each has a test of its own."""
EXAMPLES = [example for page in page_names() if page not in SERVER_PAGES for example in examples_in(page)]


def run(example: Example, folder: Path) -> str:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", example.code],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, f"{example.page}:{example.line}\n{ran.stderr}"
    return ran.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example.page}:{example.line}")
def test_an_example_runs_as_it_says(example: Example, tmp_path: Path) -> None:
    """A reader who copies an example gets what the page shows."""
    printed = run(example, tmp_path)
    assert example.output is None or printed == example.output


def test_the_main_pages_have_examples_with_output() -> None:
    """The extractor finds the examples: README, API and events show code and what it prints."""
    shown = {example.page for example in EXAMPLES if example.output}
    assert {"README.md", "docs/reference/api.md", "docs/reference/events.md"} <= shown


def test_the_readme_example_is_short() -> None:
    """The README's example is one screen: fifteen lines of code."""
    (example,) = examples_in("README.md")
    assert len([line for line in example.code.splitlines() if line.strip()]) <= 15


def test_the_extractor_sees_code_and_output(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A block is taken with the output right after it, and not with one further down."""
    page = tmp_path / "page.md"
    page.write_text(
        "x\n```python\nprint(1)\n```\n```output\n1\n```\n```python\nprint(2)\n```\nwords\n```output\n3\n```\n"
    )
    monkeypatch.setattr("tests.support.docs.pages.ROOT", tmp_path)
    first, second = examples_in("page.md")
    assert first == Example("page.md", 2, "print(1)\n", "1\n")
    assert second.output is None
    assert run(first, tmp_path) == first.output
    assert blocks_in("page.md", "output") == ["1\n", "3\n"]


def test_an_example_that_fails_is_noticed(tmp_path: Path) -> None:
    """An example that raises, or that only warns, fails its test."""
    for code in ("raise RuntimeError", "import warnings; warnings.warn('old')"):
        with pytest.raises(AssertionError, match=r"page\.md:1"):
            run(Example("page.md", 1, code, None), tmp_path)


@pytest.mark.parametrize("page", POSTGRES_PAGES)
def test_the_postgres_page_is_true(page: str, postgres_server: PostgresServer, tmp_path: Path) -> None:
    """Every step of the how-to is carried out as written, on a real server, with the rights it names."""
    roles_and_database, grants = blocks_in(page, "sql")
    install, use = (here(example, postgres_server) for example in examples_in(page))
    url = re.findall(POSTGRES_URL, use.code)[0]
    with postgres_server.admin() as admin:
        try:
            execute_all(admin, roles_and_database)
            with pytest.raises(coord.NotFound):
                coord.open_store(url)
            run(install, tmp_path)
            run(install, tmp_path)
            owner = re.findall(POSTGRES_URL, install.code)[0]
            with psycopg.connect(for_psycopg(owner), autocommit=True) as connection:
                execute_all(connection, grants)
            assert run(use, tmp_path) == use.output
            check_agents_rights(url)
        finally:
            execute_all(admin, "DROP DATABASE coord_store; DROP ROLE coord_owner; DROP ROLE coord_agent;")


def test_the_nats_page_is_true(tmp_path: Path) -> None:
    """Every step of the how-to is carried out as written, on a server with the configuration it shows."""
    (configuration,) = blocks_in(NATS_PAGE, "conf")

    class Shown(NatsServer):
        def command(self) -> list[str]:
            command = super().command()
            lines = configuration.replace("127.0.0.1:4222", f"127.0.0.1:{self.port}")
            Path(command[-1]).write_text(lines.replace("/var/lib/nats", f"{self.folder}/data"))
            return command

    with running(Shown) as server:
        install, use = (
            example._replace(code=example.code.replace("nats.example.org:4222", f"127.0.0.1:{server.port}"))
            for example in examples_in(NATS_PAGE)
        )
        url = re.findall(r"nats://[^\"]+", use.code)[0]
        with pytest.raises(coord.NotFound):
            coord.open_store(url)
        run(install, tmp_path)
        run(install, tmp_path)
        assert run(use, tmp_path) == use.output
        (permitted,) = (line for line in grants(url) if "publish" in line)
        assert set(re.findall(r'"[^"]+"', permitted)) <= set(re.findall(r'"[^"]+"', configuration))


def check_agents_rights(url: str) -> None:
    """Every operation of an agent is allowed, and trimming is not."""
    task = ("acme", "shop", "B-001-search")
    with coord.TaskCoordinator.open(url) as tasks:
        tasks.set_limits("acme", profile="enterprise")
        claim = tasks.force_claim(*task, "ada", "session-1", reason="a test of rights").claim
        assert claim is not None
        assert tasks.renew_lease(*task, "session-1", claim.generation).success
        assert tasks.release_claim(*task, "session-1", claim.generation).success
        assert tasks.reset_task(*task).success
        assert [past.release_reason for past in tasks.get_claim_history(*task)] == ["VOLUNTARY"]
        log = tasks.database.log("acme")
        assert log.wait(0, 60)
        with pytest.raises(coord.Unavailable, match="permission denied"):
            log.trim(log.seen.offset)


def here(example: Example, server: PostgresServer) -> Example:
    """The example with the private server in place of the one on the page."""
    return example._replace(code=example.code.replace("db.example.org:5432", f"127.0.0.1:{server.port}"))


def execute_all(connection: psycopg.Connection[Any], statements: str) -> None:
    for statement in statements.split(";")[:-1]:
        connection.execute(statement.encode())
