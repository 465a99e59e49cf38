"""Limits and settings of a tenant, expired deadlines, and tasks that need a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coord.core.errors import Invalid
from coord.core.ids import short_repr
from coord.core.limits import PROFILES, RATIONALE, UNLIMITED_TENANT, GetLimits, LimitsInfo, SetLimits
from coord.core.sweep import Sweep, SweepReply
from coord.sdk.client.connection import Connection

if TYPE_CHECKING:
    from coord.core.plans.commands import TaskInfo
    from coord.core.settings import SettingInfo, Value

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


def limits_command(tenant: str, profile: str, limits: dict[str, int], by: str) -> SetLimits:
    """Return the command that changes limits, after checking its arguments."""
    if tenant == UNLIMITED_TENANT:
        raise Invalid(
            f"tenant {tenant!r} is unlimited", hint="limits are for other tenants: --tenant, COORD_TENANT"
        )
    if profile != "" and profile not in list(PROFILES):
        raise Invalid(f"unknown profile {short_repr(profile)}", hint=f"use one of {', '.join(PROFILES)}")
    for name, value in limits.items():
        if name not in RATIONALE:
            raise Invalid(f"unknown limit {short_repr(name)}", hint=f"the limits are {', '.join(RATIONALE)}")
        if type(value) is not int or not 0 < value < 2**53:
            raise Invalid(
                f"{name} is {short_repr(value)}, not a whole number above 0",
                hint=f"the default is {getattr(PROFILES['default'], name)}",
            )
    return SetLimits(profile, limits, by)


class LimitCalls(Connection):
    """The limit methods of a client."""

    def limits(self) -> LimitsInfo:
        """Return the limits of this tenant and their current use."""
        return self.call(GetLimits(self.tenant))

    def set_limits(self, *, profile: str = "", **limits: int) -> dict[str, int]:
        """Change limits by profile and by name; return the limits in force. The event names the caller."""
        by = self.caller.session or self.caller.user
        return self.call(limits_command(self.tenant, profile, limits, by))

    def settings(self) -> list[SettingInfo]:
        """Return the settings of this tenant and of the caller's project, each with its source."""
        from coord.core.settings import GetSettings  # most commands read no settings

        return self.call(GetSettings(self.caller.project, self.caller.max_agents))

    def change_settings(self, **settings: Value) -> list[SettingInfo]:
        """Change settings by name; the value "default" resets one. The event names the caller."""
        from coord.core.settings import ChangeSettings, check_setting

        checked = {name: check_setting(name, value) for name, value in settings.items()}
        by = self.caller.session or self.caller.user
        return self.call(ChangeSettings(checked, self.caller.project, by))
