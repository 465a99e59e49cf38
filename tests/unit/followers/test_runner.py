"""Followers count each entry once, whatever is killed, fails or is trimmed."""

import os
import random
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from coord.core.followers import FollowerInfo, ForgetFollower, ListFollowers, ReadFollower
from coord.followers.follower import Follower, LogSource
from coord.followers.runner import (
    LEASE_MS,
    RETRY_MS,
    SAVE_EVENTS,
    SAVE_MS,
    SAVE_PAUSE_MS,
    NewFollower,
    Runner,
)
from coord.host.processes import describe
from coord.host.store_location import StoreLocation
from coord.sdk.log_reader import LoggedEvent
from coord.stores.contract import Commit
from coord.stores.open import open_store
from tests.support.counting_follower import Counts
from tests.support.store_harness import StoreHarness


class Strict(Counts):
    """Fails at each event of a kind, as often as it is told to."""

    name = "strict"
    failures = 0

    def apply(self, logged: LoggedEvent) -> None:
        if type(self).failures:
            type(self).failures -= 1
            raise ValueError("cannot count this")
        super().apply(logged)


class Posts(Counts):
    """Has an effect for each event: at least once, by one process at a time."""

    name = "posts"
    has_effects = True
    posted: list[int] = []

    def __init__(self, source: LogSource) -> None:
        super().__init__(source)
        self._waiting: list[int] = []
        self._acted = False

    def apply(self, logged: LoggedEvent) -> None:
        super().apply(logged)
        self._waiting.append(logged.offset)

    def act(self, now: int) -> int:
        del now
        self._acted = bool(self._waiting)
        self.posted.extend(self._waiting)
        self._waiting.clear()
        return 0

    @property
    def acted(self) -> bool:
        return self._acted

    def dump(self) -> bytes:
        self._acted = False
        return super().dump()


@pytest.fixture
def harness() -> Iterator[StoreHarness]:
    Posts.posted, Strict.failures = [], 0
    with closing(open_store("memory:")) as database:
        yield StoreHarness(database)


def source_in(harness: StoreHarness) -> LogSource:
    location = StoreLocation("memory:", "repository", None, harness.database.store_id, 0, "/nowhere")
    return LogSource(harness.local, harness.store, location, {}, lambda: harness.now)


def runner(harness: StoreHarness, *followers: NewFollower, name: str = "me") -> Runner:
    return Runner(source_in(harness), followers or (Counts,), name)


def counts(found: Runner, of: str = "counts") -> dict[str, int]:
    follower = next(run.follower for run in found.runs if run.name == of)
    assert isinstance(follower, Counts)
    return follower.counts


def naive(harness: StoreHarness, after: int = 0) -> dict[str, int]:
    found: dict[str, int] = {}
    for event in harness.events(after=after):
        found[event["event"]] = found.get(event["event"], 0) + 1
    return found


def work(harness: StoreHarness, times: int = 1) -> None:
    actor = harness.actor("ada-1")
    for _ in range(times):
        actor.lock("file:src/app.py")
        actor.unlock("file:src/app.py")


def saved(harness: StoreHarness, name: str = "counts") -> FollowerInfo:
    return next(each for each in harness.local.call(ListFollowers()) if each.name == name)


def test_killed_at_any_point_each_entry_counts_once(harness: StoreHarness) -> None:
    """A process that dies keeps nothing but what it has saved; the next one goes on there."""
    dice = random.Random(7)
    current = runner(harness)
    for _ in range(60):
        work(harness, dice.randint(0, 3))
        match dice.randint(0, 3):
            case 0:
                current.step()
            case 1:
                current.step()
                current.save()
            case 2:
                current = runner(harness)  # the other one was killed
            case _:
                harness.pass_seconds(SAVE_MS / 1000)
    current.step()
    assert counts(current) == naive(harness)


def test_a_rebuilt_follower_has_the_same_bytes(harness: StoreHarness) -> None:
    work(harness, 20)
    first = runner(harness)
    first.step()
    first.save()
    before = harness.local.call(ReadFollower("counts"))
    harness.local.call(ForgetFollower("counts"))
    again = runner(harness)
    again.step()
    again.save()
    after = harness.local.call(ReadFollower("counts"))
    assert (after.state, after.version) == (before.state, before.version)
    assert after.offset > before.offset, "entries without events were read too"


