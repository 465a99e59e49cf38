"""A corruption campaign: a store with locks and tasks is damaged, and everything is asked again.

A damaged store may refuse, or answer as before the damage. Any other answer is wrong: a second holder of a
lock, a second owner of a finished task, a list without the locks.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple

import msgspec

from coord.core.errors import CoordError
from coord.core.identity import Caller
from coord.core.locks.commands import AcquireLocks, ListLocks
from coord.core.sessions.commands import ListSessions
from coord.engine.engine import Engine
from coord.sdk.coordinator import TaskCoordinator
from coord.stores.database import Database
from coord.stores.open import open_store
from coord.stores.sqlite.store import PAGE_BYTES

NOW = 1_700_000_000_000
TENANT = "local"
REPOSITORY = "repository"
TASKS = 24
PLENTY = 100_000
SECTOR, PAGE = 512, PAGE_BYTES

Damage = Callable[[random.Random, bytes], bytes]


def fill(url: str, *, more: int = 0) -> None:
    """Write a history: held locks, a waiting session, tasks that are claimed, finished, and taken over."""
    now = NOW
    with closing(TaskCoordinator(open_store(url), clock=lambda: now)) as coordinator:
        engine = coordinator.engine(TENANT)
        for number in range(6 + more):
            engine.call(
                AcquireLocks(Caller("ada"), REPOSITORY, (f"file:src/file-{number}.py",), ttl_ms=3_600_000)
            )
        engine.call(AcquireLocks(Caller("bob"), REPOSITORY, ("name:main-push",), ttl_ms=3_600_000))
        engine.call(
            AcquireLocks(
                Caller("cid"), REPOSITORY, ("file:src/file-0.py",), wait_ms=10**9, wait_id="w1", leased=False
            )
        )
        for number in range(TASKS + more):
            claimed = coordinator.claim_task(TENANT, "shop", f"task-{number:02d}", "agent", "ada", 3000)
            assert claimed.success
            if number % 3 == 0:
                assert coordinator.submit_result(
                    TENANT, "shop", f"task-{number:02d}", "ada", 1, {"ok": number}
                ).accepted
            elif number % 3 == 1:
                assert coordinator.release_claim(TENANT, "shop", f"task-{number:02d}", "ada", 1).success
                assert coordinator.claim_task(
                    TENANT, "shop", f"task-{number:02d}", "agent", "bob", 3000
                ).success


def questions(database: Database[Any]) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield questions that are all refused, or have a known answer, while the store is whole."""
    coordinator = TaskCoordinator(database, clock=lambda: NOW)
    engine: Engine = coordinator.engine(TENANT)

    def locked(*resources: str) -> object:
        return engine.call(AcquireLocks(Caller("eve"), REPOSITORY, resources)).outcome

    def claimed(task: str) -> object:
        return coordinator.claim_task(TENANT, "shop", task, "agent", "eve", 60).success

    def submitted(task: str, session: str) -> object:
        return coordinator.submit_result(TENANT, "shop", task, session, 1, {}).accepted

    yield "sessions", partial(session_names, engine)
    yield "log", lambda: [msgspec.structs.astuple(entry) for entry in database.log(TENANT).tail(0, PLENTY)]
    yield "locks", partial(lock_owners, engine)
    for number in range(6):
        yield f"lock {number}", partial(locked, f"file:src/file-{number}.py")
    yield "name", partial(locked, "name:main-push")
    yield "folder", partial(locked, "file:src")
    for number in range(TASKS):
        task = f"task-{number:02d}"
        yield f"claim {task}", partial(claimed, task)
        yield f"submit {task}", partial(submitted, task, "eve")
        if number % 3 == 1:
            yield f"superseded {task}", partial(submitted, task, "ada")


def session_names(engine: Engine) -> list[str]:
    """Return the sessions that are known."""
    return sorted(each.session_id for each in engine.call(ListSessions(Caller("eve"), everyone=True)))


def lock_owners(engine: Engine) -> list[tuple[str, str, int]]:
    """Return the locks that are held."""
    return sorted((lock.resource, lock.owner, lock.fence) for lock in engine.call(ListLocks(Caller("eve"))))


class Answers(NamedTuple):
    """The answer to every question, or the error that refused it."""

    of: dict[str, object]
    refused: Counter[str]
    crashed: list[str]


