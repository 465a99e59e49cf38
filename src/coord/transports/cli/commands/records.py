"""Commands that read the log and move the store."""

from coord.transports.cli.spec import Argument, CommandSpec, Flag

COMMANDS = (
    CommandSpec(
        "log",
        "show the log of events",
        handler="coord.transports.cli.handlers.records:log",
        examples=(
            "coord log tail -n 20 --op lock --since 1h",
            "coord log locks src/app.py",
            "coord log session otto",
            "coord log activity --type file_edit --since 1h",
        ),
        arguments=(
            Argument(
                "what",
                "events, counts, lock periods, one session, or actions",
                choices=("tail", "stats", "locks", "session", "activity"),
                dest="view",
            ),
            Argument(
                "of",
                "a resource (locks) or a session (session)",
                optional=True,
                dest="subject",
            ),
        ),
        flags=(
            Flag("n", "at most N entries (default: 50)", "N", "number", default=50, dest="limit"),
            Flag("op", "only this event, or kind: lock.denied, lock", "EVENT", "name"),
            Flag("agent", "only actions of this session or agent", "ID", "name", completes="peers"),
            Flag("type", "only this action: file_edit, error, …", "ACTION", "name"),
            Flag("actor", "only events of this session or agent", "ID", "name", completes="peers"),
            Flag("resource", "only events about this resource", "RESOURCE", "name", completes="files"),
            Flag("since", "only events of the last DURATION", "DURATION", "duration", default=None),
            Flag("follow", "print new events until interrupted"),
        ),
        connects=False,
        details="If old entries were trimmed, begins_at is the first offset that is left.",
    ),
    CommandSpec(
        "follow",
        "run a follower of the log, or list them",
        handler="coord.transports.cli.handlers.awareness.follow:follow",
        examples=("coord follow list", "coord follow metrics --once"),
        arguments=(Argument("name", "a follower, or list"),),
        flags=(
            Flag("once", "end at the end of the log"),
            Flag("rebuild", "compute its state again from the log"),
        ),
        details="A hub runs all followers itself. Without a hub, this runs one until it is interrupted.",
    ),
    CommandSpec(
        "reactions list",
        "list the reactions, and tables that do not count",
        handler="coord.transports.cli.handlers.awareness.reactions:list_reactions",
        reads=True,
        examples=("coord reactions list",),
        details="A table [[on]] in coord.toml is a reaction, after a person has confirmed that file. The hub "
        "performs them; without one, coord follow reactions does. The list says if nobody does.",
    ),
    CommandSpec(
        "reactions test",
        "perform a reaction now, for an event of your choice",
        handler="coord.transports.cli.handlers.awareness.reactions:try_reaction",
        examples=(
            "coord reactions test chat",
            'coord reactions test chat --event \'{"event":"task.completed","task":"A-1"}\'',
        ),
        arguments=(Argument("name", "a reaction"),),
        flags=(Flag("event", "the event: its name and fields", "JSON", "document", default=None),),
        details="It is tried once. Its delivery has the offset 0.",
    ),
    CommandSpec(
        "reactions dead",
        "list deliveries that failed, try one again, or drop it",
        handler="coord.transports.cli.handlers.awareness.reactions:dead",
        examples=("coord reactions dead", "coord reactions dead --retry 41.0.chat"),
        flags=(
            Flag("retry", "try this delivery again", "ID", excludes="drop"),
            Flag("drop", "forget this delivery", "ID"),
        ),
        details="The newest 100 are kept.",
    ),
    CommandSpec(
        "metrics",
        "print metrics for Prometheus",
        handler="coord.transports.cli.handlers.records:metrics",
        reads=True,
        examples=("coord metrics", "coord metrics --prefix shop"),
        flags=(Flag("prefix", "instead of coditect, in names of the documents", "PREFIX", "name"),),
        details="Counters and histograms follow the log and survive a restart; gauges say what is now.",
    ),
    CommandSpec(
        "report",
        "show what was done: tasks, agents, overwrites",
        handler="coord.transports.cli.handlers.awareness.report:report",
        reads=True,
        examples=("coord report", "coord report --since 7d --json", "coord report --html run.html"),
        flags=(
            Flag("since", "the time before now (default: 24h)", "DURATION", "duration", default=86_400.0),
            Flag("html", "write the page with that part of the log into one file", "FILE"),
        ),
        details="Read from the log. It shows throughput and latency, zombies that were refused, overwrites "
        "prevented and undone, deadlocks, what people did by hand, how busy each agent was, and the files "
        "that were wanted most.",
    ),
    CommandSpec(
        "migrate",
        "move this repository's store to another URL",
        handler="coord.transports.cli.handlers.records:migrate",
        examples=(
            "coord migrate --to-url postgresql://db.example/coord --dry-run",
            "coord migrate --to-url postgresql://db.example/coord",
        ),
        flags=(
            Flag("to-url", "the new store, which must be empty", "URL", "name"),
            Flag("dry-run", "count the records without moving them"),
            Flag("cancel", "reopen the old store after an incomplete move"),
        ),
        connects=False,
        details="Records, history and fences stay the same. The old store takes no commits during the "
        "move. If the move is interrupted, run the same command again.",
    ),
)
