"""Commands that need a named lock while they run (INT-12).

A command matches an action if it has the action's words in the same order; other words may stand between
them, and `*` in a word matches anything. The git commands are built in. `coord.host.presets` adds an
example set, and a repository adds its own commands or drops the example in its `coord.toml`:

    [presets]
    locks = false

    [[hooks.actions]]
    command = "npm publish"
    lock = "release"
"""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

import msgspec

from coord.host.presets import LOCKS, LockPreset
from coord.integrations.hooks.shell_parser import simple_commands


class Action(msgspec.Struct, frozen=True):
    """A command that needs a lock; `main_tree`: only in the first worktree of a repository."""

    command: str
    lock: str
    main_tree: bool = False


BRANCHES = ("main", "master")
GIT_ACTIONS = (
    *(
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
    ),
    Action("git push --all", "name:main-push"),
    Action("git push --mirror", "name:main-push"),
    Action("gh pr merge", "name:pr-merge-queue"),
)


def with_presets(presets: Iterable[LockPreset]) -> tuple[Action, ...]:
    """Return the built-in actions and those of some presets."""
    return (
        *GIT_ACTIONS,
        *(
            Action(command, preset.resource, preset.main_tree)
            for preset in presets
            for command in preset.commands
        ),
    )


ACTIONS = with_presets(LOCKS)
PUSH_WORDS = 2
"""`git push origin` names no branch, so it pushes the one that is checked out."""


def locks_for(line: str, actions: Iterable[Action], *, branch: str, main_tree: bool) -> tuple[str, ...]:
    """Return the locks that the commands of a line need."""
    if not line.strip():
        return ()
    commands = [_with_branch(words, branch) for words in simple_commands(line)]
    found = {
        action.lock: None
        for action in actions
        if (main_tree or not action.main_tree)
        and any(_matches(action.command.split(), words) for words in commands)
    }
    return tuple(found)


def _with_branch(words: list[str], branch: str) -> list[str]:
    """Return a push with its branch: the one that is checked out, unless the push names another."""
    if words[:2] != ["git", "push"] or not branch:
        return words
    named = [word for word in words[2:] if not word.startswith("-")]
    if len(named) < PUSH_WORDS or named[1] == "HEAD":
        return [*words, branch]
    return words


def _matches(pattern: Sequence[str], words: Sequence[str]) -> bool:
    """Whether a command starts with the first word of a pattern and has the others in order."""
    if not pattern or not words or not fnmatchcase(words[0], pattern[0]):
        return False
    rest = iter(words[1:])
    return all(any(fnmatchcase(word, wanted) for word in rest) for wanted in pattern[1:])
