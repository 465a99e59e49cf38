"""The pages about stores: what they promise is what stores say, and their queries are answered."""

import re
from collections.abc import Callable
from contextlib import closing
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

import coord
from coord.stores.open import KINDS, grants, open_store
from coord.stores.sql_views import VIEW_NAMES
from tests.support.docs.pages import blocks_in, codes_of, rows_of, text_of
from tests.support.servers.kinds import STORES
from tests.support.servers.postgres import PostgresServer

CHOOSING = "docs/how-to/choose-a-store.md"
ASKING = "docs/how-to/query-with-sql.md"
POSTGRES = "docs/how-to/use-postgres.md"


def test_every_store_can_be_chosen() -> None:
    """Issue 6: each kind of store has its row: durable, what a crash or failover loses, what to install."""
    assert set(KINDS) == {row[0].strip("`") for row in rows_of(CHOOSING, "## Guarantees")}
    for row in rows_of(CHOOSING, "## Guarantees"):
        assert len(row) == 6
        assert all(row), row[0]


@pytest.mark.parametrize("kind", STORES)
def test_durable_is_what_the_store_says(kind: str, make_url: Callable[[str], str]) -> None:
    """The column is true of a store as the tests set it up, which is as the page advises."""
    url = make_url(kind)
    rows = {row[0].strip("`"): row[1] for row in rows_of(CHOOSING, "## Guarantees")}
    with closing(open_store(url)) as database:
        assert database.log("local").limits.durable is not rows[url.partition(":")[0]].startswith("no")


def test_the_queries_are_answered(postgres_server: PostgresServer) -> None:
    """AUD-35: the five queries of the page, word for word, over what two agents did."""
    url = postgres_server.fresh_url()
    with coord.connect(url, session="s-ada", agent="ada", project="shop") as ada:
        ada.register()
        ada.acquire("name:release", ttl_s=300, reason="1.4")
        ada.add_task("A-001-login", description="the login")
    with coord.TaskCoordinator.open(url) as tasks:
        for who in ("ada", "bob"):
            claim = tasks.claim_task("local", "shop", "B-001-search", who, f"s-{who}").claim
            assert claim is not None
            tasks.release_claim("local", "shop", "B-001-search", f"s-{who}", claim.generation)
    with psycopg.connect(url, row_factory=dict_row) as sql:
        answers = [sql.execute(query.encode()).fetchall() for query in blocks_in(ASKING, "sql")]
    held, silent, progress, changed_hands, today, actions = answers
    assert [(row["resource"], row["agent"], row["reason"]) for row in held] == [
        ("name:release", "ada", "1.4")
    ]
    assert silent == []
    assert [(row["project"], row["state"], row["tasks"]) for row in progress] == [("shop", "ready", 2)]
    assert [(row["generation"], row["agent"]) for row in changed_hands] == [(1, "ada"), (2, "bob")]
    concerns: list[Any] = [(row["event"], row["concerns"]) for row in today if row["concerns"]]
    assert ("lock.acquired", "name:release") in concerns
    assert ("task.claimed", "B-001-search") in concerns
    assert ("s-ada", "ada", "task_started", 1) in [tuple(row.values())[:4] for row in actions]


def test_the_page_names_every_view() -> None:
    """AUD-35: what can be asked is listed."""
    assert codes_of(ASKING) == list(VIEW_NAMES)
    assert len(blocks_in(ASKING, "sql")) == 6


def test_the_rights_on_the_page_are_those_of_the_command() -> None:
    """`coord install --grants` and the page say the same about what an agent may do."""
    printed = "\n".join(grants("postgresql://coord_owner@db/coord_store")).replace('"', "")
    agents = re.findall(r"^GRANT .*;$", printed, re.MULTILINE)[2:-1]
    assert blocks_in(POSTGRES, "sql")[1].splitlines() == agents
    assert "`DELETE` on `coord.entry` and `coord.record`" in text_of(POSTGRES)
