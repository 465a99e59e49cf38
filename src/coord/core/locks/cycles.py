"""The wait-for graph: who waits for whom, and the search for cycles in it.

A session waits with lock requests (waiting or denied) and for a task. A lock request ends when every
session that blocks it has moved: the holders, and those ahead of it in the queue. A wait for a task
has several ways out, one for each task that the session could get, and one of them is enough. So it
is part of a cycle only if every way out leads to a session that is stuck itself (`_stuck`).

A session does not release its locks while one of its sub-agents waits. So whoever waits for what a
session holds also waits for what its sub-agents wait for.

The search reads `waits/<session>` of every session that it visits, so a cycle cannot close unseen.
"""

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import NamedTuple

import msgspec

from coord.core import keys
from coord.core.dispatch import dispatch
from coord.core.locks.commands import (
    OTHER_TASK,
    Blocker,
    FindTaskOptions,
    ListWaits,
    SessionWait,
    TaskOption,
)
from coord.core.locks.locks import LockAt, compatible, locks_of
from coord.core.locks.schema import Guard, LockRequest, SessionWaits, TaskWait, WaitState
from coord.core.locks.table import (
    LockTable,
    RequestAt,
    blocking_locks,
    conflicts_with,
    load_table,
    prefetch_locks,
    resources_of,
    waiters,
)
from coord.core.locks.wait_queue import alive, prefetch_liveness
from coord.core.sessions.identify import ancestors
from coord.core.sessions.schema import Session
from coord.core.transaction import Transaction

DENIED_FRESH_MS = 60_000
VISITS_MAX, DEPTH_MAX = 1000, 200


class TaskWaitAt(NamedTuple):
    """A wait for a task, with the key of the record that contains it."""

    key: str
    request: TaskWait


Waiting = RequestAt | TaskWaitAt


class Node(NamedTuple):
    """A session that blocks others: by what it holds, or only by its position in the wait queue."""

    session: str
    as_holder: bool


class WayOut(NamedTuple):
    """Sessions that have to move before a wait can end: all of them, or one if that is enough."""

    nodes: tuple[Node, ...]
    one_is_enough: bool = False

    def blocked(self, stuck: set[Node]) -> bool:
        """Whether this cannot happen while these sessions are stuck."""
        found = [node in stuck for node in self.nodes]
        return bool(found) and (all(found) if self.one_is_enough else any(found))


class Edge(NamedTuple):
    """One wait in a cycle, of a session or of one of its sub-agents; the next session blocks it."""

    session: str
    waiting: Waiting


