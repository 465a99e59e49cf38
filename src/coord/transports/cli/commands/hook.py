"""The commands that coding agents run, and those about coord itself; `table.py` has the others."""

from coord.transports.cli.spec import Command, Word

TOOLS = ("claude", "codex", "gemini")

HOOKS = (
    Command(
        "hook",
        "setup",
        "answer an event of a coding agent: refuse what would write to another's files",
        "handlers.hook:hook",
        ("coord hook claude",),
        (Word("tool", "the agent that asks", choices=TOOLS),),
        connects=False,
        details="The event comes on standard input. The answer has the form of the tool.",
    ),
    Command(
        "version",
        "setup",
        "print the version of coord, and where it is installed",
        "handlers.setup:version",
        ("coord version",),
        connects=False,
    ),
    Command(
        "help",
        "setup",
        "explain a command, or list all of them",
        "handlers.setup:explain",
        ("coord help", "coord help lock", "coord help task next"),
        (
            Word(
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
