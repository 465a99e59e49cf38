"""The commands about agents and whom a task is for; `table.py` puts all together."""

from coord.transports.cli.commands.flags import PRIORITY
from coord.transports.cli.spec import Command, Flag, Word

NAME = Word("agent", "an agent's name")
WHY = Flag("reason", "why, in one line; it is recorded", "TEXT")

AGENTS = (
    Command(
        "agent list",
        "agents",
        "list the agents of this project: what they have in hand, how they did, why one gets nothing",
        "handlers.agents:list_",
        ("coord agent list", "coord agent list rem"),
        (NAME._replace(optional=True),),
    ),
    Command(
        "agent disable",
        "agents",
        "take an agent out of the pool: it is given no task until it is enabled",
        "handlers.agents:disable",
        ("coord agent disable rem --reason 'its key has expired'",),
        (NAME,),
        (WHY,),
    ),
    Command(
        "agent enable",
        "agents",
        "take an agent back into the pool; its failures and limits are forgotten",
        "handlers.agents:enable",
        ("coord agent enable rem",),
        (NAME,),
        (WHY,),
    ),
    Command(
        "route",
        "agents",
        "say whom a task is for, and why; one that is there, or one that is described",
        "handlers.agents:route",
        ("coord route A-001-login --explain", "coord route --description 'create a signup form' --explain"),
        (Word("task", "a task's id", optional=True, completes="tasks"),),
        (
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
    Command(
        "track",
        "agents",
        "say how many agents may work on a track at once (one, unless said)",
        "handlers.agents:track",
        ("coord track A --agents 2",),
        (Word("track", "the track's name"),),
        (Flag("agents", "how many", "N", "number", default=1),),
    ),
)
