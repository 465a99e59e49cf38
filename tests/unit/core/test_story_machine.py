"""Locks, claims, waits and messages in any order agree with a naive model of the log (`naive_story.py`)."""

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pytest

from coord.core import keys
from coord.core.errors import CoordError
from coord.core.identity import ProcessState
from coord.core.lifecycle.commands import Deregister, Handoff, Register
from coord.core.locks.commands import Outcome
from coord.core.locks.locks import ended_by_time
from coord.core.locks.schema import Lock
from coord.core.locks.uses import claims_using
from coord.core.messages.commands import PeekMessages, ReceiveMessages, SendMessage
from coord.core.records import decode
from coord.core.tasks.schema import ACTIVE, Task
from tests.conftest import SOAK
from tests.support.claim_harness import LEASE_MS, ClaimHarness
from tests.support.lock_harness import REPOSITORY
from tests.support.models.naive_story import COVERS, NaiveStory

SESSIONS = ("ann", "bob", "cleo", "kid")
PARENTS = {"kid": "ann"}
TASKS = {"t": ("file:a", "file:b"), "u": ("file:b",), "v": ("file:d",), "w": ("file:d/x", "file:c")}
PAUSES_MS = (1, 1, 1_000, 5_000, 15_000, 31_000, LEASE_MS - 1, LEASE_MS)
WALKS, STEPS = (2_000, 400) if SOAK else (100, 160)


