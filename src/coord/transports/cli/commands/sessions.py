"""Commands about sessions."""

from coord.transports.cli.commands.flags import BLOB, CAPABILITIES, REASON, TASK
from coord.transports.cli.spec import Argument, CommandSpec, Flag

COMMANDS = (
    CommandSpec(
        "register",
        "register this session, or update it",
        handler="coord.transports.cli.handlers.sessions:register",
        examples=(
            "coord register --task 'rework the login'",
            "coord register --agent otto --role reviewer --pid 4711",
            "coord register --agent mallory --capabilities testing=1.2,doc=0",
        ),
        flags=(
            *TASK,
            BLOB,
            CAPABILITIES,
            Flag("replaces", "the session that this one continues", "ID", "name", completes="peers"),
            Flag("force", "replace it even if it may be alive"),
            Flag("reason", "why it is replaced by force", "TEXT"),
            Flag("bin", "the agent's program", "PATH", default=None),
            Flag("tool-version", "the version of that program", "TEXT", default=None),
            Flag("model", "the model that the agent uses", "TEXT", default=None),
        ),
    ),
    CommandSpec(
        "heartbeat",
        "report that this session is alive (every 30 s)",
        handler="coord.transports.cli.handlers.sessions:heartbeat",
        examples=("coord heartbeat",),
    ),
    CommandSpec(
        "update",
        "update this session's description",
        handler="coord.transports.cli.handlers.sessions:update",
        examples=(
            "coord update --status blocked",
            'coord update --blob \'{"notes": "half done"}\' --merge-blob',
        ),
        flags=(
            *TASK,
            BLOB,
            CAPABILITIES,
            Flag("merge-blob", "merge --blob into the stored data instead of replacing it"),
            Flag(
                "owned",
                "its worktrees, branches, files, processes and agents",
                "JSON",
                "document",
                default=None,
            ),
        ),
    ),
    CommandSpec(
        "peers",
        "list the other sessions, and those of other repositories",
        handler="coord.transports.cli.handlers.sessions:peers",
        reads=True,
        examples=("coord peers", "coord peers --live"),
        flags=(Flag("live", "leave out sessions that show no sign of life"),),
    ),
    CommandSpec(
        "status",
        "show this session: its claims, locks, waits and messages",
        handler="coord.transports.cli.handlers.sessions:status",
        reads=True,
        examples=("coord status",),
    ),
    CommandSpec(
        "dashboard",
        "show what all agents do, the locks and the queue",
        handler="coord.transports.cli.handlers.sessions:dashboard",
        reads=True,
        examples=("coord dashboard", "coord dashboard --json"),
        details="Columns: Agent, State, Current Task, QueueDepth (tasks besides the current one), "
        "LastHeartbeat. In JSON they are the rows of `table`, beside `tickets` and `queued`.",
    ),
    CommandSpec(
        "brief",
        "print what this session has to know about its crew",
        handler="coord.transports.cli.handlers.awareness.brief:brief",
        reads=True,
        examples=("coord brief", "coord brief --lead", "coord brief --json"),
        flags=(Flag("lead", "as the lead sees it: health, own agents, others"),),
        details="Prints the CREW_UPDATE block that hooks give to agents, in a pipe, too. --json prints the "
        "same as data. A session with sub-agents is a lead without the flag, and so is a person.",
    ),
    CommandSpec(
        "session show",
        "show a session's claims, results and next steps",
        handler="coord.transports.cli.handlers.sessions:session_show",
        reads=True,
        examples=("coord session show", "coord session show otto"),
        arguments=(
            Argument("session", "the session to show (default: this one)", optional=True, completes="peers"),
        ),
    ),
    CommandSpec(
        "dereg",
        "end this session and its sub-agents",
        handler="coord.transports.cli.handlers.sessions:dereg",
        examples=("coord dereg", "coord dereg s-otto --force --reason 'it does nothing useful'"),
        arguments=(
            Argument(
                "session", "a child of this session, or a dead session", optional=True, completes="peers"
            ),
        ),
        flags=(
            Flag("force", "end any session, as a person; requires --reason"),
            REASON._replace(summary="why, in one line; coord records it"),
        ),
        alias="deregister",
    ),
    CommandSpec(
        "top",
        "watch agents, locks and tasks live, and act on them",
        handler="coord.transports.cli.top.command:top",
        connects=False,
        reads=True,
        examples=("coord top --once", "coord top --once --sort state"),
        flags=(
            Flag("once", "print one frame and end"),
            Flag(
                "sort",
                "the first order: name, state or time",
                "ORDER",
                choices=("name", "state", "time"),
                default="name",
            ),
        ),
        details="Keys: j and k or arrows select a row, enter opens it and says why it waits, / filters, r "
        "releases, s steals for a reason, m writes to its session, ? lists all keys, q quits. Each action "
        "shows the coord command that does the same. It needs a terminal; coord dashboard does not.",
    ),
)
