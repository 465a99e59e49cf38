"""One agent: claims the next task of its kind, works on it in two halves and submits, until all is done.

It has no code for accidents. Half-way through each task it waits for a nod on stdin, so that it holds a claim
when the conductor sends it a real signal. It writes its reports to stdout.

It works like a careless agent: it reads a file, waits, and writes the whole file back with one more line. Two
such agents at once would lose a line. Only the locks that come with a task prevent that.
"""

import os
import random
import sys
import time
from pathlib import Path

import msgspec

import coord
from coord.core.plans.commands import NextTask
from demo.plan import KINDS, PROJECT, Pace, pace_of

PATIENCE_S = 1.0
LINE_S = 20.0


class Report(msgspec.Struct, omit_defaults=True):
    """One report of a worker: a line on its stdout."""

    did: str
    task: str = ""
    generation: int = 0
    reason: str = ""
    current_generation: int = 0
    work_lost: bool = False


def say(did: str, task: str = "", generation: int = 0, **more) -> None:
    line = msgspec.json.encode(Report(did, task, generation, **more))
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


class Work:
    """One claim, and the work under it."""

    def __init__(self, client: coord.Client, folder: Path, reply: NextTask, pace: Pace) -> None:
        assert reply.task is not None
        assert reply.claim is not None
        self._client, self._folder, self._pace = client, folder, pace
        self._task, self._name = reply.task, reply.task.task_id
        self._generation = int(reply.claim.generation)
        self._session = reply.claim.session_id
        self._rng = random.Random(f"{self._session} {self._name}")

    def carry_out(self) -> None:
        """Do the work and submit it; coord checks whether the claim is still valid."""
        say("claimed", self._name, self._generation)
        question = self._task.requirements.get("ask")
        if question:
            self._client.ask(question["text"], options=question["options"])  # and goes on without an answer
        self._change(self._task.files)
        if not self._renew():
            say("lost", self._name, self._generation)
            return
        self._wait_for_nod()
        also = self._task.requirements.get("also")
        if also and not self._change_also(also):
            return
        time.sleep(self._rng.uniform(*self._pace.half_s))
        self._submit()

    def _change(self, files: list[str]) -> None:
        """Read files, wait a little, and write them back with a line of this claim."""
        paths = [self._folder / text.removeprefix("file:") for text in files]
        before = [path.read_text() if path.exists() else "" for path in paths]
        time.sleep(self._rng.uniform(*self._pace.half_s))
        for path, text in zip(paths, before, strict=True):
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"{text}{self._name} {self._generation} {self._session}\n")

    def _change_also(self, also: str) -> bool:
        """Change one more file; release the task if waiting for that file would be a deadlock."""
        say("queued", self._name, self._generation, reason=also)
        patience_s = LINE_S * self._pace.factor
        reply = self._client.acquire(f"file:{also}", ttl_s=patience_s, wait_s=patience_s)
        if not reply.ok:
            cycle = " → ".join(reply.cycle)
            self._client.release_task(self._name, self._generation, note=f"deadlock: {cycle}")
            say("deadlock", self._name, self._generation, reason=cycle)
            return False
        self._renew()
        self._change([f"file:{also}"])
        self._client.unlock(f"file:{also}")
        return True

    def _renew(self) -> bool:
        return self._client.renew_task(self._name, self._generation).success

    def _wait_for_nod(self) -> None:
        while True:
            say("half-way", self._name, self._generation)
            told = sys.stdin.readline()
            if told == "go on\n":
                return
            if not told:
                raise SystemExit("the conductor has gone")
            self._renew()

    def _submit(self) -> None:
        say("submitting", self._name, self._generation)
        answer = self._client.submit_task(self._name, self._generation, {"made by": self._session})
        say(
            "accepted" if answer.accepted else "refused",
            self._name,
            self._generation,
            reason=answer.reason.value,
            current_generation=answer.current_generation,
            work_lost=answer.work_lost,
        )


def run(folder: Path, agent: str, kind: str, session: str, factor: str) -> None:
    pace = pace_of(float(factor))
    with coord.connect(
        cwd=str(folder), session=session, agent=agent, project=PROJECT, pid=os.getpid()
    ) as client:
        client.register(role=kind)
        while True:
            reply = client.next_task(types=KINDS[kind], lease_s=pace.lease_s, wait_s=PATIENCE_S)
            if reply.task is not None:
                Work(client, folder, reply, pace).carry_out()
            elif reply.outcome == "blocked":
                say("waiting", reason="; ".join(reply.waiting_for))
            else:
                break
        say("finished", reason=reply.outcome)


if __name__ == "__main__":
    run(Path(sys.argv[1]), *sys.argv[2:])
