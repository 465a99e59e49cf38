"""Test why something does not go on: sessions of one project that lock files, wait, ask and claim."""

from typing import Any

import msgspec

from coord.core.identity import Caller, Evidence, Process, ProcessState
from coord.core.lifecycle.commands import Register
from coord.core.locks.commands import AcquireLocks
from coord.core.questions.commands import AskQuestion
from coord.core.why.commands import WhyLock, WhyReply, WhySession, WhyTask
from coord.engine.engine import Engine
from tests.support.plan_harness import PlanHarness

PROCESS = Process(4711, 1, "machine", "boot")


class WhyHarness(PlanHarness):
    """Sessions with agents of the same name; `life` is what a probe says about the process of all."""

    def __init__(self) -> None:
        super().__init__()
        self.life = ProcessState.ALIVE
        probe = lambda _process: Evidence(self.life, "gone")  # noqa: E731
        self.engine = Engine(self.database, "local", clock=lambda: self.now, probe=probe)

    @staticmethod
    def caller(name: str, *, process: bool = False) -> Caller:
        caller = Caller(name, agent=name, project="p", repository="r")
        return msgspec.structs.replace(caller, process=PROCESS) if process else caller

    def begin(self, *names: str, process: bool = False, **fields: Any) -> None:
        for name in names:
            self.engine.call(Register(caller=self.caller(name, process=process), **fields))

    def lock(self, session: str, *files: str, wait_ms: int = 0, reason: str = "") -> bool:
        command = AcquireLocks(
            caller=self.caller(session),
            repository="r",
            resources=tuple(f"file:{name}" for name in files),
            wait_ms=wait_ms,
            wait_id=f"w-{session}",
            ttl_ms=600_000,
            reason=reason,
        )
        return bool(self.engine.call(command).ok)

    def ask_person(self, session: str, text: str) -> str:
        return str(self.engine.call(AskQuestion(caller=self.caller(session), text=text)).id)

    def why(self, session: str) -> WhyReply:
        reply: WhyReply = self.engine.call(WhySession(session))
        return reply

    def why_task(self, task: str) -> WhyReply:
        reply: WhyReply = self.engine.call(WhyTask("p", task))
        return reply

    def why_lock(self, resource: str) -> WhyReply:
        reply: WhyReply = self.engine.call(WhyLock("r", resource))
        return reply


def texts(reply: WhyReply) -> list[tuple[int, str]]:
    """Return the chain as depths and sentences."""
    return [(reason.depth, reason.text) for reason in reply.reasons]


def remedy(reply: WhyReply) -> list[str]:
    """Return the words of the command that frees it; none if there is none."""
    return reply.remedy.command if reply.remedy is not None else []
