"""Engines for the tests, over the memory store with a stand-in between, in surroundings that stand still."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from coord.engine.engine import Engine
from coord.stores.contract import Limits
from coord.stores.database import Database
from coord.stores.open import open_store
from tests.support.engine_probes import Probes, StillRuntime
from tests.support.stores.stand_in import StandIn, StandInDatabase

NOW = 1_700_000_000_000


class Stage:
    """One engine on a stage: all that a test may want to look at or turn."""

    def __init__(self, database: StandInDatabase, **options: Any) -> None:
        self.database = database
        self.store: StandIn = database.log("local")
        self.now = NOW
        self.runtime = StillRuntime()
        options = {"clock": lambda: self.now, "runtime": self.runtime, **options}
        self.engine = Engine(database, "local", **options)
        # The first batch looks for what is due; after it the engine is quiet for a while.
        self.engine._sweep_at = NOW + 10**9


@pytest.fixture
def probes(monkeypatch: pytest.MonkeyPatch) -> Probes:
    """The probes, known to every engine of the test."""
    probes = Probes()
    probes.install(monkeypatch)
    return probes


MakeStage = Callable[..., Stage]


@pytest.fixture
def make_stage(probes: Probes) -> Iterator[MakeStage]:
    """Return a function that makes an engine, over a url (memory) or over a database that is open already."""
    with ExitStack() as opened:

        def make(
            over: str | Database[Any] = "memory:", limits: Limits | None = None, **options: Any
        ) -> Stage:
            database = open_store(over) if isinstance(over, str) else over
            stand_in = opened.enter_context(closing(StandInDatabase(database, limits)))
            stage = Stage(stand_in, **options)
            opened.callback(stage.engine.close)
            return stage

        yield make


@pytest.fixture
def stage(make_stage: MakeStage) -> Stage:
    """An engine over a memory store."""
    return make_stage()
