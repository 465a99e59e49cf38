"""Numbers over time equal naive counts, whatever the log holds."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coord.core.errors import Trimmed
from coord.core.page.series import BOUNDS_S, COUNTED
from coord.sdk.page import numbers
from coord.sdk.page.numbers import HOUR_MS, MINUTE_MS, MINUTES_KEPT, Counter, Numbers
from coord.stores.contract import Entry

BEGIN = 1_700_000_000_000
AMOUNTS = st.one_of(st.integers(-5, 10**6), st.just("x"), st.just(None), st.just(True), st.just(float("inf")))
EVENTS = st.one_of(
    st.fixed_dictionaries({"event": st.just("lock.acquired"), "waited_ms": AMOUNTS}),
    st.fixed_dictionaries({"event": st.just("usage.reported"), "cost": AMOUNTS, "estimated": AMOUNTS}),
    st.fixed_dictionaries({"event": st.sampled_from(["task.completed", "git.committed", "lock.denied"])}),
    st.fixed_dictionaries({"event": st.just("file.restored"), "file_count": AMOUNTS}),
    st.fixed_dictionaries(
        {
            "event": st.sampled_from(["session.registered", "session.ended"]),
            "session": st.sampled_from("abc"),
            "person": st.booleans(),
        }
    ),
)
LOGS = st.lists(st.tuples(st.integers(0, 20 * MINUTE_MS), EVENTS), max_size=40)


class Log:
    """Entries of one event each; what was trimmed is refused."""

    def __init__(self, events: list[tuple[int, Any]], first: int = 1) -> None:
        self.first, self.reads, at = first, 0, BEGIN
        self.entries = []
        for number, (later, event) in enumerate(events, 1):
            at += later
            raw = event if isinstance(event, bytes) else msgspec.json.encode(event)
            self.entries.append(Entry(offset=number, at=at, id=b"", events=[raw]))

    def tail(self, after: int, limit: int) -> list[Entry]:
        self.reads += 1
        if after + 1 < self.first:
            raise Trimmed(self.first)
        return self.entries[after : after + limit]

    def now(self) -> int:
        return self.entries[-1].at if self.entries else BEGIN


def read(log: Log, since: int = 0, buckets: int = 60, project: str = "") -> numbers.Series:
    series, offset, whole = Numbers(log, project).read(since, buckets)  # type: ignore[arg-type]
    assert (offset, whole) == (len(log.entries), True)
    return series


def naive(log: Log, name: str, since: int, width: int) -> dict[int, float]:
    """Count with one look at every event."""
    found: dict[int, float] = {}
    for entry in log.entries:
        event = msgspec.json.decode(entry.events[0])
        plain = {
            "lock.acquired": "locks",
            "task.completed": "tasks_done",
            "git.committed": "commits",
            "lock.denied": "denied",
        }
        amounts: list[Any] = [1] if plain.get(event["event"]) == name else []
        if name == "cost" and event["event"] == "usage.reported":
            amounts = [event["cost"], event["estimated"]]
        if name == "files_restored" and event["event"] == "file.restored":
            amounts = [event["file_count"]]
        good = [each for each in amounts if type(each) in (int, float) and 0 < each < 10**15]
        if good and entry.at // width * width >= since // width * width:
            found[entry.at // width * width] = found.get(entry.at // width * width, 0) + sum(good)
    return found


@settings(max_examples=60, deadline=None)
@given(LOGS, st.integers(0, 600), st.integers(1, 80))
def test_counts_equal_naive_ones(events: list[tuple[int, Any]], minutes: int, buckets: int) -> None:
    log = Log([(later, event) for later, event in events])
    since = BEGIN + minutes * MINUTE_MS
    series = read(log, since, buckets)
    assert series.width_ms % MINUTE_MS == 0
    assert len(series.counts["locks"]) <= buckets + 1
    for name in COUNTED:
        counted = {
            series.from_ms + number * series.width_ms: amount
            for number, amount in enumerate(series.counts[name])
            if amount
        }
        assert counted == naive(log, name, min(since, log.now()), series.width_ms), name


@settings(max_examples=40, deadline=None)
@given(LOGS)
def test_a_level_is_the_average_of_its_bucket(events: list[tuple[int, Any]]) -> None:
    """The time that sessions exist is the same, added bucket by bucket or session by session."""
    log = Log(events)
    series = read(log, BEGIN)
    open_: dict[str, int] = {}
    expected, first = 0, 0
    for entry in log.entries:
        event = msgspec.json.decode(entry.events[0])
        first = first or entry.at
        if event["event"] == "session.registered" and not event["person"]:
            open_.setdefault(event["session"], entry.at)
        elif event["event"] == "session.ended" and event["session"] in open_:
            expected += entry.at - open_.pop(event["session"])
    expected += sum(log.now() - since for since in open_.values())
    total = 0.0
    for number, average in enumerate(series.levels["agents"]):
        begins = series.from_ms + number * series.width_ms
        total += average * max(1, min(begins + series.width_ms, log.now()) - max(begins, first))
    assert total == pytest.approx(expected)


def test_durations_are_counted_in_classes() -> None:
    log = Log([(0, {"event": "lock.acquired", "waited_ms": waited}) for waited in (0, 100, 101, 86_400_001)])
    (classes,) = read(log).spans["lock_wait"]
    assert [number for number, many in enumerate(classes) for _ in range(many)] == [0, 1, len(BOUNDS_S)]


def test_hostile_events_count_nothing_and_stop_nothing() -> None:
    nested = b'{"event":"lock.acquired","x":' + b"[" * 100_000
    events = [b"", b"{", b'{"event":"lock.acquired"', nested, b'{"event":"nobody.knows"}', b"\xff" * 40]
    log = Log([(0, each) for each in events] + [(0, {"event": "lock.acquired"})])
    assert sum(read(log).counts["locks"]) == 1


def test_what_was_trimmed_is_passed_over() -> None:
    log = Log([(MINUTE_MS, {"event": "git.committed"})] * 5, first=4)
    assert sum(read(log).counts["commits"]) == 2


def test_a_project_has_its_own_numbers() -> None:
    log = Log([(0, {"event": "task.completed", "project": name}) for name in ("shop", "shop", "other")])
    assert sum(read(log, project="shop").counts["tasks_done"]) == 2


def test_an_open_page_reads_only_what_is_new() -> None:
    log = Log([(1, {"event": "git.committed"})] * 2500)
    found = Numbers(log)  # type: ignore[arg-type]
    found.read(0, 60)
    before = log.reads
    found.read(0, 60)
    assert log.reads == before + 1


def test_a_long_log_is_counted_in_several_requests() -> None:
    log = Log([(1, {"event": "git.committed"})] * 2500)
    found = Numbers(log)  # type: ignore[arg-type]
    steps = [found.read(0, 60, read_s=-1)[1:] for _ in range(4)]
    assert steps == [(1000, False), (2000, False), (2500, False), (2500, True)]


def test_old_times_are_in_hours_and_minutes_are_forgotten() -> None:
    counter = Counter()
    for minute in range(3 * MINUTES_KEPT):
        counter.count(BEGIN + minute * MINUTE_MS, "git.committed", {})
    now = counter.newest_ms
    assert len(counter._minutes) <= 2 * MINUTES_KEPT
    assert counter.series(0, now, 400).width_ms == HOUR_MS
    assert sum(counter.series(0, now, 400).counts["commits"]) == 3 * MINUTES_KEPT
    assert counter.series(now - HOUR_MS, now, 60).width_ms == MINUTE_MS


@settings(max_examples=60, deadline=None)
@given(LOGS.filter(bool), st.data())
def test_an_earlier_time_has_what_had_ended_and_an_offset_to_go_on_from(
    events: list[tuple[int, Any]], data: st.DataObject
) -> None:
    """What the reply leaves out comes after its offset, so that a reader can add it entry by entry."""
    log = Log(events)
    until = data.draw(st.sampled_from([entry.at for entry in log.entries]))
    found = Numbers(log)  # type: ignore[arg-type]
    series, offset, whole = found.read(0, 400, until)
    assert whole
    assert series.width_ms < HOUR_MS
    ended = [entry for entry in log.entries if entry.at < until // MINUTE_MS * MINUTE_MS]
    before, _, _ = Numbers(Log([])).read(0, 400) if not ended else (read(cut(log, len(ended))), 0, True)  # type: ignore[arg-type]
    assert {name: sum(values) for name, values in series.counts.items()} == {
        name: sum(values) for name, values in before.counts.items()
    }
    assert series.from_ms + len(series.counts["locks"]) * series.width_ms <= until + series.width_ms
    assert offset >= len(ended)
    left_out = log.entries[len(ended) : offset]
    assert not any(sum(map(sum, read(alone(entry)).counts.values())) for entry in left_out)


def cut(log: Log, size: int) -> Log:
    found = Log([])
    found.entries = log.entries[:size]
    return found


def alone(entry: Entry) -> Log:
    found = Log([])
    found.entries = [Entry(offset=1, at=entry.at, id=b"", events=entry.events)]
    return found
