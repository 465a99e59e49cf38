"""How an error is shown outside: one table for every surface."""

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
"""A class that is not named here has the code of its nearest base that is."""

EXIT_MEANINGS = {
    OK: "done",
    REFUSED: "refused: held by another, not the owner, lost, a deadlock, a limit",
    INVALID: "the call is not valid",
    TIMED_OUT: "the time to wait has passed",
    NOT_FOUND: "no such thing",
    UNAVAILABLE: "the store cannot be reached; nothing was done",
    CORRUPT: "stored state is damaged, or coord has a defect",
    TRY_AGAIN: "busy, or the outcome is not known: try again, with the same command id",
    UNSUPPORTED: "this version of coord cannot do that",
    INTERRUPTED: "interrupted (128 and the number of the signal)",
}


class Failure(NamedTuple):
    """What a caller is told when something failed."""

    exit_code: int
    code: str
    message: str
    hint: str = ""
    command_id: str = ""

    def as_error(self) -> dict[str, str]:
        """Return what stands under `error` in an answer."""
        shown = {"code": self.code, "message": self.message, "hint": self.hint}
        return {**shown, "command_id": self.command_id} if self.command_id else shown


def failure(error: BaseException, command_id: str = "") -> Failure:
    """Return how an error is shown; `command_id` is the one to repeat when the outcome is not known."""
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
        "a defect of coord; COORD_DEBUG=1 shows where, please report it",
    )


def exit_code_of(kind: type[BaseException]) -> int:
    """Return the exit code of a class of errors."""
    for base in kind.__mro__:
        if base in EXIT_CODES:
            return EXIT_CODES[base]
    return CORRUPT


def _again(command_id: str) -> str:
    return f"try again with --command-id {command_id}" if command_id else ""
