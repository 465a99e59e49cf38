"""The conductor: starts the workers, causes the planned accidents, and records the replies to the workers.

It acts only on the reports of the workers and on the log of the store. A worker that is half-way through a
task waits for a nod. Instead of nodding, the conductor may kill it and start a replacement. Or it stops the
worker until the log shows that another session has the task, and then lets it continue without notice. Or it
nods only when another worker waits for the same file, or when the worker that it will block is half-way.
"""

import selectors
import sys
import time
from pathlib import Path
from typing import NamedTuple

from demo.actor import Actor
from demo.log import Event, Log
from demo.plan import AGENTS, FATES, HOT_FILE, Fate, Pace, sessions
from demo.screen import Screen
from demo.stage import Stage
from demo.worker import Report

ROOT = Path(__file__).resolve().parent.parent
TICK_S = 0.05
LONGEST_S = 55.0
"""How long a run of pace 1 may take."""
DOING = {"claimed": "1st half", "half-way": "2nd half"}


class Reply(NamedTuple):
    """The reply that a worker got when it submitted."""

    session: str
    task: str
    generation: int
    accepted: bool
    reason: str
    current_generation: int = 0
    work_lost: bool = False
    was_frozen: bool = False


class Outcome(NamedTuple):
    """The run as the workers reported it; the proof reads the log separately."""

    replies: list[Reply]
    killed: dict[str, str]
    """By session: the task that it worked on when it was killed."""
    losers: dict[str, str]
    """By victim of a deadlock: the cycle in its reply."""
    trouble: list[str]


