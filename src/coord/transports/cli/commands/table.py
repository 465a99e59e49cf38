"""Every command of `coord`, as data: parsing, help, completion and docs/reference/cli.md follow from it."""

from coord.transports.cli.commands.agents import AGENTS
from coord.transports.cli.commands.flags import (
    AREA,
    BLOB,
    CAPABILITIES,
    FENCE,
    HELD,
    KIND,
    MODE,
    ONE_HELD,
    PRIORITY,
    PROJECT,
    REASON,
    RESOURCES,
    SENDING,
    SUBJECT,
    TAKING,
    TASK,
    TTL,
)
from coord.transports.cli.commands.git import GIT
from coord.transports.cli.commands.git_gate import GATES
from coord.transports.cli.commands.git_merge import MERGES
from coord.transports.cli.commands.hook import HOOKS
from coord.transports.cli.commands.tasks import PLANS, TASKS, WORK
from coord.transports.cli.commands.upkeep import UPKEEP
from coord.transports.cli.spec import Command, Flag, Word

SESSIONS = (
    Command(
        "register",
        "sessions",
        "say that this session is here; again keeps what is not named",
        "handlers.sessions:register",
        (
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
    Command(
        "heartbeat",
        "sessions",
        "say that this session is still at work (every 30 s)",
        "handlers.sessions:heartbeat",
        ("coord heartbeat",),
    ),
    Command(
        "update",
        "sessions",
        "change what this session says of itself",
        "handlers.sessions:update",
        ("coord update --status blocked", 'coord update --blob \'{"notes": "half done"}\' --merge-blob'),
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
    Command(
        "peers",
        "sessions",
        "list the sessions",
        "handlers.sessions:peers",
        ("coord peers", "coord peers --live"),
        flags=(Flag("live", "leave out those without a sign of life"),),
    ),
    Command(
        "status",
        "sessions",
        "show this session: what it holds, does and awaits",
        "handlers.sessions:status",
        ("coord status",),
    ),
    Command(
        "session show",
        "sessions",
        "show what a session claimed, lost and finished, and what it needs to go on",
        "handlers.memory:show",
        ("coord session show", "coord session show otto"),
        (Word("session", "another one than this", optional=True, completes="peers"),),
    ),
    Command(
        "dereg",
        "sessions",
        "end this session and release all it holds",
        "handlers.sessions:dereg",
        ("coord dereg",),
        (Word("session", "one below this one, or a dead one", optional=True, completes="peers"),),
        alias="deregister",
    ),
)

LOCKS = (
    Command(
        "lock",
        "locks",
        "lock files or names, all or nothing; waits in line",
        "handlers.locks:lock",
        (
            "coord lock src/app.py --ttl 1h --reason 'rework the login'",
            "coord lock 'src/auth/*' main-push --no-wait",
        ),
        (RESOURCES,),
        (MODE, *TAKING),
        details="Waits for ever on a terminal, and 100 s without one.",
    ),
    Command(
        "unlock",
        "locks",
        "release locks of this session",
        "handlers.locks:unlock",
        ("coord unlock src/app.py",),
        (HELD,),
        (FENCE,),
    ),
    Command(
        "renew",
        "locks",
        "begin the leases of this session's locks anew (all of them, or those named)",
        "handlers.locks:renew",
        ("coord renew", "coord renew src/app.py --ttl 1h"),
        (HELD._replace(optional=True),),
        (TTL, FENCE),
    ),
    Command(
        "check",
        "locks",
        "ask whether something could be locked now: exit 0 free, 1 held",
        "handlers.locks:check",
        ("coord check src/app.py", "coord check docs --mode read"),
        (RESOURCES,),
        (MODE, FENCE._replace(summary="ask whether this session still holds it under this fence")),
    ),
    Command(
        "locks",
        "locks",
        "list the locks that are held",
        "handlers.locks:locks",
        ("coord locks",),
        flags=(Flag("owner", "only those of this session", "ID", "name", default=None, completes="peers"),),
    ),
    Command(
        "guard",
        "locks",
        "run a command under locks: renew while it runs, always release, pass its exit code on",
        "handlers.guard:guard",
        ("coord guard main-push -- git push origin main",),
        (RESOURCES,),
        (MODE, *TAKING),
        rest="command",
        details="Stdout is the command's own. If a lock is lost, the command is ended, and guard exits 1.",
    ),
    Command(
        "steal",
        "locks",
        "take over a lock whose owner is gone",
        "handlers.locks:steal",
        ("coord steal main-push --dead-owner", "coord steal src/app.py --force --reason 'owner on holiday'"),
        (ONE_HELD,),
        (
            Flag("dead-owner", "before it expires, if the owner's process is proven dead"),
            Flag("force", "whatever the owner does; needs --reason, and is recorded"),
            REASON,
        ),
    ),
    Command(
        "preempt",
        "locks",
        "ask a holder of lower priority to release; revoked after a grace period",
        "handlers.locks:preempt",
        ("coord preempt src/app.py --priority 9 --reason 'hotfix' --grace 1m",),
        (ONE_HELD,),
        (
            PRIORITY._replace(summary="has to be higher than the holder's"),
            REASON,
            Flag(
                "grace",
                "the time the holder has (default: 30s)",
                "DURATION",
                "duration or zero",
                default=30.0,
            ),
            Flag("wait", "wait this long at most; then exit 3", "DURATION", "duration or zero", default=None),
        ),
    ),
    Command(
        "project-lock",
        "locks",
        "lock a whole project, or one area of it",
        "handlers.locks:project_lock",
        ("coord project-lock shop", "coord project-lock shop --area checkout --ttl 30m"),
        (PROJECT,),
        (AREA, *TAKING),
    ),
    Command(
        "project-unlock",
        "locks",
        "release the lock on a project or area",
        "handlers.locks:project_unlock",
        ("coord project-unlock shop --area checkout",),
        (PROJECT,),
        (AREA,),
    ),
)

MESSAGES = (
    Command(
        "send",
        "messages",
        "send a message to a session",
        "handlers.messages:send",
        ("coord send otto request 'please review' --body 'branch login-rework'",),
        (Word("peer", "a session or agent", completes="peers"), KIND, SUBJECT),
        SENDING,
    ),
    Command(
        "recv",
        "messages",
        "read the messages to this session",
        "handlers.messages:recv",
        ("coord recv --drain", "coord recv --wait 30s"),
        flags=(
            Flag("drain", "take them for good; without it they come again until coord ack"),
            Flag("peek", "only look", excludes="drain"),
            Flag("wait", "wait this long for one; then exit 3", "DURATION", "duration or zero", default=0.0),
        ),
    ),
    Command(
        "ack",
        "messages",
        "say that messages were dealt with",
        "handlers.messages:ack",
        ("coord ack 17-0",),
        (Word("id", "a message", many=True),),
    ),
    Command(
        "broadcast",
        "messages",
        "send a message to every session",
        "handlers.messages:broadcast",
        ("coord broadcast warn 'main is red' --live-only",),
        (KIND, SUBJECT),
        (*SENDING[:-1], Flag("live-only", "only to those with a sign of life")),
    ),
)

SETUP = (
    Command(
        "init",
        "setup",
        "prepare the store of this repository, and the hooks that hold agents to its locks",
        "handlers.setup:init",
        ("coord init", "coord init --dry-run", "coord init --url postgresql://db.example/coord --yes"),
        flags=(
            Flag("new-store", "start afresh, although the store that was pinned is gone or another"),
            Flag("dry-run", "change nothing; print what would be changed, as a diff", excludes="yes"),
            Flag("yes", "change it without asking"),
            Flag("shared", "put hooks into files that are meant for git", excludes="user"),
            Flag("user", "put hooks into the settings of the user, for all repositories"),
            Flag("tools", "claude, codex, gemini (default: those that are found)", "NAMES", "name"),
        ),
        connects=False,
        details="Hooks go into files that git does not see. Without terminal or --yes: only the store.",
    ),
    Command(
        "uninstall",
        "setup",
        "take everything out again that coord init put into files; the store stays",
        "handlers.setup:uninstall",
        ("coord uninstall", "coord uninstall --dry-run"),
        flags=(
            Flag("dry-run", "change nothing; print what would be changed, as a diff"),
            Flag("user", "out of the settings of the user"),
        ),
        connects=False,
        details="Files become what they were, byte for byte; what others wrote there since stays.",
    ),
    Command(
        "doctor",
        "setup",
        "look at repository, pin, store, clock, session and hooks, and at what others left behind",
        "handlers.doctor:doctor",
        ("coord doctor", "coord doctor --fix", "coord doctor --accept-clock"),
        flags=(
            Flag("accept-clock", "go on from the present clock, although the log is ahead of it"),
            Flag("fix", "set hooks right again, and end sessions whose process is proven to be gone"),
        ),
        connects=False,
        details="Each check is ok, warn or bad, with the command that helps; exit 0 if none is bad.",
    ),
    Command(
        "completion",
        "setup",
        "print a script that completes commands in a shell",
        "handlers.setup:completion",
        ('eval "$(coord completion bash)"', "coord completion fish > ~/.config/fish/completions/coord.fish"),
        (
            Word(
                "shell",
                "the shell, or words: what its script asks for",
                choices=("bash", "zsh", "fish", "words"),
            ),
            Word("word", "what was typed so far", many=True, optional=True),
        ),
        connects=False,
    ),
)

RECORDS = (
    Command(
        "log",
        "records",
        "what happened, in numbers (stats), who held what when (locks), what a session did (session)",
        "handlers.log:log",
        ("coord log tail -n 20 --op lock --since 1h", "coord log locks src/app.py", "coord log session otto"),
        (
            Word("what", "which view of the log", choices=("tail", "stats", "locks", "session")),
            Word("of", "with locks a resource, with session a session (default: this one)", optional=True),
        ),
        (
            Flag("n", "at most so many (default: 50)", "N", "number", default=50),
            Flag("op", "only this event, such as lock.denied, or this kind of event", "EVENT", "name"),
            Flag("actor", "only what this session or agent did", "ID", "name", completes="peers"),
            Flag("resource", "only what concerns this", "RESOURCE", "name", completes="files"),
            Flag("since", "only what is not older", "DURATION", "duration", default=None),
            Flag("follow", "go on as things happen, one line each, until interrupted"),
        ),
        connects=False,
        details="Where the log was trimmed it begins later, and the answer says so (begins_at).",
    ),
    Command(
        "metrics",
        "records",
        "print numbers for Prometheus",
        "handlers.metrics:metrics",
        ("coord metrics",),
        details="Computed from records and log when asked; counters begin anew where the log was trimmed.",
    ),
    Command(
        "migrate",
        "records",
        "move the store of this repository to another url: records, history and fences stay as they are",
        "handlers.migrate:migrate",
        (
            "coord migrate --to-url postgresql://db.example/coord --dry-run",
            "coord migrate --to-url postgresql://db.example/coord",
        ),
        flags=(
            Flag("to-url", "the new store, which must be empty", "URL", "name"),
            Flag("dry-run", "only count what would be moved"),
            Flag("cancel", "use the old store again, if the move was not completed"),
        ),
        connects=False,
        details="The old store is shut meanwhile. If it is interrupted, the same command goes on.",
    ),
)

COMMANDS = (
    *(*SESSIONS, *LOCKS, *TASKS, WORK, *PLANS, *AGENTS, *GIT, *MERGES, *GATES),
    *(*MESSAGES, *RECORDS, *UPKEEP, *SETUP, *HOOKS),
)
GROUPS = {
    "sessions": "Sessions: who is here",
    "locks": "Locks: who may change what",
    "tasks": "Tasks: what there is to do",
    "plans": "Plans: many tasks at once",
    "agents": "Agents: who should do what",
    "git": "Git: commits, worktrees, work put aside",
    "messages": "Messages",
    "records": "Records: what happened, and where it is kept",
    "upkeep": "Upkeep: limits, and what has run out",
    "setup": "Setup",
}
BY_NAME = {name: command for command in COMMANDS for name in (command.name, command.alias) if name}
"""A name of two words is a noun and a verb, as in `task next`."""
VERBS: dict[str, list[str]] = {}
for _name in BY_NAME:
    if " " in _name:
        VERBS.setdefault(_name.split()[0], []).append(_name.split()[1])
