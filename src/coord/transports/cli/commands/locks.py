"""Commands about locks."""

from coord.transports.cli.commands.flags import (
    AREA,
    FENCE,
    HELD,
    LITERAL,
    MODE,
    ONE_HELD,
    PAGING,
    PRIORITY,
    PROJECT,
    REASON,
    RESOURCES,
    TAKING,
    TTL,
)
from coord.transports.cli.spec import Argument, CommandSpec, Flag

COMMANDS = (
    CommandSpec(
        "lock",
        "lock files or names, all or none",
        handler="coord.transports.cli.handlers.locks:lock",
        examples=(
            "coord lock src/app.py --ttl 1h --reason 'rework the login'",
            "coord lock 'src/auth/*' main-push --no-wait",
            "coord lock src/app.py --profile file-claim --progress-timeout 60s",
        ),
        arguments=(RESOURCES,),
        flags=(
            LITERAL,
            MODE,
            *TAKING,
            Flag(
                "progress-timeout",
                "end it if this session is silent for DURATION",
                "DURATION",
                "duration",
                default=None,
            ),
            Flag("hold", "keep and renew it until Ctrl-C; then release it", dest="keep"),
        ),
        details="A path covers everything below it. A word like LICENSE means the file and the name of that "
        "spelling: write ./LICENSE or name:LICENSE for one of them. A glob like app/[id]/* also covers the "
        "path that is spelled so. "
        "Waits while another session has the lock: without limit on a terminal, else 100 s. "
        "With --hold it prints who begins to wait, and ends with Ctrl-C, SIGTERM or the end of its input "
        "(a terminal or a pipe). If the lock is lost, it exits 1.",
    ),
    CommandSpec(
        "unlock",
        "release locks of this session",
        handler="coord.transports.cli.handlers.locks:unlock",
        examples=("coord unlock src/app.py", "coord unlock --all"),
        arguments=(HELD._replace(optional=True),),
        flags=(LITERAL, FENCE, Flag("all", "release everything that no claim needs")),
    ),
    CommandSpec(
        "renew",
        "renew all locks of this session, or those you name",
        handler="coord.transports.cli.handlers.locks:renew",
        examples=("coord renew", "coord renew src/app.py --ttl 1h"),
        arguments=(HELD._replace(optional=True),),
        flags=(LITERAL, TTL, FENCE),
    ),
    CommandSpec(
        "check",
        "check whether a lock is free: exit 0 free, 1 locked",
        handler="coord.transports.cli.handlers.locks:check",
        reads=True,
        examples=("coord check src/app.py", "coord check docs --mode read"),
        arguments=(RESOURCES._replace(completes="held"),),
        flags=(
            LITERAL,
            MODE,
            FENCE._replace(summary="check that this session still has it with this fence"),
        ),
    ),
    CommandSpec(
        "locks",
        "list the locks",
        handler="coord.transports.cli.handlers.locks:locks",
        reads=True,
        examples=("coord locks", "coord locks --limit 100"),
        flags=(
            Flag("owner", "only locks of this session", "ID", "name", default=None, completes="peers"),
            *PAGING,
        ),
    ),
    CommandSpec(
        "waits",
        "show who waits for what, and behind whom",
        handler="coord.transports.cli.handlers.locks:waits",
        reads=True,
        examples=("coord waits",),
        details="Lists waits for locks, recent denied requests, and waits for tasks by sessions that have "
        "locks or claims. On a terminal, the sessions that block others are on top.",
    ),
    CommandSpec(
        "guard",
        "run a command while holding locks",
        handler="coord.transports.cli.handlers.guard:guard",
        examples=("coord guard main-push -- git push origin main",),
        arguments=(RESOURCES,),
        flags=(LITERAL, MODE, *TAKING),
        rest="command",
        details="Renews the locks while the command runs, releases them afterwards, and exits with the "
        "command's code. If a lock is lost, guard stops the command at once, says to whom it went, and "
        "exits 1. If guard itself is killed, a watchdog ends the command and then releases the locks.",
    ),
    CommandSpec(
        "steal",
        "take over a lock whose owner is gone",
        handler="coord.transports.cli.handlers.locks:steal",
        examples=(
            "coord steal main-push --dead-owner",
            "coord steal src/app.py --force --reason 'owner on holiday'",
        ),
        arguments=(ONE_HELD,),
        flags=(
            LITERAL,
            Flag("dead-owner", "take it early if the owner's process is proven dead"),
            Flag("force", "take it from a live owner; requires --reason"),
            Flag("release", "leave it to the sessions that wait for it"),
            REASON,
            FENCE,
        ),
    ),
    CommandSpec(
        "preempt",
        "ask a holder of lower priority to release its lock",
        handler="coord.transports.cli.handlers.locks:preempt",
        examples=("coord preempt src/app.py --priority 9 --reason 'hotfix' --grace 1m",),
        arguments=(ONE_HELD,),
        flags=(
            LITERAL,
            PRIORITY._replace(summary="must be higher than the holder's"),
            REASON,
            Flag(
                "grace",
                "revoke it after DURATION (default: 30s)",
                "DURATION",
                "duration or zero",
                default=30.0,
            ),
            Flag("wait", "wait up to DURATION, then exit 3", "DURATION", "duration or zero", default=None),
        ),
    ),
    CommandSpec(
        "handoff",
        "give a lock or a claim to another session",
        handler="coord.transports.cli.handlers.locks:handoff",
        examples=(
            "coord handoff src/app.py otto --note 'the tests are missing'",
            "coord handoff A-002-login otto",
        ),
        arguments=(
            Argument("what", "a lock of this session, or a task it has claimed", completes="held"),
            Argument("peer", "a session, or an agent with one session", completes="peers"),
        ),
        flags=(
            Flag("note", "what the other session should know", "TEXT"),
            Flag("task", "WHAT is a task, even if a file has that name"),
            LITERAL,
        ),
        details="The other session gets the lock with a new fence, or the claim with the next generation. "
        "What this session still sends for it is rejected.",
    ),
    CommandSpec(
        "project-lock",
        "lock a whole project, or one area of it",
        handler="coord.transports.cli.handlers.locks:project_lock",
        examples=("coord project-lock shop", "coord project-lock shop --area checkout --ttl 30m"),
        arguments=(PROJECT,),
        flags=(AREA, *TAKING),
    ),
    CommandSpec(
        "project-unlock",
        "release the lock on a project or an area",
        handler="coord.transports.cli.handlers.locks:project_unlock",
        examples=("coord project-unlock shop --area checkout",),
        arguments=(PROJECT,),
        flags=(AREA,),
    ),
)
