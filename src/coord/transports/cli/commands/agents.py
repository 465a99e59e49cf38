"""Commands about agents, and which agent a task suits."""

from coord.transports.cli.commands.flags import PRIORITY
from coord.transports.cli.spec import Argument, CommandSpec, Flag

NAME = Argument("agent", "the name of an agent", completes="agents")
WHY = Flag("reason", "why, in one line; coord records it", "TEXT")

BY = ("agent", "task", "model", "day", "session", "crew", "change")
SINCE_S = 30 * 24 * 3600.0

WORK_MODES = (
    (
        "pause",
        "give no agent a task until coord resume",
        "coord pause --reason 'the build is red'",
        "Agents finish what they have; those that wait for a task go on waiting. Only people may.",
    ),
    (
        "drain",
        "give no agent a task any more; coord work ends",
        "coord drain --reason 'end of the day'",
        "Agents finish what they have. coord resume allows new tasks again. Only people may.",
    ),
    (
        "stop",
        "stop all agents at once; requires --reason",
        "coord stop --reason 'a key has leaked'",
        "Hooks refuse their edits and commands, and they get neither locks nor tasks. Only people may.",
    ),
    (
        "resume",
        "let all agents go on after pause, drain or stop",
        "coord resume",
        "Says who held them up, and why. Only people may.",
    ),
)


def _work_mode(name: str, summary: str, example: str, details: str) -> CommandSpec:
    handler = f"coord.transports.cli.handlers.agents:{name}"
    return CommandSpec(name, summary, handler=handler, examples=(example,), flags=(WHY,), details=details)


COMMANDS = (
    CommandSpec(
        "agent list",
        "list the agents, their tasks and their track records",
        handler="coord.transports.cli.handlers.agents:list_",
        reads=True,
        examples=("coord agent list", "coord agent list rem"),
        arguments=(NAME._replace(optional=True),),
    ),
    CommandSpec(
        "agent disable",
        "give an agent no tasks until it is enabled",
        handler="coord.transports.cli.handlers.agents:disable",
        examples=("coord agent disable rem --reason 'its key has expired'",),
        arguments=(NAME,),
        flags=(WHY,),
    ),
    CommandSpec(
        "agent enable",
        "give an agent tasks again; forget its failures",
        handler="coord.transports.cli.handlers.agents:enable",
        examples=("coord agent enable rem",),
        arguments=(NAME,),
        flags=(WHY,),
    ),
    *(_work_mode(*each) for each in WORK_MODES),
    CommandSpec(
        "route",
        "recommend an agent for a task",
        handler="coord.transports.cli.handlers.agents:route",
        reads=True,
        examples=(
            "coord route A-001-login --explain",
            "coord route --description 'create a signup form' --explain",
        ),
        arguments=(Argument("task", "the id of a task", optional=True, completes="tasks"),),
        flags=(
            Flag("explain", "show the score of each agent, and the reasons"),
            Flag("description", "what to do, in one line", "TEXT"),
            Flag("type", "the type of work (default: guessed from --description)", "TYPE", "name"),
            PRIORITY._replace(summary="from 8 on, busy agents count too (default: 0)"),
            Flag("for-role", "only for agents of this role", "ROLE", "name"),
            Flag("needs", "only for agents that offer all of these", "WORD,...", "names", default=()),
            Flag("estimate", "how long it will probably take", "DURATION", "duration", default=0.0),
        ),
        details="Assigns nobody: agents take their tasks with `coord task next`.",
    ),
    CommandSpec(
        "track",
        "set how many agents may work on a track at once",
        handler="coord.transports.cli.handlers.agents:track",
        examples=("coord track A --agents 2",),
        arguments=(Argument("track", "the name of the track", completes="tracks"),),
        flags=(Flag("agents", "the number", "N", "number", default=1),),
    ),
    CommandSpec(
        "cost",
        "show the tokens and the money that agents used",
        handler="coord.transports.cli.handlers.awareness.cost:cost",
        reads=True,
        examples=("coord cost", "coord cost --by task --since 7d", "coord cost --by change"),
        flags=(
            Flag("by", "what to add up", "WHAT", choices=BY, default="agent"),
            Flag("since", "from the day (UTC) that long ago", "DURATION", "duration", default=SINCE_S),
        ),
        details="Agent tools report it to the hub (`coord telemetry`), which writes it once a minute. `~` "
        "marks a cost that coord estimated from list prices, and `?` tokens without a price.",
    ),
    CommandSpec(
        "telemetry",
        "let agent tools report what they use, or show prices",
        handler="coord.transports.cli.handlers.awareness.cost:telemetry",
        reads=True,
        examples=("coord telemetry", "coord telemetry --tool claude", "coord telemetry on"),
        arguments=(Argument("action", "what to do", optional=True, choices=("show", "on", "off", "prices")),),
        flags=(Flag("tool", "only this one", "TOOL", choices=("claude", "codex", "gemini")),),
        details="`on` creates a token that can do nothing but report, and writes private files with what to "
        "set in each tool; `off` ends the token and removes them. No setting of a tool is changed. What "
        "`coord work` starts reports by itself then. The hub keeps counts only: prompts, answers and "
        "arguments of tools are dropped.",
    ),
)
