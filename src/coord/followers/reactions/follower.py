"""The follower behind `[[on]]`: it finds the events that reactions mean, and remembers what is done.

The saved offset is before the first event that is not done for some reaction, so its entry is neither trimmed
nor forgotten: whoever goes on reads it again. For each reaction the state has the first event that is not
done. What is under way when a process is killed is repeated, with the same id.
"""

import threading
from collections import deque
from typing import Any

import msgspec

from coord.core.reactions.commands import NoteReactions
from coord.core.reactions.schema import ReactionDropped, ReactionFailed, ReactionRan, ReactionRefused
from coord.followers.follower import Follower, LogSource
from coord.followers.reactions.actions import Outcome, attempt
from coord.followers.reactions.events import HOPS_MAX, OWN, Delivery, Position, delivery_of
from coord.followers.reactions.queue import Finished, ReactionQueue
from coord.followers.reactions.settings import Reaction, Settings, read_settings
from coord.host.caller import find_tenant
from coord.sdk.log_reader import LoggedEvent, first_offset, logged_events, pages, pages_backwards

POLL_MS = 200
"""How often the outcomes of deliveries under way are noted."""
PRESENT_MS = 60_000
"""A new reaction begins when a person confirmed it, at most this time ago."""
DEAD_MAX = 100
STATE_BYTES_MAX = 150 * 1024
DETAILS_BYTES_MAX = 1000
ERROR_CHARS_MAX = 400
ABSENT_MAX = 200
DECIDED = "reaction.decided"


class Dead(msgspec.Struct, omit_defaults=True):
    """A delivery that failed for the last time; a person may have it tried again."""

    id: str
    reaction: str
    position: tuple[int, int]
    event: str
    at_ms: int
    error: str
    attempts: int = 1
    details: dict[str, Any] | None = None
    """The fields of the event; None if they are long, because the log has them."""
    hops: int = 0
    retry: bool = False


class State(msgspec.Struct):
    """What is saved: the first event that is not done, by reaction, and the failed deliveries."""

    next: dict[str, tuple[int, int]] = {}
    dead: list[Dead] = []


_STATE = msgspec.json.Decoder(State)


