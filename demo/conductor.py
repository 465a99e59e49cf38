"""The conductor: starts the workers, lets the planned accidents happen, and notes what workers were told.

It acts on two things only: what workers report, and what the store's log shows. A worker that is half-way
through a task waits for a nod; in place of the nod it may be killed (and another takes its place) or be
stopped until the log shows that its task has passed to somebody else. Then it goes on, none the wiser.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from typing import NamedTuple

import msgspec

from demo.log import Log
from demo.plan import Fate, accidents, sessions, task_ids
from demo.screen import Screen
from demo.stage import Part, Piece, Stage
from demo.worker import Report

ROOT = Path(__file__).resolve().parent.parent
TICK_S = 0.05
LONGEST_S = 60.0
DOING = {"claimed": "1st half", "half-way": "2nd half"}


class Reply(NamedTuple):
    """What a worker was told when it submitted."""

    session: str
    task: str
    generation: int
    accepted: bool
    reason: str
    current_generation: int = 0
    work_lost: bool = False
    was_frozen: bool = False


class Outcome(NamedTuple):
    """What the workers went through, by their own account; the log is asked separately."""

    replies: list[Reply]
    killed: dict[str, str]
    """By session: on which task it was at work when it was killed."""
    trouble: list[str]


class Actor:
    """A running worker process."""

    def __init__(self, part: Part, command: list[str], errors: int) -> None:
        self.part = part
        self.session = part.session
        self.fate: Fate | None = None
        self.was_frozen = False
        self.finished = False
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            # Ctrl-C must not reach it. A group of its own also means that the kernel ends it, frozen or not,
            # if the conductor itself is killed (a session of its own would leave it stopped for ever).
            process_group=0,
        )
        assert self.process.stdout is not None
        self.output = self.process.stdout
        self._rest = b""

    def reports(self) -> list[Report] | None:
        """Return what the worker has said since the last time, or None when it will say no more."""
        data = os.read(self.output.fileno(), 65_536)
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [msgspec.json.decode(line, type=Report) for line in lines]

    def nod(self) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(b"go on\n")
            self.process.stdin.flush()

    def end(self) -> None:
        """Kill the process if it runs (SIGKILL reaches stopped ones too), and reap it."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.output.close()
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()


