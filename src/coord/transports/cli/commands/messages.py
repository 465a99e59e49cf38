"""Commands about messages."""

from coord.transports.cli.commands.flags import KIND, SENDING, SUBJECT
from coord.transports.cli.spec import Argument, CommandSpec, Flag

COMMANDS = (
    CommandSpec(
        "send",
        "send a message to a session",
        handler="coord.transports.cli.handlers.messages:send",
        examples=("coord send otto request 'please review' --body 'branch login-rework'",),
        arguments=(Argument("peer", "a session or agent", completes="peers"), KIND, SUBJECT),
        flags=SENDING,
    ),
    CommandSpec(
        "recv",
        "read the messages to this session",
        handler="coord.transports.cli.handlers.messages:recv",
        examples=("coord recv --drain", "coord recv --wait 30s"),
        flags=(
            Flag("drain", "take them for good; without it they come again until coord ack"),
            Flag("peek", "only look", excludes="drain"),
            Flag("wait", "wait this long for one; then exit 3", "DURATION", "duration or zero", default=0.0),
        ),
    ),
    CommandSpec(
        "ack",
        "say that messages were dealt with",
        handler="coord.transports.cli.handlers.messages:ack",
        examples=("coord ack 17-0",),
        arguments=(Argument("id", "a message", many=True, dest="ids"),),
    ),
    CommandSpec(
        "broadcast",
        "send a message to every session",
        handler="coord.transports.cli.handlers.messages:broadcast",
        examples=("coord broadcast warn 'main is red' --live-only",),
        arguments=(KIND, SUBJECT),
        flags=(*SENDING[:-1], Flag("live-only", "only to those with a sign of life")),
    ),
)