class Reactions(Follower):
    """Performs what people want to happen when an event happens."""

    name = "reactions"
    about = "what [[on]] in coord.toml wants to happen"
    has_effects = True
    starts_at_present = True

    def __init__(self, source: LogSource) -> None:
        super().__init__(source)
        self.queues: dict[str, ReactionQueue] = {}
        self.dead: dict[str, Dead] = {}
        self._kept: dict[str, Position] = {}
        """Where reactions were that are not configured now."""
        self._settings: Settings | None = None
        self._finished: deque[Finished] = deque()
        self._refused: dict[str, ReactionRefused] = {}
        self._read = Position(0, 0)
        """The first event that was not read yet."""
        self._saved = 0
        self._changed = False

    @classmethod
    def wanted(cls, source: LogSource) -> bool:
        """Whether a person has configured reactions; they are for the events of that person's tenant."""
        if source.tenant != find_tenant(source.environ):
            return False
        return bool(read_settings(source.location, source.environ).reactions)

    @classmethod
    def problems(cls, source: LogSource) -> list[str]:
        """Return what is wrong with the tables that do not count."""
        return list(read_settings(source.location, source.environ).problems)

    # Reading.

    def refresh(self, offset: int, now: int) -> None:
        """Take over a changed configuration; a new reaction begins at the present."""
        self._read = max(self._read, Position(offset + 1, 0))
        settings = read_settings(self.source.location, self.source.environ)
        if settings is self._settings:
            return
        self._settings = settings
        wanted = {each.name: each for each in settings.reactions}
        for name in [name for name, queue in self.queues.items() if wanted.get(name) != queue.reaction]:
            queue = self.queues.pop(name)
            self._collect()
            queue.close()
            self._kept[name] = queue.first or max(queue.next, self._read)
        for name, reaction in wanted.items():
            if name not in self.queues:
                self._begin(reaction, now)
        self._kept = dict(list(self._kept.items())[-ABSENT_MAX:])
        self._changed = True

    def _begin(self, reaction: Reaction, now: int) -> None:
        """Let a reaction go on where it was, or begin; what it missed is read again for it alone."""
        known = self._kept.pop(reaction.name, None)
        queue = ReactionQueue(reaction, self._attempt, self._finished, known or self._read)
        self.queues[reaction.name] = queue
        if known is None:
            since = max(reaction.confirmed_ms, now - PRESENT_MS)
            missed = self._read_since(since)
            queue.next = Position(missed[0].position.offset, 0) if missed else self._read
        else:
            missed = self._read_from(known)
        for delivery in missed:
            self._offer(queue, delivery)
        for dead in self.dead.values():
            if dead.retry and dead.reaction == reaction.name:
                self._repeat(dead)

    def _read_since(self, since_ms: int) -> list[Delivery]:
        """Return the events since a time that were read before."""
        found: list[Delivery] = []
        for page in pages_backwards(self.source.log, max(1, first_offset(self.source.log))):
            events = [
                delivery
                for each in page
                if each.at >= since_ms
                for delivery in _deliveries(logged_events([each]))
            ]
            found[:0] = [each for each in events if each.position < self._read]
            if page[0].at < since_ms:
                break
        return found

    def _read_from(self, first: Position) -> list[Delivery]:
        """Return the events from a position on that were read before."""
        if first >= self._read:
            return []
        found: list[Delivery] = []
        for page in pages(self.source.log, max(first.offset, first_offset(self.source.log))):
            found += [
                each for each in _deliveries(logged_events(page)) if first <= each.position < self._read
            ]
            if page[-1].offset >= self._read.offset:
                break
        return found

    def apply(self, logged: LoggedEvent) -> None:
        """Let an event wait for each reaction that means it."""
        same = logged.offset == self._read.offset
        position = Position(logged.offset, self._read.number if same else 0)
        self._read = Position(logged.offset, position.number + 1)
        delivery = delivery_of(logged, position.number)
        if logged.event == DECIDED:
            self._decide(logged.details)
        for queue in self.queues.values():
            self._offer(queue, delivery)

    def _offer(self, queue: ReactionQueue, delivery: Delivery) -> None:
        reaction = queue.reaction
        if delivery.position < queue.next:
            return
        queue.next = Position(delivery.position.offset, delivery.position.number + 1)
        if not reaction.pattern.matches(delivery.event, delivery.details):
            return
        if delivery.hops < HOPS_MAX:
            queue.offer(delivery)
        elif not delivery.event.startswith(OWN):
            identity, hops = delivery.id_for(reaction.name), delivery.hops + 1
            before = self._refused.get(reaction.name)
            count = before.count + 1 if before else 1
            self._refused[reaction.name] = ReactionRefused(
                identity, reaction.name, delivery.event, hops, count
            )

    def _decide(self, details: dict[str, Any]) -> None:
        """Do with a failed delivery what somebody decided."""
        dead = self.dead.get(str(details.get("id")))
        if dead is None:
            return
        self._changed = True
        if details.get("decision") != "retry":
            del self.dead[dead.id]
        elif not dead.retry:
            dead.retry = True
            self._repeat(dead)

    def _repeat(self, dead: Dead) -> None:
        queue = self.queues.get(dead.reaction)
        if queue is None:
            return
        found = self._event_of(dead)
        if found is None:
            dead.retry, dead.error = False, "its event was trimmed from the log"
            return
        queue.repeat(Delivery(Position(*dead.position), dead.event, dead.at_ms, found, dead.hops, again=True))

    def _event_of(self, dead: Dead) -> dict[str, Any] | None:
        if dead.details is not None:
            return dead.details
        offset, index = dead.position
        if offset < first_offset(self.source.log):
            return None
        page = self.source.log.tail(offset - 1, 1)
        found = [each.details for each in logged_events(page) if each.offset == offset]
        return found[index] if index < len(found) else None

    # Acting.

    def act(self, now: int) -> int:
        """Note what has ended, and go on with what waits."""
        self._collect()
        for queue in self.queues.values():
            queue.go_on()
        return now + POLL_MS if self.busy else 0

    def _attempt(self, reaction: Reaction, delivery: Delivery, stop: threading.Event) -> Outcome:
        return attempt(reaction, delivery, self.source, stop)

    def _collect(self) -> None:
        """Note the outcomes of deliveries, and log what people should know."""
        ran: list[ReactionRan] = []
        failed: list[ReactionFailed] = []
        while self._finished:
            done = self._finished.popleft()
            self._changed = True
            delivery, name = done.delivery, done.queue.reaction.name
            if done.outcome.error:
                self._keep_dead(done)
                error = done.outcome.error[:ERROR_CHARS_MAX]
                failed.append(
                    ReactionFailed(done.id, name, delivery.event, error, done.attempts, delivery.hops + 1)
                )
            else:
                self.dead.pop(done.id, None)
            if (result := done.outcome.ran) is not None:
                ran.append(
                    ReactionRan(
                        done.id, name, delivery.event, result.took_ms, result.output, delivery.hops + 1
                    )
                )
            done.queue.noted()
        dropped = [each for queue in self.queues.values() for each in _dropped(queue)]
        refused, self._refused = tuple(self._refused.values()), {}
        if ran or failed or dropped or refused:
            self._changed = True
            self.source.engine.call(NoteReactions(tuple(ran), tuple(failed), tuple(dropped), refused))

    def _keep_dead(self, done: Finished) -> None:
        """Keep a delivery that failed for the last time; the oldest ones make room."""
        delivery = done.delivery
        short = len(msgspec.json.encode(delivery.details)) <= DETAILS_BYTES_MAX
        self.dead.pop(done.id, None)
        self.dead[done.id] = Dead(
            done.id,
            done.queue.reaction.name,
            delivery.position,
            delivery.event,
            delivery.at_ms,
            done.outcome.error[:ERROR_CHARS_MAX],
            done.attempts,
            delivery.details if short else None,
            delivery.hops,
        )
        while len(self.dead) > DEAD_MAX:
            del self.dead[next(iter(self.dead))]

    # Saving.

    @property
    def acted(self) -> bool:
        """Whether something was done, or failed, since the state was last dumped."""
        return self._changed or bool(self._finished)

    @property
    def busy(self) -> bool:
        """Whether a delivery waits or is under way."""
        return bool(self._finished) or any(queue.waiting for queue in self.queues.values())

    def offset_to_save(self, offset: int) -> int:
        """Return the offset before the first event that is not done; what has ended is noted first."""
        self._collect()
        self._read = max(self._read, Position(offset + 1, 0))
        firsts = [first.offset - 1 for queue in self.queues.values() if (first := queue.first) is not None]
        self._saved = max(self._saved, min([offset, *firsts]))
        return self._saved

    def dump(self) -> bytes:
        """Return what is done."""
        self._changed = False
        positions = {name: queue.first or max(queue.next, self._read) for name, queue in self.queues.items()}
        positions = {**self._kept, **positions}
        while True:
            data = msgspec.json.encode(
                State({name: positions[name] for name in sorted(positions)}, list(self.dead.values()))
            )
            if len(data) <= STATE_BYTES_MAX or not self.dead:
                return data
            del self.dead[next(iter(self.dead))]

    def load(self, data: bytes) -> None:
        """Take over what is done; `refresh` finds the reactions to it."""
        state = _STATE.decode(data)
        self._kept = {name: Position(*position) for name, position in state.next.items()}
        self.dead = {each.id: each for each in state.dead}

    def close(self) -> None:
        """Stop what is under way; it is repeated."""
        for queue in self.queues.values():
            queue.stop()
        for queue in self.queues.values():
            queue.close()


def _deliveries(events: Any) -> list[Delivery]:
    """Return events of the log with their numbers."""
    found: list[Delivery] = []
    for logged in events:
        same = found and found[-1].position.offset == logged.offset
        found.append(delivery_of(logged, found[-1].position.number + 1 if same else 0))
    return found


def _dropped(queue: ReactionQueue) -> list[ReactionDropped]:
    if not queue.dropped_count:
        return []
    first, last = queue.dropped[0], queue.dropped[-1]
    event = ReactionDropped(
        queue.reaction.name,
        queue.dropped_count,
        f"{first.offset}.{first.number}",
        f"{last.offset}.{last.number}",
    )
    queue.dropped, queue.dropped_count = [], 0
    return [event]