class Conductor:
    """Directs one run."""

    def __init__(self, folder: Path, url: str, stage: Stage, screen: Screen, pace: Pace) -> None:
        self._folder, self._screen, self.stage, self._pace = folder, screen, stage, pace
        self._errors = open(folder / "workers.err", "ab")  # noqa: SIM115 - closed when the run ends
        self._fates = dict(FATES)
        self._hot_wanted = False
        self._sessions = {name: sessions(name) for name in AGENTS}
        self._actors: list[Actor] = []
        self._selector = selectors.DefaultSelector()
        self._log = Log(url)
        self._begin = time.monotonic()
        self.outcome = Outcome([], {}, {}, [])

    def run(self) -> Outcome:
        """Run until every worker has finished; leave no process behind, even after an error."""
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
        if self._fates and not self.outcome.trouble:
            self.outcome.trouble.append(f"nothing happened at {', '.join(self._fates)}")
        return self.outcome

    def _start(self, name: str) -> None:
        part = self.stage.parts[name]
        part.session = next(self._sessions[name])
        part.doing, part.task = "starting", ""
        words = [str(self._folder), name, part.kind, part.session, str(self._pace.factor)]
        command = [sys.executable, "-m", "demo.worker", *words]
        actor = Actor(part, command, str(ROOT), self._errors.fileno())
        self._actors.append(actor)
        self._selector.register(actor.output, selectors.EVENT_READ, actor)

    def _step(self) -> None:
        ready = self._selector.select(TICK_S)
        self.stage.seconds = time.monotonic() - self._begin
        heard = [(key.data, key.data.reports()) for key, _ in ready]
        # The log is read after the reports, so it contains their events, and shown before them.
        for event in self._log.news():
            self.stage.follow(event)
            self._watch(event)
        for actor, reports in heard:
            if reports is None:
                self._leave(actor)
            for report in reports or ():
                self._hear(actor, report)
        for actor in self._actors:
            if actor.asks:
                self._decide(actor)
            elif actor.fate is not None and actor.fate.freezes and self._may_wake(actor):
                self._wake(actor)
        longest_s = LONGEST_S * max(1.0, self._pace.factor)
        if self.stage.seconds > longest_s:
            self.outcome.trouble.append(f"the run was not over after {longest_s:.0f} seconds")

    def _watch(self, event: Event) -> None:
        """Show what only the log contains: waiting sessions and victims of a deadlock."""
        fields = event.fields
        if event.name == "lock.waiting":
            self._hot_wanted = self._hot_wanted or HOT_FILE in fields["resources"]
            self.stage.tell(
                f"{fields['session']} waits for {fields['resources'][0]}, held by {fields['holder']}"
            )
        elif event.name == "lock.acquired" and fields.get("waited_ms"):
            waited_s = fields["waited_ms"] / 1000
            self.stage.waits += 1
            self.stage.tell(f"{fields['session']} gets {fields['resource']} after {waited_s:.1f} s")
        elif event.name == "lock.deadlock":
            self.stage.deadlocks += 1
            self.stage.tell(f"DEADLOCK {' → '.join(fields['cycle'])}: {fields['victim']} must give way")

    # Reports of workers.

    def _hear(self, actor: Actor, report: Report) -> None:
        part = actor.part
        part.doing = DOING.get(report.did, report.did)
        part.task, part.generation = report.task, report.generation
        if report.did == "half-way":
            actor.ask()
        elif report.did == "submitting" and actor.fate is Fate.KILLED_SUBMITTING:
            self._kill(actor)
        elif report.did in ("accepted", "refused"):
            self._note(actor, report)
        elif report.did == "deadlock":
            self.outcome.losers[actor.session] = report.reason
            self.stage.tell(f"{actor.session} reads that, and releases {report.task}")
        elif report.did == "lost":
            self.stage.tell(f"{actor.session} finds at its renewal that it lost {report.task}")
        elif report.did == "finished":
            actor.finished = True
            if report.reason != "done":
                self.outcome.trouble.append(f"{actor.session} found the plan {report.reason}")

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
        """Remove a worker whose output has ended, and replace it if it was killed."""
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
        """Carry out the fate of a worker that is half-way, let it continue, or let it wait and renew."""
        task = actor.part.task
        fate = self._fates.get(task)
        if fate is Fate.KILLED_WORKING:
            actor.fate = self._fates.pop(task)
            self._kill(actor)
        elif fate is not None and fate.freezes:
            actor.fate = self._fates.pop(task)
            self._freeze(actor)
        elif fate is None or fate is Fate.KILLED_SUBMITTING or self._is_met(fate):
            actor.fate = self._fates.pop(task, None)
            actor.nod()
        elif time.monotonic() > actor.asked_at + self._pace.lease_s / 3:
            actor.nod("renew")

    def _is_met(self, fate: Fate) -> bool:
        """Return whether the event that a worker waits for has happened."""
        if fate is Fate.HOLDS_HOT_FILE:
            return self._hot_wanted
        meeting = {task for task, each in FATES.items() if each is Fate.MEETS}
        here = {actor.part.task for actor in self._actors if actor.part.doing == DOING["half-way"]}
        return fate is Fate.MEETS and meeting <= here | (meeting - self._fates.keys())

    def _kill(self, actor: Actor) -> None:
        actor.kill()
        self.outcome.killed[actor.session] = actor.part.task
        self.stage.kills += 1
        self._tell_fate(actor)
        actor.part.doing = "killed"

    def _freeze(self, actor: Actor) -> None:
        actor.freeze()
        self.stage.freezes += 1
        self._tell_fate(actor)
        actor.part.doing = "frozen"

    def _tell_fate(self, actor: Actor) -> None:
        part = actor.part
        self.stage.tell(f"{actor.session} is {actor.fate}: {part.task}, generation {part.generation}")

    def _may_wake(self, actor: Actor) -> bool:
        piece = self.stage.pieces[actor.part.task]
        passed_on = piece.generation > actor.part.generation
        return passed_on and (actor.fate is Fate.FROZEN_UNTIL_TAKEN or piece.state == "done")

    def _wake(self, actor: Actor) -> None:
        actor.wake()
        actor.part.doing = "zombie"
        self.stage.tell(f"{actor.session} goes on with {actor.part.task} as if nothing had happened")
