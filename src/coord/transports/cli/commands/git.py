"""The commands about git: commits, worktrees, and work put aside; `table.py` has the others."""

from coord.transports.cli.commands.flags import FENCE
from coord.transports.cli.spec import Command, Flag, Word

MESSAGE = Flag("m", "the commit's message (- reads it from standard input)", "TEXT", "text or input")
FILES = Word("file", "only these (default: all that is held and changed)", many=True, optional=True)
NAME = Word("name", "its name (default: this agent's)", optional=True)
INTO = Flag("into", "what is not in there is not merged (default: HEAD of the main tree)", "BRANCH", "name")
OF = Word("ref", "refs/coord/salvage/…, or what comes after that")

COMMITS = (
    Command(
        "commit",
        "git",
        "commit the files that this session holds, and nothing else that is changed or staged",
        "handlers.commits:commit",
        ("coord commit -m 'feat: login'", "coord commit -m 'fix: typo' docs/login.md"),
        (FILES,),
        (
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
)

WORKTREES = (
    Command(
        "worktree add",
        "git",
        "make a worktree with a branch for this session, or go on in the one of this name",
        "handlers.worktrees:add",
        ("coord worktree add", "coord worktree add A-001-login --setup 'npm ci'"),
        (NAME,),
        (
            Flag("branch", "its branch (default: agent/{name})", "TEMPLATE", "name"),
            Flag("path", "its folder, from the main tree (default: .worktrees/{name})", "TEMPLATE"),
            Flag("from", "where a new branch begins (default: HEAD)", "COMMIT", "name", default="HEAD"),
            Flag("setup", "what sh runs there before it is handed over", "COMMAND"),
            Flag("or-shared", "where none can be made, answer with the shared tree, and say so"),
        ),
        details="Other defaults: git config coord.worktreePath, coord.worktreeBranch, coord.worktreeSetup.",
    ),
    Command(
        "worktree enter",
        "git",
        "go on in a worktree whose session is gone, or in one's own",
        "handlers.worktrees:enter",
        ("coord worktree enter A-001-login",),
        (Word("name", "its folder's name or its branch (default: this session's)", optional=True),),
        (Flag("force", "also from a session that is silent, but not proven to be gone"),),
    ),
    Command(
        "worktree list",
        "git",
        "list the worktrees that coord made: whose they are, what is changed, what is not merged",
        "handlers.worktrees:list_",
        ("coord worktree list", "coord worktree list --into main"),
        flags=(INTO,),
    ),
    Command(
        "worktree clean",
        "git",
        "remove worktrees whose session is gone, if nothing of them would be lost",
        "handlers.worktrees:clean",
        ("coord worktree clean --dry-run", "coord worktree clean --salvage"),
        (Word("name", "only these, also one's own", many=True, optional=True),),
        (
            INTO,
            Flag("salvage", "put changes aside in refs/coord/salvage, and keep what is not merged as branch"),
            Flag("dry-run", "only say what would be removed"),
        ),
        details="What is changed or not merged is kept. Ignored files go with their worktree.",
    ),
)

SALVAGE = (
    Command(
        "salvage list",
        "git",
        "list what was put aside, the oldest first",
        "handlers.salvages:list_",
        ("coord salvage list",),
        connects=False,
    ),
    Command(
        "salvage show",
        "git",
        "show what one of them holds, and whether a branch has it",
        "handlers.salvages:show",
        ("coord salvage show 17/1",),
        (OF,),
        connects=False,
    ),
    Command(
        "salvage drop",
        "git",
        "give up what some of them hold, if a branch has every byte of it",
        "handlers.salvages:drop",
        ("coord salvage drop 17/1", "coord salvage drop 17/1 17/2 --force"),
        (OF._replace(many=True),),
        (Flag("force", "also what no branch has"),),
        details="Nothing is ever given up that nobody asked for.",
        connects=False,
    ),
    Command(
        "salvage prune",
        "git",
        "give up all that is in a branch, or older than a while, or both",
        "handlers.salvages:prune",
        ("coord salvage prune --merged", "coord salvage prune --older-than 30d --merged --dry-run"),
        flags=(
            Flag("older-than", "only what was put aside so long ago", "DURATION", "duration", default=None),
            Flag("merged", "only what a branch has every byte of"),
            Flag("dry-run", "only say what would be dropped"),
        ),
        details="Without --merged also work goes that is nowhere else.",
        connects=False,
    ),
    Command(
        "salvage keep",
        "git",
        "put a copy of what this session changed aside, as a checkpoint; the files stay as they are",
        "handlers.salvages:keep",
        ("coord salvage keep --why 'before the rework'",),
        flags=(Flag("why", "what it is, in one line", "TEXT"),),
    ),
    Command(
        "salvage restore",
        "git",
        "bring files back as they were put aside; what is there now is put aside first",
        "handlers.salvages:restore",
        ("coord salvage restore 17/1", "coord salvage restore 17/1 src/app.py"),
        (OF, Word("file", "only these", many=True, optional=True)),
        details="Every file has to be held by this session.",
    ),
)

GIT = (*COMMITS, *WORKTREES, *SALVAGE)
