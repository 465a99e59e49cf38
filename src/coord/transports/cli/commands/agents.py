"""Commands about agents, and which agent a task suits."""

from coord.transports.cli.commands.flags import PRIORITY
from coord.transports.cli.spec import Argument, CommandSpec, Flag

NAME = Argument("agent", "an agent's name")
WHY = Flag("reason", "why, in one line; it is recorded", "TEXT")

COMMANDS = (
    CommandSpec(
        "agent list",
        "list the agents of this project: what they have in hand, how they did, why one gets nothing",
        handler="coord.transports.cli.handlers.agents:list_",
        examples=("coord agent list", "coord agent list rem"),
        arguments=(NAME._replace(optional=True),),
    ),
    CommandSpec(
        "agent disable",
        "take an agent out of the pool: it is given no task until it is enabled",
        handler="coord.transports.cli.handlers.agents:disable",
        examples=("coord agent disable rem --reason 'its key has expired'",),
        arguments=(NAME,),
        flags=(WHY,),
    ),
    CommandSpec(
        "agent enable",
        "take an agent back into the pool; its failures and limits are forgotten",
        handler="coord.transports.cli.handlers.agents:enable",
        examples=("coord agent enable rem",),
        arguments=(NAME,),
        flags=(WHY,),
    ),
    CommandSpec(
        "route",
        "say whom a task is for, and why; one that is there, or one that is described",
        handler="coord.transports.cli.handlers.agents:route",
        examples=(
            "coord route A-001-login --explain",
            "coord route --description 'create a signup form' --explain",
        ),
        arguments=(Argument("task", "a task's id", optional=True, completes="tasks"),),
        flags=(
            Flag("explain", "show what speaks for each agent, and what against it"),
            Flag("description", "what is to be done, in one line", "TEXT"),
            Flag("type", "the kind of work (default: by the words of the description)", "TYPE", "name"),
            PRIORITY._replace(summary="from 8 on it is given to somebody, busy or not (default: 0)"),
            Flag("for-role", "only for agents of this role", "ROLE", "name"),
            Flag("needs", "only for agents that have all of these", "WORD,...", "names", default=()),
            Flag("estimate", "how long it may take", "DURATION", "duration", default=0.0),
        ),
        details="Nobody is assigned: agents take their tasks with coord task next.",
    ),
    CommandSpec(
        "track",
        "say how many agents may work on a track at once (one, unless said)",
        handler="coord.transports.cli.handlers.agents:track",
        examples=("coord track A --agents 2",),
        arguments=(Argument("track", "the track's name"),),
        flags=(Flag("agents", "how many", "N", "number", default=1),),
    ),
)
