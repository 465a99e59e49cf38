"""The checkers bite: histories that no order explains are refused, and those that one explains are not."""

import random
from itertools import permutations
from typing import Any

import pytest

from coord.core.tasks.schema import TaskClaimed, TaskCompleted, TaskRenewed
from coord.core.transaction import encode_event
from coord.stores.contract import Entry
from tests.linearizability.explain import explain, match_all
from tests.linearizability.ledger import Ledger, Violation
from tests.linearizability.log_order import explain_all
from tests.linearizability.task_model import NEW, Op, State, apply
from tests.linearizability.wing_gong import linearization

GRANTED_1, GRANTED_2 = ("GRANTED", 1, None, None), ("GRANTED", 2, None, None)
ACCEPTED_1 = ("ACCEPTED", 1, False)


def op(kind: str, session: str, begin: int, end: int, answer: Any, generation: int = 0) -> Op:
    return Op(kind, "shop/t", session, generation, work="w", begin=begin, end=end, answer=answer)


def denied(holder: str) -> tuple[Any, ...]:
    return ("DENIED_ACTIVE_CLAIM", None, None, holder)


EXPLAINED = {
    "one after the other": [
        op("claim", "a", 0, 1, GRANTED_1),
        op("claim", "b", 2, 3, denied("a")),
        op("submit", "a", 4, 5, ACCEPTED_1, 1),
    ],
    "the denied one began first": [
        op("claim", "b", 0, 9, denied("a")),
        op("claim", "a", 1, 2, GRANTED_1),
    ],
    "a lost claim explains the denial": [
        op("claim", "a", 0, 1, None),
        op("claim", "b", 5, 6, denied("a")),
    ],
    "a lost claim that never happened": [
        op("claim", "a", 0, 1, None),
        op("claim", "b", 5, 6, GRANTED_1),
    ],
    "a lost release happens late": [
        op("claim", "a", 0, 1, GRANTED_1),
        op("release", "a", 2, 3, None, 1),
        op("claim", "b", 4, 5, denied("a")),
        op("claim", "b", 6, 7, GRANTED_2),
    ],
}

IMPOSSIBLE = {
    "one generation granted twice": [
        op("claim", "a", 0, 5, GRANTED_1),
        op("claim", "b", 1, 6, GRANTED_1),
    ],
    "two claims at once": [
        op("claim", "a", 0, 1, GRANTED_1),
        op("claim", "b", 2, 3, GRANTED_2),
    ],
    "a stale result is accepted": [
        op("claim", "a", 0, 1, GRANTED_1),
        op("force", "b", 2, 3, GRANTED_2),
        op("submit", "a", 4, 5, ACCEPTED_1, 1),
    ],
    "somebody else's result is accepted": [
        op("claim", "a", 0, 1, GRANTED_1),
        op("submit", "b", 2, 3, ACCEPTED_1, 1),
    ],
    "a result is accepted twice": [
        op("claim", "a", 0, 1, GRANTED_1),
        op("submit", "a", 2, 8, ACCEPTED_1, 1),
        op("submit", "a", 3, 9, ACCEPTED_1, 1),
    ],
    "an old state is read after the change was answered": [
        op("claim", "a", 0, 1, GRANTED_1),
        op("state", "", 2, 3, ("ready", 0, None, None, None, None)),
    ],
    "a denial that names nobody who ever held it": [
        op("claim", "a", 0, 9, GRANTED_1),
        op("claim", "b", 1, 8, denied("c")),
    ],
    "a lost claim cannot explain a release": [
        op("claim", "a", 5, 6, None),
        op("release", "a", 1, 2, ("RELEASED",), 1),
    ],
}


@pytest.mark.parametrize("name", EXPLAINED)
def test_an_explained_history_is_accepted(name: str) -> None:
    """There is an order, and what is returned is one: it respects real time and gives these answers."""
    order = linearization(EXPLAINED[name])
    assert order is not None
    assert _explains(order)


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_an_impossible_history_is_refused(name: str) -> None:
    """No order explains it."""
    assert linearization(IMPOSSIBLE[name]) is None


def test_the_search_agrees_with_trying_every_order() -> None:
    """On a thousand small random histories, half of them with a wrong answer."""
    chance = random.Random(1)
    verdicts = set()
    for _ in range(1_000):
        history = _random_history(chance)
        found = linearization(history) is not None
        assert found == any(_explains(order) for order in permutations(history)), history
        verdicts.add(found)
    assert verdicts == {True, False}


