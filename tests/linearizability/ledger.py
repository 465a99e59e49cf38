"""The log, read as a story: each event must be legal where it stands, and the states of every task follow.

Uses the entries of `tail` and nothing else: no record, no index. Events are fed to the sequential model as
the operations they report, at the time in their entry; the model has to come to the same outcome.
"""

import json
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from coord.stores.contract import Entry
from tests.linearizability.task_model import NEW, Answer, Op, State, apply, as_of

PER_ENTRY = 100_000
"""Positions order events across entries: offset · PER_ENTRY + index."""


class Violation(BaseException):
    """Something happened that must never happen.

    Not an `Exception`: the simulation checks inside calls of an engine, which answers for every exception.
    """


def require(holds: object, what: str, *details: object) -> None:
    if not holds:
        raise Violation(" ".join([what, *map(str, details)]))


def after(offset: int) -> int:
    """The last position of an entry."""
    return offset * PER_ENTRY + PER_ENTRY - 1


class LoggedEvent(NamedTuple):
    """An event as the answer that it implies for whoever caused it."""

    position: int
    answer: Answer


@dataclass(slots=True)
class Timeline:
    """The states that something went through, each with the position at which it began."""

    positions: list[int] = field(default_factory=lambda: [0])
    states: list[Any] = field(default_factory=lambda: [NEW])

    def push(self, position: int, state: Any) -> None:
        self.positions.append(position)
        self.states.append(state)

    def during(self, begin: int, end: int) -> Iterator[Any]:
        """The state at a position and those it changes to until another."""
        first = bisect_right(self.positions, begin) - 1
        return iter(self.states[first : bisect_right(self.positions, end)])

    def at(self, position: int) -> Any:
        return self.states[bisect_right(self.positions, position) - 1]


