"""What a program does to keep the books: pass deadlines, and see which tasks need a person."""

from coord.core import commands
from coord.core.plans import commands as plan_commands
from coord.core.replies import Swept, TaskListed
from coord.sdk.client.connection import Connection

SWEEP_BATCH = 256


class MaintenanceCalls(Connection):
    """Sweep, and what is stuck."""

    def sweep(self) -> Swept:
        """Pass all deadlines that are due; return how many, and when the next one is.

        Each commit passes a measure of them, so that others come in between.
        """
        passed = 0
        while True:
            swept: Swept = self.call(commands.Sweep(self.tenant, SWEEP_BATCH))
            passed += swept.passed
            if swept.passed < SWEEP_BATCH:
                return Swept(passed, swept.next_ms)

    def stuck_tasks(self) -> list[TaskListed]:
        """Return tasks of this project that failed or were tried too often, the first 20."""
        if not self.caller.project:
            return []
        found: list[TaskListed] = self.call(plan_commands.GetStuck(self.caller.project)).tasks
        return found
