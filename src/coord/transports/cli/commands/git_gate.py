"""The commands about gates of git; `table.py` has the others."""

from coord.transports.cli.spec import Command, Flag, Word

GATES = (
    Command(
        "gate",
        "git",
        "put the gate before a shared bare repository: late commits cannot be pushed to it",
        "handlers.gates:gate",
        ("coord gate ../shop.git", "coord gate ../shop.git --protect main,release/*"),
        (Word("folder", "the bare repository, on this machine"),),
        (
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
