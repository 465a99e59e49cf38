"""A store whose log is followed by real processes that get killed; afterwards each entry counted once."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from coord.core.followers import ReadFollower
from coord.engine.engine import Engine
from coord.followers.metrics.follower import MetricsFollower
from coord.stores.contract import Entry
from coord.stores.open import open_store
from tests.conftest import SOAK
from tests.support.consent import write_configuration
from tests.support.fork_server import ROOT, Forked
from tests.support.models.naive_metrics import NaiveMetrics, differences, read_samples
from tests.support.process_group import PATIENCE_S
from tests.support.programs.eager_coord import CWD

EAGER = "tests.support.programs.eager_coord"
ALONE = {"COORD_HUB": "off"}
REACTION = "seen"
PAGE = 1000


class Followed:
    """A repository with a store, a reaction that writes down each completed task, and processes of coord."""

    def __init__(self, repository: Path, url: str, folder: Path, environ: Mapping[str, str]) -> None:
        self.repository, self.url = repository, url
        self.environ = {**environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
        self._seen = folder / "seen"
        line = f'echo "$COORD_DELIVERY" >> {self._seen}'
        table = f'[[on]]\nname = "{REACTION}"\nevent = "task.completed"\nrun = ["sh", "-c", \'{line}\']\n'
        write_configuration(repository, table, self.environ)

    def follow(self, name: str) -> Forked:
        """Start `coord follow NAME`."""
        environ = {**self.environ, **ALONE, CWD: str(self.repository)}
        return Forked(EAGER, "follow", name, text=True, environ=environ)

    def coord(self, *words: str) -> str:
        """Run a command of coord to its end, without a hub; return what it prints."""
        done = subprocess.run(
            [sys.executable, "-m", "coord", *words],
            cwd=self.repository,
            env={**self.environ, **ALONE},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S * (20 if SOAK else 1),  # thousands of reactions may wait
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def check(self) -> int:
        """Compare metrics and reactions with the log when all is quiet; return the number of repetitions."""
        self.coord("follow", "reactions", "--once")
        self.coord("follow", "metrics", "--once")
        before = self._state()
        entries, shown = self._entries(), read_samples(self.coord("metrics"))
        assert differences(shown, NaiveMetrics(entries, "local").counted()) == []
        self.coord("follow", "metrics", "--rebuild", "--once")
        assert self._state() == before, "computed again it has other bytes"
        wanted = [
            f"{entry.offset}.{number}.{REACTION}"
            for entry in entries
            for number, event in enumerate(entry.events)
            if json.loads(event)["event"] == "task.completed"
        ]
        performed = Counter(self._seen.read_text().split())
        assert set(performed) == set(wanted), "each event has its effect, and nothing else has one"
        return performed.total() - len(wanted)

    def saved(self) -> int:
        """Return the offset that the metrics have saved."""
        return self._read()[0]

    def _state(self) -> bytes:
        return self._read()[1]

    def _read(self) -> tuple[int, bytes]:
        with closing(open_store(self.url)) as database:
            found = Engine(database, "local").call(ReadFollower(MetricsFollower.name))
        return int(found.offset), bytes(found.state)

    def _entries(self) -> list[Entry]:
        with closing(open_store(self.url)) as database:
            log, found = database.log("local"), list[Entry]()
            while page := log.tail(found[-1].offset if found else 0, PAGE):
                found += page
        return found
