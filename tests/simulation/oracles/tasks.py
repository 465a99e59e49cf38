"""The records against the log: every index, count, line and archive must be what the events imply."""

import json
from collections import Counter, defaultdict
from typing import Any

from coord.stores.contract import Record, Store
from tests.linearizability.ledger import Ledger, require
from tests.linearizability.task_model import CLAIM, STATUS, State

ALL = 1_000_000


def check_task_records(store: Store, ledger: Ledger, tenant: str) -> None:
    """Raise `Violation` where a record says something else than the log."""
    by_kind: dict[str, dict[str, Record]] = defaultdict(dict)
    for record in store.scan("", by="key", limit=ALL):
        kind, _, rest = record.key.partition("/")
        by_kind[kind][rest] = record
    states = {task: ledger.state(task) for task in ledger.tasks if ledger.state(task).generation}
    _check_tasks(by_kind["task"], states)
    _check_indexes(by_kind, states)
    _check_archives(by_kind, states)
    _check_counts(by_kind["count"], states, limited=tenant != "local")
    expected = sorted((r.index_key, r.key) for kind in by_kind.values() for r in kind.values() if r.index_key)
    indexed = [(record.index_key, record.key) for record in store.scan("", by="index_key", limit=ALL)]
    require(indexed == expected, "the index differs from the records")


def _check_tasks(records: dict[str, Record], states: dict[str, State]) -> None:
    require(records.keys() == states.keys(), "other tasks than in the log:", records.keys() ^ states.keys())
    for task, state in states.items():
        value = _value(records[task])
        recorded = (
            value.get("generation", 0),
            value.get("state", "ready"),
            value.get("claim"),
            value.get("session", ""),
            value.get("expires_ms", 0),
            value.get("reset_generation", 0),
        )
        expected = (
            state.generation,
            STATUS.get(state.phase, "ready"),
            CLAIM.get(state.phase),
            state.session,
            state.deadline or 0,
            state.reset_generation,
        )
        require(recorded == expected, "the record of", task, "says", recorded, "and the log", expected)
        index_key = f"due/{state.deadline:013d}" if state.phase == "active" else ""
        require(
            records[task].index_key == index_key,
            task,
            "has the index key",
            records[task].index_key,
            "instead of",
            index_key,
        )


def _check_indexes(by_kind: dict[str, dict[str, Record]], states: dict[str, State]) -> None:
    held = {f"{state.session}/{task}" for task, state in states.items() if state.phase == "active"}
    difference = held ^ by_kind["by-session"].keys()
    require(not difference, "claims by session differ from the log:", difference)
    expired = {f"{state.deadline:013d}/{task}" for task, state in states.items() if state.phase == "expired"}
    difference = expired ^ by_kind["expired"].keys()
    require(not difference, "expired claims differ from the log:", difference)


def _check_archives(by_kind: dict[str, dict[str, Record]], states: dict[str, State]) -> None:
    archive: dict[str, tuple[Any, ...]] = {}
    results = set()
    for task, state in states.items():
        for generation, life in enumerate(state.lives, 1):
            latest = generation == state.generation and state.phase != "none"
            if not latest:
                archive[f"{task}/{generation:08d}"] = life
            if life.end_reason == "COMPLETED":
                results.add(f"{task}/{generation:08d}")
    recorded = {key: _life(_value(record)) for key, record in by_kind["history"].items()}
    require(recorded == archive, "the history differs from the log:", recorded.items() ^ archive.items())
    difference = results ^ by_kind["result"].keys()
    require(not difference, "the results differ from the log:", difference)


def _life(value: dict[str, Any]) -> tuple[Any, ...]:
    return (value["session"], value["claimed_ms"], value["end_reason"], value["ended_ms"])


def _check_counts(records: dict[str, Record], states: dict[str, State], *, limited: bool) -> None:
    recorded = {key: _value(record)["n"] for key, record in records.items()}
    if not limited:
        require(not recorded, "an unlimited tenant needs no counts:", recorded)
        return
    holders = Counter(state.session for state in states.values() if state.phase == "active")
    expected = {f"session/{session}": n for session, n in holders.items()}
    require(recorded.pop("claims", 0) == holders.total(), "another number of claims than in the log")
    require(recorded.pop("sessions", 0) == len(holders), "another number of sessions than in the log")
    require(recorded == expected, "counts by session differ:", recorded, expected)


def _value(record: Record) -> dict[str, Any]:
    assert record.value is not None, "a scan gives live records"
    value: dict[str, Any] = json.loads(record.value)
    return value
