"""Commands for limits and expired records."""

from coord.transports.cli.spec import Argument, CommandSpec, Flag

COMMANDS = (
    CommandSpec(
        "sweep",
        "write down what ran out: leases, locks, waits, sessions proven dead, what is past its time",
        handler="coord.transports.cli.handlers.maintenance:sweep",
        examples=("coord sweep", "coord sweep --every 60"),
        flags=(
            Flag(
                "every", "go on, once in this time, until interrupted", "DURATION", "duration", default=None
            ),
        ),
        details="Deadlines act without it, and every command does some of it on its way.",
    ),
    CommandSpec(
        "limits show",
        "show the limits of the tenant, why they are there, and what is used",
        handler="coord.transports.cli.handlers.maintenance:limits_show",
        examples=("coord limits show --tenant acme",),
    ),
    CommandSpec(
        "limits set",
        "change limits of the tenant; it is recorded who did",
        handler="coord.transports.cli.handlers.maintenance:limits_set",
        examples=(
            "coord limits set --tenant acme --profile enterprise",
            "coord limits set --tenant acme max_active_sessions=80",
        ),
        arguments=(Argument("limit", "NAME=NUMBER", many=True, optional=True, dest="limits"),),
        flags=(Flag("profile", "all of them as in this profile", "NAME", choices=("default", "enterprise")),),
        details="Tenant local is unlimited.",
    ),
)
