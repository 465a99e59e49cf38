"""Drop connections whose peer has stopped reading, or stays although we closed them.

What a peer does not read stays in memory, also after the connection was closed on our side.
"""

from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

PROGRESS_BYTES = 16 * 1024
"""A peer that leaves something unread has to read this much between two looks."""


class StalledConnections:
    """Remembers what every connection had left unread at the last look."""

    def __init__(self) -> None:
        self._unread: WeakKeyDictionary[Any, int] = WeakKeyDictionary()

    def drop(self, protocols: Iterable[Any]) -> int:
        """Abort the connections that have not read on since the last look; return how many."""
        dropped = 0
        for protocol in list(protocols):
            transport = protocol.transport
            unread = transport.get_write_buffer_size() if transport is not None else 0
            before = self._unread.pop(protocol, 0)
            if unread and before and unread > before - PROGRESS_BYTES:
                transport.abort()
                dropped += 1
            elif unread:
                self._unread[protocol] = unread
        return dropped
