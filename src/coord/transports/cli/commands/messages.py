"""Commands about messages."""

from coord.transports.cli.commands.flags import KIND, SENDING, SUBJECT
from coord.transports.cli.spec import Argument, CommandSpec, Flag

GROUP = Argument("name", "the name of the group", completes="groups")
DELEGATION = Argument("id", "the id of a delegation", completes="delegations")

COMMANDS = (
    CommandSpec(
        "send",
        "send a message to a session, an agent or several",
        handler="coord.transports.cli.handlers.messages:send",
        examples=(
            "coord send otto request 'please review' --body 'branch login-rework'",
            "coord send role:reviewer emergency 'a key leaked: do not push'",
        ),
        arguments=(
            Argument("to", "a session, an agent, role:NAME or group:NAME", completes="recipients"),
            KIND,
            SUBJECT,
        ),
        flags=SENDING,
        details=(
            "TO is a full session id, else an agent's name, else the beginning of one session's id; first "
            "in this repository, then in the others of this machine. A name or role means its live "
            "sessions. An emergency stops the edits and commands of its recipients until `coord ack`."
        ),
    ),
    CommandSpec(
        "recv",
        "read the messages to this session",
        handler="coord.transports.cli.handlers.messages:recv",
        reads=True,
        examples=("coord recv --drain", "coord recv --wait 30s"),
        flags=(
            Flag("drain", "acknowledge them at once"),
            Flag("peek", "do not mark them as delivered", excludes="drain"),
            Flag(
                "wait",
                "wait up to DURATION for one, then exit 3",
                "DURATION",
                "duration or zero",
                default=0.0,
            ),
        ),
    ),
    CommandSpec(
        "ack",
        "acknowledge messages",
        handler="coord.transports.cli.handlers.messages:ack",
        examples=("coord ack 17-0",),
        arguments=(Argument("id", "the id of a message", many=True, completes="unread", dest="ids"),),
        flags=(
            Flag("of", "the session that got it (only for people)", "SESSION", "name", completes="peers"),
        ),
    ),
    CommandSpec(
        "broadcast",
        "send a message to every session",
        handler="coord.transports.cli.handlers.messages:broadcast",
        examples=("coord broadcast warn 'main is red' --live-only",),
        arguments=(KIND, SUBJECT),
        flags=(*SENDING[:-1], Flag("live-only", "only to sessions that show a sign of life")),
    ),
    CommandSpec(
        "group create",
        "begin a group, with this session in it",
        handler="coord.transports.cli.handlers.messages:group_create",
        examples=("coord group create frontend",),
        arguments=(GROUP,),
        details="Messages to group:NAME reach its members. A session that ends leaves its groups.",
    ),
    CommandSpec(
        "group join",
        "join a group",
        handler="coord.transports.cli.handlers.messages:group_join",
        examples=("coord group join frontend",),
        arguments=(GROUP,),
    ),
    CommandSpec(
        "group leave",
        "leave a group; the last member ends it",
        handler="coord.transports.cli.handlers.messages:group_leave",
        examples=("coord group leave frontend",),
        arguments=(GROUP,),
    ),
    CommandSpec(
        "group list",
        "list the groups and their members",
        handler="coord.transports.cli.handlers.messages:group_list",
        reads=True,
        examples=("coord group list",),
    ),
    CommandSpec(
        "group show",
        "show the members of a group",
        handler="coord.transports.cli.handlers.messages:group_show",
        reads=True,
        examples=("coord group show frontend",),
        arguments=(GROUP,),
    ),
    CommandSpec(
        "delegation add",
        "delegate work to a session or an agent",
        handler="coord.transports.cli.handlers.messages:delegation_add",
        examples=("coord delegation add otto 'write tests for the login form' --task A-001-login",),
        arguments=(
            Argument("to", "a session, or an agent with one session", completes="recipients"),
            Argument("what", "what to do, in one line"),
        ),
        flags=(Flag("task", "the task it belongs to", "ID", "name", completes="tasks"),),
        details=(
            "Warns if a similar delegation is active, and delegates anyway. It ends when it is done, "
            "cancelled, or when the session of its recipient ends."
        ),
    ),
    CommandSpec(
        "delegation list",
        "list the delegations that are not done",
        handler="coord.transports.cli.handlers.messages:delegation_list",
        reads=True,
        examples=("coord delegation list",),
    ),
    CommandSpec(
        "delegation done",
        "report that delegated work is done",
        handler="coord.transports.cli.handlers.messages:delegation_done",
        examples=("coord delegation done d-1f3a9c02",),
        arguments=(DELEGATION,),
    ),
    CommandSpec(
        "delegation cancel",
        "cancel a delegation of this session",
        handler="coord.transports.cli.handlers.messages:delegation_cancel",
        examples=("coord delegation cancel d-1f3a9c02",),
        arguments=(DELEGATION,),
    ),
)