class CycleSearch:
    """A search for cycles that looks at each request and at the wait queue once.

    It is valid until a lock or a request changes.
    """

    def __init__(self, tx: Transaction, now: int, known: dict[str, LockTable]) -> None:
        self._tx = tx
        self._now = now
        self._tables = known
        self._options: dict[str, list[TaskOption]] = {}
        self._queue: list[RequestAt] | None = None

    def table_of(self, waiting: RequestAt) -> LockTable:
        """Return the lock table of a request; its wait queue is empty."""
        table = self._tables.get(waiting.key)
        if table is None:
            table = load_table(self._tx, waiting.request, self._now, waiting=())
            self._tables[waiting.key] = table
        return table

    def find(self, new: Waiting, skipped: list[str] | None = None) -> list[Edge]:
        """Return the waits of a cycle through the new one, beginning with it; empty if there is none.

        With `skipped`, the search does not follow the denied requests of other sessions but lists them there.
        """
        trail = _Trail(self, new, skipped)
        return trail.edges if trail.closes(new) else []

    def queue_for(self, request: LockRequest) -> dict[str, RequestAt]:
        """Return the wait queue in which a request waits, by key."""
        if self._queue is None:
            self._queue = waiters(self._tx, resources_of(request))
        return {each.key: each for each in self._queue}

    def start_nodes(self, session: str) -> set[Node]:
        """Return the nodes that wait when a session waits: it, and what its ancestors hold."""
        above = ancestors(self._tx, session)
        return {Node(session, False), Node(session, True), *(Node(name, True) for name in above)}

    def nodes_waited_for(self, waiting: RequestAt, ahead: Iterable[RequestAt]) -> list[Node]:
        """Return the sessions that a request waits for: holders, and conflicting requests ahead of it."""
        tx, request = self._tx, waiting.request
        found = [
            Node(lock_at.lock.owner, True) for lock_at in blocking_locks(self.table_of(waiting), self._now)
        ]
        rivals: list[LockRequest] = []
        if not request.denied:
            for guard in sorted({resource.guard for resource in resources_of(request)}):
                tx.get(guard, Guard)  # the search relies on nobody else having joined
            rivals = [other for _, other in ahead if conflicts_with(request, other)]
            found += [Node(other.session, False) for other in rivals]
        nodes = list(dict.fromkeys(found))
        # The search visits all of them: without this, it asks the store once for each.
        prefetch_locks(tx, rivals, *(keys.waits(node.session) for node in nodes), guards=False)
        return nodes

    def ways_out(self, waiting: Waiting) -> list[WayOut]:
        """Return how a wait can end; a wait for a task that nobody blocks for certain has none."""
        if isinstance(waiting, TaskWaitAt):
            return [self._way_out(waiting, option) for option in self.options_of(waiting)]
        ahead: Sequence[RequestAt] = ()
        if not waiting.request.denied:
            queue = self.queue_for(waiting.request).values()
            ahead = list(takewhile(lambda each: each.key < waiting.key, queue))
        return [WayOut(tuple(self.nodes_waited_for(waiting, ahead)))]

    def options_of(self, waiting: TaskWaitAt) -> list[TaskOption]:
        """Return the tasks that a session waits for; none if one may become ready by itself."""
        if waiting.key not in self._options:
            self._options[waiting.key] = dispatch(self._tx, FindTaskOptions(waiting.request), self._now)
        return self._options[waiting.key]

    def _way_out(self, waiting: TaskWaitAt, option: TaskOption) -> WayOut:
        if option.request is None:
            return WayOut(tuple(Node(name, True) for name in option.sessions), option.one_is_enough)
        table = self._option_table(waiting, option, option.request)
        holders = [Node(lock_at.lock.owner, True) for lock_at in blocking_locks(table, self._now)]
        ahead = [
            Node(other.session, False) for _, other in table.waiting if conflicts_with(option.request, other)
        ]
        return WayOut(tuple(dict.fromkeys([*holders, *ahead])))

    def _option_table(self, waiting: TaskWaitAt, option: TaskOption, request: LockRequest) -> LockTable:
        key = f"{waiting.key} {option.task}"
        if key not in self._tables:
            self._tables[key] = load_table(self._tx, request, self._now)
        return self._tables[key]

    def blockers_of(self, waiting: Waiting) -> tuple[list[Blocker], int]:
        """Return what blocks a wait, and its position in the wait queue (0: it is not in it)."""
        if isinstance(waiting, TaskWaitAt):
            found = []
            for option in self.options_of(waiting):
                by = "lock" if option.request is not None else "track" if option.one_is_enough else "claim"
                found += [
                    Blocker(node.session, by, option.task) for node in self._way_out(waiting, option).nodes
                ]
            return found, 0
        locks = [lock_at.lock for lock_at in blocking_locks(self.table_of(waiting), self._now)]
        holders = [Blocker(lock.owner, "lock", lock.resource) for lock in locks]
        if waiting.request.denied:
            return holders, 0
        queue = takewhile(lambda each: each.key < waiting.key, self.queue_for(waiting.request).values())
        ahead = [other for _, other in queue if conflicts_with(waiting.request, other)]
        queued = [Blocker(other.session, "queue", ", ".join(other.resources)) for other in ahead]
        return [*holders, *queued], len(ahead) + 1

    def needed_locks(self, session: str, waiting: Waiting) -> list[LockAt]:
        """Return the locks of a session that block a wait."""
        if isinstance(waiting, TaskWaitAt):
            tables = [
                self._option_table(waiting, option, option.request)
                for option in self.options_of(waiting)
                if option.request is not None
            ]
        else:
            tables = [self.table_of(waiting)]
        wanted = [each for table in tables for each in table.wanted]
        return [
            lock_at
            for lock_at in locks_of(self._tx, session)
            if any(
                each.resource.overlaps(lock_at.resource) and not compatible(each.mode, lock_at.lock.mode)
                for each in wanted
            )
        ]

    def waits_of(self, node: Node) -> list[Waiting]:
        """Return what a session waits for; with what it holds, also what its sub-agents wait for."""
        waits = self._tx.get(keys.waits(node.session), SessionWaits)
        if waits is None:
            return []
        found = self.own_waits(node.session, waits)
        if node.as_holder and waits.below:
            self._tx.prefetch(*map(keys.waits, waits.below))
            for name in waits.below:
                below = self._tx.get(keys.waits(name), SessionWaits)
                found += self.own_waits(name, below) if below is not None else []
        return found

    def own_waits(self, session: str, waits: SessionWaits) -> list[Waiting]:
        """Return the waiting and the recently denied requests of a session, and its wait for a task."""
        found: list[Waiting] = []
        for key in waits.keys:
            request = self._tx.get(key, LockRequest)
            if request is None or request.state is not WaitState.WAITING:
                continue
            if not request.denied or self._now < request.renewed_ms + DENIED_FRESH_MS:
                found.append(RequestAt(key, request))
        task = waits.task
        if task is not None and task.state is WaitState.WAITING and alive(self._tx, task, self._now):
            found.append(TaskWaitAt(keys.waits(session), task))
        return found

    def stuck(self, start: set[Node], *, denied: bool) -> set[Node]:
        """Return the reachable sessions that cannot go on: each waits, whatever the others could do.

        With `denied`, a denied request counts as a wait. All that wait count as stuck at first; then those
        with a way out are removed until nothing changes.
        """
        waits: dict[Node, list[list[WayOut]]] = {}
        left = list(start)
        while left:
            node = left.pop()
            if node in waits:
                continue
            if len(waits) >= VISITS_MAX:
                return set()
            counted = [each for each in self.waits_of(node) if denied or not each.request.denied]
            waits[node] = [self.ways_out(each) for each in counted]
            left += [other for ways in waits[node] for way in ways for other in way.nodes]
        stuck = {node for node, found in waits.items() if found}
        while True:
            free = {node for node in stuck if not any(_blocked(ways, stuck) for ways in waits[node])}
            if not free:
                return stuck
            stuck -= free


