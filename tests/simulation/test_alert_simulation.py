"""Two hundred agents with long model calls, long builds, network pauses and real hangs: who is reported?"""

import os

from tests.simulation.alert_world import AlertWorld

SOAK = bool(os.environ.get("COORD_SOAK"))
SEEDS, MINUTES = (20, 480) if SOAK else (2, 120)
FIRST_SEED = 101
"""The rule was made with the seeds from 1 on."""
AT_REST_MIN, HUNG_MIN, RECALL_MIN, DELAY_MAX = 0.95, 0.6, 0.95, 12
"""How many of the reported agents did nothing, were without a network or hung; and how many hung."""


def test_stuck_agents_are_found_and_others_are_left_in_peace() -> None:
    """ALR-2, ALR-7: decision 0074 has the record."""
    scores = [AlertWorld(seed).run(MINUTES) for seed in range(FIRST_SEED, FIRST_SEED + SEEDS)]
    right, wrong = sum(each.right for each in scores), sum(each.wrong for each in scores)
    missed = sum(each.missed for each in scores)
    found = f"{right} right, {wrong} wrong, {missed} missed"
    assert right >= 15, found
    offline = sum(each.causes["offline"] for each in scores)
    assert (right + offline) / (right + wrong) >= AT_REST_MIN, found
    assert right / (right + wrong) >= HUNG_MIN, found
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
