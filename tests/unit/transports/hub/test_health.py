"""`/readyz` needs no token, so strangers must not be able to make it expensive."""

from collections.abc import Iterator

import pytest

from coord.core.errors import Unavailable
from coord.transports.hub import health
from tests.support.hub.site import Site, open_site


@pytest.fixture
def site() -> Iterator[Site]:
    with open_site() as found:
        yield found


def test_many_questions_cost_one_read(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "REUSED_S", 1000.0)
    log = site.database.log("local")
    reads: list[int] = []
    load = type(log).load

    def counted(*words: object, **more: object) -> object:
        reads.append(1)
        return load(*words, **more)

    monkeypatch.setattr(type(log), "load", counted)
    assert [site.ask("GET", "/readyz").status for _ in range(5)] == [200] * 5
    assert len(reads) == 1


def test_a_store_that_does_not_answer_is_not_ready(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object, **__: object) -> None:
        raise Unavailable("the server is gone")

    monkeypatch.setattr(type(site.database.log("local")), "load", gone)
    answer = site.ask("GET", "/readyz")
    assert (answer.status, "the server is gone" in answer.json()["detail"]) == (503, True)
