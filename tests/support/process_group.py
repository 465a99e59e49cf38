"""Start the processes of a test, send them calls and read their replies; none of them outlives the test."""

import json
import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from coord.sdk.client.open import initialise
from coord.stores.open import open_store
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


def is_stopped(pid: int) -> bool:
    """Whether all threads of a process were stopped."""
    try:
        states = [
            task.read_text().rpartition(") ")[2][0] for task in Path(f"/proc/{pid}/task").glob("*/stat")
        ]
    except OSError:  # a thread ended just now
        return False
    return set(states) == {"T"}


class Member:
    """One process."""

    def __init__(self, program: str, options: dict[str, Any], under: tuple[str, ...] = ()) -> None:
        self.name: str = options["session"]
        self.process = start(f"tests.support.programs.{program}", json.dumps(options), under=under)
        self._rest = b""

    def send(self, method: str, *arguments: Any, **options: Any) -> None:
        """Send it a call; `receive` returns the answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([method, arguments, options]).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self, within_s: float = PATIENCE_S) -> Any:
        """Return its next answer: a reply, a refusal, or None when it has ended."""
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
        """Send it a call and return the answer."""
        self.send(method, *arguments, **options)
        return self.receive()

    def has_no_output(self) -> bool:
        """Whether every line that it wrote was read."""
        return b"\n" not in self._rest and not self._readable(0)

    @staticmethod
    def first_with_output(members: "list[Member]", within_s: float) -> "Member":
        """Return the first member with output to read; wait for it."""
        ready = [member for member in members if not member.has_no_output()]
        if not ready:
            said = select.select([member._stdout for member in members], [], [], within_s)[0]
            ready = [member for member in members if member._stdout in said]
        assert ready, f"none of {[member.name for member in members]} says anything"
        return ready[0]

    def kill(self) -> None:
        """Send SIGKILL and wait for the end."""
        self.process.kill()
        while (
            self.receive() is not None
        ):  # also what it had said before; a process below it has the pipe, too
            pass
        self.process.wait(PATIENCE_S)

    def pause(self) -> None:
        """Send SIGSTOP and wait until all threads are stopped."""
        self.process.send_signal(signal.SIGSTOP)
        poll_until(lambda: is_stopped(self.process.pid), PATIENCE_S, f"{self.name} goes on")

    def resume(self) -> None:
        """Send SIGCONT."""
        self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End it and every process that it has started."""
        end(self.process, PATIENCE_S)

    @property
    def _stdout(self) -> int:
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def _readable(self, within_s: float) -> bool:
        return bool(select.select([self._stdout], [], [], max(0.0, within_s))[0])


class LogReader:
    """The events of a log, as processes write them."""

    def __init__(self, url: str) -> None:
        self._database = open_store(url)
        self._store = self._database.log("local")
        self._offset = 0
        self.events: list[dict[str, Any]] = []

    def close(self) -> None:
        self._database.close()

    def read(self) -> list[dict[str, Any]]:
        """Return all events so far; each has the offset of its entry."""
        while entries := self._store.tail(self._offset, 1_000):
            for entry in entries:
                self.events += [{**json.loads(event), "offset": entry.offset} for event in entry.events]
            self._offset = entries[-1].offset
        return self.events

    def events_of(self, event: str, **fields: Any) -> list[dict[str, Any]]:
        """Return the events of a kind with these fields."""
        wanted = {"event": event, **fields}.items()
        return [each for each in self.read() if wanted <= each.items()]

    def until(self, event: str, **fields: Any) -> dict[str, Any]:
        """Wait for an event and return it."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := self.events_of(event, **fields)):
            assert time.monotonic() < deadline, f"no {event} {fields}"
            self._store.wait(self._offset, 0.5)
        return found[-1]

    def linger(self, most_s: float = 0.05) -> None:
        """Wait for the next entry, at most `most_s` seconds."""
        self.read()
        self._store.wait(self._offset, most_s)


class ProcessGroup:
    """A store, a repository, and the processes that use both."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.repository = folder / "repository"
        self.repository.mkdir()
        git(self.repository, "init", "-q")
        initialise(str(self.repository), {}, url=url)
        self.log = LogReader(url)
        self.clock = StepClock(folder / "clock")
        self.on_a_server = not url.startswith(("file:", "sqlite:"))
        self._virtual = False
        self._members: list[Member] = []

    def stop_time(self) -> None:
        """Give every process that starts later a clock that only the test moves."""
        (self.folder / "clock").write_text(str(LONG_AGO_MS))
        self._virtual = True

    def options(
        self, name: str, more: dict[str, Any] | None = None, *, own_pid: bool = True
    ) -> dict[str, Any]:
        """Return the options that a process of this group starts with."""
        clock = str(self.folder / "clock") if self._virtual else ""
        known = {"url": self.url, "session": name, "cwd": str(self.repository), "clock": clock}
        return {**known, "own_pid": own_pid, **(more or {})}

    def start(self, program: str, options: list[dict[str, Any]], under: tuple[str, ...] = ()) -> list[Member]:
        """Start processes of a program and wait until all are ready."""
        started = [Member(program, each, under) for each in options]
        self._members += started
        for member in started:
            assert member.receive() == "ready"
        return started

    def scripted_sessions(
        self, *names: str, own_pid: bool = True, under: tuple[str, ...] = ()
    ) -> list[Member]:
        """Start sessions that carry out the calls that the test sends."""
        return self.start("scripted_session", [self.options(name, own_pid=own_pid) for name in names], under)

    def close(self) -> None:
        for member in self._members:
            member.close()
        self.log.close()


def release(members: list[Member]) -> None:
    """Let all members start at once."""
    for member in members:
        member.send("go")


def finish(member: Member) -> None:
    """Wait for the end of a process; it must succeed."""
    assert (member.receive(), member.receive()) == ("end", None)
    assert member.process.wait(PATIENCE_S) == 0


@contextmanager
def process_group(url: str, folder: Path) -> Iterator[ProcessGroup]:
    """Yield a group whose processes end with the block."""
    with closing(ProcessGroup(url, folder)) as group:
        yield group
