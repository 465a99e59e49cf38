"""A stuck agent: every signal is silent; each single sign of life keeps the alert away."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coord.core.alerts.commands import ListWatched
from coord.core.alerts.schema import Sample, Watch
from coord.core.alerts.stuck import INTERVAL_MS, is_busy, next_watch
from coord.core.identity import Caller, ProcessState
from coord.core.questions.commands import AskQuestion
from tests.support.alert_harness import MINUTE, QUIET, AlertHarness

STUCK = [("stuck_agent", "ann")]


@pytest.fixture
def harness() -> AlertHarness:
    harness = AlertHarness()
    harness.start("ann")
    return harness


def test_all_signals_are_silent(harness: AlertHarness) -> None:
    """ALR-2: an agent that runs for ten minutes without activity is stuck, and not earlier."""
    harness.watch(9)
    assert harness.open() == []
    harness.watch(1)
    assert harness.open() == STUCK
    (alert,) = harness.listed().alerts
    assert alert.severity == "warning"
    assert alert.text == "ann has shown no activity for 10 min: its processes are quiet"


@pytest.mark.parametrize(
    "used",
    [{"cpu_ms": 3000}, {"read_bytes": 65_536}, {"written_bytes": 4096}, {"newest": 1}, {"processes": 1}],
)
def test_busy_processes_are_life(harness: AlertHarness, used: dict[str, int]) -> None:
    """A model call reads, a transcript grows, a build computes: an agent with such processes is not stuck."""
    for _ in range(25):
        harness.use("ann", **used)
        harness.watch(1)
    assert harness.open() == []


def test_a_timer_or_a_spinner_is_not_life(harness: AlertHarness) -> None:
    """A process that only waits uses a little processor time, and reads a little."""
    for _ in range(11):
        harness.use("ann", cpu_ms=2000, read_bytes=10_000)
        harness.watch(1)
    assert harness.open() == STUCK


def test_activity_of_processes_counts_from_its_end(harness: AlertHarness) -> None:
    """Processes that were busy until five minutes ago keep the alert away for another five."""
    harness.watch(3)
    harness.use("ann", cpu_ms=60_000)
    harness.watch(10)
    assert harness.open() == []
    harness.watch(2)
    assert harness.open() == STUCK


def test_a_tool_call_under_way_is_life_for_half_an_hour(harness: AlertHarness) -> None:
    """ALR-7: a call that began less than 30 minutes ago; one that hangs for longer masks nothing."""
    harness.begin("ann", lease_ms=7_200_000)
    harness.watch(29)
    assert harness.open() == []
    harness.watch(2)
    assert harness.open() == STUCK


def test_a_long_build_is_life_for_as_long_as_it_computes(harness: AlertHarness) -> None:
    """Only a call and busy processes together count without a limit."""
    harness.begin("ann", lease_ms=7_200_000)
    for _ in range(60):
        harness.use("ann", cpu_ms=50_000)
        harness.watch(1)
    harness.watch(9)
    assert harness.open() == []
    harness.watch(1)
    assert harness.open() == STUCK


def test_busy_processes_alone_mask_nothing_for_longer_than_a_model_call(harness: AlertHarness) -> None:
    """ALR-7: a spinner that computes a lot cannot hide an agent that hangs."""
    for _ in range(31):
        harness.use("ann", cpu_ms=30_000)
        harness.watch(1)
    assert harness.open() == STUCK


def test_a_call_that_never_ended_is_no_idleness(harness: AlertHarness) -> None:
    """The deadline of a call passes, and its end was never reported: the agent hangs in it."""
    harness.start("bob", status="idle")
    harness.begin("bob", lease_ms=300_000)
    harness.watch(11)
    assert ("stuck_agent", "bob") in harness.open()
    assert any("its last tool call has not ended" in each.text for each in harness.listed().alerts)


def test_unseen_processes_may_call_a_model(harness: AlertHarness) -> None:
    """An agent of another machine is stuck after the longest model call, not earlier."""
    harness.start("far", seen=False)
    harness.watch(29)
    assert ("stuck_agent", "far") not in harness.open()
    harness.watch(1)
    assert ("stuck_agent", "far") in harness.open()


def test_samples_must_cover_the_silence(harness: AlertHarness) -> None:
    """Somebody who looks twice after twelve minutes knows nothing about the time between."""
    harness.pass_time(12 * MINUTE)
    harness.look()
    harness.watch(1)
    assert harness.open() == []
    harness.watch(8)
    assert harness.open() == STUCK


def test_a_sample_of_another_process_says_nothing(harness: AlertHarness) -> None:
    """The pid was used again."""
    harness.watch(2)
    harness.pids["ann"] = 4711
    harness.watch(15)
    assert harness.open() == []


@pytest.mark.parametrize("status", ["idle", "blocked", "stopping", "completed"])
def test_an_agent_that_does_not_run_is_not_stuck(status: str) -> None:
    harness = AlertHarness()
    harness.start("ann", status=status)
    harness.watch(40)
    assert harness.open() == []


def test_an_agent_that_waits_is_not_stuck(harness: AlertHarness) -> None:
    """For a lock, or for a person."""
    harness.start("bob")
    harness.lock("ann", "name:release", ttl=3_600_000)
    harness.wait("bob", "name:release")
    harness.start("kim")
    harness.engine.call(AskQuestion(caller=harness.who("kim"), text="which?"))
    harness.watch(15)
    assert ("stuck_agent", "bob") not in harness.open()
    assert ("stuck_agent", "kim") not in harness.open()


def test_a_person_is_never_stuck() -> None:
    harness = AlertHarness()
    harness.engine.call(AskQuestion(caller=Caller("eve@h:1-1", person=True, terminal=True), text="x?"))
    harness.watch(40)
    assert not [each for each in harness.open() if each[0] == "stuck_agent"]


def test_switched_off(harness: AlertHarness) -> None:
    harness.set(alert_stuck_seconds=0)
    harness.watch(40)
    assert harness.open() == []
    assert harness.engine.call(ListWatched()) == []


def test_only_silent_running_sessions_are_watched(harness: AlertHarness) -> None:
    """Nobody looks at processes that were heard of within a minute, or that do not run."""
    harness.start("idle", status="idle")
    assert harness.engine.call(ListWatched()) == []
    harness.pass_time(INTERVAL_MS)
    assert [each.session_id for each in harness.engine.call(ListWatched())] == ["ann"]


# How it ends.


def test_it_went_on_by_itself(harness: AlertHarness) -> None:
    """A signal disproves the alert: false."""
    harness.watch(11)
    harness.beat("ann")
    harness.watch(1)
    assert (harness.open(), harness.outcomes()) == ([], [("stuck_agent", "false")])


def test_its_processes_went_on(harness: AlertHarness) -> None:
    """Two busy samples in a row end it; one may be a timer."""
    harness.watch(11)
    harness.use("ann", cpu_ms=30_000)
    harness.watch(1)
    assert harness.open() == STUCK
    harness.use("ann", cpu_ms=30_000)
    harness.watch(1)
    harness.use("ann", cpu_ms=30_000)
    harness.watch(1)
    assert harness.outcomes() == [("stuck_agent", "false")]


def test_a_silence_longer_than_any_model_call_was_real(harness: AlertHarness) -> None:
    """Whatever ended it: half an hour without activity is what the alert is about."""
    harness.watch(35)
    harness.beat("ann")
    harness.watch(1)
    assert harness.outcomes() == [("stuck_agent", "true")]


def test_it_ended(harness: AlertHarness) -> None:
    """Somebody quit it, or it died: true."""
    harness.watch(11)
    harness.leave("ann")
    harness.watch(1)
    assert harness.outcomes() == [("stuck_agent", "true")]


def test_it_died(harness: AlertHarness) -> None:
    harness.watch(11)
    harness.life[harness.pids["ann"]] = ProcessState.DEAD
    harness.watch(1)
    assert harness.outcomes() == [("stuck_agent", "true")]


def test_stuck_once_more_is_another_alert(harness: AlertHarness) -> None:
    """Between two checks that are far apart it went on, and hangs again."""
    harness.watch(11)
    harness.pass_time(MINUTE)
    harness.beat("ann")
    harness.watch(13)
    assert harness.open() == STUCK
    assert [each.id for each in harness.listed(closed=True).alerts] == ["a2", "a1"]


# What samples say.

samples = st.builds(Sample, *(st.integers(0, 10**7) for _ in range(3)), st.integers(1, 3), st.integers(1, 3))


@given(samples, st.integers(30_000, 600_000))
def test_equal_samples_are_quiet(sample: Sample, elapsed_ms: int) -> None:
    assert not is_busy(sample, sample, elapsed_ms)


@given(st.lists(st.tuples(samples, st.integers(1, 200_000)), max_size=12))
def test_a_watch_knows_no_more_than_its_samples(taken: list[tuple[Sample, int]]) -> None:
    """It is quiet since a time at which a sample was taken, and never before it was last busy."""
    watch, now, times = Watch(beat_ms=1), 1_000_000, {0}
    for sample, passed in taken:
        now += passed
        before = watch
        watch = next_watch(before, 1, sample, now)
        if watch.sampled_ms != before.sampled_ms:
            times.add(now)
        assert {watch.quiet_ms, watch.busy_ms, watch.sampled_ms} <= times
        assert watch.busy_ms <= watch.quiet_ms <= watch.sampled_ms <= now
        assert next_watch(watch, 2, None, now) == Watch(beat_ms=2)
    assert next_watch(None, 1, QUIET, 10**9).quiet_ms == 10**9
