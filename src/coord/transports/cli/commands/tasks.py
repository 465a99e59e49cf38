"""Commands about tasks."""

from coord.transports.cli.commands.flags import PAGING, PRIORITY
from coord.transports.cli.spec import Argument, CommandSpec, Flag

STATES = ("pending", "ready", "in_progress", "blocked", "done", "failed", "skipped", "errored")
ID = Argument("task", "the id of a task", completes="tasks")
CLAIMED = ID._replace(completes="claimed")
GENERATION = Argument(
    "generation", "the generation of your claim (default: yours now)", kind="number", optional=True
)
RESULT = Flag("result", "a JSON object (-: read standard input)", "JSON", "document", default=None)
NOTE = Flag("note", "what happened, in one line", "TEXT")
WHY = Flag("reason", "why, in one line; coord records it", "TEXT")
LEASE = Flag(
    "lease",
    "how long the claim lasts unless renewed (default: 5m)",
    "DURATION",
    "duration",
    default=300.0,
)
TRACK = Flag("track", "only tasks of this track", "TRACK", "name", completes="tracks")
TYPE = Flag("type", "only tasks of this type", "TYPE", "name")
NO_LOCKS = Flag("no-locks", "do not lock the task's files")
CHOOSING = (
    Flag("types", "only tasks of these types", "TYPE,...", "names", default=()),
    Flag("tracks", "only tasks of these tracks", "TRACK,...", "names", default=(), completes="tracks"),
    Flag("roles", "only tasks for these roles (default: the agent's own)", "ROLE,...", "names", default=None),
    Flag("has", "what this agent offers of what tasks need", "WORD,...", "names", default=()),
    LEASE,
    NO_LOCKS,
)
COMMAND_ID = Flag("command-id", "run once, even if repeated with the same id", "ID", "name")


