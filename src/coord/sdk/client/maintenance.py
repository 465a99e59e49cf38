"""Process expired deadlines, and list tasks that need a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coord.core.sweep import Sweep, SweepReply
from coord.sdk.client.connection import Connection

if TYPE_CHECKING:
    from coord.core.plans.commands import TaskInfo

SWEEP_BATCH = 256
GRACE_S = 10.0


class MaintenanceCalls(Connection):
    """The maintenance methods of a client."""

    def sweep(self) -> SweepReply:
        """Process all deadlines that have passed, then trim the log; return the numbers.

        One commit processes at most `SWEEP_BATCH`, so that other commands are not held up.
        """
        passed = 0
        while True:
            swept: SweepReply = self.call(Sweep(self.tenant, SWEEP_BATCH))
            passed += swept.passed
            if swept.passed < SWEEP_BATCH:
                return SweepReply(passed, swept.next_ms, self.engine.trim())

    def end_hung(self, *, grace_s: float = GRACE_S) -> list[str]:
        """End the processes of `coord work` on this machine that hang; return their sessions.

        Nothing else is ended: other hung sessions are reported to their parents and to the log.
        """
        from coord.core.lifecycle.commands import HungSession, ListHung
        from coord.host.processes import end_process

        hung: list[HungSession] = self.call(ListHung())
        return [each.session_id for each in hung if end_process(each.runner, grace_s)]

    def stuck_tasks(self) -> list[TaskInfo]:
        """Return the first 20 tasks of this project that failed or have no retries left."""
        from coord.core.plans.commands import GetStuck

        if not self.caller.project:
            return []
        found: list[TaskInfo] = self.call(GetStuck(self.caller.project)).tasks
        return found