def _blocked(ways: list[WayOut], stuck: set[Node]) -> bool:
    """Whether a wait has no way out."""
    return bool(ways) and all(way.blocked(stuck) for way in ways)


def list_waits(tx: Transaction, command: ListWaits, now: int) -> list[SessionWait]:
    """Return who waits, the longest wait first, and what blocks each."""
    search = CycleSearch(tx, now, {})
    waits = [
        waiting
        for page in tx.pages(keys.WAITS_PREFIX)
        for waiting in _listed(tx, search, [found.key for found in page])
    ]
    prefetch_liveness(tx, [waiting.request for waiting in waits])
    prefetch_locks(tx, [waiting.request for waiting in waits if isinstance(waiting, RequestAt)])
    waits = [each for each in waits if each.request.denied or alive(tx, each.request, now)]
    blocked = [(waiting, *_known_blockers(search, waiting, command.caller.project)) for waiting in waits]
    tx.prefetch(*{keys.waits(blocker.session) for _, blockers, _ in blocked for blocker in blockers})
    found = [_session_wait(tx, search, *each, now) for each in blocked]
    return sorted(found, key=lambda each: (each.since_ms, each.session))


def _known_blockers(search: CycleSearch, waiting: Waiting, project: str) -> tuple[list[Blocker], int]:
    """Return what blocks a wait; a reader of one project learns no task of another one."""
    found, position = search.blockers_of(waiting)
    if project and isinstance(waiting, TaskWaitAt) and waiting.request.project != project:
        found = [msgspec.structs.replace(each, what=OTHER_TASK) for each in found]
    return found, position


