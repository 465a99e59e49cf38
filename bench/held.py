"""Many claims held at once in one tenant: that they can be, and that a claim costs the same then."""

from collections.abc import Iterator

from bench.figures import Figure
from bench.places import Places
from bench.scale import Scale
from bench.workload import SESSIONS, TENANT, Run, Workplace, session_name

BATCH = 128
SHARE = 5
"""A repetition claims this part of what is held, and submits it, so what is held stays what it was."""
HELD_FLOOR = 10_000


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield the rate with nothing held, how many are held then, and the rate beside them."""
    with Workplace(places.fresh_url(store)) as place:
        _claim_and_submit(place, scale)
        yield _rate(place, scale, store, held=0)
        left = scale.held_claims
        while left:
            _, claimed = place.claim_batch(min(BATCH, left))
            left -= len(claimed)
        held = count_held(place)
        floor = HELD_FLOOR if scale.held_claims >= HELD_FLOOR else None
        yield Figure("held", store, "claims held at once", held, "claims", floor=floor)
        yield _rate(place, scale, store, held)


def count_held(place: Workplace) -> int:
    """Ask the store, session by session."""
    coordinator = place.coordinator
    return sum(
        len(coordinator.get_active_claims_for_session(TENANT, session_name(number)))
        for number in range(SESSIONS)
    )


def _rate(place: Workplace, scale: Scale, store: str, held: int) -> Figure:
    rates = [_claim_and_submit(place, scale).rate for _ in range(scale.repetitions)]
    name = f"claims, batch {BATCH}, beside {held:,} held"
    return Figure.middle_of(rates, "held", store, name, "/s")


def _claim_and_submit(place: Workplace, scale: Scale) -> Run:
    calls = [place.claim_batch(BATCH) for _ in range(scale.held_claims // SHARE // BATCH + 1)]
    claimed = [claim for _, batch in calls for claim in batch]
    place.submit_all(claimed, BATCH)
    return Run(len(claimed), [took for took, _ in calls], claimed)
