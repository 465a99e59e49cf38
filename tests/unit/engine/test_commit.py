"""The engine when the store says no, says nothing, or is away: conflicts, verified refusals, lost answers."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest

from coord.core.errors import Busy, Conflict, CoordError, Corrupt, Unavailable, Unknown
from coord.core.records import encode
from coord.stores.contract import Commit
from coord.stores.log import sole_writer
from tests.support.engine_probes import (
    Append,
    Copy,
    Gather,
    Look,
    LookTwice,
    Once,
    OnceElsewhere,
    Probes,
    Refuse,
    Text,
)
from tests.support.stores.steps import head, write
from tests.unit.engine.conftest import MakeStage, Stage

PATIENCE_S = 60


def text(stage: Stage, key: str) -> str:
    reply: str = stage.engine.call(Look(key))
    return reply


def change(stage: Stage, key: str, to: str) -> None:
    """Change a record behind the engine's back."""
    write(stage.store.real, {key: encode(Text(text=to))})


# Conflicts.


def test_a_conflict_is_decided_again_over_what_is_there_now(stage: Stage) -> None:
    """On a conflict the command is decided anew, so its answer and its write fit what others did."""
    stage.store.before_commit.append(lambda _: change(stage, "a", "theirs"))
    assert stage.engine.call(Append("a", "+mine")) == "theirs+mine"
    assert text(stage, "a") == "theirs+mine"
    assert len(stage.store.written) == 1
    assert len(stage.runtime.slept) == 1, "with a pause, so that two do not keep meeting"


def test_only_the_commands_concerned_are_decided_again(stage: Stage, probes: Probes) -> None:
    """Those that read a changed key decide again, and those that read what these wrote; the others do not."""

    def meddle(_: Commit) -> None:
        change(stage, "a", "A")
        probes.completed.clear()

    stage.store.before_commit.append(meddle)
    commands = [Append("far", "x"), Copy("a", "b"), Copy("b", "c"), Look("far"), Append("alone", "y")]
    assert stage.engine.call_many(commands) == ["x", "A", "A", "x", "y"]
    completed = set(probes.completed)
    assert completed == {("Copy", "a"), ("Copy", "b")}
    assert (text(stage, "b"), text(stage, "c")) == ("A", "A")


def test_a_key_that_is_only_written_conflicts_too(stage: Stage) -> None:
    """Whatever is written is expected, read or not."""
    stage.store.before_commit.append(lambda _: change(stage, "to", "theirs"))
    stage.engine.call(Append("from", "mine"))
    stage.store.before_commit.append(lambda _: change(stage, "to", "theirs"))
    stage.store.start_counting()
    assert stage.engine.call(Copy("from", "to")) == "mine"
    assert stage.store.calls["commit"] == 2
    assert text(stage, "to") == "mine"


def test_what_was_loaded_at_two_moments_is_looked_at_again(stage: Stage) -> None:
    """A commit vouches for a moment only if all was loaded then: what changed between two loads conflicts."""
    stage.engine.call_many([Append("a", "b"), Append("b", "")])

    def meddle() -> None:  # after "a" was loaded and before what it names is
        change(stage, "a", "c")

    stage.store.after_read.append(meddle)
    assert stage.engine.call(OnceElsewhere("a", "mine")) == ""
    assert text(stage, "c") == "mine"
    assert text(stage, "b") == ""


def test_what_was_scanned_before_the_load_is_looked_at_again(stage: Stage) -> None:
    """A scan has a moment of its own: what changed between it and the first load conflicts."""
    stage.engine.call_many([Append("p/1", "x"), Append("p/2", "y")])
    stage.store.after_read.append(lambda: change(stage, "p/1", "X"))
    assert stage.engine.call(Gather("p/", "all")) == "Xy"
    assert text(stage, "all") == "Xy"


