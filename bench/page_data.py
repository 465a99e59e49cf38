"""A large store for the page to show, and the entries that agents write while somebody looks at it."""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from coord.core import keys
from coord.core.alerts.commands import CloseAlert
from coord.core.alerts.schema import Alert, AlertRaised, Severity
from coord.core.commands import Command
from coord.core.git_log import RecordCommit
from coord.core.identity import Caller
from coord.core.lifecycle.commands import Register
from coord.core.locks.commands import AcquireLocks, Outcome, ReleaseLocks
from coord.core.messages.commands import SendMessage
from coord.core.plans.commands import AddTasks, ClaimNamed, NewTask
from coord.core.records import encode
from coord.core.tasks.commands import ReleaseClaim
from coord.engine.engine import Engine
from coord.stores.contract import Commit, Put, Store
from coord.stores.open import open_store

PROJECT, REPOSITORY = "p", "r"
TRACKS, CHAIN = 8, 12
"""A track is a lane of the plan; so many of its tasks wait for each other, then a new chain begins."""
HOT_PATHS, WAITERS_OF_ONE = 5, 20
HOUR_MS = 3_600_000
OLD_TASK, RICH_AGENT = "T-00000", "agent-000"
PERSON = Caller("person", person=True)


@contextmanager
def filled(repository: Path, agents: int, locks: int, tasks: int) -> Iterator["Crew"]:
    """Yield a crew on the store of a repository with many agents, locks, waiters and tasks."""
    database = open_store(f"sqlite://{repository}/.git/coord/store/coord.db")
    engine = Engine(database, "local")
    try:
        names = [f"agent-{number:03}" for number in range(agents)]
        _call_all(engine, [Register(caller=caller(name), model="opus", peers=False) for name in names])
        for first in range(0, tasks, 500):
            engine.call(AddTasks(PROJECT, tuple(map(_task, range(first, min(first + 500, tasks))))))
        wanted = (f"file:src/d{each % 97}/{each}.py" for each in range(locks))
        _call_all(engine, [_acquire(names[each % agents], path) for each, path in enumerate(wanted)])
        _fill_feeds(engine, names, tasks // 5)
        _let_wait(engine, names)
        crew = Crew(engine, database.log("local"), names)
        crew.raise_alerts(tasks // 100)
        yield crew
    finally:
        engine.close()
        database.close()


def caller(name: str) -> Caller:
    return Caller(name, agent="claude", role="worker", project=PROJECT)


def _call_all(engine: Engine, commands: Sequence[Command]) -> None:
    for first in range(0, len(commands), 250):
        engine.call_many(list(commands[first : first + 250]))


def _acquire(name: str, path: str, **more: object) -> AcquireLocks:
    return AcquireLocks(caller(name), REPOSITORY, (path,), ttl_ms=HOUR_MS, **more)  # type: ignore[arg-type]


def _task(number: int) -> NewTask:
    """Return a task that waits for those before it in its track; some wait for one of another track."""
    place = number // TRACKS
    before = [number - TRACKS] if place % CHAIN else []
    if place % CHAIN > 2 and place % 5 == 0:
        before.append(number - 3 * TRACKS)
    if place % CHAIN and number % 40 == 1:
        before.append(number - 1)
    return NewTask(
        task_id=f"T-{number:05}",
        description="one of many",
        track=f"t{number % TRACKS}",
        depends_on=tuple(f"T-{each:05}" for each in before),
    )


def _fill_feeds(engine: Engine, names: Sequence[str], many: int) -> None:
    """Write what the views show beside agents, locks and tasks: messages, and a long history."""
    _call_all(engine, [_message(names, each) for each in range(many)])
    _call_all(engine, [_acquire(RICH_AGENT, f"file:own/{each}.py") for each in range(many // 4)])
    for _ in range(many // 40):
        _release(engine, RICH_AGENT, OLD_TASK, _claim(engine, RICH_AGENT, OLD_TASK))


def _let_wait(engine: Engine, names: Sequence[str]) -> None:
    """Let agents wait for a few paths that others have: a hundred, if there are enough."""
    holders, others = names[1 : HOT_PATHS + 1], names[HOT_PATHS + 1 :]
    if not others:
        holders, others = names[:1], names[1:]
    paths = [f"file:hot/{number}.py" for number in range(len(holders))]
    _call_all(engine, [_acquire(*each) for each in zip(holders, paths, strict=True)])
    waiting = zip(others[: HOT_PATHS * WAITERS_OF_ONE], itertools.cycle(paths), strict=False)
    for number, (name, path) in enumerate(waiting):
        reply = engine.call(_acquire(name, path, wait_ms=HOUR_MS, wait_id=f"wait-{number}", leased=False))
        assert reply.outcome is Outcome.WAITING, reply


def _message(names: Sequence[str], number: int) -> SendMessage:
    return SendMessage(
        caller=caller(names[number % len(names)]),
        to=names[(number * 7 + 1) % len(names)],
        kind="note",
        subject=f"message {number}",
        body="a few words " * 10,
    )


def _claim(engine: Engine, name: str, task: str) -> int:
    found = engine.call(
        ClaimNamed(
            caller=caller(name),
            tenant="local",
            project=PROJECT,
            task=task,
            lease_ms=HOUR_MS,
            repository=REPOSITORY,
        )
    )
    assert found.claim is not None, found.detail
    return int(found.claim.generation)


def _release(engine: Engine, name: str, task: str, generation: int) -> None:
    engine.call(ReleaseClaim("local", PROJECT, task, name, generation, note="again"))


def _commit(name: str, path: str, number: int) -> RecordCommit:
    return RecordCommit(
        caller(name),
        REPOSITORY,
        (),
        fences=(),
        commit=f"{number:040x}",
        branch=f"agent/{name}",
        subject=f"change {path}",
        files=(path,),
        file_count=1,
    )


class Crew:
    """Agents that write one entry after the other, of each kind in turn; what they begin they end, too."""

    def __init__(self, engine: Engine, log: Store, names: Sequence[str]) -> None:
        self.log = log
        self._engine, self._names = engine, names
        self._entries = self._endless()
        self._alerts = itertools.count(10_000_001)

    def write(self) -> None:
        """Write the next entry."""
        next(self._entries)

    def steadily(self, per_s: int) -> Callable[[], None]:
        """Return what writes one entry after the other, at most at a steady rate."""

        def write() -> None:
            time.sleep(1 / per_s)
            self.write()

        return write

    def _endless(self) -> Iterator[None]:
        """Write an entry whenever the next one is asked for."""
        call = self._engine.call
        for number in itertools.count():
            name, task = self._names[number % len(self._names)], f"T-{number % TRACKS:05}"
            path = f"file:work/{number % 50}.py"
            call(_acquire(name, path))
            yield
            call(_acquire(name, path))  # renews it
            yield
            generation = _claim(self._engine, name, task)
            yield
            call(_commit(name, path, number))
            yield
            call(_message(self._names, number))
            yield
            alert = self.raise_alerts(1)
            yield
            call(CloseAlert(PERSON, id=alert, right=True))
            yield
            _release(self._engine, name, task, generation)
            yield
            call(ReleaseLocks(caller(name), REPOSITORY, (path,)))
            yield

    def raise_alerts(self, many: int) -> str:
        """Raise alerts as the follower of the hub does; return the id of the last one."""
        found = ""
        for number in itertools.islice(self._alerts, many):
            now, found = self.log.now(), f"a{number}"
            name = self._names[number % len(self._names)]
            alert = Alert(
                id=found,
                rule="stuck_agent",
                severity=Severity.WARNING,
                subject=name,
                text=f"{name} has been silent for 12 minutes",
                raised_ms=now,
            )
            raised = AlertRaised(found, alert.rule, alert.severity, alert.subject, alert.text, since_ms=now)
            key, told = keys.alert(number), msgspec.json.encode(raised)
            self.log.commit(Commit({key: 0}, {key: Put(encode(alert))}, events=[told], at=now))
        return found
