"""Which commands need a named lock for as long as they run (INT-12).

An action's words stand in a command in this order, others may stand between them; `*` in a word stands for
anything. Those of a repository are added in its `coord.toml`:

    [[hooks.actions]]
    command = "npm publish"
    lock = "release"
"""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

import msgspec

from coord.integrations.hooks.shell_parser import simple_commands


class Action(msgspec.Struct, frozen=True):
    """Commands that need a lock; `main_tree`: only in the first worktree of a repository."""

    command: str
    lock: str
    main_tree: bool = False


BRANCHES = ("main", "master")
_OF_BRANCHES = tuple(
    action
    for branch in BRANCHES
    for action in (
        Action(f"git checkout {branch}", "name:main-branch"),
        Action(f"git switch {branch}", "name:main-branch"),
        Action(f"git push {branch}", "name:main-push"),
        Action(f"git push *:{branch}", "name:main-push"),
        Action(f"git push *refs/heads/{branch}", "name:main-push"),
        Action(f"git push +{branch}", "name:main-push"),
    )
)
ACTIONS = (
    *_OF_BRANCHES,
    Action("git push --all", "name:main-push"),
    Action("git push --mirror", "name:main-push"),
    Action("gh pr merge", "name:pr-merge-queue"),
    Action("cargo build", "name:cargo-build", main_tree=True),
    *(Action(f"{verb} *.claude/*", "name:claude-config") for verb in ("cp", "mv", "rm", "sed", "tee", "ln")),
    *(
        Action(f"{verb} *.local/bin/engram", "name:engram-serve")
        for verb in ("mv", "cp", "rm", "install", "ln")
    ),
    *(Action(f"{verb} *engram*", "name:engram-serve") for verb in ("kill", "pkill", "killall")),
)
PUSH_WORDS = 2
"""In `git push origin` no branch is named: the one that is checked out is meant."""


def locks_for(line: str, actions: Iterable[Action], *, branch: str, main_tree: bool) -> tuple[str, ...]:
    """Return the locks that the actions in a command line need."""
    if not line.strip():
        return ()
    commands = [_with_branch(words, branch) for words in simple_commands(line)]
    found = {
        action.lock: None
        for action in actions
        if (main_tree or not action.main_tree)
        and any(_fits(action.command.split(), words) for words in commands)
    }
    return tuple(found)


def _with_branch(words: list[str], branch: str) -> list[str]:
    """Return a push with the branch that it means: that which is checked out, unless it names one."""
    if words[:2] != ["git", "push"] or not branch:
        return words
    named = [word for word in words[2:] if not word.startswith("-")]
    if len(named) < PUSH_WORDS or named[1] == "HEAD":
        return [*words, branch]
    return words


def _fits(pattern: Sequence[str], words: Sequence[str]) -> bool:
    """Whether the words of a pattern stand in a command, the first one first and all in order."""
    if not pattern or not words or not fnmatchcase(words[0], pattern[0]):
        return False
    rest = iter(words[1:])
    return all(any(fnmatchcase(word, wanted) for word in rest) for wanted in pattern[1:])