class Walk:
    """One random history, checked after each step."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.harness = ClaimHarness()
        self.harness.parents = dict(PARENTS)
        self.harness.pids = {name: number for number, name in enumerate(SESSIONS, 1)}
        self.story = NaiveStory(PARENTS, TASKS)
        self.followed = 0
        self.waiting: list[tuple[str, Any]] = []
        self.met: set[str] = set()
        for number, (name, files) in enumerate(TASKS.items()):
            self.harness.add(name, *(text.removeprefix("file:") for text in files), priority=number)

    def step(self) -> None:
        """Do one thing, and compare."""
        act = self.random.choice(ACTS)
        try:
            self.met.add(f"{act.__name__}: {act(self)}")
        except CoordError as error:
            self.met.add(f"{act.__name__}: {error.code}")
        self.check()

    def who(self) -> str:
        return self.random.choice(SESSIONS)

    def what(self) -> list[str]:
        return self.random.sample(list(COVERS), self.random.choice((1, 1, 1, 2)))

    def check(self) -> None:
        """Follow the log, then compare the records with it."""
        for entry in self.harness.store.tail(self.followed, 10_000):
            self.story.follow(entry.offset, [msgspec.json.decode(event) for event in entry.events])
            self.followed = entry.offset
        locks = {key: decode(data, Lock, key) for key, data in self.records(keys.LOCK_PREFIX)}
        held = {(lock.owner, lock.resource) for lock in locks.values()}
        assert held == set(self.story.held), "records and events name other holders"
        needed = {(claim, lock.resource) for lock in locks.values() for claim in claims_using(lock)}
        now = self.harness.now
        for key, data in self.records(keys.TASK_PREFIX):
            project, name = keys.parts(key)[1:]
            task = decode(data, Task, key)
            mine = {resource for claim, resource in needed if claim == (project, name, task.generation)}
            assert mine == (set(task.locked) if task.claim is ACTIVE else set()), f"{name}: {task}"
            needed = {each for each in needed if each[0][:2] != (project, name)}
        assert not needed, f"locks outlive their claims: {needed}"
        for lock in locks.values():
            if ended_by_time(lock, now) is None:
                assert lock.expires_ms > now or lock.profile == "name", lock
        for name in SESSIONS:
            self.check_inbox(name)

    def check_inbox(self, name: str) -> None:
        try:
            shown = self.harness.engine.call(PeekMessages(self.harness.agent(name)))
        except CoordError:
            return  # declared dead
        if shown.messages and not shown.more:
            assert {message.id for message in shown.messages} <= self.story.unread[name]

    def records(self, prefix: str) -> list[tuple[str, bytes]]:
        (found,) = self.harness.store.load([], [(prefix, "key", 10_000, ("", ""))]).ranges
        return [(record.key, record.value) for record in found]


def lock(walk: Walk) -> object:
    mode = walk.random.choice(("", "", "read"))
    reply = walk.harness.lock(
        walk.who(), *walk.what(), mode=mode, use=walk.random.choice(("", "", "guard:1")), ttl=LEASE_MS
    )
    return reply.outcome.value


def wait(walk: Walk) -> object:
    name = walk.who()
    reply = walk.harness.wait(name, *walk.what(), priority=walk.random.choice((0, 0, 3)), ttl=LEASE_MS)
    if reply.outcome is Outcome.WAITING:
        walk.waiting.append((name, reply))
    return reply.outcome.value


def confirm(walk: Walk) -> object:
    if not walk.waiting:
        return "nothing"
    name, reply = walk.waiting.pop(walk.random.randrange(len(walk.waiting)))
    again = walk.harness.confirm(name, reply)
    if again.outcome is Outcome.WAITING:
        walk.waiting.append((name, again))
    return again.outcome.value


def withdraw(walk: Walk) -> object:
    if not walk.waiting:
        return "nothing"
    return walk.harness.withdraw(*walk.waiting.pop())


def release(walk: Walk) -> object:
    name = walk.who()
    mine = sorted(resource for owner, resource in walk.story.held if owner == name)
    if not mine or walk.random.random() < 0.2:
        return bool(walk.harness.release(name).released)
    return bool(walk.harness.release(name, walk.random.choice(mine)).released)


def renew(walk: Walk) -> object:
    return bool(walk.harness.renew(walk.who(), ttl=walk.random.choice((0, 1_000))).locks)


def steal(walk: Walk) -> object:
    force = walk.random.random() < 0.7
    return walk.harness.steal(walk.who(), walk.what()[0], force=force, reason="urgent").outcome.value


def preempt(walk: Walk) -> object:
    priority = walk.random.choice((1, 5, 99))
    return bool(walk.harness.preempt(walk.who(), walk.what()[0], priority=priority).asked)


def take(walk: Walk) -> object:
    return walk.harness.take(walk.who())


def claim(walk: Walk) -> object:
    force = {"force": True, "reason": "urgent"} if walk.random.random() < 0.2 else {}
    return walk.harness.claim(walk.who(), walk.random.choice(list(TASKS)), **force).reason.value


def holder(walk: Walk) -> tuple[str, str, int]:
    name = walk.random.choice(list(TASKS))
    held = walk.story.latest.get(name)
    if held is None or walk.random.random() < 0.2:
        return walk.who(), name, walk.random.choice((1, 2, walk.story.generations[name] or 1))
    return held.session, name, held.generation


def submit(walk: Walk) -> object:
    return walk.harness.submit(*holder(walk)).reason.value


def renew_claim(walk: Walk) -> object:
    return walk.harness.renew_claim(*holder(walk)).reason.value


def release_claim(walk: Walk) -> object:
    return walk.harness.release_claim(*holder(walk)).reason.value


def reset(walk: Walk) -> object:
    walk.harness.reset(walk.random.choice(list(TASKS)))
    return "done"


def hand_over(walk: Walk) -> object:
    name, task, _ = holder(walk)
    mine = sorted(resource for owner, resource in walk.story.held if owner == name)
    resources = tuple(walk.random.sample(mine, 1)) if mine and walk.random.random() < 0.5 else ()
    command = Handoff(
        walk.harness.agent(name), REPOSITORY, resources, to=walk.who(), tenant="local", project="p", task=task
    )
    return bool(walk.harness.engine.call(command).generation)


def send(walk: Walk) -> object:
    to = walk.random.choice((*SESSIONS, ""))
    command = SendMessage(walk.harness.agent(walk.who()), to=to, kind="status", subject="hello")
    return bool(walk.harness.engine.call(command).recipients)


def receive(walk: Walk) -> object:
    command = ReceiveMessages(walk.harness.agent(walk.who()), drain=walk.random.random() < 0.5)
    return bool(walk.harness.engine.call(command).messages)


def die(walk: Walk) -> object:
    """A process dies; its session registers again under a new one later."""
    pid = walk.harness.pids[walk.who()]
    walk.harness.life[pid] = ProcessState.DEAD
    return "dead"


def register(walk: Walk) -> object:
    name = walk.who()
    pid = walk.harness.pids[name]
    if walk.harness.life.get(pid) is ProcessState.DEAD:
        walk.harness.pids[name] = pid + 100
    return walk.harness.engine.call(Register(caller=walk.harness.agent(name))).new


def leave(walk: Walk) -> object:
    if walk.random.random() < 0.7:
        return "stays"
    return bool(walk.harness.engine.call(Deregister(walk.harness.agent(walk.who()))).released)


def pass_time(walk: Walk) -> object:
    walk.harness.pass_time(walk.random.choice(PAUSES_MS))
    walk.harness.beat("watcher")
    return "later"


ACTS: tuple[Callable[[Walk], object], ...] = (
    *(lock, lock, lock, wait, wait, confirm, confirm, withdraw, release, release, renew, steal, preempt),
    *(take, take, claim, claim, submit, submit, submit, renew_claim, renew_claim, release_claim, reset),
    *(hand_over, send, receive, die, register, register, leave, pass_time, pass_time, pass_time),
)

REACHED = (
    *("submit: ACCEPTED", "submit: LOCK_LOST", "submit: STALE_GENERATION", "renew_claim: LOCK_LOST"),
    *("release_claim: LOCK_LOST", "hand_over: True", "hand_over: False", "wait: deadlock"),
    *("take: t", "claim: DENIED_LOCKED", "steal: granted", "preempt: True", "register: True"),
)
"""A walk that never met these would prove nothing about them."""


LONG = pytest.mark.long


@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=LONG) for first in (1, 2, 3))])
def test_no_history_breaks_the_story(first: int) -> None:
    """DLK-16, CFL-16: whatever happens, no result counts if another session had its files since the claim."""
    met: set[str] = set()
    for seed in range(first, WALKS, 4):
        walk = Walk(seed)
        for number in range(STEPS):
            try:
                walk.step()
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, step {number}: {error}") from error
        met |= walk.met
    assert set(REACHED) <= met, f"never met: {set(REACHED) - met}"