def test_a_state_is_saved_after_many_events_or_some_time(harness: StoreHarness) -> None:
    current = runner(harness)
    work(harness)
    current.step()
    assert not harness.local.call(ListFollowers()), "a few events are not worth a commit"
    harness.pass_seconds(SAVE_MS / 1000)
    current.step()
    head = harness.head
    assert saved(harness).offset == head - 1, "the commit itself is the newest entry"
    for _ in range(3):
        harness.pass_seconds(SAVE_MS / 1000)
        current.step()
    assert harness.head == head, "reading its own commit is no reason for another one"
    work(harness, SAVE_EVENTS // 2)
    current.step()
    assert saved(harness).offset > head


def test_a_busy_log_is_saved_at_most_once_a_second(
    harness: StoreHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each save is a commit beside those that the events come from."""
    monkeypatch.setattr("coord.followers.runner.SAVE_EVENTS", 4)
    current = runner(harness)
    work(harness, 2)
    current.step()
    first = saved(harness).offset
    work(harness, 2)
    current.step()
    assert saved(harness).offset == first
    harness.pass_seconds(SAVE_PAUSE_MS / 1000)
    current.step()
    assert saved(harness).offset > first


def test_a_follower_that_fails_is_alone(harness: StoreHarness) -> None:
    """The others go on; it starts again from its saved state, and its error is shown."""
    current = runner(harness, Counts, Strict)
    current.step()
    work(harness, 3)
    Strict.failures = 2
    due = current.step()
    assert counts(current) == naive(harness)
    assert (due, saved(harness, "strict").error) == (harness.now + RETRY_MS, "cannot count this")
    current.step()
    assert Strict.failures == 1, "not before its time"
    harness.now = due
    assert current.step() == harness.now + 2 * RETRY_MS
    harness.pass_seconds(2 * RETRY_MS / 1000)
    current.step()
    assert counts(current, "strict") == counts(current) == naive(harness), "what is read again counts for one"
    current.save()
    assert saved(harness, "strict").error == ""


def test_an_event_that_cannot_be_read_stops_no_follower(harness: StoreHarness) -> None:
    """Anybody who has the store may have written it."""
    events = [b'{"event":"file.read","x":"\xed\xa0\x80"}', b'{"event":"file.read"}']
    harness.store.commit(Commit(events=events, at=harness.now))
    found = runner(harness)
    found.step()
    assert (counts(found), found.runs[0].failure) == ({"unreadable": 1, "file.read": 1}, None)


def test_one_process_performs_effects(harness: StoreHarness) -> None:
    """A second hub waits until the lease of the first has ended, and goes on where that one has saved."""
    first, second = runner(harness, Posts, name="a"), runner(harness, Posts, name="b")
    first.step()
    work(harness, 2)
    second.step()
    first.step()
    offsets = {entry.offset for entry in harness.store.tail(0, 1000) if entry.events}
    assert set(Posts.posted) == offsets
    assert len(Posts.posted) == sum(naive(harness).values()), "each event once"
    harness.pass_seconds(2 * LEASE_MS / 1000)
    work(harness)
    done = len(Posts.posted)
    second.step()
    first.step()
    assert len(Posts.posted) == done + 2, "and the first one has lost it"


def test_entries_trimmed_unread_are_counted_as_missed(harness: StoreHarness) -> None:
    current = runner(harness)
    work(harness, 5)
    current.step()
    current.save()
    counted = sum(naive(harness).values())
    work(harness, 10)
    first = harness.head - 3
    harness.store.trim(first)
    late = runner(harness)
    late.step()
    expected = naive(harness, after=first - 1)
    assert sum(counts(late).values()) == counted + sum(expected.values())
    (run,) = late.runs
    assert run.missed == first - 1 - saved(harness).offset > 0


@pytest.mark.parametrize("pages", [1, 2])
def test_a_process_that_wants_to_end_reads_a_bounded_part(
    harness: StoreHarness, monkeypatch: pytest.MonkeyPatch, pages: int
) -> None:
    monkeypatch.setattr("coord.followers.runner.PAGE_ENTRIES", 4)
    work(harness, 10)
    current = runner(harness)
    current.step(pages_max=pages)
    assert current.offset == 4 * pages


def test_a_newer_version_computes_its_state_again(harness: StoreHarness) -> None:
    work(harness, 3)
    old = runner(harness)
    old.step()
    old.save()
    newer: Callable[[LogSource], Follower] = type("Newer", (Counts,), {"version": 2})
    current = runner(harness, newer)
    current.step()
    current.save()
    assert counts(current) == naive(harness)
    old.step()
    old.runs[0].ready = False
    old.step()
    assert old.runs[0].failure is not None
    assert "newer coord" in str(old.runs[0].failure)


class Late(Posts):
    """Begins at the present, and has effects that take a while."""

    name = "late"
    starts_at_present = True
    working = False

    @property
    def busy(self) -> bool:
        return self.working

    def offset_to_save(self, offset: int) -> int:
        return offset - 1 if self.working else offset


def test_a_follower_can_begin_at_the_present(harness: StoreHarness) -> None:
    """Where it began survives a kill, although it has seen no event."""
    work(harness, 3)
    current = runner(harness, Late)
    current.step()
    assert not Posts.posted
    current.save()
    work(harness)
    harness.pass_seconds(2 * LEASE_MS / 1000)
    later = runner(harness, Late, name="b")
    later.step()
    assert len(Posts.posted) == 2


def test_an_idle_runner_lets_its_lease_end(harness: StoreHarness) -> None:
    """Else a hub in which nothing happens would write to the log every 15 seconds, for ever."""
    Late.working = False
    current = runner(harness, Late)
    current.step()
    harness.pass_seconds(LEASE_MS / 1000)
    current.step()
    head = harness.head
    for _ in range(5):
        harness.pass_seconds(LEASE_MS / 1000)
        assert current.step() == 0
    assert harness.head == head
    work(harness)
    current.step()
    assert len(Posts.posted) == 3, "it wakes up with the next event"
    Late.working = True
    harness.pass_seconds(LEASE_MS / 1000)
    current.step()
    head = harness.head
    harness.pass_seconds(LEASE_MS / 1000 / 2 + 1)
    current.step()
    Late.working = False
    assert harness.head > head, "with something under way it stays the runner"


class Timed(Late):
    """Has something to do every minute, whether there are events or not."""

    name = "timed"

    def act(self, now: int) -> int:
        super().act(now)
        self.posted.append(now)
        return now + 60_000


def test_a_runner_with_something_due_keeps_its_lease(harness: StoreHarness) -> None:
    current = runner(harness, Timed)
    for _ in range(4):
        due = current.step()
        assert due == harness.now + 60_000
        harness.now = due
    assert len(Posts.posted) == 4


def test_a_runner_that_ends_or_dies_is_replaced_at_once(harness: StoreHarness) -> None:
    first = runner(harness, Posts, name="a")
    first.step()
    first.close()
    second = runner(harness, Posts, name="b")
    second.step()
    assert second.runs[0].ready
    third = runner(harness, Posts, name="c")
    third.step()
    assert not third.runs[0].ready
    process = describe(os.getpid())
    assert process is not None
    harness.kill(process)
    harness.pass_seconds(LEASE_MS / 2 / 1000)
    third.step()
    assert third.runs[0].ready, "its process is proven dead"


def test_a_runner_whose_lease_ended_reads_its_state_again(harness: StoreHarness) -> None:
    """Another process may have gone on, and have ended, since."""
    first, second = runner(harness, Posts, name="a"), runner(harness, Posts, name="b")
    first.step()
    first.save()
    work(harness)
    harness.pass_seconds(2 * LEASE_MS / 1000)
    second.step()
    second.close()
    done = len(Posts.posted)
    assert done == 3
    first.step()
    assert len(Posts.posted) == done