def _listed(tx: Transaction, search: CycleSearch, waits_keys: list[str]) -> list[Waiting]:
    """Return the waits of several sessions; their requests are loaded together."""
    tx.prefetch(*waits_keys)
    records = {key: tx.get(key, SessionWaits) or SessionWaits() for key in waits_keys}
    tx.prefetch(*(key for waits in records.values() for key in waits.keys))
    return [
        waiting
        for key, waits in records.items()
        for waiting in search.own_waits(key.removeprefix(keys.WAITS_PREFIX), waits)
    ]


def _session_wait(
    tx: Transaction, search: CycleSearch, waiting: Waiting, blockers: list[Blocker], position: int, now: int
) -> SessionWait:
    request = waiting.request
    cycle = search.find(waiting)
    session = tx.get(keys.session(request.session), Session)
    return SessionWait(
        request.session,
        request.agent,
        "task" if isinstance(waiting, TaskWaitAt) else "lock",
        list(dict.fromkeys(request.resources or (each.what for each in blockers))),
        request.since_ms,
        max(0, now - request.since_ms) / 1000,
        blockers,
        position,
        request.denied,
        [edge.session for edge in cycle],
        session.parent if session is not None else "",
    )


class _Trail:
    """The path of one search from the new wait; `edges` is the cycle once it closes."""

    def __init__(self, search: CycleSearch, new: Waiting, skipped: list[str] | None) -> None:
        self.edges = [Edge(new.request.session, new)]
        self._search = search
        self._skipped = skipped
        self._start = search.start_nodes(new.request.session)
        self._visited: set[Node] = set()
        self._stuck: set[Node] | None = None
        # Visited requests leave this copy of the queue: otherwise the search would be quadratic.
        self._queue: dict[str, RequestAt] | None = None

    def closes(self, waiting: Waiting) -> bool:
        """Follow a wait; True if the path comes back to the session of the new wait."""
        for node in self._nodes(waiting):
            if node in self._start:
                self.edges[0] = Edge(node.session, self.edges[0].waiting)
                return True
            if node in self._visited or len(self._visited) >= VISITS_MAX or len(self.edges) >= DEPTH_MAX:
                continue
            self._visited.add(node)
            if self._closes_from(node):
                return True
        return False

    def _nodes(self, waiting: Waiting) -> list[Node]:
        if isinstance(waiting, TaskWaitAt):
            return self._nodes_of_task(waiting)
        if self._queue is None and not waiting.request.denied:
            self._queue = self._search.queue_for(waiting.request)
        queue = self._queue.values() if self._queue is not None else ()
        ahead = takewhile(lambda each: each.key < waiting.key, queue)
        return self._search.nodes_waited_for(waiting, ahead)

    def _nodes_of_task(self, waiting: TaskWaitAt) -> list[Node]:
        """Return the sessions that block a wait for a task; none if one of its tasks may come."""
        if self._stuck is None:
            self._stuck = self._search.stuck(self._start, denied=self._skipped is None)
        ways = self._search.ways_out(waiting)
        return [node for way in ways for node in way.nodes] if _blocked(ways, self._stuck) else []

    def _closes_from(self, node: Node) -> bool:
        waits = self._search.waits_of(node)
        for each in waits:
            if self._queue is not None:
                self._queue.pop(each.key, None)
        for each in waits:
            if each.request.denied and self._skipped is not None:
                self._skipped.append(each.key)
                continue
            self.edges.append(Edge(node.session, each))
            if self.closes(each):
                return True
            self.edges.pop()
        return False