COMMANDS = (
    CommandSpec(
        "task add",
        "add a task, or update it",
        handler="coord.transports.cli.handlers.tasks:add",
        examples=(
            "coord task add A-002-login --depends-on A-001-schema --files src/login.py --type code_gen",
        ),
        arguments=(ID,),
        flags=(
            Flag("description", "what to do, in one line", "TEXT"),
            TYPE._replace(summary="the type of work, for example code_gen"),
            PRIORITY._replace(summary="higher goes first; one step equals one minute of waiting"),
            Flag("files", "files it changes; a claim locks them", "FILE,...", "names", default=()),
            Flag(
                "depends-on",
                "tasks that must be done first",
                "TASK,...",
                "names",
                default=(),
                completes="tasks",
            ),
            Flag(
                "requirements",
                "any JSON data (-: read standard input)",
                "JSON",
                "document",
                default=None,
            ),
            Flag(
                "deadline",
                "a time such as 2026-03-01T12:00:00Z, or a duration",
                "WHEN",
                "name",
                default=None,
            ),
            Flag("estimate", "how long it will probably take", "DURATION", "duration", default=0.0),
            Flag("for-role", "only for agents of this role", "ROLE", "name"),
            TRACK._replace(summary="the track (default: the one in the id)", default=None),
            Flag("needs", "only for agents that offer all of these", "WORD,...", "names", default=()),
            Flag("retries", "how often to retry it (default: 3)", "N", "number", default=3),
        ),
    ),
    CommandSpec(
        "task next",
        "claim the next task for this agent, and lock its files",
        handler="coord.transports.cli.handlers.tasks:next_",
        examples=("coord task next", "coord task next --tracks A,B --has internet --wait 10m"),
        flags=(
            *CHOOSING,
            Flag("wait", "wait up to DURATION for a task", "DURATION", "duration or zero", default=0.0),
            Flag("no-wait", "do not wait (the default)", excludes="wait"),
            Flag("most", "claim up to N tasks at once (default: 1)", "N", "number", default=1),
            COMMAND_ID,
        ),
        details="Without a task: exit 1 (3 after a wait), and error.code is done, blocked or deadlocked. "
        "With --most, the claims end before the first task whose files overlap those of another.",
    ),
    CommandSpec(
        "task claim",
        "claim a task by its id and lock its files",
        handler="coord.transports.cli.handlers.tasks:claim",
        examples=("coord task claim A-001-schema", "coord task claim A-001-schema::1 A-001-schema::2"),
        arguments=(ID._replace(many=True, dest="tasks"),),
        flags=(
            LEASE,
            NO_LOCKS,
            Flag("force", "take it from its holder; requires --reason"),
            WHY,
            COMMAND_ID,
        ),
        details="With several tasks no files are locked, and coord decides on each; exit 1 if it grants "
        "none.",
    ),
    CommandSpec(
        "task assign",
        "keep a task for an agent while it is live and free",
        handler="coord.transports.cli.handlers.tasks:assign",
        examples=("coord task assign A-001-schema otto", "coord task assign A-001-schema otto --for 10m"),
        arguments=(ID, Argument("agent", "an agent of this project, or its session", completes="recipients")),
        flags=(Flag("for", "for how long (default: 2m)", "DURATION", "duration", default=120.0),),
        details="Afterwards, or if the agent is busy or gone, task next offers it to all.",
    ),
    CommandSpec(
        "task split",
        "split a task into subtasks ID::1, ID::2, …",
        handler="coord.transports.cli.handlers.tasks:split",
        examples=("coord task split A-002-login 3",),
        arguments=(ID, Argument("parts", "the number", kind="number")),
        details="The task is done when all subtasks are. Its result is the list of their results, with "
        "null for a skipped one. Subtasks have no track.",
    ),
    CommandSpec(
        "task renew",
        "renew a claim and its locks",
        handler="coord.transports.cli.handlers.tasks:renew",
        examples=("coord task renew A-001-schema 1",),
        arguments=(CLAIMED, GENERATION),
    ),
    CommandSpec(
        "task submit",
        "submit a result; only the current holder can",
        handler="coord.transports.cli.handlers.tasks:submit",
        examples=(
            'coord task submit A-001-schema 1 --result \'{"branch": "schema"}\'',
            "coord task submit A-001-schema",
        ),
        arguments=(CLAIMED, GENERATION),
        flags=(RESULT, COMMAND_ID),
        details="Without a generation, the claim counts that this session holds now. A script states the "
        "generation that it was granted: then a claim that was lost and taken again is not mistaken for it.",
    ),
    CommandSpec(
        "task done",
        "finish the task that this session holds",
        handler="coord.transports.cli.handlers.tasks:done",
        examples=("coord task done A-001-schema",),
        arguments=(CLAIMED,),
        flags=(RESULT,),
        details="The same as task submit without a generation.",
    ),
    CommandSpec(
        "task fail",
        "report a failure; the task is retried after a delay",
        handler="coord.transports.cli.handlers.tasks:fail",
        examples=("coord task fail A-001-schema 1 --note 'the tests do not pass'",),
        arguments=(CLAIMED, GENERATION),
        flags=(
            NOTE,
            Flag("final", "never retry it; tasks that depend on it are blocked"),
        ),
    ),
    CommandSpec(
        "task release",
        "release a claim without counting a failure",
        handler="coord.transports.cli.handlers.tasks:release",
        examples=("coord task release A-001-schema 1 --limited 60s",),
        arguments=(CLAIMED, GENERATION),
        flags=(
            NOTE,
            Flag(
                "limited",
                "report a rate limit; give this agent no task until then",
                "DURATION",
                "duration or zero",
                default=0.0,
            ),
        ),
    ),
    CommandSpec(
        "task reset",
        "reopen a task, whatever its state",
        handler="coord.transports.cli.handlers.tasks:reset",
        examples=("coord task reset A-001-schema --reason 'wrong'",),
        arguments=(ID,),
        flags=(WHY,),
    ),
    CommandSpec(
        "task skip",
        "skip a task; tasks that depend on it become ready",
        handler="coord.transports.cli.handlers.tasks:skip",
        examples=("coord task skip A-001-schema",),
        arguments=(ID,),
        flags=(WHY,),
    ),
    CommandSpec(
        "task retry",
        "retry a task that failed or was skipped",
        handler="coord.transports.cli.handlers.tasks:retry",
        examples=("coord task retry A-001-schema",),
        arguments=(ID,),
    ),
    CommandSpec(
        "task show",
        "show a task with its claim and its result",
        handler="coord.transports.cli.handlers.task_history:show",
        reads=True,
        examples=("coord task show A-001-schema",),
        arguments=(ID,),
    ),
    CommandSpec(
        "task result",
        "print the accepted result of a task as JSON",
        handler="coord.transports.cli.handlers.tasks:result",
        reads=True,
        examples=("coord task result A-001-schema > result.json",),
        arguments=(ID,),
        details="Prints the whole result and nothing else. `coord task show` includes results of up to "
        "256 KiB.",
    ),
    CommandSpec(
        "task history",
        "list the ended claims of a task",
        handler="coord.transports.cli.handlers.task_history:history",
        reads=True,
        examples=("coord task history A-001-schema",),
        arguments=(ID,),
    ),
    CommandSpec(
        "task lineage",
        "show all claims and refusals of a task",
        handler="coord.transports.cli.handlers.task_history:lineage",
        reads=True,
        examples=("coord task lineage A-001-schema",),
        arguments=(ID,),
    ),
    CommandSpec(
        "task list",
        "list the tasks of this project",
        handler="coord.transports.cli.handlers.tasks:list_",
        reads=True,
        examples=("coord task list", "coord task list --state ready --track A"),
        flags=(Flag("state", "only tasks in this state", "STATE", choices=STATES), TRACK, TYPE, *PAGING),
    ),
    CommandSpec(
        "task watch",
        "print task events as they happen",
        handler="coord.transports.cli.handlers.tasks:watch",
        examples=("coord task watch", "coord task watch A-001-schema"),
        arguments=(ID._replace(optional=True),),
        connects=False,
    ),
    CommandSpec(
        "work",
        "run a command for each task, one after the other",
        handler="coord.transports.cli.work.run:work",
        examples=(
            "coord work -- claude -p 'Do the task in {task_file}. Write a JSON object to {result_file}.'",
            "coord work --types testing --once -- make test",
        ),
        flags=(
            *CHOOSING,
            Flag("once", "stop after one task"),
            Flag("keep", "keep waiting for new tasks when all are done"),
            Flag(
                "wait", "stop after waiting DURATION for a task", "DURATION", "duration or zero", default=None
            ),
            Flag("no-wait", "stop as soon as no task is ready", excludes="wait"),
            Flag(
                "grace",
                "kill a command this long after SIGTERM (default: 10s)",
                "DURATION",
                "duration or zero",
                default=10.0,
            ),
            Flag(
                "limited",
                "pause this long if the command exits 75 (default: 1m)",
                "DURATION",
                "duration",
                default=60.0,
            ),
            Flag(
                "timeout",
                "stop a command that takes longer; the task fails",
                "DURATION",
                "duration",
                default=None,
            ),
            Flag(
                "time-limit",
                "fail after DURATION without progress (default: 10m)",
                "DURATION",
                "duration or zero",
                default=600.0,
            ),
            Flag(
                "silence-limit",
                "fail after DURATION without output (default: never)",
                "DURATION",
                "duration",
                default=None,
            ),
            Flag("need-result", "treat exit 0 without a result file as a failure"),
        ),
        rest="command",
        connects=False,
        details="Claims a task, renews it while the command runs, and submits the result. Exit 0 of the "
        "command submits, 75 reports a rate limit, 65 fails the task for good, any other code "
        "fails it. Output is progress, and so are the agent's tool calls, coord update, coord heartbeat, "
        "coord task renew and a touch of $COORD_PROGRESS_FILE. --time-limit 0 waits for ever.",
    ),
)