def test_a_refusal_that_rests_on_a_dropped_write_is_decided_again(stage: Stage) -> None:
    """An error may rest on what an earlier command of its batch wrote unread; it falls with that."""
    stage.engine.call(Append("a", "old"))
    stage.store.before_commit.append(lambda _: change(stage, "a", "new"))
    looks = [Look("a") for _ in range(5)]  # so many ask for nothing more that the last one is not run dry
    jobs = stage.engine._call_all([Copy("a", "to"), *looks, Refuse("to")], PATIENCE_S, "")
    assert jobs[0].reply == "new"
    assert str(jobs[-1].error) == "not today: new"


def test_a_conflict_that_nobody_made_is_survived(stage: Stage) -> None:
    """A store may see a conflict where there was none (a raised floor); the commands are decided again."""

    def say_conflict(commit: Commit) -> None:
        raise Conflict(["a"])

    stage.store.before_commit.extend([say_conflict] * 3)
    assert stage.engine.call_many([Append("a", "1"), Append("b", "2")]) == ["1", "2"]
    assert (text(stage, "a"), text(stage, "b")) == ("1", "2")


def test_failures_are_decided_again_after_a_conflict(stage: Stage) -> None:
    """An error rests on what was read, too: if that has changed, the command gets another chance."""
    change(stage, "a", "full")
    stage.store.before_commit.append(lambda _: change(stage, "a", ""))
    replies = stage.engine.call_many([Append("b", "x"), Once("a", "mine")])
    assert replies == ["x", ""]
    assert text(stage, "a") == "mine"


# Refusals are as linearizable as grants.


def test_a_refusal_is_verified_with_the_writes_of_its_batch(stage: Stage) -> None:
    """What a refusal read is expected by the commit of the batch."""
    change(stage, "a", "taken")
    stage.store.before_commit.append(lambda _: change(stage, "a", ""))
    assert stage.engine.call_many([Once("a", "mine"), Append("b", "x")]) == ["", "x"]
    assert text(stage, "a") == "mine"


def test_a_lone_refusal_that_rests_on_two_read_points_is_verified(stage: Stage) -> None:
    """If a record changes between the two reads, the command is decided again."""
    change(stage, "points", "taken")
    change(stage, "taken", "by them")
    # Two reads follow; after the first one the pointer moves to where there is room.
    stage.store.after_read.append(lambda: change(stage, "points", "free"))
    assert stage.engine.call(OnceElsewhere("points", "mine")) == ""
    assert (text(stage, "taken"), text(stage, "free")) == ("by them", "mine")


def test_two_reads_of_one_read_point_need_no_check(stage: Stage) -> None:
    """Nobody committed between the reads, so together they are one snapshot."""
    change(stage, "points", "taken")
    change(stage, "taken", "by them")
    stage.store.start_counting()
    assert stage.engine.call(OnceElsewhere("points", "mine")) == "by them"
    assert (stage.store.calls["load"], stage.store.calls["verify"], stage.store.calls["commit"]) == (2, 0, 0)


def test_a_question_that_rests_on_two_reads_is_verified(stage: Stage) -> None:
    """A question never mixes two moments: the commit without writes verifies it."""
    change(stage, "points", "old")
    change(stage, "old", "old text")
    change(stage, "new", "new text")
    stage.store.after_read.extend(
        [lambda: change(stage, "points", "new"), lambda: change(stage, "old", "gone")]
    )
    stage.store.start_counting()
    assert stage.engine.call(LookTwice("points")) == "new text"
    assert stage.store.calls["verify"] >= 2
    assert stage.store.calls["commit"] == 0


def test_a_refused_command_is_verified_as_well(stage: Stage) -> None:
    """An error raised by a rule stands only if what it read stands."""
    change(stage, "b", "x")
    stage.store.start_counting()
    with pytest.raises(CoordError, match="not today"):
        stage.engine.call(Refuse("a", "x"))
    assert stage.store.written == []


