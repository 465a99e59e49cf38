"""What a program does to keep the books: pass deadlines, and see which tasks need a person."""

from coord.core.plans.commands import GetStuck, TaskInfo
from coord.core.sweep import Sweep, SweepReply
from coord.sdk.client.connection import Connection

SWEEP_BATCH = 256


class MaintenanceCalls(Connection):
    """Sweep, and what is stuck."""

    def sweep(self) -> SweepReply:
        """Pass all deadlines that are due; return how many, and when the next one is.

        Each commit passes a measure of them, so that others come in between.
        """
        passed = 0
        while True:
            swept: SweepReply = self.call(Sweep(self.tenant, SWEEP_BATCH))
            passed += swept.passed
            if swept.passed < SWEEP_BATCH:
                return SweepReply(passed, swept.next_ms)

    def stuck_tasks(self) -> list[TaskInfo]:
        """Return tasks of this project that failed or were tried too often, the first 20."""
        if not self.caller.project:
            return []
        found: list[TaskInfo] = self.call(GetStuck(self.caller.project)).tasks
        return found