class Ledger:
    """All that a log says, checked while it is read."""

    def __init__(self) -> None:
        self.head = 0
        self.tasks: dict[str, Timeline] = defaultdict(Timeline)
        self.sessions: dict[str, Timeline] = defaultdict(lambda: Timeline(states=[{}]))
        self.active = Timeline(states=[0])
        self.busy_sessions = Timeline(states=[0])
        self.happened: dict[tuple[str, str, str, int], list[LoggedEvent]] = defaultdict(list)
        self.results: dict[tuple[str, int], str] = {}
        self.limits: dict[str, int] = {}
        self.clock_accepted = 0
        self._claims: Counter[str] = Counter()
        self._ending: dict[str, dict[str, Any]] = {}

    def add(self, entry: Entry) -> None:
        """Read the next entry."""
        require(entry.offset == self.head + 1, "the log has a gap:", self.head, "then", entry.offset)
        self.head = entry.offset
        for index, data in enumerate(entry.events):
            event = json.loads(data)
            position = entry.offset * PER_ENTRY + index
            name = event["event"].removeprefix("task.")
            reader = READERS.get(name)
            require(reader is not None, "an event that nothing here can cause:", event)
            reader(self, position, entry.at, event)  # type: ignore[misc]
        require(not self._ending, "a claim was ended for something that did not come:", self._ending)

    def state(self, task: str) -> State:
        """The task after everything read so far, with the books as the log keeps them."""
        state: State = self.tasks[task].states[-1]
        return state

    # One reader per event.

    def _claimed(self, position: int, at: int, event: dict[str, Any]) -> None:
        task, session = _task(event), event["session"]
        superseded = self._ending.pop(task, None)
        if superseded is not None:
            require(superseded.get("by_session") == session, "ended for one, claimed by another:", event)
        previous = self.state(task)
        op = Op("force" if superseded else "claim", task, session, lease=event["lease_ms"])
        self._follow(position, at, event, op, "GRANTED")
        require(event.get("previous_generation", 0) == previous.generation, "another predecessor:", event)
        most, sessions = self.limits.get("max_concurrent_claims"), self.limits.get("max_active_sessions")
        require(most is None or self.active.states[-1] <= most, "more claims than the limit", event)
        first, busy = self._claims[session] == 1, self.busy_sessions.states[-1]
        require(not first or sessions is None or busy <= sessions, "more sessions than the limit", event)

    def _superseded(self, position: int, at: int, event: dict[str, Any]) -> None:
        """Half of an event: what the claim had to make room for comes next in the same entry."""
        state = self.state(_task(event))
        self._require_holder(state, event)
        require(as_of(state, at) is state, "ended by somebody else after it ran out:", event)
        self._ending[_task(event)] = event

    def _renewed(self, position: int, at: int, event: dict[str, Any]) -> None:
        self._follow(position, at, event, _op("renew", event), "RENEWED")
        require(self.state(_task(event)).deadline == event["expires_ms"], "renewed for another time:", event)

    def _released(self, position: int, at: int, event: dict[str, Any]) -> None:
        if event["reason"] == "RESET":
            self._superseded(position, at, event)
            return
        op = _op("release", event)
        op.reason = event["reason"]
        self._follow(position, at, event, op, "RELEASED")

    def _completed(self, position: int, at: int, event: dict[str, Any]) -> None:
        op = _op("submit", event)
        op.work = event["work_product"]
        key = (op.task, op.generation)
        require(key not in self.results, "a second result of one generation:", event)
        self.results[key] = op.work
        self._follow(position, at, event, op, "ACCEPTED")

    def _result_rejected(self, position: int, at: int, event: dict[str, Any]) -> None:
        op = _op("submit", event)
        before = self.state(op.task)
        answer, _ = apply(before, op, at)
        told = (event["reason"], event["current_generation"], event["work_lost"])
        require(answer == told, "rejected with the wrong reason:", event, "instead of", answer)
        self._note(op, position, answer)

    def _refused(self, position: int, at: int, event: dict[str, Any]) -> None:
        """Only limits may deny what the model would grant; repetitions have no event, so none is noted."""
        op, reason = _op(event["operation"], event), event["reason"]
        answer, _ = apply(self.state(op.task), op, at)
        if reason.startswith("DENIED_LIMIT_"):  # the event does not say whether the claim was forced
            forced, _ = apply(self.state(op.task), _op("force", event), at)
            told = "GRANTED" in (answer[0], forced[0])
        else:
            told = reason == answer[0]
        require(told, "refused with the wrong reason:", event, "instead of", answer)

    def _reset(self, position: int, at: int, event: dict[str, Any]) -> None:
        task = _task(event)
        ended, active = self._ending.pop(task, None), self.state(task).phase == "active"
        require((ended is not None) == active, "a reset ends a claim if there is one, and says so:", event)
        self._follow(position, at, event, Op("reset", task), "RESET")
        require(self.state(_task(event)).generation == event["generation"], "another generation:", event)

    def _expired(self, position: int, at: int, event: dict[str, Any]) -> None:
        task = _task(event)
        state = self.state(task)
        self._require_holder(state, event)
        require(event["expired_ms"] == state.deadline, "expired at another time:", event, state.deadline)
        require(at >= event["expired_ms"], "expired before its time:", event, at)
        self._push(task, position, as_of(state, at))

    def _limits_set(self, position: int, at: int, event: dict[str, Any]) -> None:
        self.limits = event["limits"]

    def _clock_accepted(self, position: int, at: int, event: dict[str, Any]) -> None:
        self.clock_accepted += 1

    def _of_a_token(self, position: int, at: int, event: dict[str, Any]) -> None:
        """Tokens change no task."""

    # What they share.

    def _follow(self, position: int, at: int, event: dict[str, Any], op: Op, expected: str) -> None:
        """Do in the model what the event says; it must come to the same."""
        before = self.state(op.task)
        unbooked = before.phase == "active" and as_of(before, at) is not before
        require(not unbooked, "a lease ran out and no event said so before", event)
        answer, state = apply(before, op, at)
        require(answer[0] == expected, "the rules say", answer[0], "here:", event, "before:", before)
        require(state.generation >= before.generation, "the generation fell:", event)
        if op.kind in ("claim", "force"):
            require(state.generation == event["generation"], "another generation was granted:", event)
        self._note(op, position, answer)
        self._push(op.task, position, state)

    def _require_holder(self, state: State, event: dict[str, Any]) -> None:
        held = ("active", event["generation"], event["session"])
        require((state.phase, state.generation, state.session) == held, "not its claim:", event, state)

    def _note(self, op: Op, position: int, answer: Answer) -> None:
        self.happened[_key(op)].append(LoggedEvent(position, answer))

    def _push(self, task: str, position: int, state: State) -> None:
        before = self.state(task)
        self.tasks[task].push(position, state)
        for each, step in ((before, -1), (state, +1)):
            if each.phase != "active":
                continue
            self._claims[each.session] += step
            self.active.push(position, self.active.states[-1] + step)
            if self._claims[each.session] == max(0, step):
                self.busy_sessions.push(position, self.busy_sessions.states[-1] + step)
            timeline = self.sessions[each.session]
            claims = {name: held for name, held in timeline.states[-1].items() if name != task}
            if step > 0:
                claims[task] = (each.generation, each.deadline)
            timeline.push(position, claims)


def _key(op: Op) -> tuple[str, str, str, int]:
    """What an event and the operation behind it have in common."""
    return ("claim" if op.kind == "force" else op.kind, op.task, op.session, op.generation)


def logged_events(ledger: Ledger, op: Op) -> list[LoggedEvent]:
    """The events that an operation of this kind, by this session, about this claim may have caused."""
    return ledger.happened.get(_key(op), [])


def _task(event: dict[str, Any]) -> str:
    return f"{event['project']}/{event['task']}"


def _op(kind: str, event: dict[str, Any]) -> Op:
    return Op(kind, _task(event), event["session"], event["generation"])


READERS = {
    "claimed": Ledger._claimed,
    "superseded": Ledger._superseded,
    "renewed": Ledger._renewed,
    "released": Ledger._released,
    "completed": Ledger._completed,
    "result_rejected": Ledger._result_rejected,
    "refused": Ledger._refused,
    "reset": Ledger._reset,
    "expired": Ledger._expired,
    "limits.set": Ledger._limits_set,
    "clock.accepted": Ledger._clock_accepted,
    "token.created": Ledger._of_a_token,
    "token.used": Ledger._of_a_token,
}
