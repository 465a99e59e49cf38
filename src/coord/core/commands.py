"""The base classes of commands and replies; each domain defines its own in `<domain>/commands.py`.

A command is a frozen struct. It names the rule that decides it by its full path, so that the rule is imported
on first use: most processes run a single command. `reply` is the type of the answer. `reads_only` marks
questions, which never write and never sweep. `fenced` marks commands whose reply states the offset of
their commit, which is known only afterwards (`with_fence`). Callers have checked ids and texts already.
"""

from typing import ClassVar

import msgspec

from coord.core.identity import Caller


class Command(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The base of every command."""

    rule: ClassVar[str]
    """The function that decides it, `module:function`: `(tx, command, now) -> reply`."""
    prefetch_keys: ClassVar[str] = ""
    """A function from the command to keys worth loading before the rule runs."""
    prefetch_ranges: ClassVar[str] = ""
    """A function from the command to ranges worth loading with them."""
    reply: ClassVar[object] = None
    reads_only: ClassVar[bool] = False
    fenced: ClassVar[bool] = False

    def content(self) -> "Command":
        """Return what makes two commands the same question, whoever carries it."""
        return self


class SessionCommand(Command, frozen=True):
    """A command in the name of a session."""

    caller: Caller

    def content(self) -> Command:
        """Return the command without what differs when it is sent again from another process."""
        return msgspec.structs.replace(self, caller=Caller(self.caller.session))


class Reply(msgspec.Struct, frozen=True, gc=False):
    """The base of every reply."""
