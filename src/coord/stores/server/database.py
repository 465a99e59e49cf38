"""The base of stores on a server: one listener for all waiters, and what a fork means for connections."""

import os
import sys
from abc import abstractmethod
from contextlib import AbstractContextManager

from coord.core.errors import Unavailable
from coord.stores.database import AnyStore, Database
from coord.stores.server.listener import Listener, Subscription

_inherited: list[object] = []
"""The connections of the parent in a forked child: garbage collection would close them."""


def fails_by_tls(error: BaseException | None) -> bool:
    """Return whether a connection failed because of TLS: an untrusted certificate, or no common version.

    A retry does not help until somebody changes a certificate or a setting. A peer that hung up is no TLS
    failure.
    """
    ssl = sys.modules.get("ssl")  # without an encrypted connection, ssl is not imported
    while error is not None and ssl is not None:
        if isinstance(error, ssl.SSLError):
            return not isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError)
        error = error.__cause__ or error.__context__
    return False


class ServerDatabase(Database[AnyStore]):
    """An open store on a server. Each backend connects in its own way and implements `_subscribe`."""

    def _begin(self) -> None:
        """Start without connections, in this process."""
        self._process = os.getpid()
        self._listener = Listener(self._subscribe)

    def _in_this_process(self) -> None:
        """After a fork, leave the parent's connections alone: closing one would end the parent's session."""
        if self._process != os.getpid():
            _inherited.append(dict(vars(self)))
            self._begin()

    @abstractmethod
    def _subscribe(self) -> AbstractContextManager[Subscription]:
        """Open a connection that receives notifications of commits."""

    def wait(self, log: int, after: int, seconds: float) -> bool:
        """Wait until a log has an entry after an offset, for at most `seconds`; return whether it has."""
        self._in_this_process()
        if self.closed:
            raise Unavailable("the database is closed")
        return self._listener.wait(log, after, seconds)

    def close(self) -> None:
        super().close()
        self._in_this_process()
        self._listener.close()
