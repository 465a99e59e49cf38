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
        details="Deadlines take effect without a sweep, and every command sweeps a little.",
    ),
    CommandSpec(
        "limits show",
        "show the tenant's limits and their use",
        handler="coord.transports.cli.handlers.maintenance:limits_show",
        examples=("coord limits show --tenant acme",),
    ),
    CommandSpec(
        "limits set",
        "change the tenant's limits",
        handler="coord.transports.cli.handlers.maintenance:limits_set",
        examples=(
            "coord limits set --tenant acme --profile enterprise",
            "coord limits set --tenant acme max_active_sessions=80",
        ),
        arguments=(Argument("limit", "NAME=NUMBER", many=True, optional=True, dest="limits"),),
        flags=(
            Flag("profile", "set all limits as in this profile", "NAME", choices=("default", "enterprise")),
        ),
        details="coord records who changed a limit. Tenant local is unlimited.",
    ),
)
