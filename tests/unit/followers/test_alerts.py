"""The follower of alerts: it checks once a minute while something happens, and never while nothing does."""

from typing import Any, cast

import pytest

from coord.followers.alerts import AlertsFollower
from coord.followers.follower import LogSource
from coord.followers.runner import Runner
from tests.support.alert_harness import MINUTE, AlertHarness


@pytest.fixture
def harness() -> AlertHarness:
    return AlertHarness()


@pytest.fixture
def runner(harness: AlertHarness) -> Runner:
    source = LogSource(harness.engine, harness.store, cast("Any", None), {}, lambda: harness.now)
    return Runner(source, [AlertsFollower], "test")


def test_it_checks_once_a_minute_while_an_agent_runs(harness: AlertHarness, runner: Runner) -> None:
    """ALR-1: and events in between do not make it check more often."""
    harness.start("ann")
    assert runner.step() == harness.now + MINUTE
    harness.fill("ann", 90)
    harness.pass_time(MINUTE - 1)
    assert runner.step() == harness.now + 1
    assert harness.open() == []
    harness.pass_time(1)
    assert runner.step() == harness.now + MINUTE
    assert harness.open() == [("context_pressure", "ann")]


def test_nothing_is_due_while_nothing_runs(harness: AlertHarness, runner: Runner) -> None:
    """A hub at rest stays at rest, also after a check that closed something."""
    assert runner.step() == 0
    harness.start("ann")
    harness.fill("ann", 90)
    harness.pass_time(MINUTE)
    assert runner.step() == harness.now + MINUTE
    harness.leave("ann")
    harness.pass_time(MINUTE)
    assert runner.step() == 0
    assert harness.outcomes() == [("context_pressure", "true")]
    harness.pass_time(MINUTE)
    assert runner.step() == 0
    harness.pass_time(MINUTE)
    assert harness.written_by(runner.step) == []


def test_it_has_no_state(runner: Runner) -> None:
    """Forgetting it loses nothing: the alerts are records."""
    (run,) = runner.runs
    run.follower.load(b"")
    assert run.follower.dump() == b""
