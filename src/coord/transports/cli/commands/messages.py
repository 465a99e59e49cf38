"""Commands about messages."""

from coord.transports.cli.commands.flags import KIND, SENDING, SUBJECT
from coord.transports.cli.spec import Argument, CommandSpec, Flag

COMMANDS = (
    CommandSpec(
        "send",
        "send a message to a session",
        handler="coord.transports.cli.handlers.messages:send",
        examples=("coord send otto request 'please review' --body 'branch login-rework'",),
        arguments=(Argument("peer", "a session or an agent", completes="recipients"), KIND, SUBJECT),
        flags=SENDING,
    ),
    CommandSpec(
        "recv",
        "read the messages to this session",
        handler="coord.transports.cli.handlers.messages:recv",
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
        arguments=(Argument("id", "the id of a message", many=True, dest="ids"),),
    ),
    CommandSpec(
        "broadcast",
        "send a message to every session",
        handler="coord.transports.cli.handlers.messages:broadcast",
        examples=("coord broadcast warn 'main is red' --live-only",),
        arguments=(KIND, SUBJECT),
        flags=(*SENDING[:-1], Flag("live-only", "only to sessions that show a sign of life")),
    ),
)
