"""The events that wait for one reaction, and the thread that works on them, in order.

Each reaction has its own queue and, while something waits, its own thread: a slow or failing one delays
nobody else. A failed attempt is repeated after a time that doubles, with jitter. If too many events wait, the
oldest is dropped, and the follower says so.
"""

import random
import threading
from collections import deque
from collections.abc import Callable
from itertools import chain
from typing import NamedTuple

from coord.followers.reactions.actions import Outcome
from coord.followers.reactions.events import Delivery, Position
from coord.followers.reactions.settings import Reaction

WAITING_MAX = 10_000
BACKOFF_S, BACKOFF_S_MAX = 1.0, 300.0
CLOSE_S = 5.0
TAKEN_MAX = 500
"""How many outcomes may wait to be noted: if this process is killed, these deliveries are repeated."""
Attempt = Callable[[Reaction, Delivery, threading.Event], Outcome]


class Finished(NamedTuple):
    """A delivery that succeeded, or that failed for the last time."""

    queue: "ReactionQueue"
    delivery: Delivery
    outcome: Outcome
    attempts: int

    @property
    def id(self) -> str:
        """The id of the delivery."""
        return self.delivery.id_for(self.queue.reaction.name)


class ReactionQueue:
    """The deliveries of one reaction. The runner's thread calls it; its own thread performs them."""

    def __init__(
        self, reaction: Reaction, attempt: Attempt, finished: "deque[Finished]", from_: Position
    ) -> None:
        self.reaction = reaction
        self.next = from_
        """The first event that it has not seen."""
        self.dropped: list[Position] = []
        """The events that were dropped since the follower last looked: the first, the last, and how many."""
        self.dropped_count = 0
        self._attempt = attempt
        self._finished = finished
        self._waiting: deque[Delivery] = deque()
        self._taken: deque[Delivery] = deque()
        """The deliveries that its thread took; each is done when the follower has noted its outcome."""
        self._active = False
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def offer(self, delivery: Delivery) -> None:
        """Let a delivery wait; drop the oldest one that waits if there are too many."""
        with self._lock:
            self._waiting.append(delivery)
            if len(self._waiting) > WAITING_MAX:
                oldest = self._waiting.popleft().position
                self.dropped = [*self.dropped[:1], oldest]
                self.dropped_count += 1

    def repeat(self, delivery: Delivery) -> None:
        """Let a delivery that failed before be the next one."""
        with self._lock:
            self._waiting.appendleft(delivery)

    @property
    def first(self) -> Position | None:
        """The first event that is not done; None if all are."""
        with self._lock:
            left = chain(self._taken, self._waiting)
            return next((each.position for each in left if not each.again), None)

    @property
    def waiting(self) -> int:
        """How many deliveries wait, are under way, or are not noted yet."""
        with self._lock:
            return len(self._waiting) + len(self._taken)

    def noted(self) -> None:
        """Let the oldest delivery that was taken be done: the follower has noted its outcome."""
        with self._lock:
            self._taken.popleft()

    def go_on(self) -> None:
        """Have a thread work on what waits, unless one does."""
        with self._lock:
            if self._active or not self._waiting or self._stop.is_set():
                return
            self._active = True
            name = f"coord-react-{self.reaction.name}"
            self._thread = threading.Thread(target=self._work, name=name, daemon=True)
            self._thread.start()

    def _take(self) -> Delivery | None:
        with self._lock:
            if self._stop.is_set() or not self._waiting or len(self._taken) >= TAKEN_MAX:
                self._active = False
                return None
            self._taken.append(self._waiting.popleft())
            return self._taken[-1]

    def _work(self) -> None:
        while (delivery := self._take()) is not None:
            attempts = 0
            while True:
                outcome = self._attempt(self.reaction, delivery, self._stop)
                attempts += 1
                if outcome.stopped:
                    return
                if not outcome.error or outcome.permanent or attempts >= self.reaction.attempts:
                    break
                if self._stop.wait(max(outcome.after_s, backoff_s(attempts, random.random()))):
                    return
            self._finished.append(Finished(self, delivery, outcome, attempts))

    def stop(self) -> None:
        """Begin no other delivery, and end the one under way; it is not done."""
        self._stop.set()

    def close(self) -> None:
        """Stop, and wait a little for the thread."""
        self.stop()
        if self._thread is not None:
            self._thread.join(CLOSE_S)


def backoff_s(attempts: int, chance: float) -> float:
    """Return how long to wait after a number of failed attempts: 1 s, 2 s, 4 s … 5 min, half of it by chance.

    >>> backoff_s(1, 0.0), backoff_s(3, 1.0), backoff_s(100, 1.0)
    (0.5, 4.0, 300.0)
    """
    whole = min(BACKOFF_S * (1 << min(attempts - 1, 20)), BACKOFF_S_MAX)
    return whole * (0.5 + chance / 2)
