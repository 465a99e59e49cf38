"""The time of a batch: the store's clock, never behind the log, and refused when the log is far ahead."""

import contextlib
import math
from collections.abc import Callable

import msgspec
import pytest

from coord.core.commands import Command
from coord.core.errors import Refused, Unavailable
from coord.core.events import ClockAccepted
from coord.engine.clock import AHEAD_MS_MAX
from coord.stores.contract import Commit
from coord.stores.log import sole_writer
from tests.support.engine_probes import Append, Look, Probes, Refuse
from tests.unit.engine.conftest import NOW, MakeStage, Stage

PATIENCE_S = 60


def stage_by_store_clock(make_stage: MakeStage, url: str = "memory:") -> Stage:
    """An engine that takes its time from the store, whose clock the test sets through `stage.now`."""
    stage = make_stage(url, clock=None)
    stage.store.clock = lambda: stage.now
    return stage


def times(stage: Stage) -> list[int]:
    return [entry.at for entry in stage.store.real.tail(0, 99)]


def test_the_time_of_a_batch_is_read_once(stage: Stage, probes: Probes) -> None:
    """All commands of a batch are decided at one time, which is that of their entry."""
    readings = iter(range(NOW, NOW + 100))
    stage.engine._clock._instead = lambda: next(readings)
    stage.engine.call_many([Append("a", "x"), Append("b", "x"), Look("c")])
    assert set(probes.times) == {times(stage)[0]}


def test_time_never_falls(make_stage: MakeStage) -> None:
    """`at` is never before that of an earlier entry, even when the clock is set back."""
    stage = stage_by_store_clock(make_stage)
    for clock in (NOW, NOW + 500, NOW + 100, NOW - 50_000, NOW + 600):
        stage.now = clock
        stage.engine.call(Append("a", "x"))
    assert times(stage) == [NOW, NOW + 500, NOW + 500, NOW + 500, NOW + 600]


def test_a_log_far_ahead_of_the_clock_refuses_writes(make_stage: MakeStage) -> None:
    """More than a minute ahead: writes are refused with the next step in the hint; questions are answered."""
    stage = stage_by_store_clock(make_stage)
    stage.engine.call(Append("a", "x"))
    stage.now = NOW - AHEAD_MS_MAX
    assert stage.engine.call(Append("a", "y")) == "xy"
    stage.now = NOW - AHEAD_MS_MAX - 1
    with pytest.raises(Unavailable) as caught:
        stage.engine.call(Append("a", "z"))
    assert "accept" in caught.value.hint
    assert stage.engine.call(Look("a")) == "xy"
    assert len(times(stage)) == 2


def test_a_question_in_the_same_batch_is_answered(make_stage: MakeStage) -> None:
    """The refusal concerns those who write; a question that waits beside them is answered."""
    stage = stage_by_store_clock(make_stage)
    stage.engine.call(Append("a", "x"))
    stage.now = NOW - AHEAD_MS_MAX - 1
    with stage.engine._batch_lock:
        refused, answered = stage.engine.submit(Append("a", "y")), stage.engine.submit(Look("a"))
    with pytest.raises(Unavailable):
        refused.result(PATIENCE_S)
    assert answered.result(PATIENCE_S) == "x"


def test_the_clock_can_be_accepted(make_stage: MakeStage) -> None:
    """Once a person has accepted the clock, writing goes on from it; the log shows that it was accepted."""
    stage = stage_by_store_clock(make_stage)
    stage.engine.call(Append("a", "x"))
    stage.now = NOW - 10**9
    stage.engine.accept_clock()
    assert stage.engine.call(Append("a", "y")) == "xy"
    assert times(stage) == [NOW, NOW - 10**9, NOW - 10**9]
    event = stage.store.real.tail(1, 1)[0].events[0]
    assert msgspec.json.decode(event, type=ClockAccepted) == ClockAccepted(NOW)


def test_a_clock_accepted_elsewhere_counts_here(make_stage: MakeStage, shared_url: str) -> None:
    """An engine that refuses to write learns by itself that the clock was accepted in another process."""
    one, other = (stage_by_store_clock(make_stage, shared_url) for _ in range(2))
    one.engine.call(Append("a", "x"))
    one.now = other.now = NOW - 10**9
    with pytest.raises(Unavailable):
        one.engine.call(Append("a", "y"))
    other.engine.accept_clock()
    assert one.engine.call(Append("a", "y")) == "xy"


def test_a_batch_is_never_older_than_what_it_read(
    make_stage: MakeStage, shared_url: str, probes: Probes
) -> None:
    """Another process whose clock is ahead wrote what this batch reads: the batch takes place after that."""
    slow, fast = (stage_by_store_clock(make_stage, shared_url) for _ in range(2))
    slow.engine.call(Append("a", "1"))
    fast.now = NOW + 5_000
    fast.engine.call(Append("a", "2"))
    assert slow.engine.call(Append("a", "3")) == "123"
    assert times(slow) == [NOW, NOW + 5_000, NOW + 5_000]
    assert probes.times[-1] == NOW + 5_000


def test_a_conflict_with_a_later_entry_moves_the_time(make_stage: MakeStage, shared_url: str) -> None:
    """The same when the other's entry comes between the load and the commit."""
    slow, fast = (stage_by_store_clock(make_stage, shared_url) for _ in range(2))
    fast.now = NOW + 5_000

    def overtake(_: Commit) -> None:
        fast.engine.call(Append("a", "theirs"))

    slow.store.before_commit.append(overtake)
    assert slow.engine.call_many([Append("b", "x"), Append("a", "+mine")]) == ["x", "theirs+mine"]
    assert times(slow) == [NOW + 5_000, NOW + 5_000]


@pytest.mark.parametrize("kind", ["nats", "postgres-log"])
@pytest.mark.parametrize("command", [Look("a"), Append("a", "2"), Refuse("a")], ids=str)
def test_a_stale_read_does_not_act_in_the_past(
    make_stage: MakeStage,
    make_url: Callable[[str], str],
    probes: Probes,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    command: Command,
) -> None:
    """Another process whose clock is ahead wrote something else: who begins afterwards takes place after it,
    although its load was stale and only the commit meets that entry."""
    monkeypatch.setattr(sole_writer, "RECENT_MS", math.inf)
    url = make_url(kind)
    slow, fast = (stage_by_store_clock(make_stage, url) for _ in range(2))
    for _ in range(2):
        slow.engine.call(Append("a", "1"))
    fast.now = NOW + 5_000
    fast.engine.call(Append("b", "x"))
    assert slow.store.load(["a"], allow_stale=True).maybe_stale
    with contextlib.suppress(Refused):
        slow.engine.call(command)
    assert slow.store.seen.at == slow.engine._clock.now() == NOW + 5_000
    assert times(slow) == sorted(times(slow)), "time never falls"
    assert probes.asked[-1] == NOW + 5_000


def test_a_clock_of_its_own_replaces_the_stores_clock_wholly(make_stage: MakeStage) -> None:
    """`clock=` is taken as it is, whatever the log says."""
    stage = make_stage()
    stage.engine.call(Append("a", "x"))
    stage.now = NOW - 10**9
    assert stage.engine.call(Append("a", "y")) == "xy"
    assert times(stage) == [NOW, NOW - 10**9]
