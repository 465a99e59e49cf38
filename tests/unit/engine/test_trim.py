"""Which commit trims the log, and that its command does not notice."""

import pytest

from coord.core.errors import Unavailable
from coord.core.settings import ChangeSettings
from coord.engine import engine as engines
from coord.engine import trim
from coord.engine.trim import log_state
from tests.support.engine_probes import Append, Look
from tests.unit.engine.conftest import Stage

EVERY = 16


@pytest.fixture(autouse=True)
def _small_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (engines, trim):
        monkeypatch.setattr(module, "TRIM_EVERY", EVERY)
    monkeypatch.setattr(trim, "NEWEST_KEPT", 2)


def first(stage: Stage) -> int:
    return log_state(stage.store, 0).first


def test_one_commit_in_many_trims(stage: Stage) -> None:
    """SCH-21: ordinary commands trim the log, without a daemon and without a person."""
    stage.engine.call(ChangeSettings({"log_retention_entries": 10}))
    for number in range(2, 2 * EVERY):
        stage.engine.call(Append("a", str(number % 10)))
    assert first(stage) == 1, "at offset 16 it was not worth it"
    stage.engine.call(Append("a", "x"))
    assert first(stage) == 2 * EVERY + 1 - 10
    assert stage.engine.call(Look("a")).endswith("x")


def test_other_commits_pay_nothing(stage: Stage) -> None:
    """Only the commit with that offset looks at settings, cursors and entries."""
    for number in range(1, EVERY - 1):
        stage.engine.call(Append("a", str(number % 10)))
    stage.store.start_counting()
    stage.engine.call(Append("a", "y"))
    assert stage.store.calls["tail"] == 0
    stage.engine.call(Append("a", "z"))
    assert stage.store.calls["tail"] == 1


def test_a_store_that_fails_to_trim_fails_no_command(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit is done when the trim begins."""

    def away(*_: object, **__: object) -> int:
        raise Unavailable("the server is away")

    monkeypatch.setattr(trim, "trim_log", away)
    for number in range(EVERY):
        stage.engine.call(Append("a", str(number % 10)))
    assert len(stage.engine.call(Look("a"))) == EVERY
