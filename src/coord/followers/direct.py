"""Followers in a process that uses the store itself, because no hub runs.

A command that changed something lets the followers catch up that a person switched on, before it ends.
`Connection.close` calls this by name: most processes have none, and import nothing of this.
"""

import logging
import os
import socket

from coord.core.errors import CoordError
from coord.followers.follower import Follower, LogSource
from coord.followers.registry import follower_class
from coord.followers.runner import Runner
from coord.sdk.client.connection import Connection

logger = logging.getLogger("coord.followers")
PAGES_MAX = 20
"""How much of the log a command reads before it ends: 10,000 entries."""


def runner_name() -> str:
    """Return the name of this process as the runner of followers."""
    return f"{socket.gethostname()}:{os.getpid()}"


def log_source(connection: Connection) -> LogSource:
    """Return the log of a connection."""
    return LogSource(
        connection.engine, connection.log, connection.location, connection.environ, connection.clock
    )


def catch_up(connection: Connection, names: tuple[str, ...]) -> None:
    """Let followers read what they have not read yet; a failure is theirs, and not that of the command."""
    try:
        runner = Runner(log_source(connection), [follower_class(name) for name in names], runner_name())
        runner.step(pages_max=PAGES_MAX)
        runner.close(save=False)  # the next process reads the same again, which costs less than a commit
    except CoordError as error:
        logger.warning("followers: %s", error)


def caught_up(source: LogSource, name: str) -> Follower:
    """Return a follower that has read the whole log; what took long is saved for the next one who asks."""
    runner = Runner(source, [follower_class(name)], runner_name())
    (run,) = runner.runs
    runner.step()
    if run.failure is not None:
        raise run.failure
    return run.follower
