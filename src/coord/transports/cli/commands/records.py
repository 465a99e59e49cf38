"""Commands that read the log and move the store."""

from coord.transports.cli.spec import Argument, CommandSpec, Flag

COMMANDS = (
    CommandSpec(
        "log",
        "what happened, in numbers (stats), who held what when (locks), what a session did (session)",
        handler="coord.transports.cli.handlers.records:log",
        examples=(
            "coord log tail -n 20 --op lock --since 1h",
            "coord log locks src/app.py",
            "coord log session otto",
        ),
        arguments=(
            Argument(
                "what", "which view of the log", choices=("tail", "stats", "locks", "session"), dest="view"
            ),
            Argument(
                "of",
                "with locks a resource, with session a session (default: this one)",
                optional=True,
                dest="subject",
            ),
        ),
        flags=(
            Flag("n", "at most so many (default: 50)", "N", "number", default=50, dest="limit"),
            Flag("op", "only this event, such as lock.denied, or this kind of event", "EVENT", "name"),
            Flag("actor", "only what this session or agent did", "ID", "name", completes="peers"),
            Flag("resource", "only what concerns this", "RESOURCE", "name", completes="files"),
            Flag("since", "only what is not older", "DURATION", "duration", default=None),
            Flag("follow", "go on as things happen, one line each, until interrupted"),
        ),
        connects=False,
        details="Where the log was trimmed it begins later, and the answer says so (begins_at).",
    ),
    CommandSpec(
        "metrics",
        "print numbers for Prometheus",
        handler="coord.transports.cli.handlers.records:metrics",
        examples=("coord metrics",),
        details="Computed from records and log when asked; counters begin anew where the log was trimmed.",
    ),
    CommandSpec(
        "migrate",
        "move the store of this repository to another url: records, history and fences stay as they are",
        handler="coord.transports.cli.handlers.records:migrate",
        examples=(
            "coord migrate --to-url postgresql://db.example/coord --dry-run",
            "coord migrate --to-url postgresql://db.example/coord",
        ),
        flags=(
            Flag("to-url", "the new store, which must be empty", "URL", "name"),
            Flag("dry-run", "only count what would be moved"),
            Flag("cancel", "use the old store again, if the move was not completed"),
        ),
        connects=False,
        details="The old store is shut meanwhile. If it is interrupted, the same command goes on.",
    ),
)
