"""Test the rules of alerts on a memory store: agents by name, samples of their processes, a clock."""

from typing import Any

from coord.core.alerts.commands import (
    AlertInfo,
    AlertList,
    CheckAlerts,
    CheckReply,
    CloseAlert,
    ListAlerts,
    SessionSample,
)
from coord.core.alerts.schema import Sample
from coord.core.identity import Caller, Process, ProcessState
from coord.core.lifecycle.commands import Register
from coord.core.locks.commands import BeginToolCall, EndToolCall
from coord.core.sessions.commands import UpdateSession
from coord.core.settings import ChangeSettings
from tests.support.lock_harness import LockHarness

MINUTE = 60_000
QUIET = Sample(cpu_ms=0, read_bytes=0, written_bytes=0, processes=1, newest=1)


class AlertHarness(LockHarness):
    """Agents run in processes that can be seen; a check takes a sample of each, quiet if none is given."""

    def __init__(self) -> None:
        super().__init__()
        self.samples: dict[str, Sample] = {}

    def start(self, name: str, *, agent: str = "", status: str = "working", seen: bool = True) -> None:
        """Register an agent; with `seen` its process can be looked at."""
        if seen:
            self.pids[name] = 100 + len(self.pids)
            self.life[self.pids[name]] = ProcessState.ALIVE
            self.samples[name] = QUIET
        caller = Caller(name, agent=agent or name, project="p", process=self.who(name).process)
        self.engine.call(Register(caller=caller, status=status))

    def use(self, name: str, **used: int) -> None:
        """Let the processes of an agent use more of something."""
        before = self.samples[name]
        after = {field: getattr(before, field) + used.get(field, 0) for field in before.__struct_fields__}
        self.samples[name] = Sample(**after)

    def begin(self, name: str, lease_ms: int = 660_000) -> None:
        """Begin a tool call."""
        command = BeginToolCall(self.who(name), "r", (), call="c1", lease_ms=lease_ms)
        self.engine.call(command)

    def end(self, name: str) -> None:
        """End the tool call."""
        self.engine.call(EndToolCall(self.who(name), "c1", repository="r"))

    def look(self) -> CheckReply:
        """Check now."""
        taken = tuple(
            SessionSample(name, Process(self.pids[name], 1), sample) for name, sample in self.samples.items()
        )
        reply: CheckReply = self.engine.call(CheckAlerts(taken))
        return reply

    def watch(self, minutes: int) -> None:
        """Let time pass, with a check every minute."""
        for _ in range(minutes):
            self.pass_time(MINUTE)
            self.look()

    def fill(self, name: str, percent: object) -> None:
        """Let an agent report how full its context is."""
        caller = Caller(name, agent=name, project="p", process=self.who(name).process)
        self.engine.call(UpdateSession(caller=caller, merge_blob={"context_percent": percent}))

    def set(self, **settings: Any) -> None:
        """Change settings."""
        self.engine.call(ChangeSettings(settings))

    def listed(self, *, closed: bool = False, project: str = "") -> AlertList:
        """List alerts."""
        command = ListAlerts(caller=self.who("watcher"), closed=closed, project=project)
        found: AlertList = self.engine.call(command)
        return found

    def open(self) -> list[tuple[str, str]]:
        """Return rule and subject of each open alert."""
        return [(each.rule, each.subject) for each in self.listed().alerts]

    def outcomes(self) -> list[tuple[str, str]]:
        """Return rule and outcome of each closed alert, newest first."""
        return [(each.rule, each.outcome.value) for each in self.listed(closed=True).alerts if each.closed_ms]

    def close(self, name: str, *, right: bool, note: str = "", by: str = "user-eve") -> AlertInfo:
        """Close an alert as a person."""
        caller = Caller(by, person=True, terminal=True)
        found: AlertInfo = self.engine.call(CloseAlert(caller=caller, id=name, right=right, note=note))
        return found
