"""The processes of a test, told what to do and heard line by line; none of them outlives it."""

import json
import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from coord.stores.open import install, open_store
from tests.linearizability.actor import StepClock
from tests.support.fork_server import end, start
from tests.support.git_folders import git
from tests.support.servers.server import poll_until

PATIENCE_S = 60
"""How long a process may be silent before the test fails."""
LONG_AGO_MS = 1_700_000_000_000


class Failed(NamedTuple):
    """A call that was refused."""

    error: str
    message: str


def refusal(said: Any) -> str:
    """Return the class of the error that an answer is, "" if it is none."""
    return said.error if isinstance(said, Failed) else ""


def stands_still(pid: int) -> bool:
    """Whether all threads of a process were stopped."""
    try:
        states = [
            task.read_text().rpartition(") ")[2][0] for task in Path(f"/proc/{pid}/task").glob("*/stat")
        ]
    except OSError:  # a thread has ended meanwhile
        return False
    return set(states) == {"T"}


class Member:
    """One process."""

    def __init__(self, program: str, options: dict[str, Any], under: tuple[str, ...] = ()) -> None:
        self.name: str = options["session"]
        self.process = start(f"tests.support.programs.{program}", json.dumps(options), under=under)
        self._rest = b""

    def say(self, method: str, *arguments: Any, **options: Any) -> None:
        """Tell it to call something; `hear` gives the answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([method, arguments, options]).encode() + b"\n")
        self.process.stdin.flush()

    def hear(self, within_s: float = PATIENCE_S) -> Any:
        """Return what it says next: an answer, a refusal, or None when it has ended."""
        deadline = time.monotonic() + within_s
        while b"\n" not in self._rest:
            assert self._readable(deadline - time.monotonic()), f"{self.name} says nothing"
            data = os.read(self._stdout, 1 << 16)
            if not data:
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        said = json.loads(line)
        if isinstance(said, dict) and "error" in said:
            return Failed(**said)
        return said["reply"] if isinstance(said, dict) and "reply" in said else said

    def ask(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Tell it to call something and return the answer."""
        self.say(method, *arguments, **options)
        return self.hear()

    def silent(self) -> bool:
        """Whether it has said nothing that was not heard."""
        return b"\n" not in self._rest and not self._readable(0)

    @staticmethod
    def first_heard(members: "list[Member]", within_s: float) -> "Member":
        """Return one that has something to say, as soon as there is one."""
        ready = [member for member in members if not member.silent()]
        if not ready:
            said = select.select([member._stdout for member in members], [], [], within_s)[0]
            ready = [member for member in members if member._stdout in said]
        assert ready, f"none of {[member.name for member in members]} says anything"
        return ready[0]

    def kill(self) -> None:
        """SIGKILL, and see it end."""
        self.process.kill()
        while self.hear() is not None:  # also what it had said before; a process below it has the pipe, too
            pass
        self.process.wait(PATIENCE_S)

    def pause(self) -> None:
        """SIGSTOP, and see it stand still."""
        self.process.send_signal(signal.SIGSTOP)
        poll_until(lambda: stands_still(self.process.pid), PATIENCE_S, f"{self.name} goes on")

    def resume(self) -> None:
        """SIGCONT."""
        self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """Leave nothing behind, nor what it has started."""
        end(self.process, PATIENCE_S)

    @property
    def _stdout(self) -> int:
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def _readable(self, within_s: float) -> bool:
        return bool(select.select([self._stdout], [], [], max(0.0, within_s))[0])


class Story:
    """The events of a log, as they are written."""

    def __init__(self, url: str) -> None:
        self._database = open_store(url)
        self._store = self._database.log("local")
        self._offset = 0
        self.events: list[dict[str, Any]] = []

    def close(self) -> None:
        self._database.close()

    def read(self) -> list[dict[str, Any]]:
        """Return everything that has happened so far; each event has the offset of its entry."""
        while entries := self._store.tail(self._offset, 1_000):
            for entry in entries:
                self.events += [{**json.loads(event), "offset": entry.offset} for event in entry.events]
            self._offset = entries[-1].offset
        return self.events

    def told(self, event: str, **fields: Any) -> list[dict[str, Any]]:
        """Return the events of a kind with these fields."""
        wanted = {"event": event, **fields}.items()
        return [each for each in self.read() if wanted <= each.items()]

    def until(self, event: str, **fields: Any) -> dict[str, Any]:
        """Wait for an event and return it."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := self.told(event, **fields)):
            assert time.monotonic() < deadline, f"no {event} {fields}"
            self._store.wait(self._offset, 0.5)
        return found[-1]

    def linger(self, most_s: float = 0.05) -> None:
        """Wait for something to be written, but not for long."""
        self.read()
        self._store.wait(self._offset, most_s)


class Crew:
    """A store, a repository, and the processes that work on them."""

    def __init__(self, url: str, folder: Path) -> None:
        install(url)
        self.url = url
        self.folder = folder
        self.repository = folder / "repository"
        self.repository.mkdir()
        git(self.repository, "init", "-q")
        self.story = Story(url)
        self.clock = StepClock(folder / "clock")
        self.on_a_server = not url.startswith(("file:", "sqlite:"))
        self._virtual = False
        self._members: list[Member] = []

    def stop_time(self) -> None:
        """Let those who join from now on live by a clock that only the test moves."""
        (self.folder / "clock").write_text(str(LONG_AGO_MS))
        self._virtual = True

    def options(
        self, name: str, more: dict[str, Any] | None = None, *, own_pid: bool = True
    ) -> dict[str, Any]:
        """Return what a process of this crew is started with."""
        clock = str(self.folder / "clock") if self._virtual else ""
        known = {"url": self.url, "session": name, "cwd": str(self.repository), "clock": clock}
        return {**known, "own_pid": own_pid, **(more or {})}

    def start(self, program: str, options: list[dict[str, Any]], under: tuple[str, ...] = ()) -> list[Member]:
        """Start processes of a program, and see that all are ready."""
        started = [Member(program, each, under) for each in options]
        self._members += started
        for member in started:
            assert member.hear() == "ready"
        return started

    def players(self, *names: str, own_pid: bool = True, under: tuple[str, ...] = ()) -> list[Member]:
        """Start sessions that do what they are told."""
        return self.start("player", [self.options(name, own_pid=own_pid) for name in names], under)

    def close(self) -> None:
        for member in self._members:
            member.close()
        self.story.close()


def release(members: list[Member]) -> None:
    """Give the common start."""
    for member in members:
        member.say("go")


def finish(member: Member) -> None:
    """See a process through to its end, which must be a good one."""
    assert (member.hear(), member.hear()) == ("end", None)
    assert member.process.wait(PATIENCE_S) == 0


@contextmanager
def gathered(url: str, folder: Path) -> Iterator[Crew]:
    """A crew that is gone after the block."""
    with closing(Crew(url, folder)) as crew:
        yield crew
