"""Commands about commits, worktrees, salvaged work, merges and the git gate."""

from coord.transports.cli.commands.flags import FENCE
from coord.transports.cli.spec import Argument, CommandSpec, Flag

MESSAGE = Flag(
    "m", "the commit's message (- reads it from standard input)", "TEXT", "text or input", dest="message"
)
FILES = Argument(
    "file", "only these (default: all that is held and changed)", many=True, optional=True, dest="files"
)
NAME = Argument("name", "its name (default: this agent's)", optional=True)
INTO = Flag("into", "what is not in there is not merged (default: HEAD of the main tree)", "BRANCH", "name")
OF = Argument("ref", "refs/coord/salvage/…, or what comes after that")

COMMANDS = (
    CommandSpec(
        "commit",
        "commit the files that this session holds, and nothing else that is changed or staged",
        handler="coord.transports.cli.handlers.git:commit",
        examples=("coord commit -m 'feat: login'", "coord commit -m 'fix: typo' docs/login.md"),
        arguments=(FILES,),
        flags=(
            MESSAGE,
            FENCE._replace(summary="the newest fence you know: refuse if a lock was granted later"),
            Flag("unlock", "give back the locks that the commit was made under"),
            Flag(
                "hooks-timeout",
                "give up on hooks that take longer (default: never, as git)",
                "DURATION",
                "duration",
                default=None,
            ),
        ),
        details="New and deleted files are included. The repository's hooks run; "
        '[commit] hooks_timeout = "10m" in coord.toml limits their time, too.',
    ),
    CommandSpec(
        "worktree add",
        "make a worktree with a branch for this session, or go on in the one of this name",
        handler="coord.transports.cli.handlers.git:worktree_add",
        examples=("coord worktree add", "coord worktree add A-001-login --setup 'npm ci'"),
        arguments=(NAME,),
        flags=(
            Flag("branch", "its branch (default: agent/{name})", "TEMPLATE", "name"),
            Flag("path", "its folder, from the main tree (default: .worktrees/{name})", "TEMPLATE"),
            Flag(
                "from",
                "where a new branch begins (default: HEAD)",
                "COMMIT",
                "name",
                default="HEAD",
                dest="start",
            ),
            Flag("setup", "what sh runs there before it is handed over", "COMMAND"),
            Flag("or-shared", "where none can be made, answer with the shared tree, and say so"),
        ),
        details="Other defaults: git config coord.worktreePath, coord.worktreeBranch, coord.worktreeSetup.",
    ),
    CommandSpec(
        "worktree enter",
        "go on in a worktree whose session is gone, or in one's own",
        handler="coord.transports.cli.handlers.git:worktree_enter",
        examples=("coord worktree enter A-001-login",),
        arguments=(
            Argument("name", "its folder's name or its branch (default: this session's)", optional=True),
        ),
        flags=(Flag("force", "also from a session that is silent, but not proven to be gone"),),
    ),
    CommandSpec(
        "worktree list",
        "list the worktrees that coord made: whose they are, what is changed, what is not merged",
        handler="coord.transports.cli.handlers.git:worktree_list",
        examples=("coord worktree list", "coord worktree list --into main"),
        flags=(INTO,),
    ),
    CommandSpec(
        "worktree clean",
        "remove worktrees whose session is gone, if nothing of them would be lost",
        handler="coord.transports.cli.handlers.git:worktree_clean",
        examples=("coord worktree clean --dry-run", "coord worktree clean --salvage"),
        arguments=(Argument("name", "only these, also one's own", many=True, optional=True, dest="names"),),
        flags=(
            INTO,
            Flag("salvage", "put changes aside in refs/coord/salvage, and keep what is not merged as branch"),
            Flag("dry-run", "only say what would be removed"),
        ),
        details="What is changed or not merged is kept. Ignored files go with their worktree.",
    ),
    CommandSpec(
        "salvage list",
        "list what was put aside, the oldest first",
        handler="coord.transports.cli.handlers.git:salvage_list",
        examples=("coord salvage list",),
        connects=False,
    ),
    CommandSpec(
        "salvage show",
        "show what one of them holds, and whether a branch has it",
        handler="coord.transports.cli.handlers.git:salvage_show",
        examples=("coord salvage show 17/1",),
        arguments=(OF,),
        connects=False,
    ),
    CommandSpec(
        "salvage drop",
        "give up what some of them hold, if a branch has every byte of it",
        handler="coord.transports.cli.handlers.git:salvage_drop",
        examples=("coord salvage drop 17/1", "coord salvage drop 17/1 17/2 --force"),
        arguments=(OF._replace(many=True, dest="refs"),),
        flags=(Flag("force", "also what no branch has"),),
        connects=False,
        details="Nothing is ever given up that nobody asked for.",
    ),
    CommandSpec(
        "salvage prune",
        "give up all that is in a branch, or older than a while, or both",
        handler="coord.transports.cli.handlers.git:salvage_prune",
        examples=("coord salvage prune --merged", "coord salvage prune --older-than 30d --merged --dry-run"),
        flags=(
            Flag("older-than", "only what was put aside so long ago", "DURATION", "duration", default=None),
            Flag("merged", "only what a branch has every byte of"),
            Flag("dry-run", "only say what would be dropped"),
        ),
        connects=False,
        details="Without --merged also work goes that is nowhere else.",
    ),
    CommandSpec(
        "salvage keep",
        "put a copy of what this session changed aside, as a checkpoint; the files stay as they are",
        handler="coord.transports.cli.handlers.git:salvage_keep",
        examples=("coord salvage keep --why 'before the rework'",),
        flags=(Flag("why", "what it is, in one line", "TEXT"),),
    ),
    CommandSpec(
        "salvage restore",
        "bring files back as they were put aside; what is there now is put aside first",
        handler="coord.transports.cli.handlers.git:salvage_restore",
        examples=("coord salvage restore 17/1", "coord salvage restore 17/1 src/app.py"),
        arguments=(OF, Argument("file", "only these", many=True, optional=True, dest="files")),
        details="Every file has to be held by this session.",
    ),
    CommandSpec(
        "merge",
        "merge branches into main: only what was changed under locks, for claims that still hold",
        handler="coord.transports.cli.handlers.git:merge",
        examples=("coord merge agent/otto", "coord merge login search --check 'make test' --wait 10m"),
        arguments=(
            Argument(
                "branch",
                "a branch; several are merged one upon the other and checked once",
                many=True,
                dest="branches",
            ),
        ),
        flags=(
            Flag("into", "the branch that takes them (default: main, or master)", "BRANCH"),
            Flag("check", "a command, run without a shell, that the merged tree must pass", "COMMAND"),
            Flag(
                "check-timeout", "how long it may take (default: 30m)", "DURATION", "duration", default=1800.0
            ),
            Flag("any-file", "merge also what was changed without a lock; only for people"),
            Flag(
                "wait",
                "wait this long for other merges (default: 10m)",
                "DURATION",
                "duration or zero",
                default=600.0,
            ),
        ),
        details="What is not merged stays as it is, and the answer says why: exit 1, with files and parties.",
    ),
    CommandSpec(
        "gate",
        "put the gate before a shared bare repository: late commits cannot be pushed to it",
        handler="coord.transports.cli.handlers.git:gate",
        examples=("coord gate ../shop.git", "coord gate ../shop.git --protect main,release/*"),
        arguments=(Argument("folder", "the bare repository, on this machine"),),
        flags=(
            Flag(
                "protect",
                "the branches that late commits must not move (default: as before, or main,master)",
                "BRANCH,...",
                "names",
                default=(),
            ),
        ),
        details="Run it where the store is that all clones use. A hook that is there runs after the gate. "
        "What it protects is changed by people: agents are refused. "
        "`coord uninstall` in the bare repository takes it out.",
    ),
)
