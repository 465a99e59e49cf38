"""Test claims together with their locks: tasks with files, on the harness of locks."""

from typing import Any

import msgspec

from coord.core.plans.commands import AddTasks, ClaimNamed, ClaimNext, ClaimReply, GetTasks, NewTask
from coord.core.tasks.commands import AsSession, ReleaseClaim, RenewLease, ResetTask, SubmitResult
from coord.core.tasks.types import SubmissionResult
from tests.support.lock_harness import REPOSITORY, LockHarness

LEASE_MS = 60_000


class ClaimHarness(LockHarness):
    """Sessions claim tasks of the project `p` by name."""

    def add(self, task_id: str, *files: str, **fields: Any) -> None:
        new = NewTask(
            task_id=task_id, files=tuple(f"file:{path}" for path in files), repository=REPOSITORY, **fields
        )
        self.engine.call(AddTasks("p", (new,)))

    def claim(self, name: str, task_id: str, **options: Any) -> ClaimReply:
        options = {"lease_ms": LEASE_MS, "repository": REPOSITORY, **options}
        command = ClaimNamed(caller=self.agent(name), tenant="local", project="p", task=task_id, **options)
        reply: ClaimReply = self.engine.call(command)
        return reply

    def take(self, name: str, **options: Any) -> str:
        """Take the next task; return its name, or the outcome."""
        options = {"lease_ms": LEASE_MS, "repository": REPOSITORY, **options}
        command = ClaimNext(caller=self.agent(name), tenant="local", project="p", **options)
        reply = self.engine.call(command)
        return str(reply.task.task_id if reply.task else reply.outcome.value)

    def agent(self, name: str) -> Any:
        return msgspec.structs.replace(self.who(name), agent=name)

    def submit(self, name: str, task_id: str, generation: int = 1) -> SubmissionResult:
        command = SubmitResult("local", "p", task_id, "", generation, b"{}", "wp")
        reply: SubmissionResult = self.engine.call(AsSession(self.agent(name), command))
        return reply

    def renew_claim(self, name: str, task_id: str, generation: int = 1) -> Any:
        return self.engine.call(
            AsSession(self.agent(name), RenewLease("local", "p", task_id, "", generation))
        )

    def release_claim(self, name: str, task_id: str, generation: int = 1) -> Any:
        return self.engine.call(
            AsSession(self.agent(name), ReleaseClaim("local", "p", task_id, "", generation))
        )

    def reset(self, task_id: str) -> None:
        assert self.engine.call(ResetTask("local", "p", task_id)).success

    def state(self, task_id: str) -> str:
        return str(self.engine.call(GetTasks("p", (task_id,))).tasks[0].state)
