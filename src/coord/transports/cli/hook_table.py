"""The commands that coding agents run; `table.py` has the others."""

from coord.transports.cli.grammar import Command, Word

TOOLS = ("claude", "codex", "gemini")

HOOKS = (
    Command(
        "hook",
        "setup",
        "answer an event of a coding agent: refuse what would write to another's files",
        "hook:hook",
        ("coord hook claude",),
        (Word("tool", "the agent that asks", choices=TOOLS),),
        connects=False,
        details="The event comes on standard input. The answer has the form of the tool.",
    ),
)
