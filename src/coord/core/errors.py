"""Every error of coord, by what the caller may conclude from it.

| class         | did it happen? | try again?                | examples                                  |
|---------------|----------------|---------------------------|-------------------------------------------|
| `Invalid`     | no             | no, correct the call      | a bad id, a bad url                       |
| `Refused`     | no             | no                        | over a limit, held by another, lost       |
| `NotFound`    | no             | no                        | a store that was never installed          |
| `Conflict`    | no             | the engine does           | never leaves the engine                   |
| `Busy`        | no             | yes, later                | the queue is full                         |
| `Unavailable` | no             | yes, later                | engine closed, disk full, missing rights  |
| `Unreachable` | no             | opening a store does      | server down, starting up, shutting down   |
| `Unknown`     | perhaps        | yes, the same command id  | connection lost after the commit was sent |
| `Unsupported` | no             | no, upgrade               | a record of a newer schema                |
| `Corrupt`     | stop           | no, a person must look    | a torn log entry                          |

The docstring of a class is its default message; `hint` says what to do next.
"""

from collections.abc import Iterable
from typing import ClassVar


class CoordError(Exception):
    """Coordination failed."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str | None = None, *, hint: str = "") -> None:
        self.message = message or (type(self).__doc__ or "").split("\n", 1)[0]
        self.hint = hint
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class Invalid(CoordError, ValueError):
    """The call is not valid."""

    code = "invalid"


class Refused(CoordError):
    """The rules do not allow this."""

    code = "refused"


class LimitReached(Refused):
    """A limit is reached."""

    code = "limit"


class Denied(Refused):
    """The lock was not granted."""

    code = "held"


class LockLost(Refused):
    """The lock is no longer held."""

    code = "lost"


class ClaimLost(Refused):
    """The claim is no longer held."""

    code = "claim_lost"


class NotOwner(Refused):
    """Somebody else holds this lock."""

    code = "not_owner"


class NotStealable(Refused):
    """The lock may not be stolen."""

    code = "not_stealable"


class Dead(Refused):
    """The session was declared dead; it holds nothing."""

    code = "dead"


class Gone(Refused):
    """The session has ended."""

    code = "gone"


class Impostor(Refused):
    """The caller belongs to another session."""

    code = "impostor"


class NotFound(CoordError, LookupError):
    """There is no such thing."""

    code = "not_found"


class Trimmed(NotFound):
    """That part of the log was trimmed."""

    code = "trimmed"

    def __init__(self, first: int) -> None:
        self.first = first
        super().__init__(
            f"the log begins at offset {first}; earlier entries were trimmed",
            hint=f"continue from offset {first}, and rebuild what you derived from earlier entries",
        )


class Conflict(CoordError):
    """A record has changed since it was read; nothing was written."""

    code = "conflict"

    def __init__(self, keys: Iterable[str]) -> None:
        self.keys = frozenset(keys)
        super().__init__(f"changed since it was read: {', '.join(sorted(self.keys)[:3])}")


class Busy(CoordError):
    """Too many commands are waiting; nothing was done."""

    code = "busy"


class Unavailable(CoordError, ConnectionError):
    """The store cannot be reached; nothing was done."""

    code = "unavailable"


class Unreachable(Unavailable):
    """The server of the store is down, starting up or shutting down; nothing was done.

    Waiting may help, so opening a store retries it. Every other `Unavailable` needs a person or another url.
    """


class Unknown(CoordError):
    """The reply was lost: the change may or may not have been made."""

    code = "unknown"


class Unsupported(CoordError):
    """This version of coord cannot do that."""

    code = "unsupported"


class Corrupt(CoordError):
    """Stored state is damaged; nothing is guessed and nothing was changed."""

    code = "corrupt"
