"""Commands about tasks."""

from coord.transports.cli.commands.flags import PRIORITY
from coord.transports.cli.spec import Argument, CommandSpec, Flag

STATES = ("pending", "ready", "in_progress", "blocked", "done", "failed", "skipped", "errored")
ID = Argument("task", "a task's id", completes="tasks")
GENERATION = Argument("generation", "the one in the claim that was granted", kind="number")
NOTE = Flag("note", "what happened, in one line", "TEXT")
WHY = Flag("reason", "why, in one line; it is recorded", "TEXT")
LEASE = Flag(
    "lease",
    "how long the claim holds without being renewed (default: 5m)",
    "DURATION",
    "duration",
    default=300.0,
)
TRACK = Flag("track", "only of this track", "TRACK", "name")
TYPE = Flag("type", "only of this type", "TYPE", "name")
NO_LOCKS = Flag("no-locks", "leave the files of the task unlocked")
CHOOSING = (
    Flag("types", "only of these types", "TYPE,...", "names", default=()),
    Flag("tracks", "only of these tracks", "TRACK,...", "names", default=()),
    Flag("roles", "only for these roles (default: this agent's own)", "ROLE,...", "names", default=None),
    Flag("has", "what this agent has, of what tasks need", "WORD,...", "names", default=()),
    LEASE,
    NO_LOCKS,
)
COMMAND_ID = Flag("command-id", "repeat with the same id, and it is done once", "ID", "name")


