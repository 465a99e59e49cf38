"""Commands that set coord up and check it."""

from coord.transports.cli.spec import Argument, CommandSpec, Flag

TOOLS = ("claude", "codex", "gemini")
HUB = ("auto", "off", "http")

COMMANDS = (
    CommandSpec(
        "init",
        "set up the store and the hooks of this repository",
        handler="coord.transports.cli.handlers.setup:init",
        examples=(
            "coord init",
            "coord init --dry-run",
            "coord init --url postgresql://db.example/coord --yes",
        ),
        flags=(
            Flag("new-store", "create a new store although another one is pinned"),
            Flag("dry-run", "print the changes as a diff without making them", excludes="yes"),
            Flag("yes", "change files without asking"),
            Flag("diff", "show every line before asking"),
            Flag("shared", "write hooks into files that git tracks", excludes="user"),
            Flag("user", "write hooks into your user settings"),
            Flag("tools", "only add these: claude, codex, gemini", "NAMES", "name"),
            Flag("hub", "start your hub when one is needed", "HOW", choices=HUB, implied="auto"),
        ),
        connects=False,
        details="Writes hooks for all tools into files that git does not track. Without a terminal and"
        " without --yes it only creates the store. Exit 1 if a tool cannot be protected. --hub=http: "
        "Claude Code asks the hub by itself, and cannot change files while the hub is down.",
    ),
    CommandSpec(
        "uninstall",
        "undo `coord init`; the store is kept",
        handler="coord.transports.cli.handlers.setup:uninstall",
        examples=("coord uninstall", "coord uninstall --dry-run", "coord uninstall --tools gemini"),
        flags=(
            Flag("dry-run", "print the changes as a diff without making them"),
            Flag("user", "clean your user settings"),
            Flag("tools", "only remove these: claude, codex, gemini", "NAMES", "name"),
        ),
        connects=False,
        details="Restores files byte for byte and keeps what others have written since.",
    ),
    CommandSpec(
        "trust",
        "confirm the coord.toml of this repository",
        handler="coord.transports.cli.handlers.trust:trust",
        connects=False,
        examples=("coord trust", "coord trust --yes", "coord trust --revoke"),
        flags=(
            Flag("yes", "confirm without a question"),
            Flag("revoke", "withdraw the confirmation", excludes="yes"),
        ),
        details="A clone brings its coord.toml along, and the file may name a foreign server or weaken the "
        "hooks. So none of its settings count before a person has confirmed it, and again after each "
        "change. coord init asks, too.",
    ),
    CommandSpec(
        "doctor",
        "check repository, store, clock, session and hooks",
        handler="coord.transports.cli.handlers.setup:doctor",
        examples=("coord doctor", "coord doctor --fix", "coord doctor --repair --yes"),
        flags=(
            Flag("accept-clock", "accept this clock although the log is ahead of it"),
            Flag("fix", "repair hooks, and end sessions proven dead"),
            Flag("repair", "replace a damaged SQLite store by what is proven"),
            Flag("yes", "repair without a question"),
        ),
        connects=False,
        details="Each check is ok, warn or bad and names the command that helps. Exit 0 if none is bad.",
    ),
    CommandSpec(
        "completion",
        "print a completion script for a shell",
        handler="coord.transports.cli.handlers.setup:completion",
        examples=(
            'eval "$(coord completion bash)"',
            "coord completion fish > ~/.config/fish/completions/coord.fish",
        ),
        arguments=(
            Argument(
                "shell",
                "the shell; its script calls `words`",
                choices=("bash", "zsh", "fish", "words"),
            ),
            Argument("word", "the words typed so far", many=True, optional=True, dest="words"),
        ),
        connects=False,
    ),
    CommandSpec(
        "install",
        "create a store's schema, or update it",
        handler="coord.transports.cli.handlers.setup:install",
        examples=(
            "coord install postgresql://coord_owner@db.example/coord",
            "coord install postgresql://coord_owner@db.example/coord --grants",
            "coord install --tenant acme",
        ),
        arguments=(Argument("url", "the store (default: this repository's)", optional=True),),
        flags=(
            Flag("grants", "print the statements that grant the needed rights"),
            Flag("dry-run", "report whether the store would be created", excludes="grants"),
        ),
        connects=False,
        details="With --tenant: the store that coord.toml gives this tenant below [tenants].",
    ),
    CommandSpec(
        "hook",
        "answer a coding agent's hook event",
        handler="coord.transports.cli.handlers.setup:hook",
        examples=("coord hook claude",),
        arguments=(Argument("tool", "the coding agent", choices=TOOLS),),
        connects=False,
        details="Reads the event from standard input and answers in the tool's format. Refuses to write "
        "to files that others have locked.",
    ),
    CommandSpec(
        "version",
        "print the version and where coord is installed",
        handler="coord.transports.cli.handlers.setup:version",
        examples=("coord version",),
        connects=False,
    ),
    CommandSpec(
        "help",
        "explain a command, or list all commands",
        handler="coord.transports.cli.handlers.setup:explain",
        examples=("coord help", "coord help lock", "coord help task next"),
        arguments=(
            Argument(
                "command",
                "a command (default: list all)",
                many=True,
                optional=True,
                completes="commands",
            ),
        ),
        connects=False,
    ),
)