def _random_history(chance: random.Random) -> list[Op]:
    """Overlapping operations of a real order; sometimes one answer is exchanged."""
    state: State = NEW
    history = []
    for n in range(chance.randint(2, 5)):
        kind = chance.choice(("claim", "claim", "renew", "release", "submit", "state"))
        one = op(kind, chance.choice("ab"), 0, 0, (), chance.randint(0, 2))
        one.answer, state = apply(state, one, None)
        one.begin = n * 10 - chance.randrange(0, 25)
        one.end = n * 10 + chance.randrange(1, 25)
        history.append(one)
    if chance.random() < 0.5:
        one, other = chance.choice(history), chance.choice(history)
        one.answer = other.answer if one.kind == other.kind else one.answer
    return history


def _explains(order: Any) -> bool:
    state: State = NEW
    for place, one in enumerate(order):
        if any(later.end < one.begin for later in order[place + 1 :] if not later.unknown):
            return False
        answer, state = apply(state, one, None)
        if not one.unknown and answer != one.answer:
            return False
    return True


# The log as witness.


def ledger_of(*events: Any) -> Ledger:
    """A log with one event in each entry, one second apart."""
    ledger = Ledger()
    for offset, event in enumerate(events, 1):
        ledger.add(Entry(offset, offset * 1_000, b"", [encode_event(event)]))
    return ledger


def claimed(session: str, generation: int, previous: int = 0) -> TaskClaimed:
    return TaskClaimed("shop", "t", generation, session, "agent", 60_000, previous)


def completed(session: str, generation: int) -> TaskCompleted:
    return TaskCompleted("shop", "t", generation, session, "agent", "w", 2)


@pytest.mark.parametrize(
    ("events", "what"),
    [
        ([claimed("a", 1), claimed("b", 2, 1)], "the rules say DENIED_ACTIVE_CLAIM"),
        ([claimed("a", 2)], "another generation was granted"),
        ([claimed("a", 1), completed("b", 1)], "the rules say SESSION_MISMATCH"),
        ([claimed("a", 1), completed("a", 1), completed("a", 1)], "a second result"),
        ([completed("a", 1)], "the rules say NO_CLAIM"),
        ([claimed("a", 1), TaskRenewed("shop", "t", 1, "a", "agent", 99)], "renewed for another time"),
    ],
)
def test_an_illegal_log_is_refused(events: list[Any], what: str) -> None:
    """001 §2.2: the log alone shows a second holder, a forged result, a result too many."""
    with pytest.raises(Violation, match=what):
        ledger_of(*events)


def test_a_gap_in_the_log_is_refused() -> None:
    """Offsets have no gaps."""
    ledger = ledger_of(claimed("a", 1))
    with pytest.raises(Violation, match="a gap"):
        ledger.add(Entry(3, 3_000, b"", []))


def test_a_grant_without_an_event_is_refused() -> None:
    """Who was told GRANTED is in the log."""
    with pytest.raises(Violation, match="no event"):
        explain(Ledger(), op("claim", "a", 0, 0, ("GRANTED", 1, 61_000, None)))


def test_an_event_without_an_author_is_refused() -> None:
    """What is in the log was asked for: a command that was told it failed may not have worked."""
    ledger = ledger_of(claimed("a", 1))
    with pytest.raises(Violation, match="nobody asked"):
        match_all(ledger, [])
    lost = op("claim", "a", 0, 0, None)
    assert match_all(ledger, [lost]) == {}


def test_one_event_does_not_serve_two_grants() -> None:
    """CLM-62: two that were told ACCEPTED need two events."""
    ledger = ledger_of(claimed("a", 1), completed("a", 1))
    grant = op("claim", "a", 0, 2, ("GRANTED", 1, 61_000, None))
    twice = [op("submit", "a", 0, 2, ACCEPTED_1, 1) for _ in range(2)]
    with pytest.raises(Violation, match="an event is missing"):
        match_all(ledger, [grant, *twice])
    assert match_all(ledger, [grant, twice[0]]).keys() == {0, 1}


def test_a_refusal_needs_a_moment_at_which_it_was_right() -> None:
    """A denial before the claim it names, in real time, is explained by nothing."""
    ledger = ledger_of(claimed("a", 1))
    explain(ledger, op("claim", "b", 0, 1, denied("a")))
    with pytest.raises(Violation, match="nothing explains"):
        explain(ledger, op("claim", "b", 0, 0, denied("a")))


def test_a_log_that_turns_real_time_around_is_refused() -> None:
    """What ended before another began has the smaller offset."""
    first = Op("claim", "shop/t", "a", begin=10, end=11, answer=("GRANTED", 1, 61_000, None))
    second = Op("claim", "shop/u", "a", begin=20, end=21, answer=("GRANTED", 1, 62_000, None))
    other = TaskClaimed("shop", "u", 1, "a", "agent", 60_000)
    explain_all(ledger_of(claimed("a", 1), other), [first, second])
    first.begin, first.end = 30, 31
    with pytest.raises(Violation, match="real time"):
        explain_all(ledger_of(claimed("a", 1), other), [first, second])
