"""What databases on servers share: a listener for all who wait, and what a fork means for connections."""

import os
import sys
from contextlib import AbstractContextManager

from coord.core.errors import Unavailable
from coord.stores.database import AnyStore, Database
from coord.stores.server.listener import Ear, Listener

_inherited: list[object] = []
"""What a forked child must keep: its parent's connections, lest they are closed as garbage."""


def fails_by_tls(error: BaseException | None) -> bool:
    """Whether a connection failed because one side does not trust or understand the other's TLS.

    That stays so until somebody changes a certificate or a setting; a peer that hung up is another matter.
    """
    ssl = sys.modules.get("ssl")  # imported by whoever encrypts; else no error of it can be here
    while error is not None and ssl is not None:
        if isinstance(error, ssl.SSLError):
            return not isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError)
        error = error.__cause__ or error.__context__
    return False


class ServerDatabase(Database[AnyStore]):
    """An open store on a server. Each kind connects in its own way, and gives an ear to listen with."""

    def _begin(self) -> None:
        """Begin without connections, in this process."""
        self._process = os.getpid()
        self._listener = Listener(self._ear)

    def _in_this_process(self) -> None:
        """After a fork leave the parent's connections alone: its sessions end when anybody closes them."""
        if self._process != os.getpid():
            _inherited.append(dict(vars(self)))
            self._begin()

    def _ear(self) -> AbstractContextManager[Ear]:
        raise AssertionError("each kind of server is listened to in its own way")

    def wait(self, log: int, after: int, seconds: float) -> bool:
        """Wait for a log to grow beyond an offset, at most so long; return whether it did."""
        self._in_this_process()
        if self.closed:
            raise Unavailable("the database is closed")
        return self._listener.wait(log, after, seconds)

    def close(self) -> None:
        super().close()
        self._in_this_process()
        self._listener.close()