class Conductor:
    """Directs one run."""

    def __init__(
        self, url: str, errors_path: Path, names: list[str], tasks: int, seed: int, screen: Screen
    ) -> None:
        self._url, self._tasks, self._seed = url, tasks, seed
        self._errors = open(errors_path, "ab")  # noqa: SIM115 - closed when the run ends
        self._screen = screen
        self._plan = accidents(seed, tasks)
        self._owed: deque[Fate] = deque()
        self._marks = 0
        self._sessions = {name: sessions(name) for name in names}
        self._actors: list[Actor] = []
        self._selector = selectors.DefaultSelector()
        self._log = Log(url)
        self._begin = time.monotonic()
        self.stage = Stage(
            parts={name: Part(name) for name in names}, pieces={task: Piece(task) for task in task_ids(tasks)}
        )
        self.outcome = Outcome([], {}, [])

    def run(self) -> Outcome:
        """Play until every worker has finished; leave no process behind, whatever happens."""
        try:
            for name in self._sessions:
                self._start(name)
            while self._actors and not self.outcome.trouble:
                self._step()
                self._screen.show(self.stage)
        finally:
            for actor in self._actors:
                actor.end()
            self._log.close()
            self._selector.close()
            self._errors.close()
        return self.outcome

    def _start(self, name: str) -> None:
        part = self.stage.parts[name]
        part.session = next(self._sessions[name])
        part.doing, part.task = "starting", ""
        command = [sys.executable, "-m", "demo.worker", self._url, name, part.session]
        actor = Actor(part, [*command, str(self._tasks), str(self._seed)], self._errors.fileno())
        self._actors.append(actor)
        self._selector.register(actor.output, selectors.EVENT_READ, actor)

    def _step(self) -> None:
        ready = self._selector.select(TICK_S)
        self.stage.seconds = time.monotonic() - self._begin
        for key, _ in ready:
            actor: Actor = key.data
            reports = actor.reports()
            if reports is None:
                self._leave(actor)
            for report in reports or ():
                self._hear(actor, report)
        for event in self._log.news():
            self.stage.follow(event)
        for actor in self._actors:
            if actor.fate is not None and actor.fate.freezes and self._may_wake(actor):
                self._wake(actor)
        if self.stage.seconds > LONGEST_S:
            self.outcome.trouble.append(f"the run was not over after {LONGEST_S:.0f} seconds")

    # What workers say.

    def _hear(self, actor: Actor, report: Report) -> None:
        part = actor.part
        part.doing, part.task, part.generation = (
            DOING.get(report.did, report.did),
            report.task,
            report.generation,
        )
        if report.did == "half-way":
            self._decide(actor)
        elif report.did == "submitting" and actor.fate is Fate.KILLED_SUBMITTING:
            self._kill(actor)
        elif report.did in ("accepted", "refused"):
            self._note(actor, report)
        elif report.did == "lost":
            self.stage.tell(
                f"{actor.session} finds at its renewal that it lost {report.task}: {report.reason}"
            )
        elif report.did == "finished":
            actor.finished = True

    def _note(self, actor: Actor, report: Report) -> None:
        accepted = report.did == "accepted"
        reply = Reply(
            actor.session,
            report.task,
            report.generation,
            accepted,
            report.reason,
            report.current_generation,
            report.work_lost,
            actor.was_frozen,
        )
        self.outcome.replies.append(reply)
        actor.was_frozen = False
        if not accepted:
            self.stage.refused += 1
            self.stage.tell(
                f"{actor.session} submits {report.task} under generation {report.generation}"
                f" and is REFUSED: it stands at {report.current_generation} ({report.reason})"
            )

    def _leave(self, actor: Actor) -> None:
        """A worker's output has ended: it finished, it was killed, or it broke."""
        self._selector.unregister(actor.output)
        self._actors.remove(actor)
        actor.end()
        if actor.session in self.outcome.killed:
            self._start(actor.part.name)
            self.stage.tell(f"{actor.part.session} takes the place of {actor.session}")
        elif not actor.finished:
            self.outcome.trouble.append(f"{actor.session} broke with code {actor.process.returncode}")

    # Accidents.

    def _decide(self, actor: Actor) -> None:
        """Somebody is half-way: let it go on, or let happen what the plan has for it."""
        if self._marks in self._plan:
            self._owed.append(self._plan[self._marks])
        self._marks += 1
        actor.fate = self._next_fate()
        if actor.fate is Fate.KILLED_WORKING:
            self._kill(actor)
        elif actor.fate is not None and actor.fate.freezes:
            self._freeze(actor)
        else:
            actor.nod()

    def _next_fate(self) -> Fate | None:
        """Return the first accident that may happen now: some workers must stay awake to take tasks over."""
        frozen = sum(actor.fate is not None and actor.fate.freezes for actor in self._actors)
        for fate in self._owed:
            if not fate.freezes or frozen < len(self.stage.parts) // 2:
                self._owed.remove(fate)
                return fate
        return None

    def _kill(self, actor: Actor) -> None:
        actor.process.send_signal(signal.SIGKILL)
        self.outcome.killed[actor.session] = actor.part.task
        self.stage.kills += 1
        part = actor.part
        self.stage.tell(f"{actor.session} is {actor.fate}: {part.task}, generation {part.generation}")
        part.doing = "killed"

    def _freeze(self, actor: Actor) -> None:
        actor.process.send_signal(signal.SIGSTOP)
        actor.was_frozen = True
        self.stage.freezes += 1
        part = actor.part
        self.stage.tell(f"{actor.session} is {actor.fate}: {part.task}, generation {part.generation}")
        part.doing = "frozen"

    def _may_wake(self, actor: Actor) -> bool:
        piece = self.stage.pieces[actor.part.task]
        passed_on = piece.generation > actor.part.generation
        return passed_on and (actor.fate is Fate.FROZEN_UNTIL_TAKEN or piece.state == "done")

    def _wake(self, actor: Actor) -> None:
        actor.fate = None
        actor.nod()
        actor.process.send_signal(signal.SIGCONT)
        actor.part.doing = "zombie"
        self.stage.tell(f"{actor.session} goes on with {actor.part.task} as if nothing had happened")
