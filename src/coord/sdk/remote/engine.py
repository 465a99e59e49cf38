"""The engine of a hub: the calls of `Engine`, answered by another process."""

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from coord.core.commands import Command
from coord.core.errors import Busy, CoordError, Unavailable, Unknown, Unreachable
from coord.engine.engine import TIMEOUT_S, Engine
from coord.sdk.remote import wire
from coord.sdk.remote.channel import Broken

if TYPE_CHECKING:
    from coord.sdk.remote.database import RemoteDatabase
    from coord.sdk.remote.direct import DirectStore

RETRY_S = 0.2
TRY_S_MIN = 0.1


class RemoteEngine:
    """Runs the commands of one tenant in a hub; while the hub is gone, in this process.

    Each command that writes has an id. If an answer is lost, the command is sent again with the same id, to
    the hub or to the store itself, and runs once.
    """

    def __init__(self, database: "RemoteDatabase", tenant: str, hops: int = 0) -> None:
        """`hops`: how many reactions one after another led to this process."""
        self.tenant = tenant
        self._hops = hops
        self._database = database
        self._closed = False

    def call(self, command: Command, *, timeout: float = TIMEOUT_S, command_id: str = "") -> Any:
        """Run a command and return its reply."""
        return self._call_all([command], timeout, command_id)[0]

    def call_many(self, commands: Sequence[Command], *, timeout: float = TIMEOUT_S) -> list[Any]:
        """Run several commands together; return their replies, or raise the first error after all ran."""
        return self._call_all(commands, timeout, "")

    def _call_all(self, commands: Sequence[Command], timeout: float, command_id: str) -> list[Any]:
        if self._closed:
            raise Unavailable("the engine is closed", hint="open it again")
        ids = ["" if each.reads_only else command_id or os.urandom(12).hex() for each in commands]
        deadline = time.monotonic() + timeout
        doubt: Broken | None = None
        while True:
            left = max(TRY_S_MIN, deadline - time.monotonic())
            direct: DirectStore | None = None
            try:
                with self._database.directly() as direct:
                    if direct is not None:
                        return _call_directly(direct.engine(self.tenant), commands, ids, left)
                return self._ask(commands, ids, left)
            except Broken as error:
                doubt = error if any(ids) else None
                problem: CoordError = error
            except Unreachable as error:
                problem = error
            except (Unavailable, Busy) as error:
                _fail(doubt, error)
            if direct is not None:
                _fail(doubt, problem)
            try:
                if self._database.fall_back():
                    continue
            except CoordError as error:
                _fail(doubt, error)
            if time.monotonic() + RETRY_S >= deadline:
                _fail(doubt, problem)
            time.sleep(RETRY_S)  # noqa: TID251 - a hub that starts again announces it to nobody

    def _ask(self, commands: Sequence[Command], ids: list[str], timeout: float) -> list[Any]:
        commands_data = [wire.raw(command) for command in commands]
        body = wire.Call(self._database.target(self.tenant), commands_data, ids, timeout, self._hops)
        answers = self._database.post(wire.CALL, body, wire.Answers, timeout)
        self._database.saw(self.tenant, answers.head)
        if len(answers.answers) != len(commands):
            raise Broken("the hub answered another number of commands", hint="coord serve --stop")
        return [
            wire.decode_reply(command, answer)
            for command, answer in zip(commands, answers.answers, strict=True)
        ]

    def trim(self, *, whole: bool = True) -> int:
        """Trim the log as the settings say; return how many entries went."""
        body = wire.Trim(self._database.target(self.tenant))
        return self._database.ask(
            wire.TRIM, body, int, lambda direct: direct.engine(self.tenant).trim(whole=whole)
        )

    def close(self) -> None:
        """Refuse new commands; each earlier one has ended with its answer."""
        self._closed = True


def _fail(doubt: Broken | None, error: CoordError) -> NoReturn:
    """Report a command that did not run now; if an earlier answer was lost, it may have run before."""
    if doubt is None:
        raise error
    raise Unknown(doubt.message, hint="repeat it with the same command id") from error


def _call_directly(direct: Engine, commands: Sequence[Command], ids: list[str], timeout: float) -> list[Any]:
    """Run each command with its id; return the replies, or raise the first error after all ran."""
    replies: list[Any] = []
    failed: CoordError | None = None
    for command, command_id in zip(commands, ids, strict=True):
        try:
            replies.append(direct.call(command, timeout=timeout, command_id=command_id))
        except CoordError as error:
            failed = failed or error
    if failed is not None:
        raise failed
    return replies
