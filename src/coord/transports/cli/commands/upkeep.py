"""The commands about limits, and about what has to be looked after or prepared; `table.py` has the others."""

from coord.transports.cli.spec import Command, Flag, Word

UPKEEP = (
    Command(
        "sweep",
        "upkeep",
        "write down what ran out: leases, locks, waits, sessions proven dead, what is past its time",
        "handlers.upkeep:sweep",
        ("coord sweep", "coord sweep --every 60"),
        flags=(
            Flag(
                "every", "go on, once in this time, until interrupted", "DURATION", "duration", default=None
            ),
        ),
        details="Deadlines act without it, and every command does some of it on its way.",
    ),
    Command(
        "limits show",
        "upkeep",
        "show the limits of the tenant, why they are there, and what is used",
        "handlers.limits:show",
        ("coord limits show --tenant acme",),
    ),
    Command(
        "limits set",
        "upkeep",
        "change limits of the tenant; it is recorded who did",
        "handlers.limits:set_",
        (
            "coord limits set --tenant acme --profile enterprise",
            "coord limits set --tenant acme max_active_sessions=80",
        ),
        (Word("limit", "NAME=NUMBER", many=True, optional=True),),
        (Flag("profile", "all of them as in this profile", "NAME", choices=("default", "enterprise")),),
        details="Tenant local is unlimited.",
    ),
    Command(
        "install",
        "setup",
        "prepare a store: schema, tables and views on a server; again without harm, to renew them",
        "handlers.install:install",
        (
            "coord install postgresql://coord_owner@db.example/coord",
            "coord install postgresql://coord_owner@db.example/coord --grants",
            "coord install --tenant acme",
        ),
        (Word("url", "the store (default: that of this repository)", optional=True),),
        (
            Flag("grants", "only print what an administrator runs to give the rights it takes"),
            Flag("dry-run", "change nothing; say whether there is anything to make", excludes="grants"),
        ),
        connects=False,
        details="With --tenant: the store of its own that coord.toml gives a tenant below [tenants].",
    ),
)
