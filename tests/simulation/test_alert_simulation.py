"""Two hundred agents with long model calls, long builds, network pauses and real hangs: who is reported?"""

import os

from tests.simulation.alert_world import AlertWorld

SOAK = bool(os.environ.get("COORD_SOAK"))
SEEDS, MINUTES = (20, 480) if SOAK else (2, 120)
PRECISION_MIN, RECALL_MIN, DELAY_MAX = 0.9, 0.95, 12


def test_stuck_agents_are_found_and_others_are_left_in_peace() -> None:
    """ALR-2, ALR-7: decision 0074 has the record."""
    scores = [AlertWorld(seed).run(MINUTES) for seed in range(1, SEEDS + 1)]
    right, wrong = sum(each.right for each in scores), sum(each.wrong for each in scores)
    missed = sum(each.missed for each in scores)
    found = f"{right} right, {wrong} wrong, {missed} missed"
    assert right >= 15, found
    assert right / (right + wrong) >= PRECISION_MIN, found
    assert right / (right + missed) >= RECALL_MIN, found
    assert max(delay for each in scores for delay in each.delays) <= DELAY_MAX


def test_one_signal_is_not_enough() -> None:
    """Ten minutes without a command alone: what the founding document switched off."""
    score = AlertWorld(1, one_signal=True).run(40)
    assert score.precision < 0.2
    assert {"think", "build"} <= set(score.causes)


def test_a_seed_is_the_same_run_again() -> None:
    first, second = AlertWorld(7, 20).run(40), AlertWorld(7, 20).run(40)
    assert first == second