COMMANDS = (
    CommandSpec(
        "task add",
        "add a task, or bring what is known of it up to date",
        handler="coord.transports.cli.handlers.tasks:add",
        examples=(
            "coord task add A-002-login --depends-on A-001-schema --files src/login.py --type code_gen",
        ),
        arguments=(ID,),
        flags=(
            Flag("description", "what is to be done, in one line", "TEXT"),
            TYPE._replace(summary="the kind of work, such as code_gen"),
            PRIORITY._replace(summary="higher goes first; one step is worth a minute in line (default: 0)"),
            Flag("files", "what it changes: locked with its claim", "FILE,...", "names", default=()),
            Flag("depends-on", "what has to be done before", "TASK,...", "names", default=()),
            Flag(
                "requirements",
                "data kept as it is (- reads it from standard input)",
                "JSON",
                "document",
                default=None,
            ),
            Flag(
                "deadline",
                "until when: a moment such as 2026-03-01T12:00:00Z, or a duration",
                "WHEN",
                "name",
                default=None,
            ),
            Flag("estimate", "how long it may take", "DURATION", "duration", default=0.0),
            Flag("for-role", "only for agents of this role", "ROLE", "name"),
            TRACK._replace(summary="the track (default: the one in the id)", default=None),
            Flag("needs", "only for agents that have all of these", "WORD,...", "names", default=()),
            Flag("retries", "how often it is tried again (default: 3)", "N", "number", default=3),
        ),
    ),
    CommandSpec(
        "task next",
        "claim the first task that this agent may take, with the locks on its files",
        handler="coord.transports.cli.handlers.tasks:next_",
        examples=("coord task next", "coord task next --tracks A,B --has internet --wait 10m"),
        flags=(
            *CHOOSING,
            Flag("wait", "wait this long for one", "DURATION", "duration or zero", default=0.0),
            Flag("no-wait", "answer at once, as without --wait", excludes="wait"),
            Flag("most", "claim up to so many in one step (default: 1)", "N", "number", default=1),
            COMMAND_ID,
        ),
        details="Nothing runnable: exit 1 (3 after a wait); error.code is done, blocked or deadlocked. "
        "Of tasks whose files meet, a step with --most gives the first and ends there.",
    ),
    CommandSpec(
        "task claim",
        "claim a task by its id with the locks on its files, or several in one step without",
        handler="coord.transports.cli.handlers.tasks:claim",
        examples=("coord task claim A-001-schema", "coord task claim A-001-schema::1 A-001-schema::2"),
        arguments=(ID._replace(many=True, dest="tasks"),),
        flags=(
            LEASE,
            NO_LOCKS,
            Flag("force", "take it from its holder; needs --reason, and one task"),
            WHY,
            COMMAND_ID,
        ),
        details="Of several, each is granted or denied by itself: exit 1 only if none is granted.",
    ),
    CommandSpec(
        "task split",
        "split a task into parts ID::1, ID::2 … that several may do at once; it is done when they are",
        handler="coord.transports.cli.handlers.tasks:split",
        examples=("coord task split A-002-login 3",),
        arguments=(ID, Argument("parts", "how many", kind="number")),
        details="Its result is the list of theirs, null for one that was skipped. Parts stand on no track.",
    ),
    CommandSpec(
        "task renew",
        "begin the lease of a claim anew, with its locks",
        handler="coord.transports.cli.handlers.tasks:renew",
        examples=("coord task renew A-001-schema 1",),
        arguments=(ID, GENERATION),
    ),
    CommandSpec(
        "task submit",
        "hand in the result of a claim; it counts once, under the current generation",
        handler="coord.transports.cli.handlers.tasks:submit",
        examples=('coord task submit A-001-schema 1 --result \'{"branch": "schema"}\'',),
        arguments=(ID, GENERATION),
        flags=(
            Flag(
                "result", "a JSON object (- reads it from standard input)", "JSON", "document", default=None
            ),
            COMMAND_ID,
        ),
    ),
    CommandSpec(
        "task fail",
        "say that it did not work; it is tried again after a pause",
        handler="coord.transports.cli.handlers.tasks:fail",
        examples=("coord task fail A-001-schema 1 --note 'the tests do not pass'",),
        arguments=(ID, GENERATION),
        flags=(
            NOTE,
            Flag("final", "it cannot be done: what depends on it is blocked until somebody retries it"),
        ),
    ),
    CommandSpec(
        "task release",
        "give a claim back undone; no failure is counted",
        handler="coord.transports.cli.handlers.tasks:release",
        examples=("coord task release A-001-schema 1 --limited 60s",),
        arguments=(ID, GENERATION),
        flags=(
            NOTE,
            Flag(
                "limited",
                "a rate limit was reached: this agent gets no task for so long",
                "DURATION",
                "duration or zero",
                default=0.0,
            ),
        ),
    ),
    CommandSpec(
        "task reset",
        "open a task again, whatever became of it",
        handler="coord.transports.cli.handlers.tasks:reset",
        examples=("coord task reset A-001-schema --reason 'wrong'",),
        arguments=(ID,),
        flags=(WHY,),
    ),
    CommandSpec(
        "task skip",
        "pass a task over: what depends on it goes on",
        handler="coord.transports.cli.handlers.tasks:skip",
        examples=("coord task skip A-001-schema",),
        arguments=(ID,),
        flags=(WHY,),
    ),
    CommandSpec(
        "task retry",
        "bring back a task that failed or was skipped",
        handler="coord.transports.cli.handlers.tasks:retry",
        examples=("coord task retry A-001-schema",),
        arguments=(ID,),
    ),
    CommandSpec(
        "task show",
        "show a task: what it is, its claim, its result",
        handler="coord.transports.cli.handlers.tasks:show",
        examples=("coord task show A-001-schema",),
        arguments=(ID,),
    ),
    CommandSpec(
        "task result",
        "print the accepted result of a task as JSON, whole and nothing else",
        handler="coord.transports.cli.handlers.tasks:result",
        examples=("coord task result A-001-schema > result.json",),
        arguments=(ID,),
        details="It may be large. coord task show has results of up to 256 KiB in it.",
    ),
    CommandSpec(
        "task history",
        "list the ended generations of a task",
        handler="coord.transports.cli.handlers.tasks:history",
        examples=("coord task history A-001-schema",),
        arguments=(ID,),
    ),
    CommandSpec(
        "task lineage",
        "show all generations of a task, and the submissions that were turned away",
        handler="coord.transports.cli.handlers.tasks:lineage",
        examples=("coord task lineage A-001-schema",),
        arguments=(ID,),
    ),
    CommandSpec(
        "task list",
        "list the tasks of this project",
        handler="coord.transports.cli.handlers.tasks:list_",
        examples=("coord task list", "coord task list --state ready --track A"),
        flags=(Flag("state", "only in this state", "STATE", choices=STATES), TRACK, TYPE),
    ),
    CommandSpec(
        "task watch",
        "print what happens to tasks, one line each; with a task until it is finished",
        handler="coord.transports.cli.handlers.tasks:watch",
        examples=("coord task watch", "coord task watch A-001-schema"),
        arguments=(ID._replace(optional=True),),
        connects=False,
    ),
    CommandSpec(
        "work",
        "run a command for one task after the other: claim, renew, run, submit or fail",
        handler="coord.transports.cli.work.run:work",
        examples=(
            "coord work -- claude -p 'Do the task in {task_file}. Write a JSON object to {result_file}.'",
            "coord work --types testing --once -- make test",
        ),
        flags=(
            *CHOOSING,
            Flag("once", "end after one task"),
            Flag("keep", "stay when all is done, for what may be added"),
            Flag(
                "wait", "end when there was no task for so long", "DURATION", "duration or zero", default=None
            ),
            Flag("no-wait", "end when no task can be taken at once", excludes="wait"),
            Flag(
                "grace",
                "how long a command may take to end when told to (default: 10s)",
                "DURATION",
                "duration or zero",
                default=10.0,
            ),
            Flag(
                "limited",
                "how long this agent gets nothing when the command exits 75 (default: 1m)",
                "DURATION",
                "duration",
                default=60.0,
            ),
            Flag(
                "timeout",
                "end a command that takes longer; the task fails",
                "DURATION",
                "duration",
                default=None,
            ),
            Flag("need-result", "exit 0 without a result file is a failure"),
        ),
        rest="command",
        connects=False,
        details="The command's exit 0 submits, 75 is a rate limit, 65 means never again, any other fails.",
    ),
)
