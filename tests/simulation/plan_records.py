"""The records of a plan, held against what the log tells: states, turns, indexes, tracks and locks."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, TypeVar

from coord.core import keys
from coord.core.locks.schema import Lock
from coord.core.locks.uses import claims_using
from coord.core.records import Stored, decode
from coord.core.tasks.schema import ACTIVE, Spec, Task, Track
from coord.stores.contract import Record
from tests.linearizability.ledger import require
from tests.simulation.oracles.plans import OVER, PlanOracle

AnyStored = TypeVar("AnyStored", bound=Stored)
EVERYTHING = 100_000


def check_records(store: Any, project: str, oracle: PlanOracle) -> None:
    """Compare every record of a project with the oracle."""
    depth = len(keys.task(project, ""))
    tasks = {
        record.key[depth:]: (task, record.index_key)
        for record, task in _records(store, keys.task(project, ""), Task)
    }
    require(tasks.keys() == oracle.base.keys(), "other tasks than were added:", set(tasks) ^ set(oracle.base))
    for name, (task, index_key) in tasks.items():
        _check_task(oracle, name, task, index_key)
    moving = {name for name, (task, _) in tasks.items() if task.claim is ACTIVE or task.retry_ms}
    require(_index(store, keys.working_prefix(project)) == moving, "the list of what is worked on is wrong")
    open_ = {name for name in tasks if oracle.base[name] not in OVER}
    require(_index(store, keys.unfinished_prefix(project)) == open_, "the list of what is open is wrong")
    require(not _index(store, keys.pending_update_prefix(project)), "something was left half done")
    _check_tracks(store, project, tasks)
    needed = {name for task in tasks for name in oracle.plan[task].depends_on}
    has_dependents = {
        record.key.rpartition("/")[2]
        for record, spec in _records(store, keys.spec_prefix(project), Spec)
        if spec.has_dependents
    }
    require(has_dependents == needed, "some do not know that they are followed, or wrongly think so")
    used: dict[tuple[str, int], set[str]] = defaultdict(set)
    for _, lock in _records(store, keys.LOCK_PREFIX, Lock):
        for _, name, generation in claims_using(lock):
            task = tasks[name][0]
            live = task.claim is ACTIVE and task.generation == generation and task.session == lock.owner
            require(live, "a lock outlives the claim it came with:", lock, task)
            used[name, generation].add(lock.resource)
    for name, (task, _) in tasks.items():
        if task.claim is ACTIVE:
            has = used[name, task.generation]
            require(set(task.locked) == has, "a claim outlives a lock it needs:", task, has)


def _check_task(oracle: PlanOracle, name: str, task: Task, index_key: str) -> None:
    active = oracle.active.get(name)
    require((task.claim is ACTIVE) == (active is not None), "worked on, or not:", name, task, active)
    if active is not None:
        require((task.session, task.generation) == (active.session, active.generation), "by another:", task)
        expected, place = "in_progress", keys.due(task.expires_ms)
    elif task.retry_ms:
        expected, place = "pending", keys.due(task.retry_ms)
        require(oracle.paused_until.get(name) == task.retry_ms, "pauses for another time:", name, task)
    else:
        expected = oracle.state(name)
        place = task.queue if expected == "ready" else ""
    require(task.state.value == expected, name, "is", task.state.value, "and should be", expected)
    require(index_key == place, name, "stands in", repr(index_key), "and should in", repr(place))


def _check_tracks(store: Any, project: str, tasks: dict[str, tuple[Task, str]]) -> None:
    working: dict[str, Counter[str]] = defaultdict(Counter)
    for task, _ in tasks.values():
        if task.claim is ACTIVE and task.track:
            working[task.track][task.agent] += 1
    prefix = keys.track(project, "")
    for record, track in _records(store, prefix, Track):
        counted = working[record.key[len(prefix) :]]
        require(dict(track.agents) == dict(counted), record.key, "counts", track.agents, "and not", counted)


def _records(store: Any, prefix: str, kind: type[AnyStored]) -> Iterator[tuple[Record, AnyStored]]:
    for record in store.scan(prefix, by="key", limit=EVERYTHING):
        yield record, decode(record.value, kind, record.key)


def _index(store: Any, prefix: str) -> set[str]:
    return {record.key[len(prefix) :] for record in store.scan(prefix, by="key", limit=EVERYTHING)}
