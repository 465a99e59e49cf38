"""Commands about commits, worktrees, salvaged work, merges and the git gate."""

from coord.transports.cli.commands.flags import FENCE
from coord.transports.cli.spec import Argument, CommandSpec, Flag

MESSAGE = Flag("m", "the commit message (-: read standard input)", "TEXT", "text or input", dest="message")
FILES = Argument(
    "file",
    "only these (default: all locked, changed files)",
    many=True,
    optional=True,
    completes="own",
    dest="files",
)
NAME = Argument("name", "its name (default: the agent's name)", optional=True)
INTO = Flag("into", "compare with this branch (default: the main tree's HEAD)", "BRANCH", "name")
OF = Argument("ref", "refs/coord/salvage/…, or the part after that")

COMMANDS = (
    CommandSpec(
        "commit",
        "commit only the files that this session has locked",
        handler="coord.transports.cli.handlers.git:commit",
        examples=("coord commit -m 'feat: login'", "coord commit -m 'fix: typo' docs/login.md"),
        arguments=(FILES,),
        flags=(
            MESSAGE,
            FENCE._replace(summary="refuse if a lock was granted after this fence"),
            Flag("unlock", "release the locks of the committed files"),
            Flag(
                "hooks-timeout",
                "stop git hooks that take longer (default: no limit)",
                "DURATION",
                "duration",
                default=None,
            ),
        ),
        details="Includes new and deleted files, and runs the repository's hooks. To limit their time, set "
        'hooks_timeout = "10m" below [commit] in coord.toml.',
    ),
    CommandSpec(
        "worktree add",
        "create a worktree and branch, or enter an existing one",
        handler="coord.transports.cli.handlers.git:worktree_add",
        examples=("coord worktree add", "coord worktree add A-001-login --setup 'npm ci'"),
        arguments=(NAME,),
        flags=(
            Flag("branch", "its branch (default: agent/{name})", "TEMPLATE", "name"),
            Flag("path", "its folder (default: .worktrees/{name})", "TEMPLATE"),
            Flag(
                "from",
                "start of a new branch (default: HEAD)",
                "COMMIT",
                "name",
                default="HEAD",
                dest="start",
            ),
            Flag("setup", "a shell command to prepare the worktree", "COMMAND"),
            Flag("or-shared", "use the shared tree if no worktree can be created"),
        ),
        details="You can change the defaults with git config: coord.worktreePath, coord.worktreeBranch, "
        "coord.worktreeSetup.",
    ),
    CommandSpec(
        "worktree enter",
        "enter your worktree, or one whose session is gone",
        handler="coord.transports.cli.handlers.git:worktree_enter",
        examples=("coord worktree enter A-001-login",),
        arguments=(Argument("name", "its folder or branch (default: this session's)", optional=True),),
        flags=(Flag("force", "take it from a silent session that may be alive"),),
    ),
    CommandSpec(
        "worktree list",
        "list worktrees, their owners and unmerged changes",
        handler="coord.transports.cli.handlers.git:worktree_list",
        reads=True,
        examples=("coord worktree list", "coord worktree list --into main"),
        flags=(INTO,),
    ),
    CommandSpec(
        "worktree clean",
        "remove worktrees of ended sessions if no work is lost",
        handler="coord.transports.cli.handlers.git:worktree_clean",
        examples=("coord worktree clean --dry-run", "coord worktree clean --salvage"),
        arguments=(
            Argument("name", "only these; may include your own", many=True, optional=True, dest="names"),
        ),
        flags=(
            INTO,
            Flag("salvage", "save changes in refs/coord/salvage, then remove"),
            Flag("dry-run", "show the worktrees without removing them"),
        ),
        details="Worktrees with changes or unmerged commits are kept. Ignored files are removed with "
        "their worktree.",
    ),
    CommandSpec(
        "salvage list",
        "list salvaged work, oldest first",
        handler="coord.transports.cli.handlers.git:salvage_list",
        examples=("coord salvage list",),
        connects=False,
    ),
    CommandSpec(
        "salvage show",
        "show the files of salvaged work",
        handler="coord.transports.cli.handlers.git:salvage_show",
        examples=("coord salvage show 17/1",),
        arguments=(OF,),
        connects=False,
    ),
    CommandSpec(
        "salvage drop",
        "delete salvaged work that a branch contains",
        handler="coord.transports.cli.handlers.git:salvage_drop",
        examples=("coord salvage drop 17/1", "coord salvage drop 17/1 17/2 --force"),
        arguments=(OF._replace(many=True, dest="refs"),),
        flags=(Flag("force", "delete it even if no branch contains it"),),
        connects=False,
        details="coord never deletes salvaged work on its own initiative.",
    ),
    CommandSpec(
        "salvage prune",
        "delete salvaged work that is old or merged",
        handler="coord.transports.cli.handlers.git:salvage_prune",
        examples=("coord salvage prune --merged", "coord salvage prune --older-than 30d --merged --dry-run"),
        flags=(
            Flag(
                "older-than", "only work salvaged at least DURATION ago", "DURATION", "duration", default=None
            ),
            Flag("merged", "only work that a branch contains completely"),
            Flag("dry-run", "show the refs without deleting them"),
        ),
        connects=False,
        details="Without --merged this deletes work that exists nowhere else.",
    ),
    CommandSpec(
        "salvage keep",
        "save a copy of this session's changes",
        handler="coord.transports.cli.handlers.git:salvage_keep",
        examples=("coord salvage keep --why 'before the rework'",),
        flags=(Flag("why", "a description, in one line", "TEXT"),),
    ),
    CommandSpec(
        "salvage restore",
        "restore salvaged files; the present ones are saved first",
        handler="coord.transports.cli.handlers.git:salvage_restore",
        examples=("coord salvage restore 17/1", "coord salvage restore 17/1 src/app.py"),
        arguments=(OF, Argument("file", "only these files", many=True, optional=True, dest="files")),
        details="This session must have a lock on every file.",
    ),
    CommandSpec(
        "merge",
        "merge branches, but only changes made under locks",
        handler="coord.transports.cli.handlers.merge:merge",
        examples=("coord merge agent/otto", "coord merge login search --check 'make test' --wait 10m"),
        arguments=(
            Argument(
                "branch",
                "a branch; several are merged in order, checked once",
                many=True,
                dest="branches",
            ),
        ),
        flags=(
            Flag("into", "the target branch (default: main, or master)", "BRANCH"),
            Flag("check", "a command that the merged tree must pass (no shell)", "COMMAND"),
            Flag(
                "check-timeout",
                "how long the check may take (default: 30m)",
                "DURATION",
                "duration",
                default=1800.0,
            ),
            Flag("any-file", "merge unlocked changes, too; only for people"),
            Flag(
                "wait",
                "wait up to DURATION for other merges (default: 10m)",
                "DURATION",
                "duration or zero",
                default=600.0,
            ),
        ),
        details="A branch that cannot be merged stays unchanged. The reply then names the files, the "
        "people and the reason, with exit 1.",
    ),
    CommandSpec(
        "gate",
        "install the push gate in a shared bare repository",
        handler="coord.transports.cli.handlers.git:gate",
        examples=("coord gate ../shop.git", "coord gate ../shop.git --protect main,release/*"),
        arguments=(Argument("folder", "the bare repository, on this machine"),),
        flags=(
            Flag(
                "protect",
                "branches to protect (default: unchanged, or main,master)",
                "BRANCH,...",
                "names",
                default=(),
            ),
        ),
        details="Commits whose lock or claim is lost can then not be pushed. Run it in the repository whose "
        "store all clones use. An existing hook runs after the gate. Only people may change what is "
        "protected. To remove the gate, run `coord uninstall` in the bare repository.",
    ),
)
