"""Spans reach the collector at least once, with the same ids, and nobody else."""

import os
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from coord.core.followers import ReadFollower
from coord.followers.follower import LogSource
from coord.followers.runner import LEASE_MS, SAVE_MS, Runner
from coord.followers.traces import follower as follower_module
from coord.followers.traces.follower import BATCH_MS, Traces
from coord.followers.traces.settings import read_collector
from coord.host.store_location import StoreLocation
from coord.stores.open import open_store
from tests.support.hub.collector import Collector, collecting
from tests.support.store_harness import StoreHarness

JOIN_S = 30.0


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as made:
        yield made


class Place:
    """A store with a clock set by hand, and the configuration of its user."""

    def __init__(self, harness: StoreHarness, home: Path) -> None:
        self.harness = harness
        self.file = home / "coord/coord.toml"
        self.file.parent.mkdir(parents=True)
        self.environ = {"HOME": str(home), "XDG_CONFIG_HOME": str(home), "XDG_STATE_HOME": str(home / "s")}
        self.actor = harness.actor("ada-1")
        self._written = 0

    def configure(self, text: str) -> None:
        self.file.write_text(text)
        self._written += 1
        os.utime(self.file, ns=(self._written, self._written))

    @property
    def source(self) -> LogSource:
        harness = self.harness
        location = StoreLocation("memory:", "r", None, harness.database.store_id, 0, "/nowhere")
        return LogSource(harness.local, harness.store, location, self.environ, lambda: harness.now)

    def runner(self, name: str = "me") -> Runner:
        runner = Runner(self.source, [Traces], name)
        runner.step()
        return runner

    def work(self, times: int = 1) -> None:
        """Hold a lock for three seconds."""
        for _ in range(times):
            self.actor.lock("file:a.py")
            self.harness.pass_seconds(3)
            self.actor.unlock("file:a.py")

    def saved(self) -> int:
        offset: int = self.harness.local.call(ReadFollower("traces")).offset
        return offset


@pytest.fixture
def place(tmp_path: Path, collector: Collector) -> Iterator[Place]:
    with closing(open_store("memory:")) as database:
        made = Place(StoreHarness(database), tmp_path / "home")
        made.configure(f'[telemetry]\ntraces = "{collector.url}"\n')
        yield made


def send(place: Place, runner: Runner) -> None:
    """Let the runner send what waits, and take the answer."""
    runner.step()
    place.harness.pass_seconds(BATCH_MS / 1000)
    runner.step()
    for thread in threading.enumerate():
        if thread.name == "coord-traces":
            thread.join(JOIN_S)
    runner.step()


def test_what_ends_is_sent_and_then_saved(place: Place, collector: Collector) -> None:
    place.work(2)  # before anybody follows
    runner = place.runner()
    place.work(2)
    send(place, runner)
    assert collector.names() == ["coord.lock.hold"] * 2
    assert collector.paths == ["/v1/traces"]
    (span, _) = collector.spans
    assert int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"]) == 3_000_000_000
    assert not runner.runs[0].follower.busy
    assert place.saved() >= runner.offset - 1
    runner.close()
    assert collector.names() == ["coord.lock.hold"] * 2


def test_a_killed_process_repeats_spans_with_their_ids(place: Place, collector: Collector) -> None:
    """Nothing was noted: the next process sends the same, and a collector recognises it."""
    runner = place.runner()
    place.work()
    runner.step()
    place.harness.pass_seconds(SAVE_MS / 1000 + 1)
    runner.step()  # it sends, and saves that the span is not accepted
    for thread in threading.enumerate():
        if thread.name == "coord-traces":
            thread.join(JOIN_S)
    assert len(collector.spans) == 1
    place.harness.pass_seconds(LEASE_MS / 1000 + 1)  # it was killed before it took the answer
    again = place.runner("other")
    send(place, again)
    first, second = collector.spans
    assert first == second
    again.close()


def test_a_collector_that_refuses_costs_time_and_no_span(place: Place, collector: Collector) -> None:
    """The failure is shown, the others go on, and everything arrives later."""
    runner = place.runner()
    collector.refusing = 1
    place.work(3)
    send(place, runner)
    (run,) = runner.runs
    assert collector.spans == []
    assert "answered 503" in str(run.failure)
    place.harness.pass_seconds(2)
    send(place, runner)
    assert collector.names() == ["coord.lock.hold"] * 3
    assert run.failure is None
    runner.close()


def test_memory_is_bounded(place: Place, collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest spans are dropped while nothing is under way."""
    monkeypatch.setattr(follower_module, "WAITING_MAX", 2)
    runner = place.runner()
    place.work(4)
    send(place, runner)
    sent = [int(attribute(span, "coord.offset")) for span in collector.spans]
    assert sent == offsets(place, "lock.released")[-2:]
    runner.close()


def attribute(span: dict[str, Any], name: str) -> str:
    (found,) = [each["value"] for each in span["attributes"] if each["key"] == name]
    return str(next(iter(found.values())))


def offsets(place: Place, event: str) -> list[int]:
    harness = place.harness
    return [
        number + 1
        for number, entry in enumerate(harness.entries(0))
        if any(each["event"] == event for each in entry)
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", ""),
        ("[telemetry]\n", ""),
        ('[telemetry]\ntraces = "ftp://x"\n', "no URL of https or http"),
        ('[telemetry]\ntraces = "http://me:pw@127.0.0.1/"\n', "password"),
        ("[telemetry]\ntraces = 5\n", "traces is 5"),
        ('[telemetry]\ntrace = "http://127.0.0.1"\n', "unknown 'trace'"),
        ('[telemetry]\ntraces = "http://127.0.0.1"\ntraces_remote = 1\n', "traces_remote is 1"),
        ("telemetry = 5\n", "telemetry is 5"),
    ],
)
def test_nothing_is_sent_unless_a_collector_is_named(place: Place, text: str, problem: str) -> None:
    place.configure(text)
    assert not Traces.wanted(place.source)
    found = Traces.problems(place.source)
    assert (problem in found[0]) if problem else found == []


def test_only_the_tenant_of_the_person_is_traced(place: Place) -> None:
    assert Traces.wanted(place.source)
    place.environ["COORD_TENANT"] = "acme"
    assert not Traces.wanted(place.source)


def test_spans_stay_on_this_machine_unless_a_person_allows_more() -> None:
    """The address that is connected to decides, and not the name."""
    near = read_collector({"traces": "http://127.0.0.1:4318"})
    far = read_collector({"traces": "https://otel.example/v1/traces?x=1", "traces_remote": True})
    assert near is not None
    assert far is not None
    assert [near.reach.allows(each) for each in ("127.0.0.1", "::1", "10.0.0.1", "8.8.8.8")] == [
        *(True, True, False, False)
    ]
    assert far.reach.allows("8.8.8.8")
    assert (near.parts.path, far.parts.path) == ("/v1/traces", "/v1/traces")


def test_another_machine_is_refused(place: Place, collector: Collector) -> None:
    """Whatever its name resolves to; the failure says what allows it."""
    runner = place.runner()
    place.configure(f'[telemetry]\ntraces = "http://0.0.0.0:{collector.server.server_port}"\n')
    place.work()
    send(place, runner)
    (run,) = runner.runs
    assert "is another machine" in str(run.failure)
    assert collector.spans == []
    runner.close()
