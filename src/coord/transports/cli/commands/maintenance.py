"""Commands for limits and expired records."""

from coord.transports.cli.spec import Argument, CommandSpec, Flag

COMMANDS = (
    CommandSpec(
        "sweep",
        "record expired leases, locks and waits, and dead sessions",
        handler="coord.transports.cli.handlers.maintenance:sweep",
        examples=("coord sweep", "coord sweep --every 60"),
        flags=(
            Flag("every", "repeat every DURATION until interrupted", "DURATION", "duration", default=None),
        ),
        details="Deadlines take effect without a sweep, and every command sweeps a little. Only a sweep and "
        "coord work end processes of coord work on this machine that hang (setting hung_seconds).",
    ),
    CommandSpec(
        "limits show",
        "show limits and settings with their use and source",
        handler="coord.transports.cli.handlers.maintenance:limits_show",
        reads=True,
        examples=("coord limits show", "coord limits show --tenant acme"),
    ),
    CommandSpec(
        "limits set",
        "change limits and settings",
        handler="coord.transports.cli.handlers.maintenance:limits_set",
        examples=(
            "coord limits set max_agents=8",
            "coord limits set project_lock_nesting=on steal_policy=default",
            "coord limits set --tenant acme --profile enterprise",
            "coord limits set --tenant acme max_active_sessions=80",
        ),
        arguments=(Argument("limit", "NAME=VALUE", many=True, optional=True, dest="limits"),),
        flags=(
            Flag("profile", "set all limits as in this profile", "NAME", choices=("default", "enterprise")),
        ),
        details="coord records who changed what. The value default resets a setting. max_agents belongs to "
        "the project, the other settings to the tenant. Tenant local has settings, but no limits.",
    ),
)
