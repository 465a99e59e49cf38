"""Batches of claims in several tenants at once, a process each: what one store takes altogether."""

from collections.abc import Iterator

from bench.children import together
from bench.figures import Figure
from bench.places import Places
from bench.scale import Scale
from tests.support.servers.kinds import SHARED_STORES

BATCH = 128
FLOOR_TENANTS = 4
FLOORS = {"mariadb": 40_000, "redis": 40_000}


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield one tenant by itself, then several."""
    if store not in SHARED_STORES:
        return
    alone = 0.0
    for tenants in sorted({1, scale.tenants}):
        rates = [_rate(places.fresh_url(store), tenants, scale.seconds) for _ in range(scale.repetitions)]
        name = f"claims, batch {BATCH}, {'1 tenant' if tenants == 1 else f'{tenants} tenants'}"
        figure = Figure.middle_of(rates, "tenants", store, name, "/s")
        alone = alone or figure.value
        figure.floor = FLOORS.get(store) if tenants == FLOOR_TENANTS else None
        figure.detail = {"of_one": figure.value / alone}
        yield figure


def _rate(url: str, tenants: int, seconds: float) -> float:
    """Return how many claims all tenants got per second, until the last one ended."""
    words = [[url, f"tenant-{number}", str(seconds), str(BATCH)] for number in range(tenants)]
    began, found = together("bench.tenant", words)
    return sum(claims for claims, _ in found) / (max(ended for _, ended in found) - began)
