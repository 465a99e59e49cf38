"""The command that merges branches; `table.py` has the others."""

from coord.transports.cli.spec import Command, Flag, Word

MERGES = (
    Command(
        "merge",
        "git",
        "merge branches into main: only what was changed under locks, for claims that still hold",
        "handlers.merges:merge",
        ("coord merge agent/otto", "coord merge login search --check 'make test' --wait 10m"),
        (Word("branch", "a branch; several are merged one upon the other and checked once", many=True),),
        (
            Flag("into", "the branch that takes them (default: main, or master)", "BRANCH"),
            Flag("check", "a command, run without a shell, that the merged tree must pass", "COMMAND"),
            Flag(
                "check-timeout",
                "how long it may take (default: 30m)",
                "DURATION",
                "duration",
                default=1800.0,
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
)
