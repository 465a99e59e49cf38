"""Exit codes and error replies: the same for every transport."""

from typing import NamedTuple

from coord.core import errors

OK, REFUSED, INVALID, TIMED_OUT, NOT_FOUND = 0, 1, 2, 3, 4
UNAVAILABLE, CORRUPT, TRY_AGAIN, UNSUPPORTED = 69, 70, 75, 78
INTERRUPTED = 130

EXIT_CODES: dict[type[errors.CoordError], int] = {
    errors.Refused: REFUSED,
    errors.Invalid: INVALID,
    errors.NotFound: NOT_FOUND,
    errors.Unavailable: UNAVAILABLE,
    errors.Corrupt: CORRUPT,
    errors.Unknown: TRY_AGAIN,
    errors.Busy: TRY_AGAIN,
    errors.Conflict: TRY_AGAIN,
    errors.Unsupported: UNSUPPORTED,
}
"""An error class without an entry has the code of its nearest base class."""

EXIT_MEANINGS = {
    OK: "done",
    REFUSED: "refused: locked by another session, lost, a deadlock, a limit",
    INVALID: "the command line or a value is invalid",
    TIMED_OUT: "timed out while waiting",
    NOT_FOUND: "not found",
    UNAVAILABLE: "the store cannot be reached; nothing was changed",
    CORRUPT: "the stored data is damaged, or coord has a bug",
    TRY_AGAIN: "busy, or the outcome is unknown: repeat with the same command id",
    UNSUPPORTED: "this version of coord does not support it",
    INTERRUPTED: "interrupted (128 plus the number of the signal)",
}


class Failure(NamedTuple):
    """An error as a caller sees it."""

    exit_code: int
    code: str
    message: str
    hint: str = ""
    command_id: str = ""

    def as_error(self) -> dict[str, str]:
        """Return the `error` object of a reply."""
        shown = {"code": self.code, "message": self.message, "hint": self.hint}
        return {**shown, "command_id": self.command_id} if self.command_id else shown


def failure(error: BaseException, command_id: str = "") -> Failure:
    """Return an error for the caller; if the outcome is unknown, it can repeat `command_id`."""
    if isinstance(error, errors.CoordError):
        exit_code = exit_code_of(type(error))
        again = command_id if exit_code == TRY_AGAIN else ""
        return Failure(exit_code, error.code, error.message, error.hint or _again(again), again)
    if isinstance(error, KeyboardInterrupt):
        return Failure(INTERRUPTED, "interrupted", "interrupted")
    return Failure(
        CORRUPT,
        "defect",
        f"{type(error).__name__}: {error}",
        "this is a bug in coord; please report it with the output of COORD_DEBUG=1",
    )


def exit_code_of(kind: type[BaseException]) -> int:
    """Return the exit code of an error class."""
    for base in kind.__mro__:
        if base in EXIT_CODES:
            return EXIT_CODES[base]
    return CORRUPT


def _again(command_id: str) -> str:
    return f"retry with --command-id {command_id}" if command_id else ""
