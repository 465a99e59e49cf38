"""Sessions that hang: reported once to the log and to the parent; those of `coord work` can be ended."""

import msgspec
import pytest

from coord.core.identity import ProcessState
from coord.core.lifecycle.commands import ListHung, Register
from coord.core.locks.commands import BeginToolCall
from coord.core.sessions.commands import Heartbeat
from coord.core.sessions.liveness import HUNG_MS
from coord.core.settings import ChangeSettings, Value
from coord.core.sweep import Sweep
from tests.support.lock_harness import REPOSITORY, LockHarness


@pytest.fixture
def harness() -> LockHarness:
    """A lead, and its sub-agent `kid` in a process that is alive."""
    harness = LockHarness()
    harness.pids["kid"], harness.life[7] = 7, ProcessState.ALIVE
    harness.parents["kid"] = "lead"
    harness.beat("lead")
    return harness


def come(harness: LockHarness, name: str, *, runner: bool = False) -> None:
    harness.engine.call(Register(caller=harness.who(name), runner=runner))


def pass_and_sweep(harness: LockHarness, ms: int) -> None:
    """Let time pass in steps, with a sweep at each, while the lead is alive."""
    for _ in range(0, ms, 60_000):
        harness.pass_time(60_000)
        harness.beat("lead")
        harness.engine.call(Sweep("local", 100))


def hung(harness: LockHarness) -> list[str]:
    return [found.session_id for found in harness.engine.call(ListHung())]


def test_a_hang_is_reported_once_to_the_log_and_to_the_parent(harness: LockHarness) -> None:
    """SES-42: whoever started it hears of it; and again only if it hangs again."""
    harness.engine.call(Register(caller=msgspec.structs.replace(harness.who("kid"), project="shop")))
    pass_and_sweep(harness, HUNG_MS - 60_000)
    assert harness.events("session.hung") == []
    pass_and_sweep(harness, 3 * 3_600_000)
    (event,) = harness.events("session.hung")
    assert (event["session"], event["silent_s"], "runner" in event) == ("kid", HUNG_MS // 1000, False)
    assert event["project"] == "shop"
    assert harness.told("lead", "warn") == ["[System] kid seems to hang: no heartbeat for 600 s"]
    harness.beat("kid")
    pass_and_sweep(harness, HUNG_MS)
    assert len(harness.events("session.hung")) == 2


def test_only_workers_of_coord_are_listed_to_be_ended(harness: LockHarness) -> None:
    """REC-30: a process that coord did not start is not its to end."""
    come(harness, "kid", runner=True)
    harness.pids["bob"], harness.life[8] = 8, ProcessState.ALIVE
    come(harness, "bob")
    harness.pass_time(HUNG_MS - 1)
    assert hung(harness) == []
    harness.pass_time(1)
    (found,) = harness.engine.call(ListHung())
    assert (found.session_id, found.runner.pid, found.silent_ms) == ("kid", 7, HUNG_MS)


def test_the_dead_and_those_with_a_tool_call_under_way_do_not_hang(harness: LockHarness) -> None:
    come(harness, "kid", runner=True)
    harness.pass_time(HUNG_MS)
    harness.life[7] = ProcessState.DEAD
    assert hung(harness) == []
    harness.life[7] = ProcessState.ALIVE
    call = BeginToolCall(harness.who("kid"), REPOSITORY, (), call="c1", lease_ms=2 * HUNG_MS)
    harness.engine.call(call)
    harness.pass_time(HUNG_MS)
    assert hung(harness) == []


def test_the_thresholds_are_those_of_the_store(harness: LockHarness) -> None:
    """Every process reads the same settings, so all of them agree on who hangs."""
    settings: dict[str, Value] = {"suspect_seconds": 60, "stale_seconds": 1200, "hung_seconds": 1800}
    harness.engine.call(ChangeSettings(settings))
    come(harness, "kid", runner=True)
    pass_and_sweep(harness, 1_740_000)
    assert (hung(harness), harness.events("session.hung")) == ([], [])
    pass_and_sweep(harness, 60_000)
    assert (hung(harness), len(harness.events("session.hung"))) == (["kid"], 1)


def test_a_person_may_be_silent(harness: LockHarness) -> None:
    """A page without a visitor sends no heartbeat, and nobody has to look after it."""
    harness.engine.call(Heartbeat(msgspec.structs.replace(harness.who("grace"), person=True)))
    pass_and_sweep(harness, 2 * HUNG_MS)
    assert harness.events("session.hung") == []
