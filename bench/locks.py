"""A lock that nobody else wants, taken and given back in one process, beside others and the raw limit."""

import statistics
from collections.abc import Iterator
from time import perf_counter

from bench.figures import Figure, latency_ms
from bench.lock_peers import Peer
from bench.places import Places
from bench.raw import RAW
from bench.repository import PATH, make_repository, open_watched
from bench.scale import Scale
from bench.watched import Watch

PEERS = {
    "files": ("filelock", "redis-py Lock", "Postgres advisory", "etcd", "etcd, lease each"),
    "sqlite": ("filelock", "redis-py Lock", "Postgres advisory", "etcd", "etcd, lease each"),
    "postgres": ("Postgres advisory",),
    "redis": ("redis-py Lock",),
}


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield ours with the raw limit beside it, then each of the others."""
    ours = _ours(places, scale, store)
    yield ours
    repository = make_repository(places.folder)
    for rival in places.rivals(PEERS.get(store, ())):
        peer = rival.open(repository, "peer")
        rounds = [_rounds(peer, scale.seconds) for _ in range(scale.repetitions)]
        peer.close()
        rates = [len(each) / sum(each) for each in rounds]
        figure = Figure.middle_of(rates, "locks", store, f"{rival.name}, acquire + release", "/s")
        latency = latency_ms(took for each in rounds for took in each)
        figure.detail = {"ours_of_this": ours.value / figure.value, **latency}
        yield figure


def _ours(places: Places, scale: Scale, store: str) -> Figure:
    watch = Watch(keep_commits=True)
    raw = RAW[store](places.fresh_url(store))
    client = open_watched(places.fresh_url(store), make_repository(places.folder), "ours", watch)
    peer = _Watched(client)
    rates, raw_rates, took, commits = [], [], list[float](), 0
    _rounds(peer, scale.seconds / 3)
    raw.play(watch.take()[1])
    for _ in range(scale.repetitions):
        rounds = _rounds(peer, scale.seconds)
        made = watch.take()[1]
        rates.append(len(rounds) / sum(rounds))
        raw_rates.append(len(rounds) / raw.play(made))
        took += rounds
        commits += len(made)
    client.close()
    raw.close()
    detail = {"commits_per_op": commits / len(took), **latency_ms(took)}
    raw_rate = statistics.median(raw_rates)
    return Figure.middle_of(
        rates, "locks", store, "coord, acquire + release", "/s", raw=raw_rate, detail=detail
    )


class _Watched:
    """Our own lock through a client that is watched."""

    def __init__(self, client) -> None:
        self._client = client

    def acquire(self) -> None:
        assert self._client.acquire(PATH).ok, "nobody else wants it"

    def release(self) -> None:
        self._client.unlock(PATH)

    def close(self) -> None:
        self._client.close()


def _rounds(peer: Peer, seconds: float) -> list[float]:
    """Take and give back for a while; return how long each pair took."""
    took: list[float] = []
    spent = 0.0
    while spent < seconds:
        began = perf_counter()
        peer.acquire()
        peer.release()
        took.append(perf_counter() - began)
        spent += took[-1]
    return took
