"""Commands that set coord up and check it."""

from coord.transports.cli.spec import Argument, CommandSpec, Flag

TOOLS = ("claude", "codex", "gemini")

COMMANDS = (
    CommandSpec(
        "init",
        "prepare the store of this repository, and the hooks that hold agents to its locks",
        handler="coord.transports.cli.handlers.setup:init",
        examples=(
            "coord init",
            "coord init --dry-run",
            "coord init --url postgresql://db.example/coord --yes",
        ),
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
    CommandSpec(
        "uninstall",
        "take everything out again that coord init put into files; the store stays",
        handler="coord.transports.cli.handlers.setup:uninstall",
        examples=("coord uninstall", "coord uninstall --dry-run"),
        flags=(
            Flag("dry-run", "change nothing; print what would be changed, as a diff"),
            Flag("user", "out of the settings of the user"),
        ),
        connects=False,
        details="Files become what they were, byte for byte; what others wrote there since stays.",
    ),
    CommandSpec(
        "doctor",
        "look at repository, pin, store, clock, session and hooks, and at what others left behind",
        handler="coord.transports.cli.handlers.setup:doctor",
        examples=("coord doctor", "coord doctor --fix", "coord doctor --accept-clock"),
        flags=(
            Flag("accept-clock", "go on from the present clock, although the log is ahead of it"),
            Flag("fix", "set hooks right again, and end sessions whose process is proven to be gone"),
        ),
        connects=False,
        details="Each check is ok, warn or bad, with the command that helps; exit 0 if none is bad.",
    ),
    CommandSpec(
        "completion",
        "print a script that completes commands in a shell",
        handler="coord.transports.cli.handlers.setup:completion",
        examples=(
            'eval "$(coord completion bash)"',
            "coord completion fish > ~/.config/fish/completions/coord.fish",
        ),
        arguments=(
            Argument(
                "shell",
                "the shell, or words: what its script asks for",
                choices=("bash", "zsh", "fish", "words"),
            ),
            Argument("word", "what was typed so far", many=True, optional=True, dest="words"),
        ),
        connects=False,
    ),
    CommandSpec(
        "install",
        "prepare a store: schema, tables and views on a server; again without harm, to renew them",
        handler="coord.transports.cli.handlers.setup:install",
        examples=(
            "coord install postgresql://coord_owner@db.example/coord",
            "coord install postgresql://coord_owner@db.example/coord --grants",
            "coord install --tenant acme",
        ),
        arguments=(Argument("url", "the store (default: that of this repository)", optional=True),),
        flags=(
            Flag("grants", "only print what an administrator runs to give the rights it takes"),
            Flag("dry-run", "change nothing; say whether there is anything to make", excludes="grants"),
        ),
        connects=False,
        details="With --tenant: the store of its own that coord.toml gives a tenant below [tenants].",
    ),
    CommandSpec(
        "hook",
        "answer an event of a coding agent: refuse what would write to another's files",
        handler="coord.transports.cli.handlers.setup:hook",
        examples=("coord hook claude",),
        arguments=(Argument("tool", "the agent that asks", choices=TOOLS),),
        connects=False,
        details="The event comes on standard input. The answer has the form of the tool.",
    ),
    CommandSpec(
        "version",
        "print the version of coord, and where it is installed",
        handler="coord.transports.cli.handlers.setup:version",
        examples=("coord version",),
        connects=False,
    ),
    CommandSpec(
        "help",
        "explain a command, or list all of them",
        handler="coord.transports.cli.handlers.setup:explain",
        examples=("coord help", "coord help lock", "coord help task next"),
        arguments=(
            Argument(
                "command",
                "a command, as it is typed (default: list all)",
                many=True,
                optional=True,
                completes="commands",
            ),
        ),
        connects=False,
    ),
)
