"""Commands about sessions."""

from coord.transports.cli.commands.flags import BLOB, CAPABILITIES, TASK
from coord.transports.cli.spec import Argument, CommandSpec, Flag

COMMANDS = (
    CommandSpec(
        "register",
        "say that this session is here; again keeps what is not named",
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
            Flag("replaces", "the session that this one goes on for", "ID", "name"),
            Flag("bin", "the program of the agent", "PATH", default=None),
            Flag("tool-version", "the version of that program", "TEXT", default=None),
        ),
    ),
    CommandSpec(
        "heartbeat",
        "say that this session is still at work (every 30 s)",
        handler="coord.transports.cli.handlers.sessions:heartbeat",
        examples=("coord heartbeat",),
    ),
    CommandSpec(
        "update",
        "change what this session says of itself",
        handler="coord.transports.cli.handlers.sessions:update",
        examples=(
            "coord update --status blocked",
            'coord update --blob \'{"notes": "half done"}\' --merge-blob',
        ),
        flags=(
            *TASK,
            BLOB,
            CAPABILITIES,
            Flag("merge-blob", "merge --blob into what is there, instead of replacing it"),
            Flag(
                "owned",
                "what it owns: worktrees, branches, files, processes, agents",
                "JSON",
                "document",
                default=None,
            ),
        ),
    ),
    CommandSpec(
        "peers",
        "list the sessions",
        handler="coord.transports.cli.handlers.sessions:peers",
        examples=("coord peers", "coord peers --live"),
        flags=(Flag("live", "leave out those without a sign of life"),),
    ),
    CommandSpec(
        "status",
        "show this session: what it holds, does and awaits",
        handler="coord.transports.cli.handlers.sessions:status",
        examples=("coord status",),
    ),
    CommandSpec(
        "session show",
        "show what a session claimed, lost and finished, and what it needs to go on",
        handler="coord.transports.cli.handlers.sessions:session_show",
        examples=("coord session show", "coord session show otto"),
        arguments=(Argument("session", "another one than this", optional=True, completes="peers"),),
    ),
    CommandSpec(
        "dereg",
        "end this session and release all it holds",
        handler="coord.transports.cli.handlers.sessions:dereg",
        examples=("coord dereg",),
        arguments=(
            Argument("session", "one below this one, or a dead one", optional=True, completes="peers"),
        ),
        alias="deregister",
    ),
)
