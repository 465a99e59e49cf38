"""One process of a recorded history: `python -m tests.linearizability.actor '{"url": …}'`.

Says "ready", waits for a line, works, says "halfway" on the way and "done" at the end.
"""

import json
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coord.core.commands import Command
from coord.core.tasks import types
from coord.core.tasks.commands import (
    ClaimTask,
    GetClaimHistory,
    GetTaskState,
    ReleaseClaim,
    RenewLease,
    ResetTask,
    SubmitResult,
)
from coord.sdk.coordinator import TaskCoordinator
from tests.linearizability.recorded import Recorder
from tests.support.hub.fleet import open_coordinator

TENANT, PROJECT = "local", "shop"
LEASE_MS = 3_600_000
STEP_LEASE_MS = 3_000


class StepClock:
    """A clock in a file that several processes share: it stands still until one of them moves it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> int:
        return int(self._path.read_text())

    def move(self, ms: int) -> None:
        new = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        new.write_text(str(self.read() + ms))
        new.replace(self._path)


class Actor:
    """Claims, renews, gives back and hands in, and often in the name of others."""

    def __init__(
        self, url: str, name: str, seed: int, tasks: int, history: str, clock: str, hub: Any = None
    ) -> None:
        self._chance = random.Random(f"{seed}/{name}")
        self._name = name
        self._tasks = [f"task-{n}" for n in range(tasks)]
        self._sessions = [f"session-{n}" for n in range(3)]
        self._recorder = Recorder(Path(history))
        self._clock = StepClock(Path(clock)) if clock else None
        self._known: dict[str, tuple[str, int]] = {}
        self._drawn = 0
        if hub is not None:
            self._coordinator = open_coordinator({"url": url, "hub": hub})
            return
        self._coordinator = TaskCoordinator.open(url, clock=self._time() if clock else None)

    def _time(self) -> Callable[[], int]:
        clock, recorder = self._clock, self._recorder
        assert clock is not None
        return lambda: recorder.note_time(clock.read())

    def warm_up(self) -> None:
        """Connect before the start, with an operation that nobody records."""
        self._coordinator.engine(TENANT)

    def act(self) -> None:
        """Carry out one operation."""
        chance = self._chance
        if self._clock is not None and chance.random() < 0.25:
            self._clock.move(chance.randrange(0, 2_000))
        task = chance.choice(self._tasks)
        command = self._command(task)
        reply = self._recorder.run(self._coordinator.engine(TENANT).call, command)
        if isinstance(reply, types.ClaimResult) and reply.claim is not None:
            self._known[task] = (reply.claim.session_id, int(reply.claim.generation))
        elif isinstance(reply, types.TaskState) and reply.claim is not None:
            self._known[task] = (reply.claim.session_id, reply.generation)

    def _command(self, task: str) -> Command:
        chance, names = self._chance, (TENANT, PROJECT, task)
        session, generation = self._known.get(task, (self._sessions[0], 1))
        if chance.random() < 0.4:
            session = chance.choice(self._sessions)
            generation = max(0, generation + chance.choice((-1, 0, 1)))
        kinds = ("claim", "force", "renew", "release", "submit", "reset", "state", "history")
        match chance.choices(kinds, (8, 1, 5, 4, 3, 2, 4, 1))[0]:
            case "claim":
                return ClaimTask(*names, self._name, session, self._lease())
            case "force":
                return ClaimTask(*names, self._name, session, self._lease(), force=True, reason="urgent")
            case "renew":
                return RenewLease(*names, session, generation)
            case "release":
                reason = chance.choice((types.ReleaseReason.VOLUNTARY, types.ReleaseReason.ERROR))
                return ReleaseClaim(*names, session, generation, reason)
            case "submit":
                self._drawn += 1
                work = f"wp-{task}-{self._name}-{self._drawn}"
                return SubmitResult(*names, session, generation, b"{}", work)
            case "reset":
                return ResetTask(*names)
            case "state":
                return GetTaskState(*names)
        return GetClaimHistory(*names)

    def _lease(self) -> int:
        return LEASE_MS if self._clock is None else STEP_LEASE_MS


def send(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def main(options: dict[str, Any]) -> None:
    rounds = options.pop("rounds")
    actor = Actor(**options)
    actor.warm_up()
    send("ready")
    sys.stdin.readline()
    for n in range(rounds):
        if n == rounds // 2:
            send("halfway")
        actor.act()
    send("done")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
