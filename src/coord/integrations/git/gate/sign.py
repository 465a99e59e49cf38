"""Sign a commit message: add trailers for the session, its claims and its locks."""

from collections.abc import Sequence

from coord.core.errors import NotFound
from coord.core.identity import Caller
from coord.core.locks.commands import ListLocks, LockInfo
from coord.core.locks.paths import parse_pattern
from coord.core.sessions.commands import FindSession
from coord.core.tasks.commands import GetSessionClaims
from coord.integrations.git.changes import write_locks
from coord.integrations.git.gate.check import covers
from coord.integrations.git.gate.trailers import (
    FenceTrailer,
    TaskTrailer,
    Trailers,
    read_message,
    without_trailers,
)
from coord.integrations.git.run import Git
from coord.sdk.client.connection import Connection


def sign_message(git: Git, connection: Connection, caller: Caller, message: str, paths: Sequence[str]) -> str:
    """Return a message with the current trailers of the session in place of its old ones."""
    trailers = current_trailers(connection, caller, paths).replacing(read_message(message))
    options = [word for line in trailers.lines() for word in ("--trailer", line)]
    how = ("--where", "end", "--if-exists", "add", "--if-missing", "add", "--no-divider")
    text = without_trailers(message).encode("utf-8", "surrogateescape")
    if not text.endswith(b"\n"):  # otherwise git appends the trailer to the subject line
        text += b"\n"
    done = git.must("interpret-trailers", *how, *options, stdin=text)
    return done.out.decode("utf-8", "surrogateescape")


def current_trailers(connection: Connection, caller: Caller, paths: Sequence[str]) -> Trailers:
    """Return the current trailers of a session: its id, its claims, its locks on these files."""
    try:
        session = connection.call(FindSession(caller)).session_id
    except NotFound:
        session = caller.session  # the session is not registered yet
    claims = connection.call(GetSessionClaims(connection.tenant, session))
    locks = write_locks(connection.call(ListLocks(caller, own=True)))
    return Trailers(
        session,
        tuple(TaskTrailer(claim.project_id, claim.task_id, claim.generation.generation) for claim in claims),
        tuple(FenceTrailer(lock.fence, lock.resource) for lock in locks if _signs(lock, paths)),
    )


def _signs(lock: LockInfo, paths: Sequence[str]) -> bool:
    """Whether a lock covers any of these files."""
    patterns = parse_pattern(lock.resource.removeprefix("file:"))
    return any(covers(pattern, path) for pattern in patterns for path in paths)
