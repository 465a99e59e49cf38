"""The sentence for the victim of a deadlock: what it lost, to whom, and the one command to run next.

The message, the command line and the SDK show the same sentence.
"""

from collections.abc import Sequence
from shlex import quote


def loss_text(lost: Sequence[str], lost_to: str) -> str:
    """Return what a session lost in a deadlock."""
    if not lost:
        return f"Deadlock: you lost your place in the wait queue to {lost_to}, but no lock"
    them = "it" if len(lost) == 1 else "them"
    verb = "editing" if all(resource.startswith("file:") for resource in lost) else "using"
    return f"Deadlock: you lost {', '.join(map(word, lost))} to {lost_to}. Stop {verb} {them}"


def next_command(again: Sequence[str], claims: Sequence[str] = ()) -> str:
    """Return the command that requests everything together, and the lost tasks after it."""
    command = f"coord lock {' '.join(quote(word(resource)) for resource in again)}"
    return " && ".join([command, *(f"coord task claim {quote(task)}" for task in claims)])


def deadlock_text(lost: Sequence[str], lost_to: str, again: Sequence[str], claims: Sequence[str]) -> str:
    """Return the whole sentence: the loss, and what to run next."""
    joint = ", then run:" if lost else ". To wait again, run:"
    return f"{loss_text(lost, lost_to)}{joint} {next_command(again, claims)}"


def word(resource: str) -> str:
    """Return a resource as people type it."""
    return resource.removeprefix("file:")
