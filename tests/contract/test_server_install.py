"""Installing on a server, which is alike on every kind; what is particular to one stands in its own tests."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

import coord
from coord.core.errors import NotFound
from coord.stores.open import open_store
from coord.stores.urls import redact
from tests.support.servers.kinds import ON_SERVERS, Servers
from tests.support.stores.steps import head, write


@pytest.fixture(params=ON_SERVERS)
def blank_url(request: pytest.FixtureRequest, servers: Servers) -> str:
    """A place on a server of every kind where no store is yet."""
    kind = ON_SERVERS[request.param]
    return kind.blank_url(servers.get(kind.server))


def test_install_is_safe_to_repeat(blank_url: str) -> None:
    """Eight at once, and once more later, make one store with one identity."""
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(coord.install, [blank_url] * 8)) == [None] * 8
    with closing(open_store(blank_url)) as database:
        write(database.log("local"), {"k": b"1"})
        identity = database.store_id
    coord.install(blank_url)
    with closing(open_store(blank_url.replace("mysql:", "mariadb:"))) as database:
        assert (database.store_id, database.epoch) == (identity, 0)
        assert head(database.log("local")) == 1


def test_a_server_without_a_store_is_not_found(blank_url: str) -> None:
    """Opening never creates: the error says what to do, without the password."""
    with pytest.raises(NotFound) as missing:
        open_store(blank_url)
    assert missing.value.hint == f"prepare it: coord install {redact(blank_url)}"