@pytest.mark.parametrize("kind", ["nats", "postgres-log"])
def test_an_answer_from_a_stale_read_is_verified(
    make_stage: MakeStage, make_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Who wrote twice just now does not look whether others wrote since; its answers hold all the same."""
    monkeypatch.setattr(sole_writer, "RECENT_MS", math.inf)
    url = make_url(kind)
    stage, other = make_stage(url), make_stage(url)

    def in_haste() -> bool:
        """Write twice, let another process write, and say whether a load in haste misses that."""
        for _ in range(2):
            stage.engine.call(Append("a", "+"))
        change(other, "a", "theirs")
        return stage.store.load(["a"], allow_stale=True)["a"].value != encode(Text(text="theirs"))

    assert in_haste()
    with pytest.raises(CoordError, match="not today: theirs"):
        stage.engine.call(Refuse("a"))
    assert in_haste()
    assert stage.engine.call(Append("a", "+mine")) == "theirs+mine"
    assert in_haste()
    assert stage.engine.call(Look("a")) == "theirs"


@pytest.mark.parametrize("kind", ["nats", "postgres-log"])
def test_who_is_always_overtaken_waits_no_longer_than_told(
    make_stage: MakeStage, make_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Others come first each time, with what the command does not read: its time runs out all the same."""
    url = make_url(kind)
    stage, other = make_stage(url), make_stage(url)
    real: Any = stage.store.real
    append, overtaken = real._append, itertools.count(1)

    def append_late(offset: int, commit: Commit) -> Commit | None:
        assert next(overtaken) < 1_000, "for ever"
        change(other, "b", "theirs")
        kept: Commit | None = append(offset, commit)
        return kept

    monkeypatch.setattr(real, "_append", append_late)
    with pytest.raises(Busy):
        stage.engine.call(Append("a", "+"), timeout=0.001)
    assert text(other, "a") == ""


# Unknown outcomes.


def lose_answer(_: Commit) -> None:
    raise Unknown


def test_a_lost_answer_of_a_commit_that_landed(stage: Stage) -> None:
    """The entry has the id of the commit: it is found, and nothing is done twice."""
    stage.store.after_commit.append(lose_answer)
    assert stage.engine.call(Append("a", "x")) == "x"
    assert head(stage.store.real) == 1
    assert text(stage, "a") == "x"


def test_a_lost_answer_of_a_commit_that_did_not_land(stage: Stage) -> None:
    """The entry is not there: the same commit is made again, under the same id."""
    ids: list[bytes] = []

    def lose_before(commit: Commit) -> None:
        ids.append(commit.id)
        raise Unknown

    stage.store.before_commit.append(lose_before)
    assert stage.engine.call(Append("a", "x")) == "x"
    assert [entry.id for entry in stage.store.real.tail(0, 9)] == ids
    assert text(stage, "a") == "x"


def test_a_lost_commit_that_lands_late(stage: Stage) -> None:
    """A commit that lands after it was looked for, but before it is made again, is found after all."""

    def lands_late(commit: Commit) -> None:
        stage.store.after_tail.append(lambda: _ignore(stage.store.real.commit(commit)))
        raise Unknown

    stage.store.before_commit.append(lands_late)
    assert stage.engine.call(Append("a", "x")) == "x"
    assert head(stage.store.real) == 1
    assert text(stage, "a") == "x"


def _ignore(_: object) -> None:
    return None


def test_a_lost_answer_and_then_a_conflict(stage: Stage) -> None:
    """It did not land, and meanwhile somebody else changed what it read: it is decided again."""

    def lose_and_change(_: Commit) -> None:
        change(stage, "a", "theirs")
        raise Unknown

    stage.store.before_commit.append(lose_and_change)
    assert stage.engine.call(Append("a", "+mine")) == "theirs+mine"
    assert text(stage, "a") == "theirs+mine"


def test_answers_lost_again_and_again(stage: Stage) -> None:
    """Each attempt may be lost; the log decides."""
    stage.store.before_commit.extend([lose_answer, lose_answer])
    stage.store.after_commit.append(lose_answer)
    assert stage.engine.call(Append("a", "x")) == "x"
    assert head(stage.store.real) == 1


@pytest.mark.parametrize("landed", [True, False])
def test_an_outcome_that_cannot_be_settled_is_unknown(stage: Stage, landed: bool) -> None:
    """Without a way to look, the caller is told `Unknown`, not before its time is up; nothing is guessed."""

    def lose_and_leave(_: Commit) -> None:
        stage.store.away = True
        raise Unknown

    (stage.store.after_commit if landed else stage.store.before_commit).append(lose_and_leave)
    with pytest.raises(Unknown):
        stage.engine.call(Append("a", "x"), timeout=5)
    assert stage.runtime.time >= 5
    stage.store.away = False
    assert text(stage, "a") == ("x" if landed else "")


def test_a_lost_answer_in_a_log_that_was_trimmed_is_unknown(stage: Stage) -> None:
    """If the part of the log where the entry would be is forgotten, nobody can tell."""
    stage.engine.call(Append("a", "x"))

    def lose_and_trim(_: Commit) -> None:
        for number in range(5):
            change(stage, "other", str(number))
        stage.store.real.trim(head(stage.store.real))
        raise Unknown

    stage.store.after_commit.append(lose_and_trim)
    with pytest.raises(Unknown):
        stage.engine.call(Append("a", "y"), timeout=5)
    assert text(stage, "a") == "xy"


def test_a_batch_with_a_lost_answer_answers_everyone(stage: Stage) -> None:
    """Settling is for the whole batch."""
    stage.store.after_commit.append(lose_answer)
    with stage.engine._batch_lock:
        futures = [stage.engine.submit(Append("a", str(number))) for number in range(5)]
    assert [future.result(PATIENCE_S) for future in futures][-1] == "01234"
    assert len(stage.store.written) == 1


# A store that is away.


def test_unavailable_is_tried_again(stage: Stage) -> None:
    """REC-20: While the store is away nothing has happened, so the engine begins again a few times."""

    def go_away(_: Commit) -> None:
        raise Unavailable("away")

    stage.store.before_commit.extend([go_away, go_away])
    assert stage.engine.call(Append("a", "x")) == "x"
    assert len(stage.runtime.slept) == 2


def test_unavailable_for_long_is_raised(stage: Stage) -> None:
    """After a few tries the caller is told; nothing was done, and all goes on when the store is back."""
    stage.store.away = True
    with pytest.raises(Unavailable):
        stage.engine.call(Append("a", "x"))
    assert len(stage.runtime.slept) == 2
    stage.store.away = False
    assert stage.engine.call(Append("a", "y")) == "y"


def test_who_has_no_time_left_is_told_that_the_store_is_away(stage: Stage) -> None:
    """A server that is silent takes long to be given up: then it is away, and not too busy with others."""

    def go_away_slowly(_: Commit) -> None:
        stage.runtime.sleep(5)
        raise Unavailable("away")

    stage.store.before_commit.extend([go_away_slowly] * 3)
    with pytest.raises(Unavailable):
        stage.engine.call(Append("a", "x"), timeout=8)
    assert len(stage.store.before_commit) == 1, "nothing is tried for a caller who waits no longer"


def test_everyone_in_the_batch_learns_that_the_store_is_away(stage: Stage) -> None:
    """Each caller gets the error; nobody is left waiting."""
    stage.store.away = True
    with stage.engine._batch_lock:
        futures = [stage.engine.submit(Append("a", "x")) for _ in range(5)]
    for future in futures:
        with pytest.raises(Unavailable):
            future.result(PATIENCE_S)
    stage.store.away = False
    assert text(stage, "a") == ""


def test_a_corrupt_store_is_not_tried_again(stage: Stage) -> None:
    """What is damaged does not mend by asking again."""

    def damaged() -> None:
        raise Corrupt

    stage.store.after_read.append(damaged)
    with pytest.raises(Corrupt):
        stage.engine.call(Append("a", "x"))
    assert (stage.store.calls["load"], stage.runtime.slept) == (1, [])


@pytest.mark.parametrize("reads", [0, 1])
def test_a_store_that_goes_away_while_a_rule_runs_is_asked_again(stage: Stage, reads: int) -> None:
    """The first load or the second: the store failed, not the rule, so the batch begins again."""

    def go_away() -> None:
        raise Unavailable("away")

    stage.engine.call_many([Append("a", "b"), Append("b", "x")])
    stage.store.after_read.extend([lambda: None] * reads + [go_away])
    assert stage.engine.call(LookTwice("a")) == "x"
    assert len(stage.runtime.slept) == 1


def test_an_unforeseen_error_of_a_load_is_no_error_of_the_rule(stage: Stage) -> None:
    """A store that breaks its contract while a rule runs fails the batch, as it does elsewhere."""

    def break_contract() -> None:
        raise RuntimeError("not an error of coord")

    stage.engine.call_many([Append("a", "b"), Append("b", "x")])
    stage.store.after_read.extend([lambda: None, break_contract])
    with pytest.raises(Unknown):
        stage.engine.call(LookTwice("a"))


def test_an_unforeseen_error_of_the_store_is_an_unknown_outcome(stage: Stage) -> None:
    """A store that breaks its contract may have done anything; the engine says so and goes on."""

    def break_contract(_: Commit) -> None:
        raise RuntimeError("not an error of coord")

    for _ in range(2):
        stage.store.before_commit.append(break_contract)
        with pytest.raises(Unknown):
            stage.engine.submit(Append("a", "x")).result(PATIENCE_S)
    assert stage.engine.submit(Append("a", "y")).result(PATIENCE_S) == "y"


def test_an_interrupted_call_interrupts_nobody_else_for_good(stage: Stage) -> None:
    """Ctrl-C in the middle of a commit: its batch is told `Unknown`, and the engine goes on."""

    def interrupt(_: Commit) -> None:
        raise KeyboardInterrupt

    stage.store.before_commit.append(interrupt)
    with pytest.raises(KeyboardInterrupt):
        stage.engine.call(Append("a", "x"))
    assert stage.engine.call(Append("a", "y")) == "y"


# Two engines on one log.


def test_two_engines_interleave(make_stage: MakeStage, shared_url: str) -> None:
    """Each engine notices what the other committed, before its decision and in the middle of it."""
    one, other = make_stage(shared_url), make_stage(shared_url)
    assert one.engine.call(Append("a", "1")) == "1"
    assert other.engine.call(Append("a", "2")) == "12"
    one.store.before_commit.append(
        lambda _: _ignore(other.engine.call_many([Append("a", "3"), Append("b", "x")]))
    )
    assert one.engine.call_many([Append("c", "y"), Append("a", "4"), Look("b")]) == ["y", "1234", "x"]
    assert other.engine.call_many([Look("a"), Look("b"), Look("c")]) == ["1234", "x", "y"]
    assert head(one.store.real) == 4


def test_a_lost_answer_behind_entries_of_another_engine(make_stage: MakeStage, shared_url: str) -> None:
    """The id is looked for among the entries of others."""
    one, other = make_stage(shared_url), make_stage(shared_url)

    def crowd_and_lose(_: Commit) -> None:
        other.engine.call_many([Append(f"k{number}", "x") for number in range(3)])
        other.engine.call(Append("k0", "x"))
        raise Unknown

    one.store.after_commit.append(crowd_and_lose)
    assert one.engine.call(Append("a", "x")) == "x"
    assert other.engine.call(Look("a")) == "x"
    assert head(one.store.real) == 3
