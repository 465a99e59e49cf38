"""The commands about tasks and plans; `table.py` has the others."""

from coord.transports.cli.commands.flags import PRIORITY
from coord.transports.cli.spec import Command, Flag, Word

STATES = ("pending", "ready", "in_progress", "blocked", "done", "failed", "skipped", "errored")
ID = Word("task", "a task's id", completes="tasks")
GENERATION = Word("generation", "the one in the claim that was granted")
PLAN = Word("file", "a plan in YAML, or in JSON where the name ends in .json")
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


def _task(
    verb: str, summary: str, example: str, words: tuple[Word, ...] = (ID,), flags: tuple[Flag, ...] = ()
) -> Command:
    return Command(f"task {verb}", "tasks", summary, f"handlers.tasks:{verb}", (example,), words, flags)


TASKS = (
    _task(
        "add",
        "add a task, or bring what is known of it up to date",
        "coord task add A-002-login --depends-on A-001-schema --files src/login.py --type code_gen",
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
    Command(
        "task next",
        "tasks",
        "claim the first task that this agent may take, with the locks on its files",
        "handlers.tasks:next_",
        ("coord task next", "coord task next --tracks A,B --has internet --wait 10m"),
        flags=(
            *CHOOSING,
            Flag("wait", "wait this long for one", "DURATION", "duration or zero", default=0.0),
            Flag("no-wait", "answer at once, as without --wait", excludes="wait"),
            Flag("most", "claim up to so many in one step (default: 1)", "N", "number", default=1),
            COMMAND_ID,
        ),
        details=(
            "Nothing runnable: exit 1 (3 after a wait); error.code is done, blocked or deadlocked. "
            "Of tasks whose files meet, a step with --most gives the first and ends there."
        ),
    ),
    Command(
        "task claim",
        "tasks",
        "claim a task by its id with the locks on its files, or several in one step without",
        "handlers.tasks:claim",
        ("coord task claim A-001-schema", "coord task claim A-001-schema::1 A-001-schema::2"),
        (ID._replace(many=True),),
        (
            LEASE,
            NO_LOCKS,
            Flag("force", "take it from its holder; needs --reason, and one task"),
            WHY,
            COMMAND_ID,
        ),
        details="Of several, each is granted or denied by itself: exit 1 only if none is granted.",
    ),
    Command(
        "task split",
        "tasks",
        "split a task into parts ID::1, ID::2 … that several may do at once; it is done when they are",
        "handlers.tasks:split",
        ("coord task split A-002-login 3",),
        (ID, Word("parts", "how many")),
        details="Its result is the list of theirs, null for one that was skipped. Parts stand on no track.",
    ),
    _task(
        "renew",
        "begin the lease of a claim anew, with its locks",
        "coord task renew A-001-schema 1",
        (ID, GENERATION),
    ),
    _task(
        "submit",
        "hand in the result of a claim; it counts once, under the current generation",
        'coord task submit A-001-schema 1 --result \'{"branch": "schema"}\'',
        (ID, GENERATION),
        (
            Flag(
                "result", "a JSON object (- reads it from standard input)", "JSON", "document", default=None
            ),
            COMMAND_ID,
        ),
    ),
    _task(
        "fail",
        "say that it did not work; it is tried again after a pause",
        "coord task fail A-001-schema 1 --note 'the tests do not pass'",
        (ID, GENERATION),
        (NOTE, Flag("final", "it cannot be done: what depends on it is blocked until somebody retries it")),
    ),
    _task(
        "release",
        "give a claim back undone; no failure is counted",
        "coord task release A-001-schema 1 --limited 60s",
        (ID, GENERATION),
        (
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
    _task(
        "reset",
        "open a task again, whatever became of it",
        "coord task reset A-001-schema --reason 'wrong'",
        flags=(WHY,),
    ),
    _task(
        "skip", "pass a task over: what depends on it goes on", "coord task skip A-001-schema", flags=(WHY,)
    ),
    _task("retry", "bring back a task that failed or was skipped", "coord task retry A-001-schema"),
    _task("show", "show a task: what it is, its claim, its result", "coord task show A-001-schema"),
    Command(
        "task result",
        "tasks",
        "print the accepted result of a task as JSON, whole and nothing else",
        "handlers.results:result",
        ("coord task result A-001-schema > result.json",),
        (ID,),
        details="It may be large. coord task show has results of up to 256 KiB in it.",
    ),
    _task("history", "list the ended generations of a task", "coord task history A-001-schema"),
    _task(
        "lineage",
        "show all generations of a task, and the submissions that were turned away",
        "coord task lineage A-001-schema",
    ),
    Command(
        "task list",
        "tasks",
        "list the tasks of this project",
        "handlers.tasks:list_",
        ("coord task list", "coord task list --state ready --track A"),
        flags=(Flag("state", "only in this state", "STATE", choices=STATES), TRACK, TYPE),
    ),
    Command(
        "task watch",
        "tasks",
        "print what happens to tasks, one line each; with a task until it is finished",
        "handlers.tasks:watch",
        ("coord task watch", "coord task watch A-001-schema"),
        (ID._replace(optional=True),),
        connects=False,
    ),
)

WORK = Command(
    "work",
    "tasks",
    "run a command for one task after the other: claim, renew, run, submit or fail",
    "work.run:work",
    (
        "coord work -- claude -p 'Do the task in {task_file}. Write a JSON object to {result_file}.'",
        "coord work --types testing --once -- make test",
    ),
    flags=(
        *CHOOSING,
        Flag("once", "end after one task"),
        Flag("keep", "stay when all is done, for what may be added"),
        Flag("wait", "end when there was no task for so long", "DURATION", "duration or zero", default=None),
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
            "timeout", "end a command that takes longer; the task fails", "DURATION", "duration", default=None
        ),
        Flag("need-result", "exit 0 without a result file is a failure"),
    ),
    rest="command",
    connects=False,
    details="The command's exit 0 submits, 75 is a rate limit, 65 means never again, any other fails.",
)

PLANS = (
    Command(
        "plan load",
        "plans",
        "add the tasks of a plan; again is harmless, and a changed plan says what it changes",
        "handlers.plans:load",
        ("coord plan load plan.yaml", "coord plan load plan.yaml --dry-run"),
        (PLAN,),
        (Flag("dry-run", "only say what would change"),),
        details="Files are named from the top of the repository. Work that runs goes on; nothing is removed.",
    ),
    Command(
        "plan check",
        "plans",
        "look a plan over without loading it: exit 2 if it cannot be carried out",
        "handlers.plans:check",
        ("coord plan check plan.yaml",),
        (PLAN,),
    ),
    Command(
        "plan show",
        "plans",
        "show the tasks of each track and how far they are",
        "handlers.plans:show",
        ("coord plan show", "coord plan show --svg > plan.svg"),
        flags=(
            Flag("table", "on a terminal, a table in place of the picture"),
            Flag("picture", "print the picture, also where nobody looks", excludes="table"),
            Flag("mermaid", "print a Mermaid flowchart", excludes="picture"),
            Flag("svg", "print an SVG drawing", excludes="mermaid"),
        ),
    ),
)
