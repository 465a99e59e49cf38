"""Raise alerts once, keep a hundred, and look again only if time can change something."""

import pytest

from coord.core.alerts.check import KEPT_MAX, OPEN_MAX
from coord.core.identity import Caller
from coord.core.questions.commands import AskQuestion
from tests.support.alert_harness import MINUTE, AlertHarness


@pytest.fixture
def harness() -> AlertHarness:
    return AlertHarness()


def test_one_alert_for_a_rule_and_a_subject(harness: AlertHarness) -> None:
    """ALR-11, DED-5: the same is raised once, however often it is found."""
    harness.start("ann")
    harness.fill("ann", 90)
    for _ in range(5):
        harness.look()
    harness.watch(5)
    assert len(harness.events("alert.raised")) == 1


def test_not_twice_within_an_interval(harness: AlertHarness) -> None:
    """ALR-11: what was closed and comes back at once waits for the next interval."""
    harness.start("ann")
    harness.fill("ann", 90)
    harness.look()
    harness.close("a1", right=True)
    harness.look()
    assert harness.open() == []
    harness.watch(1)
    assert [each.id for each in harness.listed().alerts] == ["a2"]


def test_a_hundred_are_kept(harness: AlertHarness) -> None:
    """ALR-10: the oldest closed ones make room; ids are not used again."""
    harness.start("ann")
    for _ in range(KEPT_MAX + 5):
        harness.fill("ann", 90)
        harness.watch(2)
        harness.fill("ann", 10)
        harness.watch(1)
    kept = harness.listed(closed=True).alerts
    assert (len(kept), kept[0].id, kept[-1].id) == (KEPT_MAX, f"a{KEPT_MAX + 5}", "a6")


def test_many_at_once_leave_room(harness: AlertHarness) -> None:
    for number in range(OPEN_MAX + 30):
        harness.start(f"s{number}")
        harness.fill(f"s{number}", 99)
    harness.look()
    assert len(harness.open()) == OPEN_MAX
    harness.close("a1", right=True)
    harness.watch(1)
    assert len(harness.open()) == OPEN_MAX


def test_a_check_without_news_writes_nothing(harness: AlertHarness) -> None:
    harness.start("ann")
    harness.fill("ann", 90)
    harness.look()
    assert harness.written_by(harness.look) == []


def test_when_to_look_again(harness: AlertHarness) -> None:
    """ALR-1: every minute while an agent runs; not at all when nothing does."""
    assert harness.look().next_ms == 0
    caller = Caller("ann", agent="ann", project="p")
    harness.engine.call(AskQuestion(caller=caller, text="which?"))
    assert harness.look().next_ms == harness.now + MINUTE
    harness.leave("ann")
    assert harness.look().next_ms == 0
    harness.start("bob")
    assert harness.look().next_ms == harness.now + MINUTE
    harness.pass_time(60 * MINUTE)
    harness.look()
    assert harness.look().next_ms == 0
