"""One lock that several processes want all the time: how much, how long one waits, and in which order.

`in order` is the share of the grants that went to whoever had waited longest, counted from the moment each
process began to ask. `least share` and `most share` are what a process got of all grants, as a multiple of
its fair part, up to the moment when the first one had all of its own: after that, fewer share it.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.children import together
from bench.figures import Figure, latency_ms
from bench.lock_peers import Rival
from bench.places import Places
from bench.repository import make_repository
from bench.scale import Scale

STORES = ("files", "sqlite", "postgres", "redis", "nats")
RIVALS = ("filelock", "redis-py Lock", "etcd")
PEERS = {"files": RIVALS, "sqlite": RIVALS}


class Turn(NamedTuple):
    """One time that one process had the lock."""

    asked: float
    granted: float
    released: float
    process: int


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield ours, then each of the others."""
    if store not in STORES:
        return
    repository = make_repository(places.folder)
    ours = _figure(store, Rival("coord", places.fresh_url(store)), repository, scale)
    yield ours
    for rival in places.rivals(PEERS.get(store, ())):
        figure = _figure(store, rival, repository, scale)
        figure.detail["ours_of_this"] = ours.value / figure.value
        yield figure


def _figure(store: str, rival: Rival, repository: Path, scale: Scale) -> Figure:
    turns = run(rival, repository, scale.contenders, scale.handoffs)
    took = max(turn.released for turn in turns) - min(turn.asked for turn in turns)
    low, high = shares(turns)
    detail = {
        **latency_ms(turn.granted - turn.asked for turn in turns),
        "least_share": low,
        "most_share": high,
        "in_order": in_order(turns),
    }
    name = f"{rival.name}, {scale.contenders} processes × {scale.handoffs}"
    return Figure("hand-off", store, name, len(turns) / took, "/s", detail=detail)


def run(rival: Rival, repository: Path, contenders: int, rounds: int) -> list[Turn]:
    """Let processes contend; return all turns in the order of their grants."""
    words = [*rival, str(repository)]
    _, found = together(
        "bench.contender", ([*words, f"contender-{at}", str(rounds)] for at in range(contenders))
    )
    turns = [
        Turn(asked, granted, released, number)
        for number, each in enumerate(found)
        for asked, granted, released in each
    ]
    return sorted(turns, key=lambda turn: turn.granted)


def in_order(turns: list[Turn]) -> float:
    """Return which share of the grants that several waited for went to who had waited longest."""
    asked: dict[int, deque[float]] = defaultdict(deque)
    for turn in turns:
        asked[turn.process].append(turn.asked)
    right = contested = 0
    for turn in turns:
        asked[turn.process].popleft()
        waiting = [times[0] for times in asked.values() if times and times[0] < turn.granted]
        contested += bool(waiting)
        right += bool(waiting) and turn.asked <= min(waiting)
    return right / contested if contested else 1.0


def shares(turns: list[Turn]) -> tuple[float, float]:
    """Return the least and the most that a process got, as a multiple of its fair part."""
    all_of = Counter(turn.process for turn in turns)
    got = dict.fromkeys(all_of, 0)
    for turn in turns:
        got[turn.process] += 1
        if got[turn.process] == all_of[turn.process]:
            break
    fair = sum(got.values()) / len(got)
    return min(got.values()) / fair, max(got.values()) / fair
