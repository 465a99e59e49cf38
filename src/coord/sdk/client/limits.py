"""What a program does about the limits of a tenant: look at them, and change them."""

from coord.core.errors import Invalid
from coord.core.ids import shown
from coord.core.limits import PROFILES, RATIONALE, UNLIMITED_TENANT, GetLimits, LimitsInfo, SetLimits
from coord.sdk.client.connection import Connection


def limits_command(tenant: str, profile: str, limits: dict[str, int], by: str) -> SetLimits:
    """Return the command that changes limits, once all of it is checked."""
    if tenant == UNLIMITED_TENANT:
        raise Invalid(
            f"tenant {tenant!r} is unlimited", hint="limits are for other tenants: --tenant, COORD_TENANT"
        )
    if profile != "" and profile not in list(PROFILES):
        raise Invalid(f"there is no profile {shown(profile)}", hint=f"use one of {', '.join(PROFILES)}")
    for name, value in limits.items():
        if name not in RATIONALE:
            raise Invalid(f"there is no limit {shown(name)}", hint=f"the limits are {', '.join(RATIONALE)}")
        if type(value) is not int or not 0 < value < 2**53:
            raise Invalid(
                f"{name} is {shown(value)}, not a whole number above 0",
                hint=f"the default is {getattr(PROFILES['default'], name)}",
            )
    return SetLimits(profile, limits, by)


class LimitCalls(Connection):
    """Show and set the limits of this tenant."""

    def limits(self) -> LimitsInfo:
        """Return the limits of this tenant, and what is used of them."""
        return self.call(GetLimits(self.tenant))

    def set_limits(self, *, profile: str = "", **limits: int) -> dict[str, int]:
        """Change limits, from a profile and by name; the event says who did. Return those in force."""
        by = self.caller.session or self.caller.user
        return self.call(limits_command(self.tenant, profile, limits, by))
