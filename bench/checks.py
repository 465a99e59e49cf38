"""Asking whether a path is free among ever more held locks: the answer should not take longer."""

import statistics
from collections.abc import Iterator
from time import perf_counter

from bench.figures import Figure, latency_ms
from bench.places import Places
from bench.repository import PATH, make_repository, open_client
from bench.scale import Scale
from coord.core.identity import Caller
from coord.core.locks.commands import AcquireLocks
from coord.core.locks.resources import REQUEST_RESOURCES_MAX
from coord.sdk.client.client import Client

HOLDERS = 50
IN_A_FOLDER = 20
LEASE_MS = 24 * 3600 * 1000


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield the time of a check of a free path and of a held one, among each number of held locks."""
    repository = make_repository(places.folder)
    with open_client(places.fresh_url(store), repository, "asker") as client:
        held = 0
        fewest: dict[str, float] = {}
        for wanted in scale.held_locks:
            hold(client, held, wanted)
            held = wanted
            for what, path in (("free", PATH), ("held", path_of(held // 2))):
                took = _times(client, path, scale.checks, free=what == "free")
                middle = statistics.median(took)
                detail = {"of_fewest": middle / fewest.setdefault(what, middle), **latency_ms(took)}
                name = f"check of a {what} path among {held:,} held"
                yield Figure("check", store, name, middle * 1000, "ms", detail=detail)


def path_of(number: int) -> str:
    """Return one of the paths that are held; some of them lie beside the one that is free."""
    folder = number // IN_A_FOLDER
    return f"src/login/part-{folder}/form-{number}.py"


def hold(client: Client, first: int, end: int) -> None:
    """Hold the paths of these numbers, by several sessions."""
    for start in range(first, end, REQUEST_RESOURCES_MAX):
        numbers = range(start, min(start + REQUEST_RESOURCES_MAX, end))
        holder = Caller(f"holder-{start // REQUEST_RESOURCES_MAX % HOLDERS}", agent="agent-a")
        texts = tuple(f"file:{path_of(number)}" for number in numbers)
        command = AcquireLocks(holder, client.location.repository_id, texts, ttl_ms=LEASE_MS)
        assert client.call(command).ok, "nobody else wants them"


def _times(client: Client, path: str, checks: int, *, free: bool) -> list[float]:
    took = []
    for number in range(checks + checks // 10 + 1):
        began = perf_counter()
        found = client.check(path)
        took.append(perf_counter() - began)
        assert found.free == free, f"check {number} of {path}"
    return took[-checks:]