def ask_all(open_: Callable[[], Database[Any]]) -> Answers:
    """Ask everything of a store that may be damaged."""
    found: dict[str, object] = {}
    refused: Counter[str] = Counter()
    crashed: list[str] = []
    try:
        database = open_()
    except CoordError as error:
        return Answers(found, Counter({type(error).__name__: 1}), crashed)
    except Exception as error:  # noqa: BLE001 - a defect, to be counted
        return Answers(found, refused, [f"open: {error!r}"])
    with closing(database):
        asked = questions(database)
        while True:
            name = "the first question"
            try:
                name, ask = next(asked)
                found[name] = ask()
            except StopIteration:
                break
            except CoordError as error:
                refused[type(error).__name__] += 1
                if name == "the first question":
                    break
            except Exception as error:  # noqa: BLE001
                crashed.append(f"{name}: {error!r}")
                if name == "the first question":
                    break
    return Answers(found, refused, crashed)


def ask_other(open_: Callable[[], Database[Any]]) -> Answers:
    """Ask everything but the log of a store that was filled anew: the ids of its entries differ."""
    answers = ask_all(open_)
    answers.of.pop("log", None)
    return answers


class Round(NamedTuple):
    """The result of one round: `wrong` names the answers that changed."""

    refused: bool
    wrong: list[str]


def judge(right: Answers, found: Answers) -> Round:
    """Compare the answers of a damaged store with those of the whole one."""
    wrong = [
        f"{name}: {answer} instead of {right.of[name]}"
        for name, answer in found.of.items()
        if answer != right.of[name]
    ]
    return Round(bool(found.refused), wrong + found.crashed)


class Campaign:
    """The counts of a campaign."""

    def __init__(self, right: Answers) -> None:
        assert not right.refused
        assert not right.crashed
        self.right = right
        self.rounds = self.refused = self.unchanged = 0
        self.errors: Counter[str] = Counter()
        self.wrong: list[str] = []

    def add(self, what: str, found: Answers) -> None:
        """Judge one round."""
        round_ = judge(self.right, found)
        self.rounds += 1
        self.refused += round_.refused
        self.unchanged += not (round_.refused or round_.wrong)
        self.errors.update(found.refused)
        if round_.wrong:
            self.wrong.append(f"{what}: {'; '.join(round_.wrong[:3])}")

    def __str__(self) -> str:
        counts = f"{self.rounds} rounds, {self.refused} refused, {self.unchanged} unchanged"
        return f"{counts}, {len(self.wrong)} wrong"


def zeroed(size: int) -> Damage:
    """Return a damage that zeroes one aligned block."""

    def damage(rng: random.Random, data: bytes) -> bytes:
        at = rng.randrange(max(1, len(data) // size)) * size
        return data[:at] + bytes(min(size, len(data) - at)) + data[at + size :]

    return damage


def flipped(rng: random.Random, data: bytes) -> bytes:
    """Flip a few bits."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def garbled(rng: random.Random, data: bytes) -> bytes:
    """Overwrite a sector with random bytes."""
    at = rng.randrange(max(1, len(data) // SECTOR)) * SECTOR
    return data[:at] + rng.randbytes(min(SECTOR, len(data) - at)) + data[at + SECTOR :]


def truncated(rng: random.Random, data: bytes) -> bytes:
    """Cut the end off."""
    return data[: rng.randrange(1, len(data))]


def swapped(rng: random.Random, data: bytes) -> bytes:
    """Swap two pages."""
    one, other = sorted(rng.sample(range(len(data) // PAGE), 2))
    changed = bytearray(data)
    of = [slice(number * PAGE, (number + 1) * PAGE) for number in (one, other)]
    changed[of[0]], changed[of[1]] = data[of[1]], data[of[0]]
    return bytes(changed)


def duplicated(rng: random.Random, data: bytes) -> bytes:
    """Write one page over another."""
    one, other = rng.sample(range(len(data) // PAGE), 2)
    return data[: other * PAGE] + data[one * PAGE : (one + 1) * PAGE] + data[(other + 1) * PAGE :]


def mixed_with(other: bytes) -> Damage:
    """Return a damage that takes one page from another file: an older copy, or another store."""

    def damage(rng: random.Random, data: bytes) -> bytes:
        page = rng.randrange(min(len(data), len(other)) // PAGE)
        at = page * PAGE
        return data[:at] + other[at : at + PAGE] + data[at + PAGE :]

    return damage


def run_campaign(
    answers: Callable[[bytes], Answers], whole: bytes, kinds: dict[str, Damage], seed: int, rounds: int
) -> Campaign:
    """Damage `whole` in every way and judge what it answers; a damage that changes nothing does not count."""
    campaign, rng = Campaign(answers(whole)), random.Random(seed)
    while campaign.rounds < rounds:
        what = rng.choice(list(kinds))
        data = kinds[what](rng, whole)
        if data != whole:
            campaign.add(f"seed {seed}, round {campaign.rounds}, {what}", answers(data))
    return campaign
