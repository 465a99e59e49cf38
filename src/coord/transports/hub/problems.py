"""Errors as HTTP: problem details (RFC 9457), from the one table of error classes."""

from typing import Any

from coord.core import errors
from coord.core.errors import CoordError, Refused
from coord.transports.exit_codes import failure
from coord.transports.hub.request import MSGPACK, Response, encode_json

PROBLEM = "application/problem+json"


class HttpError(Refused):
    """The request is refused before a command runs."""

    def __init__(
        self, status: int, code: str, message: str, *, hint: str = "", headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.code = code  # type: ignore[misc]
        self.headers = headers or {}


STATUS: dict[type[CoordError], int] = {
    errors.Invalid: 400,
    errors.Impostor: 403,
    errors.NotFound: 404,
    errors.Gone: 410,
    errors.Refused: 409,
    errors.Conflict: 503,
    errors.Busy: 503,
    errors.Unavailable: 503,
    errors.Unknown: 504,
    errors.Unsupported: 501,
    errors.Corrupt: 500,
}
"""The status of an error class; one without an entry has that of its nearest base class."""
RETRY_AFTER = {503: "1", 429: "1"}


def status_of(error: CoordError) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, HttpError):
        return error.status
    return next((STATUS[base] for base in type(error).__mro__ if base in STATUS), 500)


def problem(error: BaseException, *, command_id: str = "") -> Response:
    """Return an error as problem details."""
    body = problem_details(error, command_id)
    status = body["status"]
    headers = dict(error.headers) if isinstance(error, HttpError) else {}
    if status in RETRY_AFTER:
        headers.setdefault("Retry-After", RETRY_AFTER[status])
    return Response(status, encode_json(body), PROBLEM, headers)


def problem_details(error: BaseException, command_id: str = "") -> dict[str, Any]:
    """Return the members of a problem."""
    found = failure(error, command_id)
    status = status_of(error) if isinstance(error, CoordError) else 500
    return {
        "type": f"urn:coord:error:{found.code}",
        "title": found.code,
        "status": status,
        "detail": found.message,
        "code": found.code,
        "hint": found.hint,
        **({"command_id": found.command_id} if found.command_id else {}),
    }


def wire_problem(error: BaseException) -> Response:
    """Return an error for a client of coord, which raises it again."""
    from coord.sdk.remote import wire

    if not isinstance(error, CoordError):
        found = failure(error)
        error = CoordError(found.message, hint=found.hint)
    headers = error.headers if isinstance(error, HttpError) else {}
    return Response(status_of(error), wire.encode(wire.error_data(error)), MSGPACK, headers)
